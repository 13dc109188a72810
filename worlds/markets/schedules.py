"""Induced supply and demand: private unit values and costs, and the competitive equilibrium they imply."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sim.types import JSON

Limits: TypeAlias = dict[str, tuple[int, ...]]
"""By good, what each unit is worth to its buyer (falling) or costs its seller (rising), in trading order."""

KEYS = {"buyer": ("value", "values"), "seller": ("cost", "costs")}
"""Names of the private values that a role needs: one unit, or several."""


def limits(role: str, private: Mapping[str, JSON], goods: Sequence[str]) -> Limits:
    """Unit values of a buyer or unit costs of a seller.

    A number is one unit, a list several, a mapping gives either by good; what is given without a good
    holds for each. Numbers are rounded, halves up. Raises ValueError.
    """
    if role not in KEYS:
        raise ValueError(f"role {role!r}: a trader is a buyer or a seller")
    given = [private[key] for key in KEYS[role] if key in private]
    if len(given) != 1:
        raise ValueError(f"a {role} needs exactly one of the private values {' and '.join(KEYS[role])}")
    by_good = given[0] if isinstance(given[0], Mapping) else dict.fromkeys(goods, given[0])
    if unknown := set(by_good) - set(goods):
        raise ValueError(f"{sorted(unknown)} are no goods of this market, which trades {list(goods)}")
    return {good: _units(by_good.get(good, ()), falling=role == "buyer") for good in goods}


def _units(given: JSON, *, falling: bool) -> tuple[int, ...]:
    numbers = list(given) if isinstance(given, list | tuple) else [given]
    if wrong := [one for one in numbers if isinstance(one, bool) or not isinstance(one, int | float)]:
        raise ValueError(f"what a unit is worth or costs is a number, not {wrong[0]!r}")
    return tuple(sorted((math.floor(number + 0.5) for number in numbers), reverse=falling))


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Where demand meets supply."""

    quantity: int
    """Most units that can trade without a loss."""
    low: int
    """Lowest price that clears the market."""
    high: int
    """Highest price that clears the market."""
    surplus: int
    """Greatest possible gains from trade."""

    @property
    def price(self) -> float:
        """Middle of the interval of clearing prices."""
        return (self.low + self.high) / 2


def equilibrium(values: Iterable[int], costs: Iterable[int]) -> Equilibrium | None:
    """The competitive equilibrium of unit values and unit costs; None where no unit can trade without a loss."""
    demand, supply = sorted(values, reverse=True), sorted(costs)
    gains = [value - cost for value, cost in zip(demand, supply, strict=False) if value >= cost]
    q = len(gains)
    if q == 0:
        return None
    return Equilibrium(
        q, max([supply[q - 1], *demand[q : q + 1]]), min([demand[q - 1], *supply[q : q + 1]]), sum(gains)
    )
