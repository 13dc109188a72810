"""The rules of a double auction market that a scenario may set."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks

Good = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,19}$")]
Span = Annotated[Ticks, Field(gt=0)]


class Rules(BaseModel):
    """What a scenario may set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goods: tuple[Good, ...] = Field(default=("apple",), min_length=1)
    """What is traded, each in a book of its own."""
    period: Span = 600
    """Length of a trading period; units and cash are given anew at the start of each."""
    periods: int = Field(default=1, ge=1)
    """After the last one the market closes for good."""
    price_low: int = Field(default=0, ge=0)
    """Lowest price that can be named."""
    price_high: int = 200
    """Highest price that can be named."""
    cash: int = Field(default=10_000, ge=0)
    """What a trader can spend in a period, where its private `cash` does not say."""
    budget_constraint: bool = True
    """Whether bids above the own value and asks below the own cost are barred."""
    clear_after_trade: bool = False
    """Whether a trade wipes the good's book (the convention of Gode and Sunder 1993)."""
    order_life: Span | None = None
    """How long an order stands; None: until it trades, is replaced or the period ends."""
    interrupt_on_trade: bool = False
    """Whether a trade of its standing order interrupts what the trader is thinking about."""
    pause: Span = 1
    """Time between a trader's decision and its next look at the market."""
    tape: int = Field(default=200, ge=0)
    """Most shouts and trades since its last turn that a trader is shown."""

    @model_validator(mode="after")
    def _ordered(self) -> Rules:
        if self.price_high < self.price_low:
            raise ValueError("price_high is below price_low")
        if len(set(self.goods)) < len(self.goods):
            raise ValueError("a good is named twice")
        return self
