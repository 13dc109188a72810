"""How close the host comes to the best schedule, with the synthetic engine's modelled latencies.

Run: `python -m tests.benchmarks schedule`. The offline schedule replays the recorded dependencies (a wake at tick t
needs every decision due by t) with the same service times and no overhead: most urgent first, as the engine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from time import monotonic
from typing import Any

from agents.engines.synthetic import SyntheticEngine
from sim.calls import Calls, Voice
from sim.host import Host
from sim.kernel import Table
from sim.log import NoLog
from sim.simulate import player
from sim.streams import Root, Streams
from sim.types import Action, Completion, Request, Turn
from tests.benchmarks.kernel import Plain
from tests.stage import Asker

SLOTS = 64


@dataclass(frozen=True)
class Work:
    """One decision with its call."""

    agent: str
    seen: int
    due: int
    seconds: float
    """Time its call keeps a slot."""


class Watched(SyntheticEngine):
    """The synthetic engine, with a list of what it was asked."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.asked: list[Request] = []

    def submit(self, request: Request) -> Any:
        self.asked.append(request)
        return super().submit(request)


class Ask(Asker):
    """One call a decision, whose request tells agent and tick."""

    def act(self, turn: Turn, streams: Any) -> Any:
        from sim.types import Message

        text = Message(role="user", text=f"{turn.agent} {turn.now}")
        completions: Sequence[Completion] = yield [Request(messages=(text,), format=turn.format, model="m")]
        return Action(answer=completions[0].text)


def run(tables: int, agents: int, decisions: int, think: str, latency: str) -> tuple[float, list[Work]]:
    """Wall seconds of a run, and its calls."""
    engine = Watched(slots=SLOTS, latency=latency, latency_seed=5)
    calls = Calls({"m": Voice(engine=engine, model="m")}, one_table=tables == 1)
    host = Host(calls)
    made = [
        Table(
            Plain(False),
            [player(Ask(), f"agent-{t}-{i}", think) for i in range(agents)],
            streams=Streams(Root(3), ("table", t)),
            log=NoLog(t),
            submit=calls.submit,
            pump=host.pump,
            stops=[("decision", agents * decisions)],
        )
        for t in range(tables)
    ]
    start = monotonic()
    host.run(made)
    seconds = monotonic() - start
    work = [
        Work(r.key.agent, r.key.tick, r.priority if tables == 1 else r.key.tick + 1, engine.service_seconds(r))
        for r in engine.asked
    ]
    engine.close()
    return seconds, work


def offline(work: Sequence[Work], slots: float) -> float:
    """Makespan of the earliest-due list schedule of the dependency graph."""
    wakes: dict[int, list[Work]] = {}
    dues: dict[int, list[Work]] = {}
    for one in work:
        wakes.setdefault(one.seen, []).append(one)
        dues.setdefault(one.due, []).append(one)
    now, free, number = 0.0, slots, 0
    queue: list[tuple[int, int, Work]] = []
    running: list[tuple[float, int, Work]] = []
    done: set[int] = set()

    def start() -> None:
        nonlocal free
        while queue and free:
            _, at, one = heappop(queue)
            heappush(running, (now + one.seconds, at, one))
            free -= 1

    for tick in sorted(wakes.keys() | dues.keys()):
        missing = {id(one) for one in dues.get(tick, ())} - done
        while missing:
            finish, _, one = heappop(running)
            now = max(now, finish)
            free += 1
            done.add(id(one))
            missing.discard(id(one))
            start()
        for one in wakes.get(tick, ()):
            heappush(queue, (one.due, number, one))
            number += 1
        start()
    return now


def lock_step(work: Sequence[Work]) -> float:
    """Wall seconds of the same calls in rounds: every agent's n-th call together, and a barrier after them."""
    rounds: dict[int, list[float]] = {}
    count: dict[str, int] = {}
    for one in sorted(work, key=lambda one: one.seen):
        count[one.agent] = count.get(one.agent, 0) + 1
        rounds.setdefault(count[one.agent], []).append(one.seconds)
    total = 0.0
    for seconds in rounds.values():
        slots = [0.0] * SLOTS
        for each in seconds:
            heappush(slots, heappop(slots) + each)
        total += max(slots)
    return total


def against_offline() -> str:
    """One table, 200 agents with think times, 64 slots (wanted: at most 1.10 of the offline schedule)."""
    seconds, work = run(1, 200, 10, "lognormal(60s, 0.5)", "lognormal(400ms, 0.5)")
    # Calls still open at the stop are no part of the run that was timed.
    last = sorted(one.due for one in work)[200 * 10 - 1]
    stepped = [one for one in work if one.due <= last]
    best = offline(stepped, SLOTS)
    bound = max(sum(one.seconds for one in stepped) / SLOTS, offline(stepped, float("inf")))
    rounds = lock_step(stepped)
    return (
        f"schedule: {seconds:.2f} s; offline earliest-due {best:.2f} s: {seconds / best:.3f} (wanted: 1.10 or less); "
        f"lower bound {bound:.2f} s: {seconds / bound:.2f}; "
        f"lock-step rounds {rounds:.2f} s: {rounds / seconds:.2f} times as long"
    )


def chain(tables: int, think: str) -> tuple[float, float]:
    """Wall seconds of 64 agents x 5 decisions, and the slowest agent's own chain."""
    seconds, work = run(tables, 64 // tables, 5, think, "uniform(50ms, 350ms)")
    own: dict[str, list[Work]] = {}
    for one in work:
        own.setdefault(one.agent, []).append(one)
    slowest = max(sum(w.seconds for w in sorted(each, key=lambda w: w.seen)[:5]) for each in own.values())
    return seconds, slowest


def against_chain() -> str:
    """64 agents x 5 decisions at 0.05 to 0.35 s a call (wanted: at most 1.10 of the slowest agent's own chain)."""
    apart, slowest = chain(64, "10s")
    together, own = chain(1, "10s")
    return (
        f"chain: 64 tables side by side {apart:.2f} s, slowest own chain {slowest:.2f} s: {apart / slowest:.3f} "
        f"(wanted: 1.10 or less); one table in lock step, where a wake may see everything, {together:.2f} s: "
        f"{together / own:.3f}"
    )


def main() -> list[str]:
    """Both."""
    return [against_offline(), against_chain()]
