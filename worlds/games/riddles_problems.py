"""Problems of arithmetic: what a scenario may set of them, their answers, and the wrong ones beside these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.streams import Streams

Operation: TypeAlias = Literal["plus", "minus", "times", "divided by"]


class RiddlesParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    operations: tuple[Operation, ...] = Field(default=("plus", "minus", "times", "divided by"), min_length=1)
    """Of which a problem has one; where there is only one, it is not asked for."""
    least: int = Field(default=0, ge=0)
    """Smallest number in a problem."""
    most: int = Field(default=99, le=999)
    """Largest."""
    options: int = Field(default=4, ge=2, le=26)
    """Answers among which a solver chooses."""
    spread: int = Field(default=20, le=1_000)
    """They are drawn from so many neighbouring whole numbers."""
    penalty: float = Field(default=0.0, ge=0)
    """What a proposer loses whose problem has no whole number for an answer."""

    @model_validator(mode="after")
    def _sound(self) -> RiddlesParams:
        if len(set(self.operations)) < len(self.operations):
            raise ValueError("operations: each is another one")
        if self.least >= self.most:
            raise ValueError(f"least: there is no choice of numbers from {self.least} to {self.most}")
        if self.spread < self.options:
            raise ValueError(f"spread: {self.options} answers do not fit into {self.spread} neighbouring numbers")
        return self


@dataclass(frozen=True, slots=True)
class Problem:
    """Two numbers and an operation."""

    left: int
    operation: Operation
    right: int

    def __str__(self) -> str:
        return f"{self.left} {self.operation} {self.right}"

    @property
    def digits(self) -> int:
        """Of both numbers: how hard it is."""
        return len(f"{self.left}{self.right}")

    @property
    def answer(self) -> int | None:
        """The whole number that it comes to; None: there is none, the problem is ill-formed."""
        match self.operation:
            case "plus":
                return self.left + self.right
            case "minus":
                return self.left - self.right
            case "times":
                return self.left * self.right
            case "divided by":
                return self.left // self.right if self.right and self.left % self.right == 0 else None


def candidates(problem: Problem, answer: int, params: RiddlesParams, streams: Streams) -> tuple[str, ...]:
    """The answer and wrong ones about it, in order of size; luck is keyed by the problem, so all solvers see the same.

    The answer's place among neighbouring numbers is drawn and the others from all of these, so its rank among the
    candidates tells nothing: who does not read the problem is right once in `options` times.
    """
    key = (problem.left, problem.operation, problem.right)
    first = answer - streams.integer(0, params.spread - 1, "place", *key)
    others = [number for number in range(first, first + params.spread) if number != answer]
    wrong = streams.shuffled(others, "wrong", *key)[: params.options - 1]
    return tuple(map(str, sorted([answer, *wrong])))
