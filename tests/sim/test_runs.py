"""Stored runs: made, gone on with, verified and forked where something went wrong before."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from sim.fork import fork
from sim.lineage import Lineage
from sim.log import Divergence
from sim.record.reader import Run
from sim.runs import Session, create, go
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.types import Action, EngineFailure, Outcome
from sim.verify import verify
from sim.voices import LateEngine, Pool
from tests.laws.societies import society
from tests.laws.test_law4_kills import log_of
from tests.stage import Stage


class Breaks(Stage):
    """Raises at tick 6."""

    def __init__(self, params: Any) -> None:
        super().__init__()

    def step(self, now: int, actions: Any) -> Any:
        if now == 6:
            raise ZeroDivisionError("ouch")
        return super().step(now, actions)


class Lasts(Stage):
    """Goes on until a tick that a test may change, as an author changes the code of a world."""

    last = 20

    def __init__(self, params: Any) -> None:
        super().__init__()

    def step(self, now: int, actions: Any) -> Any:
        outcome = super().step(now, actions)
        return outcome if now < self.last else Outcome(results=outcome.results)


class Yes:
    """Says yes."""

    def __init__(self, member: Any) -> None:
        self.state: object = None

    def act(self, turn: Any, streams: Any) -> Any:
        return Action(answer="yes")
        yield


def staged(world: str, **more: Any) -> Scenario:
    """A scenario of a world of this file."""
    data = {
        "name": "staged",
        "clock": {"until": "20s"},
        "world": {"use": f"tests.sim.test_runs:{world}"},
        "cast": [{"name": "a", "agent": "tests.sim.test_runs:Yes", "think": "2s"}],
        **more,
    }
    return loads(write_yaml(data), Path(), file="staged.yaml")


def altered(path: Path, *statements: str) -> None:
    """Change a run file behind the record's back."""
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_failed_run_verifies_as_far_as_it_got(tmp_path: Path) -> None:
    path = create(staged("Breaks"), tmp_path)
    session = go(path)
    assert session.status == "failed"
    assert "ouch" in session.cause
    found = verify(path)
    assert found.events == len(log_of(path))
    assert not found.whole
    assert go(path).status == "failed", "going on comes to the same end"


def test_a_finished_run_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create(staged("Lasts"), tmp_path)
    assert go(path).status == "finished"
    monkeypatch.setattr(Lasts, "last", 10)
    assert go(path).status == "finished"
    with Run(path) as run:
        assert run.status == "finished"
    with pytest.raises(Divergence):
        verify(path)


def test_a_lost_call_is_no_end_of_the_record(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path)
    go(path)
    first = "SELECT min(seen) FROM decisions"
    altered(path, f"DELETE FROM calls WHERE tick = ({first})", "UPDATE run SET status = 'interrupted'")
    with pytest.raises(Divergence, match="where the record goes on"):
        verify(path)


def test_a_run_file_is_whole_from_the_start(tmp_path: Path) -> None:
    path = create(staged("Lasts"), tmp_path)
    with Run(path) as run:
        assert [member.seat.agent for member in run.cast()] == ["a"]


def test_runs_that_are_made_at_once_get_files_of_their_own(tmp_path: Path) -> None:
    scenario = staged("Lasts")
    made: list[Path] = []
    start = threading.Barrier(4)

    def make() -> None:
        start.wait()
        made.append(create(scenario, tmp_path, "same"))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.stem for path in made) == ["same", "same-2", "same-3", "same-4"]
    for path in made:
        with Run(path) as run:
            assert run.manifest().id == path.stem


def test_engines_that_do_not_start_pause_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create(society("matrix"), tmp_path)
    seen: list[Session] = []

    def start(engine: LateEngine) -> Any:
        assert seen[0].host is None, "nothing runs yet that could be stopped at the next tick"
        raise EngineFailure("no room")

    monkeypatch.setattr(LateEngine, "start", start)
    session = go(path, attach=seen.append)
    assert (session.status, session.cause) == ("paused", "no room")
    monkeypatch.undo()
    assert go(path).status == "finished"


