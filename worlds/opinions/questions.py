"""What a scenario may set of a herding world, and the questions that it asks."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
from sim.streams import Streams

COLOURS = ("red", "blue")
LINES = ("A", "B", "C")


class Item(BaseModel):
    """A question of one's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(min_length=1, max_length=2_000)
    options: tuple[str, ...] = Field(min_length=2, max_length=26)
    right: str

    @model_validator(mode="after")
    def _possible(self) -> Item:
        if len(set(self.options)) < len(self.options) or not all(self.options):
            raise ValueError("options: each is another one, and none is empty")
        if self.right not in self.options:
            raise ValueError(f"right: {self.right!r} is none of the options {', '.join(self.options)}")
        return self


class HerdingParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    ask: Literal["urn", "lines"] = "urn"
    """Of which colour most balls of an urn are, of which each has drawn one; which of three lines is as long as another
    (Asch 1956)."""
    items: tuple[Item, ...] = ()
    """Questions to ask in place of these, in turns."""
    questions: int = Field(default=10, ge=1)
    """How many are asked."""
    accuracy: float | None = Field(default=None, ge=0, le=1)
    """Probability that an agent's own signal is right: of an urn 2/3 where not given; a line is seen as it is; on
    questions of one's own there is none where it is not given."""
    schedule: Literal["sequential", "simultaneous"] = "sequential"
    """One after the other, each seeing all answers before; or all at once, seeing those of the round before."""
    order: Literal["drawn", "cast"] = "drawn"
    """Who answers first: drawn anew for every question, or as in the cast, confederates first."""
    rounds: int = Field(default=1, ge=1)
    """Simultaneous: how often each answers a question."""
    controls: int = Field(default=0, ge=0)
    """Every so-manieth question is a control: confederates stay out and nobody sees an answer; 0: none is."""
    feedback: bool = False
    """Whether all are told the right answer to the question before."""
    pause: Ticks = Field(default=1, ge=1)
    """Time between two turns."""

    @model_validator(mode="after")
    def _sound(self) -> HerdingParams:
        if self.rounds > 1 and self.schedule == "sequential":
            raise ValueError("rounds: only simultaneous answers are given again; set schedule: simultaneous")
        if self.accuracy is not None and self.ask == "lines" and not self.items:
            raise ValueError("accuracy: lines are seen as they are; leave it out")
        return self

    @property
    def signals(self) -> float | None:
        """Probability that an own signal is right; None: there are none."""
        if self.accuracy is not None or self.items:
            return self.accuracy
        return 2 / 3 if self.ask == "urn" else 1.0

    def control(self, number: int) -> bool:
        """Whether a question, counted from 1, is a control."""
        return self.controls > 0 and number % self.controls == 0


class Question(NamedTuple):
    """A question and its right answer."""

    question: str
    options: tuple[str, ...]
    right: str


def question(params: HerdingParams, number: int, streams: Streams) -> Question:
    """The n-th question, counted from 1, with what is right drawn for it."""
    if params.items:
        item = params.items[(number - 1) % len(params.items)]
        return Question(item.question, item.options, item.right)
    if params.ask == "urn":
        words = "An urn holds red and blue balls. Of which colour are most of them?"
        return Question(words, COLOURS, streams.choice(COLOURS, "right", number))
    shortest, step = streams.integer(10, 30, "length", number), streams.integer(4, 9, "step", number)
    lengths = streams.shuffled([shortest, shortest + step, shortest + 2 * step], "lines", number)
    right = streams.choice(LINES, "right", number)
    told = ", ".join(f"{name} {length} cm" for name, length in zip(LINES, lengths, strict=True))
    sample = lengths[LINES.index(right)]
    return Question(f"A line is {sample} cm long. Which of these is as long: {told}?", LINES, right)
