"""A world of a proposer and its solvers: it says how many boxes there are, they guess which one holds the coin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from sim.streams import Streams
from sim.types import JSON, Action, AgentId, Change, Choice, Fact, Outcome, Result, Seat, Turn, Wake

BOXES = ("2", "3")


class Riddles:
    """The proposer decides first, then all solvers at once; 1 for the right box, nothing for the proposer."""

    class Params(BaseModel):
        """None."""

    metrics: ClassVar[tuple[Any, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: Params) -> None:
        pass

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        self._streams = streams
        self._role = {seat.agent: seat.role for seat in seats}
        self._boxes = ""
        self._guesses: dict[AgentId, str] = {}
        return Outcome(wakes=[Wake(agent=agent, tick=0) for agent, role in self._role.items() if role == "proposer"])

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        options = BOXES if self._role[agent] == "proposer" else tuple(map(str, range(int(self._boxes))))
        view = {"me": self._role[agent], "boxes": self._boxes}
        return Turn(agent=agent, now=now, view=view, format=Choice(options=options), default=options[0])

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        solvers = [agent for agent, role in self._role.items() if role == "solver"]
        if not self._boxes:
            self._boxes = actions[0].answer
            fact = Fact(id=0, kind="proposal", data={"boxes": self._boxes})
            return Outcome(
                facts=[fact], results=[Result()], wakes=[Wake(agent=agent, tick=now + 1) for agent in solvers]
            )
        coin = self._streams.choice(range(int(self._boxes)), "coin")
        self._guesses |= {action.agent: action.answer for action in actions}
        earned = {action.agent: float(action.answer == str(coin)) for action in actions}
        over = len(self._guesses) == len(solvers)
        return Outcome(
            results=[Result() for _ in actions],
            rewards=earned,
            ended=dict.fromkeys(self._role, "terminated") if over else {},
        )

    def change(self, now: int, change: Change) -> Outcome:
        return Outcome()

    def state(self) -> JSON:
        return {"boxes": self._boxes, "guesses": self._guesses}
