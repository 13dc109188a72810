"""Law 4: committed means durable. Fifty processes are killed at drawn numbers of stored rows, and resumed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sim.record.committed import Committed
from sim.record.reader import Run
from sim.record.store import RunLocked, Store
from sim.runs import create, go
from sim.streams import Streams
from sim.verify import verify
from tests.laws.societies import WORLDS, society

KILLS = {"bargaining": 12, "double auction": 13, "matrix": 12, "forum": 13}
SLOW = {"latency": "uniform(5ms, 15ms)", "slots": 6}
"""So that calls are in flight at nearly every moment."""


def log_of(path: Path) -> list[Any]:
    """All log rows of all tables."""
    with Run(path) as run:
        return [row for table in range(run.tables) for row in run.log(table)]


def doomed(path: Path, rows: int, inside: bool) -> None:
    """Run in a process that kills itself once so many rows were inserted: inside the transaction, or right after it."""
    import sim.record.store

    inserted = 0
    session: Any = None
    insert, commit = sim.record.store._insert, Store._commit

    def die() -> None:
        path.with_suffix(".killed").write_text(json.dumps({"in_flight": session.calls.in_flight, "inside": inside}))
        os.kill(os.getpid(), signal.SIGKILL)

    def counting_insert(connection: Any, table: str, values: list[Any]) -> int:
        nonlocal inserted
        found = insert(connection, table, values)
        inserted += found
        if inside and inserted >= rows:
            die()
        return found

    def counting_commit(store: Store, fields: Any) -> None:
        commit(store, fields)
        if inserted >= rows:
            die()

    def attach(attached: Any) -> None:
        nonlocal session
        session = attached

    sim.record.store._insert = counting_insert
    sim.record.store.BATCH = 25  # commit often, and whenever a model is waited for: there are many moments to die at
    sim.record.store.INTERVAL = 3600
    Store.commit_due = Store.flush  # type: ignore[method-assign]
    Store._commit = counting_commit  # type: ignore[method-assign]
    go(path, attach=attach)


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes that start with everything imported and no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sim.runs", "agents.llm", "agents.engines.synthetic", *_WORLD_MODULES])
    return context


_WORLD_MODULES = [str(spec["world"]["use"]).split(":")[0] for spec in WORLDS.values()]


def side_by_side(processes: Any, target: Any, arguments: Iterable[tuple[Any, ...]]) -> list[int | None]:
    """A process for each set of arguments, all at once: they wait for their models most of the time. Exit codes."""
    started = [processes.Process(target=target, args=each) for each in arguments]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    return [process.exitcode for process in started]


@pytest.mark.parametrize("world", WORLDS)
def test_killed_at_any_moment_and_resumed_to_the_same_log(world: str, tmp_path: Path, processes: Any) -> None:
    whole = create(society(world, **SLOW), tmp_path, "whole")
    assert go(whole).status == "finished"
    expected = log_of(whole)
    streams = Streams(4).sub(world)
    paths = [create(society(world, **SLOW), tmp_path, f"kill-{kill}") for kill in range(KILLS[world])]
    rows = [streams.integer(1, len(expected), "rows", kill) for kill in range(KILLS[world])]
    codes = side_by_side(
        processes, doomed, [(*each, kill % 3 == 0) for kill, each in enumerate(zip(paths, rows, strict=True))]
    )
    assert set(codes) <= {0, -signal.SIGKILL}
    killed = [path for path, code in zip(paths, codes, strict=True) if code]  # the others were done before so many rows
    for path in killed:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        before = log_of(path)
        assert before == expected[: len(before)]
    assert set(side_by_side(processes, go, [(path,) for path in killed])) == {0}
    for path in killed:
        assert log_of(path) == expected
        with Run(path) as run:
            assert run.status == "finished"
            assert sum(run.counts().sources.values()) >= sum(row[16] for kind, row in expected if kind == "decisions")
    deaths = [json.loads(path.with_suffix(".killed").read_text()) for path in killed]
    assert len(deaths) >= KILLS[world] - 1
    assert sum(death["in_flight"] > 0 for death in deaths) >= 10
    assert any(death["inside"] for death in deaths)


def held(path: Path, ready: Any, done: Any) -> None:
    """Hold a run open until told."""
    with Store.open(path):
        ready.set()
        done.wait(30)


def test_of_two_processes_resuming_one_run_the_second_is_refused(tmp_path: Path, processes: Any) -> None:
    path = create(society("matrix"), tmp_path, "one")
    ready, done = processes.Event(), processes.Event()
    process = processes.Process(target=held, args=(path, ready, done))
    process.start()
    try:
        assert ready.wait(30)
        with pytest.raises(RunLocked, match=f"process {process.pid}"):
            go(path)
    finally:
        done.set()
        process.join(30)
    assert go(path).status == "finished"


def test_a_dead_engine_pauses_the_run_and_another_goes_on(tmp_path: Path) -> None:
    whole = create(society("matrix"), tmp_path, "whole")
    go(whole)
    path = create(society("matrix", dead_after=25), tmp_path, "paused")
    session = go(path)
    assert session.status == "paused"
    assert "25" in session.cause or "engine" in session.cause
    with Run(path) as run:
        assert run.status == "paused"
    assert verify(path).whole is False
    # Every resumption gets 25 more calls before its engine dies; none of them is a default.
    for _ in range(100):
        session = go(path)
        if session.status == "finished":
            break
    assert log_of(path) == log_of(whole)


def test_stopping_keeps_what_is_done(tmp_path: Path) -> None:
    whole = create(society("forum", **SLOW), tmp_path, "whole")
    go(whole)
    path = create(society("forum", **SLOW), tmp_path, "stopped")
    for after in (30, 90, 10_000):

        def attach(session: Any, after: int = after) -> None:
            """Press Ctrl-C once the run has made so many calls."""
            import threading

            def press() -> None:
                while session.status == "interrupted" and session.phase != "done":
                    if session.host is not None and session.calls.submitted > after:
                        session.host.stop = "tick"
                        return

            threading.Thread(target=press, daemon=True).start()

        session = go(path, attach=attach)
        assert session.status == ("interrupted" if after < 10_000 else "finished")
    assert log_of(path) == log_of(whole)
    with Committed(path) as committed:
        assert committed.manifest().status == "finished"