def test_an_engine_that_could_not_be_built_is_built_anew_for_a_run_gone_on_with_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built, path = Pool._built, create(society("matrix"), tmp_path)
    fails = iter([RuntimeError("no memory")])

    def build(pool: Pool, settings: Any) -> Any:
        for error in fails:
            raise error
        return built(pool, settings)

    monkeypatch.setattr(Pool, "_built", build)
    session = go(path)
    assert (session.status, session.cause) == ("paused", "the engine synthetic does not start: no memory")
    assert go(path).status == "finished"


def test_every_engine_is_closed() -> None:
    closed = []

    class Engine:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)
            if self.name == "b":
                raise OSError("stuck")

    pool = Pool(Path())
    for name in "abc":
        pool.engines[name] = late = LateEngine(name, lambda name=name: Engine(name))  # type: ignore[misc, return-value]
        late.start()
    with pytest.raises(OSError, match="stuck"):
        pool.close()
    assert sorted(closed) == ["a", "b", "c"]


# --- forks of forks -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = create(society("matrix"), tmp_path_factory.mktemp("parent"), "parent")
    go(path)
    return path


def test_a_fork_of_a_fork_may_come_before_it(parent: Path, tmp_path: Path) -> None:
    child = fork(parent, tmp_path, 60, replicate=1)
    go(child)
    grandchild = fork(child, tmp_path, 30)
    session = go(grandchild)
    assert log_of(grandchild) == log_of(child)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    other = fork(child, tmp_path, 30, replicate=2)
    go(other)
    assert verify(other).whole
    between = [[row for row in log_of(path) if 30 <= row[1][2] < 60] for path in (child, other)]
    assert between[0] != between[1]
    with Run(other) as run, Lineage(run.manifest()) as lineage:
        assert lineage.branches == [(30, 2), (60, 1)]
    with pytest.raises(ValueError, match="was forked at tick 60; to change models before that, fork its parent"):
        fork(child, tmp_path, 30, sets=["models.m.temperature=0.1"])


def test_a_fork_of_a_fork_that_never_ran_takes_what_that_would_have_taken(parent: Path, tmp_path: Path) -> None:
    child = fork(parent, tmp_path, 30)
    grandchild = fork(child, tmp_path, 60)
    session = go(grandchild)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert log_of(grandchild) == log_of(parent)


def test_a_fork_comes_before_the_end(parent: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="after the end of the run at tick 3600"):
        fork(parent, tmp_path, 3601)


def test_a_folder_that_is_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(FileExistsError):
        create(staged("Lasts"), tmp_path / "runs")


def test_a_fork_whose_parent_is_gone_says_so(parent: Path, tmp_path: Path) -> None:
    child = fork(parent, tmp_path, 30)
    altered(child, "UPDATE run SET parent = '/nowhere/lost.db'")
    with pytest.raises(FileNotFoundError, match=r"forked from /nowhere/lost.db, which is gone"):
        go(child)
    with Run(child) as run:
        assert run.status == "interrupted"


def test_a_run_can_begin_with_what_its_agents_know_and_with_luck_of_their_own(tmp_path: Path) -> None:
    plain = create(society("matrix"), tmp_path, "plain")
    past = {(0, "slow-1"): "It went badly.", (1, "slow-2"): "There is no such table."}
    knowing = create(society("matrix"), tmp_path, "knowing", past=past)
    other = create(society("matrix"), tmp_path, "other", luck=1)
    same = create(society("matrix"), tmp_path, "same", luck=1)
    for path in (plain, knowing, other, same):
        assert go(path).status == "finished"
    with Run(knowing) as run:
        assert {member.seat.agent: member.past for member in run.cast()} == {
            "slow-1": "It went badly.",
            **dict.fromkeys(("slow-2", "slow-3", "quick-1", "quick-2"), ""),
        }
        first = next(call for call in run.calls() if call.key.agent == "slow-1")
        assert "Earlier, in short: It went badly." in first.messages[1].text
    assert log_of(other) == log_of(same)
    assert log_of(other) != log_of(plain)
    assert all(verify(path).whole for path in (knowing, other))
