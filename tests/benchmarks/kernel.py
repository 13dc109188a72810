"""What the kernel costs: against plain SimPy, against bare SQLite, and from 100 agents to 10,000.

Run: `python -m tests.benchmarks kernel`. Every line is a ratio of CPU times of two things in one process.
"""

from __future__ import annotations

import gc
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from time import process_time
from typing import Any, ClassVar

import simpy
from pydantic import BaseModel

from sim.kernel import Table
from sim.log import Log, NoLog
from sim.simulate import player
from sim.streams import Root, Streams
from sim.types import APPLIED, Action, Choice, Fact, Outcome, Turn, Wake

FORMAT = Choice(options=("go",))
GO = Action(answer="go")


class Plain:
    """A world that does as little as a world can: everybody acts, is woken again, and is seen doing it."""

    class Params(BaseModel):
        """No parameters."""

    metrics: ClassVar[tuple[Any, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, facts: bool) -> None:
        self.facts = facts
        self.count = 0

    def reset(self, seats: Any, streams: Any) -> Outcome:
        return Outcome(wakes=[Wake(agent=seat.agent, tick=0) for seat in seats])

    def observe(self, now: int, agent: str) -> Turn:
        return Turn(agent=agent, now=now, view={}, format=FORMAT, default="go")

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        facts = []
        if self.facts:
            for action in actions:
                facts.append(Fact(id=self.count, kind="go", actor=action.agent, data={"n": self.count}))
                self.count += 1
        return Outcome(
            facts=facts,
            results=[APPLIED] * len(actions),
            wakes=[Wake(agent=action.agent, tick=now) for action in actions],
        )

    def change(self, now: int, change: Any) -> Outcome:
        return Outcome()

    def state(self) -> Any:
        return {"count": self.count}


class Go:
    """An agent that goes."""

    state: object = None

    def act(self, turn: Turn, streams: Any) -> Any:
        return GO
        yield


def table(agents: int, decisions: int, log: Log, facts: bool) -> Table:
    """A table that stops after so many decisions; agents think 1 to 2,000 ticks."""
    players = [player(Go(), f"agent-{i}", "integer(1, 2000)") for i in range(agents)]
    return Table(
        Plain(facts), players, streams=Streams(Root(1), ("table", 0)), log=log,
        submit=lambda decision, requests: None, stops=[("decision", decisions)],
    )  # fmt: skip


def decide(agents: int, decisions: int, log: Log | None = None, facts: bool = False) -> float:
    """CPU seconds that the decisions take."""
    one = table(agents, decisions, log or NoLog(), facts)
    one.start()
    return until(one, decisions)


def until(one: Table, decisions: int) -> float:
    """CPU seconds to so many decisions in all."""
    start = process_time()
    while not one.finished and one.counts["decisions"] < decisions:
        one.advance()
    return process_time() - start


def timeouts(agents: int) -> simpy.Environment:
    """SimPy alone: as many processes, each waiting for lengths like the think times."""
    env = simpy.Environment()
    streams = Streams(1)

    def process(delays: list[int]) -> Any:
        while True:
            for delay in delays:
                yield env.timeout(delay)

    for i in range(agents):
        env.process(process([streams.integer(1, 2000, i, k) for k in range(20)]))
    for _ in range(agents):
        env.step()
    return env


def step(env: simpy.Environment, events: int) -> float:
    """CPU seconds of so many events."""
    start = process_time()
    for _ in range(events):
        env.step()
    return process_time() - start


def against_simpy(chunks: int = 40, chunk: int = 5_000) -> str:
    """Decisions per second as a share of SimPy's timeouts per second, chunks in turn (wanted: at least 1/12)."""
    one, env = table(1000, 2 * chunks * chunk, NoLog(), False), timeouts(1000)
    one.start()
    pairs = [(until(one, (i + 1) * chunk), step(env, chunk)) for i in range(chunks)]
    ours, theirs = (median(pair[side] for pair in pairs) for side in (0, 1))
    ratios = quantiles((mine / its for mine, its in pairs), n=4)
    rates = f"{chunk / ours:,.0f} decisions/s, SimPy {chunk / theirs:,.0f} timeouts/s"
    return f"kernel: {rates}: 1/{ratios[1]:.1f} (quartiles {ratios[0]:.1f} to {ratios[2]:.1f}; wanted: 1/12 or more)"


def against_scale(decisions: int = 60_000) -> str:
    """Time per decision at 10,000 agents against 100 (wanted: at most 1.5)."""
    few = min(decide(100, decisions) for _ in range(3))
    many = min(decide(10_000, decisions) for _ in range(3))
    times = f"{1e6 * few / decisions:.1f} us a decision at 100 agents, {1e6 * many / decisions:.1f} at 10,000"
    return f"scale: {times}: {many / few:.2f} (wanted: 1.5 or less)"


def recorded(path: Path, decisions: int) -> float:
    """CPU seconds that the decisions take with the record on, to the last commit."""
    from sim.record.store import Store
    from tests.benchmarks.bare import manifest

    with Store.create(path, manifest()) as store:
        start = process_time()
        decide(1000, decisions, Log(0, store.extend), facts=True)
        store.flush()
        return process_time() - start


def bare(path: Path, rows: Mapping[str, Sequence[Any]]) -> float:
    """CPU seconds that SQLite alone takes for rows by table, 2,000 a transaction."""
    from tests.benchmarks.bare import statements

    with closing(sqlite3.connect(path)) as connection:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", *statements()):
            connection.execute(statement)
        start = process_time()
        for kind, each in rows.items():
            marks = ",".join("?" * len(each[0]))
            for at in range(0, len(each), 2000):
                connection.executemany(f"INSERT INTO {kind} VALUES ({marks})", each[at : at + 2000])
                connection.commit()
        return process_time() - start


def against_sqlite(decisions: int = 60_000, tries: int = 3) -> str:
    """Rows a CPU second with the record on against bare executemany of the same rows (wanted: at least 1/2)."""
    whole: list[tuple[str, Any]] = []
    decide(1000, decisions, Log(0, whole.extend), facts=True)
    rows: dict[str, list[Any]] = {}
    for kind, row in whole:
        rows.setdefault(kind, []).append(row)
    count = len(whole)
    gc.freeze()  # the rows kept for the comparison are no garbage of the run's
    times = []
    for _ in range(tries):
        with tempfile.TemporaryDirectory() as folder:
            ours = recorded(Path(folder) / "run.db", decisions)
            times.append((ours, decide(1000, decisions, facts=True), bare(Path(folder) / "bare.db", rows)))
    gc.unfreeze()
    ours, plain, theirs = map(min, zip(*times, strict=True))
    rates = f"{count / ours:,.0f} rows/s while simulating, bare executemany {count / theirs:,.0f} rows/s"
    alone = f"the record's own part, without the kernel: {theirs / (ours - plain):.2f}"
    return f"record: {rates}: {theirs / ours:.2f} (wanted: 0.5 or more; {alone})"


def main() -> list[str]:
    """All three."""
    return [against_simpy(), against_scale(), against_sqlite()]
