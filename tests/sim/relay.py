"""A world in which a word is passed on from agent to agent, and agents who pass it on with a chance to get it wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from sim.streams import Streams
from sim.types import APPLIED, Action, Choice, Fact, Member, Mind, Outcome, Seat, Turn, Wake

WORDS = Choice(options=("right", "wrong"))


class Relay:
    """Everybody hears what the one before said, and says it on; the first hears the right word."""

    class Params(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True)

    metrics: ClassVar[Any] = ()
    changeable: ClassVar[Any] = frozenset()

    def __init__(self, params: Any) -> None:
        self.agents: list[str] = []
        self.said: list[str] = []

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        self.agents, self.said = [seat.agent for seat in seats], []
        return Outcome(wakes=[Wake(agent=self.agents[0], tick=0)])

    def observe(self, now: int, agent: str) -> Turn | None:
        place = self.agents.index(agent)
        heard = self.said[place - 1] if place else "right"
        shows = (place - 1,) if place else ()
        return Turn(agent=agent, now=now, view={"heard": heard}, format=WORDS, default="wrong", shows=shows)

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        (action,) = actions
        self.said.append(action.answer)
        fact = Fact(id=len(self.said) - 1, kind="said", actor=action.agent, data={"text": action.answer})
        left = self.agents[len(self.said) :]
        wakes = [Wake(agent=left[0], tick=now)] if left else []
        ended: Any = {} if left else dict.fromkeys(self.agents, "terminated")
        return Outcome(facts=[fact], results=[APPLIED], wakes=wakes, ended=ended)

    def change(self, now: int, change: Any) -> Outcome:
        return Outcome()

    def state(self) -> Any:
        return {"said": list(self.said)}


class Passer:
    """Says on what it hears, but wrong with some chance."""

    state: object = None

    def __init__(self, member: Member, wrong: float = 0.0) -> None:
        self.wrong = wrong

    def act(self, turn: Turn, streams: Streams) -> Mind:
        yield from ()
        return Action(answer="wrong" if streams.draw("slip") < self.wrong else turn.view["heard"])
