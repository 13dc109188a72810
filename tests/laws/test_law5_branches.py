"""Law 5, table by table: a branch is its table up to a moment, and the minds' own luck decides what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.fork import branch, fork
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.overrides import overridden
from sim.scenarios.plan import Branch
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.verify import verify
from tests.laws.societies import WORLDS, society
from tests.laws.test_law4_kills import log_of
from tests.laws.test_law5_forks import AT

TABLES = 3


@pytest.fixture(scope="module")
def trunks(tmp_path_factory: Any) -> dict[str, Path]:
    """One finished run of three tables per world, two of which start alike."""
    folder = tmp_path_factory.mktemp("trunks")
    made = {}
    for world in WORLDS:
        one = society(world)
        data = overridden(one.located, [f"tables={TABLES}", "group=2"]).data
        made[world] = create(loads(write_yaml(data), one.base, file=world), folder, world.replace(" ", "-"))
        assert go(made[world]).status == "finished"
    return made


def tables(path: Path) -> list[list[tuple[str, Any]]]:
    """The log of each table, without the table's number and the hashes of ticks, which hold it."""
    with Run(path) as run:
        many = run.tables
    logs: list[list[tuple[str, Any]]] = [[] for _ in range(many)]
    for kind, row in log_of(path):
        if not (kind == "events" and row[4] == "tick"):
            logs[row[0]].append((kind, (*row[2:],)))
    return logs


@pytest.mark.parametrize("world", WORLDS)
def test_branches_share_their_tables_past_and_go_their_own_ways(
    world: str, trunks: dict[str, Path], tmp_path: Path
) -> None:
    at = AT[world]
    asked = [Branch(2, at, 1), Branch(0, at // 2, 1), Branch(2, at, 2), Branch(2, at, 1)]
    bytes_before = trunks[world].read_bytes()
    path = branch(trunks[world], tmp_path, asked)
    session = go(path)
    assert session.status == "finished"
    assert session.calls is not None
    assert 0 < session.calls.reused < session.calls.submitted
    assert trunks[world].read_bytes() == bytes_before
    trunk, made = tables(trunks[world]), tables(path)
    for one, log in zip(asked, made, strict=True):
        before = [row for row in trunk[one.table] if row[1][0] < one.tick]
        assert before
        assert log[: len(before)] == before
        assert log != trunk[one.table]
    assert made[0] != made[2], "branches of other numbers have other luck"
    assert made[0] == made[3], "a branch is named by its table, tick and number"
    assert verify(path).whole


@pytest.mark.parametrize("world", ["bargaining", "matrix", "forum"])
def test_what_is_seen_at_the_moment_is_the_same_and_the_worlds_luck_too(
    world: str, trunks: dict[str, Path], tmp_path: Path
) -> None:
    """A branch at a decision asks the same question again: the same messages under the same key, another seed."""
    with Run(trunks[world]) as run:
        zero = {one.action.seen for one in run.decisions(0) if one.tick == one.action.seen}
        seen = [one for one in run.decisions(0) if one.calls and one.action.seen > 0 and one.action.seen not in zero]
        node = seen[len(seen) // 2]
        asked = run.calls_of(node)[0]
    path = branch(trunks[world], tmp_path, [Branch(0, node.action.seen, 1)])
    go(path)
    with Run(path) as run:
        again = {call.key: call for call in run.calls()}[asked.key]
    assert (again.messages, again.format) == (asked.messages, asked.format)
    assert again.seed != asked.seed
    assert again.source == "engine"


def test_branches_of_what_is_not_there_are_refused_and_branches_can_be_forked(
    trunks: dict[str, Path], tmp_path: Path
) -> None:
    parent = trunks["matrix"]
    with pytest.raises(ValueError, match="has 3 tables, no table 3"):
        branch(parent, tmp_path, [Branch(3, 10, 1)])
    path = branch(parent, tmp_path, [Branch(1, AT["matrix"], 1)])
    go(path)
    with pytest.raises(ValueError, match="is a fork"):
        branch(path, tmp_path, [Branch(0, 10, 1)])
    child = fork(path, tmp_path, AT["matrix"] + 20)
    session = go(child)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert log_of(child) == log_of(path)
    assert verify(child).whole
