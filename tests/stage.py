"""A world whose rules are given by the test, and agents with fixed minds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from sim.types import (
    APPLIED,
    Action,
    Change,
    Choice,
    Fact,
    Member,
    Message,
    Outcome,
    Request,
    Result,
    Turn,
    Wake,
)

YES_NO = Choice(options=("yes", "no"))
Rule = Callable[["Stage", int, Sequence[Action]], Outcome]


def again(stage: Stage, now: int, actions: Sequence[Action]) -> Outcome:
    """Everybody who acted is woken at once; each action is a fact."""
    facts = [stage.fact("did", action.agent, answer=action.answer) for action in actions]
    return Outcome(
        facts=facts, results=[APPLIED] * len(actions), wakes=[Wake(agent=action.agent, tick=now) for action in actions]
    )


class Stage:
    """Explicit state: how many facts there are, and what was seen and done."""

    class Params(BaseModel):
        """No parameters."""

    metrics: ClassVar[tuple[Any, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset({"mood"})

    def __init__(self, rule: Rule = again, first: Outcome | None = None, turn: dict[str, Any] | None = None) -> None:
        self.rule = rule
        self.first = first
        self.turn = turn or {}
        self.facts = 0
        self.seen: list[tuple[int, str]] = []
        self.steps: list[tuple[int, list[tuple[str, Any]]]] = []
        self.changes: list[tuple[int, Change]] = []
        self.agents: list[str] = []

    def fact(self, kind: str, actor: str = "", **data: Any) -> Fact:
        self.facts += 1
        return Fact(id=self.facts - 1, kind=kind, actor=actor, data=data)

    def reset(self, seats: Any, streams: Any) -> Outcome:
        self.streams = streams
        self.agents = [seat.agent for seat in seats]
        return self.first or Outcome(wakes=[Wake(agent=agent, tick=0) for agent in self.agents])

    def observe(self, now: int, agent: str) -> Turn | None:
        self.seen.append((now, agent))
        return Turn(
            **{
                "agent": agent,
                "now": now,
                "view": {"steps": len(self.steps)},
                "format": YES_NO,
                "default": "no",
                "shows": tuple(range(max(0, self.facts - 3), self.facts)),
                **self.turn,
            }
        )

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        self.steps.append((now, [(action.agent, action.answer) for action in actions]))
        return self.rule(self, now, actions)

    def change(self, now: int, change: Change) -> Outcome:
        self.changes.append((now, change))
        seat = getattr(change, "seat", None)
        return Outcome(
            facts=[self.fact("change", what=type(change).__name__)],
            wakes=[Wake(agent=seat.agent, tick=now)] if seat else [],
        )

    def state(self) -> Any:
        return {"facts": self.facts, "steps": [list(step) for step in self.steps]}


class Yes:
    """Answers yes at once and counts its decisions."""

    def __init__(self, answer: Any = "yes") -> None:
        self.answer = answer
        self.state: object = 0

    def act(self, turn: Turn, streams: Any) -> Any:
        return Action(answer=self.answer, state=int(self.state) + 1)  # type: ignore[call-overload]
        yield


class Asker:
    """Asks the model `m` as many times as it is told, one call after the other."""

    def __init__(self, calls: int = 1, together: int = 1) -> None:
        self.calls = calls
        self.together = together
        self.state: object = ()

    def act(self, turn: Turn, streams: Any) -> Any:
        text = ""
        for call in range(self.calls):
            message = Message(role="user", text=f"{turn.agent} {turn.now} {turn.view} {self.state} {text} {call}")
            answers = yield [Request(messages=(message,), format=turn.format, model="m")] * self.together
            text = answers[0].text
        legal = text in turn.format.options
        return Action(
            answer=text if legal else turn.default,
            how="chosen" if legal else "defaulted",
            state=(*self.state, text)[-4:],  # type: ignore[misc]
        )


class Raises:
    """A mind that breaks."""

    def __init__(self, late: bool = False) -> None:
        self.late = late
        self.state: object = None

    def act(self, turn: Turn, streams: Any) -> Any:
        if self.late:
            yield [Request(messages=(Message(role="user", text="x"),), format=turn.format, model="m")]
        raise ValueError("broken mind")


def member(agent: str) -> Member:
    from sim.types import Seat

    return Member(seat=Seat(agent=agent))


def results(actions: Sequence[Action]) -> list[Result]:
    return [APPLIED] * len(actions)
