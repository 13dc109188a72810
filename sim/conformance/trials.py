"""Short plays of a world on the kernel for the conformance checks: no engines, arrivals in any order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from sim.calls import digest
from sim.conformance.findings import Broken, Findings
from sim.kernel import Decision, Player, Table, WorldError
from sim.log import Log
from sim.quantities import distribution
from sim.samples import sample
from sim.streams import Root, Streams
from sim.types import Action, Agent, Change, Completion, Format, Member, Message, Mind, Request, Result, Turn, World

EVENTS = 200
"""Events of one play."""
MOST_CALLS = 100
"""Calls of one decision."""
THINKS = ("1", "integer(1, 5)", "exponential(30)")
"""Think times in ticks, one after the other from seed to seed."""


class Drawn:
    """Answers at random among what is legal; `asks` a model that is never listened to, so that arrivals matter."""

    def __init__(self, member: Member, asks: bool = False) -> None:
        self.asks = asks
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw one legal answer."""
        if self.asks:
            yield [Request(messages=(Message(role="user", text=turn.text),), format=turn.format)]
        answer = sample(turn.format, streams.generator("answer"))
        return Action(answer=turn.default if answer is None else answer)


def legal_text(format: Format, rng: Random) -> str:
    """A text that a model could give as a legal answer."""
    answer = sample(format, rng)
    return answer if isinstance(answer, str) else json.dumps(answer)


@dataclass(slots=True)
class Desk:
    """Takes model calls and answers them, from a hash of the request, in an order drawn by `order` (0: as asked)."""

    order: int = 0
    waiting: list[tuple[Decision, int, Request]] = field(default_factory=list)

    def submit(self, decision: Decision, requests: Sequence[Request]) -> None:
        """Take calls."""
        decision.calls += len(requests)
        if decision.calls > MOST_CALLS:
            raise WorldError(f"a decision of {decision.player.id} makes more than {MOST_CALLS} calls")
        self.waiting += [(decision, index, request) for index, request in enumerate(requests)]

    def pump(self) -> None:
        """Answer some calls while the kernel is busy."""
        if self.order and len(self.waiting) % 3 == self.order % 3:
            self.answer()

    def answer(self) -> None:
        """Answer one call."""
        waiting = self.waiting
        draw = Streams(self.order).draw("next", len(waiting), waiting[0][0].seen) if self.order and waiting else 0.0
        if waiting:
            decision, index, request = waiting.pop(int(draw * len(waiting)))
            text = legal_text(request.format, Random(digest(request, "")))
            decision.table.deliver(decision, index, Completion(text=text))


class FaultLog(Log):
    """Hashes the log, and keeps of it only where a mind broke."""

    def __init__(self) -> None:
        super().__init__(0, lambda _rows: None)
        self.faults: list[str] = []

    def decision(self, tick: int, round_: int, decision: Decision, result: Result) -> None:
        """As a log does."""
        action = decision.action
        if action is not None and action.how == "faulted":
            self.faults.append(f"tick {tick}, {action.agent}: {action.reason}")
        super().decision(tick, round_, decision, result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a play came to."""

    hash: str
    """Of its log."""
    table: Table
    faults: Sequence[str]
    """Where a mind broke, and how."""


Cast = Sequence[tuple[Member, Callable[[Member], Agent]]]
"""Members, each with how to build its agent."""


def play(
    world: World,
    cast: Cast,
    found: Findings,
    *,
    seed: int = 0,
    order: int = 0,
    changes: Sequence[tuple[int, Change]] = (),
    events: int = EVENTS,
) -> Trial | None:
    """Play some events; None where the play had to be given up, with a finding that says why."""
    think = distribution(THINKS[seed % len(THINKS)], 1)
    players = [Player(member, make(member), think) for member, make in cast]
    desk, log = Desk(order), FaultLog()
    table = Table(
        world,
        players,
        streams=Streams(Root(seed), ("table", 0)),
        log=log,
        submit=desk.submit,
        pump=desk.pump,
        interventions=[(tick, change, None) for tick, change in changes],
    )
    try:
        table.start()
        while not table.finished and events > 0:
            while not table.ready:
                desk.answer()
            table.advance()
            events -= 1
    except WorldError as error:
        if not isinstance(error.__cause__, Broken):
            found.add("random play goes on", str(error))
        return None
    finally:
        table.close()
    return Trial(hash=log.hash, table=table, faults=log.faults)
