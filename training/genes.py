"""What a genetic search may choose for a setting of the scenario, as a recipe writes it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from sim.scenarios.strict import Many, Strict
from sim.types import JSON


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len({*names}) < len(names):
        raise ValueError("a name stands twice")
    return names


Names: TypeAlias = Annotated[Many[str], Field(min_length=1), AfterValidator(_distinct)]


class Chain(Strict):
    """A Markov chain: by state, the probabilities of the next one; its rows are inherited and mutated one by one."""

    kind: Literal["chain"] = "chain"
    states: Names


class Distribution(Strict):
    """Probabilities by name that sum to 1."""

    kind: Literal["distribution"] = "distribution"
    over: Names


class Number(Strict):
    """A number between two bounds."""

    kind: Literal["number"] = "number"
    low: float
    high: float

    @model_validator(mode="after")
    def _rises(self) -> Number:
        if not self.low < self.high:
            raise ValueError(f"low {self.low} is not below high {self.high}")
        return self


class Options(Strict):
    """One of a few values, such as prompts or personas."""

    kind: Literal["options"] = "options"
    values: Many[JSON] = Field(min_length=1)


Gene: TypeAlias = Annotated[Chain | Distribution | Number | Options, Field(discriminator="kind")]
