"""A world and agents just large enough to be named in scenario files under test."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from sim.quantities import Ticks
from sim.streams import Streams
from sim.types import (
    APPLIED,
    JSON,
    Action,
    Change,
    Choice,
    Measurement,
    Member,
    Metric,
    Mind,
    Outcome,
    Record,
    Seat,
    Turn,
    Wake,
)


def answers_given(record: Record) -> Iterable[Measurement]:
    yield Measurement(metric="answers", value=float(sum(1 for _ in record.decisions())))


def nothing(record: Record) -> Iterable[Measurement]:
    return ()


class Fee(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    share: float = 0.0
    minimum: int = 0


class TinyParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    rounds: int = Field(default=3, ge=1)
    period: Ticks = 60
    price: float = 1.0
    goods: tuple[str, ...] = ()
    fee: Fee = Fee()
    fees: dict[str, Fee] = {}


class Tiny:
    """Asks everybody once, at tick 0."""

    Params: ClassVar[type[BaseModel]] = TinyParams
    metrics: ClassVar[tuple[Metric, ...]] = (answers_given,)
    changeable: ClassVar[frozenset[str]] = frozenset({"period", "price", "weather"})

    def __init__(self, params: TinyParams) -> None:
        if params.rounds == 13:
            raise ValueError("rounds is 13, which brings bad luck")
        self.params = params
        self.heard: list[Change] = []
        self.seats: list[Seat] = []

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        self.seats = list(seats)
        return Outcome(wakes=[Wake(agent=seat.agent, tick=0) for seat in seats])

    def observe(self, now: int, agent: str) -> Turn | None:
        return Turn(agent=agent, now=now, view={}, format=Choice(options=("yes", "no")), default="no")

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        return Outcome(results=[APPLIED] * len(actions))

    def change(self, now: int, change: Change) -> Outcome:
        self.heard.append(change)
        return Outcome()

    def state(self) -> JSON:
        return {"heard": len(self.heard)}


class Fixed:
    """Always gives one answer."""

    state: object = None

    def __init__(self, member: Member, answer: str = "yes", notes: Sequence[str] = ()) -> None:
        if answer not in ("yes", "no"):
            raise ValueError(f"answer is {answer!r}; expected yes or no")
        self.member = member
        self.answer = answer
        self.notes = notes

    def act(self, turn: Turn, streams: Streams) -> Mind:
        yield from ()
        return Action(answer=self.answer)


class Demanding(Fixed):
    """Cannot be built without its tempo."""

    def __init__(self, member: Member, *, tempo: int) -> None:
        super().__init__(member)
        self.tempo = tempo


class Open(Fixed):
    """Takes any setting."""

    def __init__(self, member: Member, **settings: object) -> None:
        super().__init__(member)
        self.settings = settings


class Silent(Tiny):
    """Measures nothing."""

    metrics: ClassVar[tuple[Metric, ...]] = ()


class Bare:
    """A world without Params, an agent without act."""

    def reset(self) -> None: ...
    def observe(self) -> None: ...
    def step(self) -> None: ...
    def change(self) -> None: ...
    def state(self) -> None: ...


class Answers:
    """An engine, as far as its constructor."""

    def __init__(self, model: str, *, speed: int = 1) -> None: ...


number = 3
