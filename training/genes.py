"""What a genetic search may choose for a setting of the scenario, as a recipe writes it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from sim.scenarios.strict import Many, Strict
from sim.types import JSON

Size: TypeAlias = Annotated[int, Field(ge=1)]


class Matrix(Strict):
    """Rows of probabilities, each summing to 1; rows are inherited and mutated one by one."""

    kind: Literal["matrix"] = "matrix"
    rows: Size
    columns: Size


class Distribution(Strict):
    """Probabilities that sum to 1."""

    kind: Literal["distribution"] = "distribution"
    size: Size


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


Gene: TypeAlias = Annotated[Matrix | Distribution | Number | Options, Field(discriminator="kind")]
