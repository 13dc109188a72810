"""Law 5: a fork is a replay before its moment and live after; what its intervention does not reach stays the same."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agents.engines.synthetic import SyntheticEngine
from sim.fork import fork
from sim.log import Divergence
from sim.record.reader import Run
from sim.record.store import Store
from sim.runs import create, go
from sim.types import Choice, Completion, Request
from sim.verify import verify
from tests.laws.societies import MORE, WORLDS, society
from tests.laws.test_law4_kills import log_of

AT = {
    "bargaining": 30, "double auction": 70, "matrix": 60, "forum": 9000, "oligopoly": 60, "verification": 60,
    "opinions": 60, "herding": 60, "riddles": 40,
}  # fmt: skip


@pytest.fixture(scope="module")
def parents(tmp_path_factory: Any) -> dict[str, Path]:
    """One finished run per world."""
    folder = tmp_path_factory.mktemp("parents")
    made = {}
    for world in [*WORLDS, *MORE]:
        made[world] = create(society(world), folder, world.replace(" ", "-"))
        go(made[world])
    return made


def decisions(path: Path) -> list[Any]:
    return [row for kind, row in log_of(path) if kind == "decisions"]


@pytest.mark.parametrize("world", [*WORLDS, *MORE])
def test_a_no_op_fork_is_identical_and_free(world: str, parents: dict[str, Path], tmp_path: Path) -> None:
    bytes_before = parents[world].read_bytes()
    child = fork(parents[world], tmp_path, AT[world])
    session = go(child)
    assert session.status == "finished"
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert log_of(child) == log_of(parents[world])
    assert parents[world].read_bytes() == bytes_before
    assert verify(child).whole


class Telling(SyntheticEngine):
    """Says how likely every option was but the last."""

    def submit(self, request: Request) -> Future[Completion]:
        said = super().submit(request).result()
        done: Future[Completion] = Future()
        options = request.format.options if isinstance(request.format, Choice) else ()
        known = tuple(-0.1 * (place + 1) if option != options[-1] else None for place, option in enumerate(options))
        done.set_result(replace(said, option_logprobs=known))
        return done


def test_what_was_known_of_every_option_is_in_the_fork(tmp_path: Path) -> None:
    parent = create(society("matrix"), tmp_path, "parent")
    go(parent, engines={"m": Telling()})
    child = fork(parent, tmp_path, AT["matrix"])
    go(child, engines={"m": SyntheticEngine(dead_after=0)})
    assert verify(child).whole
    with Run(parent) as old, Run(child) as new:
        told = [(call.key, call.completion) for call in old.calls()]
        assert told == [(call.key, call.completion) for call in new.calls()]
    known = {completion.option_logprobs for _, completion in told} - {()}
    assert [one[1] for one in known] == [None]
    assert [one[0] for one in known] == pytest.approx([-0.1])


@pytest.mark.parametrize("world", WORLDS)
def test_replicates_are_the_same_before_and_differ_after(world: str, parents: dict[str, Path], tmp_path: Path) -> None:
    at = AT[world]
    children = [fork(parents[world], tmp_path, at, replicate=r) for r in (0, 1, 2)]
    for child in children:
        go(child)
    logs = [log_of(child) for child in children]
    before = [row for row in log_of(parents[world]) if row[1][2] < at]
    for log in logs:
        assert log[: len(before)] == before
    assert logs[0] == log_of(parents[world])
    assert logs[1] != logs[2] != logs[0] != logs[1]
    again = fork(parents[world], tmp_path, at, replicate=1)
    go(again)
    assert log_of(again) == logs[1], "a replicate is paired: the same number has the same luck"
    for child in children[1:]:
        assert verify(child).whole


def test_an_edit_changes_only_what_it_reaches(parents: dict[str, Path], tmp_path: Path) -> None:
    edit = {"at": 5, "do": "say", "text": "Hurry up.", "to": ["slow-1", "slow-2"]}
    child = fork(parents["bargaining"], tmp_path, 5, edits=[edit])
    session = go(child)
    assert session.calls is not None
    assert 0 < session.calls.reused < session.calls.submitted
    pair = {"slow-1", "slow-2"}
    untouched = [[row[4:9] for row in decisions(path) if row[4] not in pair] for path in (child, parents["bargaining"])]
    assert untouched[0] == untouched[1]
    assert verify(child).whole
    with pytest.raises(ValueError, match="before the fork"):
        fork(parents["bargaining"], tmp_path, 30, edits=[edit])


def test_who_becomes_nobody_else_decides_as_before(parents: dict[str, Path], tmp_path: Path) -> None:
    edit = {"at": 20, "do": "become", "agent": "slow-1", "use": "agents.llm:LLMAgent", "with": {"memory_tokens": 160}}
    child = fork(parents["bargaining"], tmp_path, 20, edits=[edit])
    session = go(child)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted, "free"
    same = [[row[4:9] for row in decisions(path)] for path in (child, parents["bargaining"])]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    "other",
    [
        {"persona": {"name": "Zoe", "goals": ["never give way"]}},
        {"with": {"instructions": "Be generous."}},
        {"use": "agents.scripted:RandomLegal", "model": ""},
    ],
)
def test_who_becomes_another_reaches_those_it_meets_only(
    other: dict[str, Any], parents: dict[str, Path], tmp_path: Path
) -> None:
    edit = {"at": 5, "do": "become", "agent": "slow-1", **other}
    child = fork(parents["bargaining"], tmp_path, 5, edits=[edit])
    assert go(child).status == "finished"
    pair = {"slow-1", "slow-2"}
    rows = [decisions(path) for path in (child, parents["bargaining"])]
    assert [row[4:9] for row in rows[0] if row[4] not in pair] == [row[4:9] for row in rows[1] if row[4] not in pair]
    assert [row[4:9] for row in rows[0] if row[4] in pair] != [row[4:9] for row in rows[1] if row[4] in pair]
    assert [row for row in log_of(child) if row[1][2] < 5] == [
        row for row in log_of(parents["bargaining"]) if row[1][2] < 5
    ]
    assert verify(child).whole


def test_other_models_from_then_on(parents: dict[str, Path], tmp_path: Path) -> None:
    child = fork(parents["forum"], tmp_path, AT["forum"], sets=["models.m.temperature=0.1"])
    go(child)
    early = [row for row in decisions(child) if row[5] < AT["forum"]]
    assert early == [row for row in decisions(parents["forum"]) if row[5] < AT["forum"]][: len(early)]
    assert decisions(child) != decisions(parents["forum"])
    assert verify(child).whole
    grandchild = fork(child, tmp_path, AT["forum"] + 3600)
    session = go(grandchild)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert log_of(grandchild) == log_of(child)


def test_a_changed_request_stops_a_replay_with_both_sides_shown(parents: dict[str, Path], tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "changed")
    go(path)
    with Store.open(path) as store:
        scenario = store.manifest().scenario.replace("temperature: 0.8", "")
        store.update(scenario=scenario.replace("context: 2048", "context: 2048\n    temperature: 0.3"))
    with pytest.raises(Divergence, match=r"(?s)the request differs.*--- recorded.*--- now"):
        verify(path)


def test_a_changed_row_is_named(parents: dict[str, Path], tmp_path: Path) -> None:
    import sqlite3

    path = create(society("matrix"), tmp_path, "row")
    go(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE decisions SET answer = '\"B\"' WHERE seq = (SELECT min(seq) FROM decisions)")
    connection.close()
    with pytest.raises(Divergence, match=r"seq \d+, tick \d+: the replay differs"):
        verify(path)


def test_the_record_counts_what_the_run_counted(parents: dict[str, Path]) -> None:
    for path in parents.values():
        with Run(path) as run:
            counts = run.counts()
            assert sum(sum(by_how.values()) for by_how in counts.decisions.values()) == len(decisions(path))
