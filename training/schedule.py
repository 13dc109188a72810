"""Numbers that change while training: learning rates, weights of terms, the teacher's share."""

from __future__ import annotations

from itertools import pairwise
from math import cos, pi
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from sim.scenarios.strict import Many, Strict

Point: TypeAlias = Annotated[tuple[int, float], Field(strict=False)]


def rising(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points, if their counts rise. Raises ValueError."""
    counts = [count for count, _ in points]
    if counts != sorted(set(counts)):
        raise ValueError(f"the counts {counts} do not rise; expected each larger than the one before")
    return points


class Schedule(Strict):
    """A number that is a function of a count, such as updates done."""

    points: Annotated[Many[Point], AfterValidator(rising)] = Field(min_length=1)
    """`[count, value]` pairs, counts rising; before the first and after the last the value stays."""
    shape: Literal["linear", "step", "cosine", "geometric"] = "linear"
    """How it goes from one point to the next; `step` keeps the earlier value."""

    @model_validator(mode="after")
    def _positive(self) -> Schedule:
        if self.shape == "geometric" and min(value for _, value in self.points) <= 0:
            raise ValueError("a geometric schedule needs values above 0")
        return self

    def at(self, count: int) -> float:
        """The value at a count."""
        for (start, value), (stop, following) in pairwise(self.points):
            if count < stop:
                return self._between(value, following, max(0.0, (count - start) / (stop - start)))
        return self.points[-1][1]

    def _between(self, start: float, stop: float, share: float) -> float:
        if self.shape == "step":
            return start
        if self.shape == "geometric":
            return float(start * (stop / start) ** share)
        if self.shape == "cosine":
            share = (1 - cos(pi * share)) / 2
        return start + (stop - start) * share


Weight: TypeAlias = Annotated[float, Field(allow_inf_nan=False)] | Schedule
"""A number, or a schedule over updates."""


def at(weight: Weight, count: int) -> float:
    """A weight's value after so many updates."""
    return weight.at(count) if isinstance(weight, Schedule) else weight
