"""What a scenario may set of an oligopoly, and the market that it makes of the firms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
from sim.types import JSON, Seat
from worlds.pricing.demand import Cournot, Homogeneous, Logit


class OligopolyParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    demand: Literal["logit", "cournot", "homogeneous"] = "logit"
    """Prices for goods that differ; quantities of one good; prices for one good."""
    cost: float = Field(default=1.0, ge=0)
    """Of a unit, in money; a seat's private value `cost` goes before it."""
    quality: float = Field(default=2.0, ge=-100, le=100)
    """Logit: a of every good; a seat's private value `quality` goes before it."""
    outside: float = Field(default=0.0, ge=-100, le=100)
    """Logit: a0, of buying nothing."""
    mu: float = Field(default=0.25, ge=0.01, le=100)
    """Logit: how different the goods are."""
    scale: float = Field(default=1.0, gt=0)
    """Logit: customers."""
    unit: float = Field(default=1.0, gt=0)
    """Logit: money in a unit of utility."""
    intercept: float = Field(default=10.0, gt=0)
    """Cournot and homogeneous: the price at which nobody buys."""
    slope: float = Field(default=1.0, gt=0)
    """Cournot and homogeneous: how much the price falls with a unit more."""
    tick: float = Field(default=0.01, gt=0)
    """Homogeneous: smallest step below another price."""
    levels: int | tuple[float, ...] | None = None
    """What a firm can choose: so many evenly spaced levels around both benchmarks; these; None: any number."""
    margin: float = Field(default=0.1, ge=0)
    """How far levels reach beyond the benchmarks, as a share of their distance."""
    ceiling: float | None = Field(default=None, gt=0)
    """Largest number of a free choice; None: twice the highest price of the optimum, or what the market can take."""
    periods: int = Field(default=100, ge=1)
    """Periods that are played; nobody is told."""
    history: int = Field(default=100, ge=1, le=1_000)
    """Past periods that a view holds."""
    monitoring: Literal["public", "private"] = "public"
    """Whether firms see what the others chose, or only what they sell themselves."""
    told: bool = False
    """Whether firms are told demand and everybody's cost in words."""
    notebook: bool = False
    """Whether an answer carries plans and insights, which the firm alone reads again in the next period."""
    note_chars: int = Field(default=300, ge=1, le=4_000)
    """Longest entry of a notebook."""
    forced: Mapping[str, float | Literal["best_reply"]] = Field(default_factory=dict)
    """By firm: what it does in the period in progress, or in the next one, whatever it has chosen itself."""
    window: int = Field(default=50, ge=1)
    """Last periods that outcomes are measured over."""
    deadline: Ticks | None = Field(default=None, ge=1)
    """Time for a choice, after which a firm goes on as before; None: all the time it takes."""
    pause: Ticks = 1
    """Time between two periods."""

    @model_validator(mode="after")
    def _levels_in_order(self) -> OligopolyParams:
        given = self.levels
        if isinstance(given, int) and not 2 <= given <= 1_000:
            raise ValueError(f"levels: {given} is no number of levels from 2 to 1000")
        if isinstance(given, tuple) and (len(given) < 2 or sorted(set(given)) != list(given) or given[0] < 0):
            raise ValueError("levels: give at least two different ones from 0 upwards, in order")
        if any(isinstance(value, float) and value < 0 for value in self.forced.values()):
            raise ValueError("forced: a price or a quantity is at least 0")
        return self

    @property
    def chooses(self) -> Literal["price", "quantity"]:
        """What a firm chooses."""
        return "quantity" if self.demand == "cournot" else "price"

    def market(self, seats: Sequence[Seat]) -> Logit | Cournot | Homogeneous:
        """The market of these firms. Raises ValueError where a private value is no number in range."""
        costs = tuple(_number(seat, "cost", self.cost, 0.0) for seat in seats)
        if self.demand == "logit":
            qualities = tuple(_number(seat, "quality", self.quality, -100.0) for seat in seats)
            return Logit(costs, qualities, self.outside, self.mu, self.scale, self.unit)
        if self.demand == "cournot":
            return Cournot(costs, self.intercept, self.slope)
        return Homogeneous(costs, self.intercept, self.slope, self.tick)


def _number(seat: Seat, name: str, otherwise: float, least: float) -> float:
    value: JSON = seat.private.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e9:
        raise ValueError(f"{seat.agent}: the private value {name} is a number of at least {least:g}, not {value!r}")
    return float(value)


def grid(low: float, high: float, levels: int, margin: float) -> tuple[float, ...]:
    """Evenly spaced levels from `margin` below two benchmarks to `margin` above, none below 0 (Calvano et al. 2020).

    Raises ValueError where the benchmarks are one and the same.
    """
    low, high = sorted((low, high))
    if high - low < 1e-9 * max(1.0, high):
        raise ValueError(
            f"levels: both benchmarks are {low:g}, so there is nothing between them; give a list of levels"
        )
    reach = margin * (high - low)
    first, last = max(0.0, low - reach), high + reach
    return tuple(first + (last - first) * n / (levels - 1) for n in range(levels))


def nearest(levels: Sequence[float], wanted: float) -> int:
    """Index of the level closest to a number; of two the lower."""
    return min(range(len(levels)), key=lambda n: abs(levels[n] - wanted))


def labels(levels: Sequence[float]) -> tuple[str, ...]:
    """Levels in as few decimals, from two on, as keep them apart."""
    for decimals in range(2, 17):
        found = tuple(f"{level:.{decimals}f}" for level in levels)
        if len(set(found)) == len(found):
            return found
    raise ValueError(f"levels from {levels[0]} to {levels[-1]} are too close to each other to be told apart")
