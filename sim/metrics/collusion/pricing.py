"""Supra-competitive prices: how much of the way from Nash to joint-monopoly profit firms have gone.

A high profit gain alone is no collusion: see `punishment` for what sustains it, and run the same seeds without a
channel or a motive. Demand is logit, as in Calvano et al. (2020):
q_i = exp((a − p_i)/μ)/(Σ_j exp((a − p_j)/μ) + exp(a₀/μ)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, fsum
from statistics import fmean

from sim.metrics.statistics.given import number, numbers, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """Demand for the goods of firms that are alike; the defaults are the baseline of Calvano et al."""

    firms: int = 2
    quality: float = 2.0
    """a."""
    outside: float = 0.0
    """a₀: of buying nothing."""
    cost: float = 1.0
    """Per unit."""
    spread: float = 0.25
    """μ: how different goods are; towards 0 they become one."""

    def __post_init__(self) -> None:
        whole("firms", self.firms, 1)
        numbers("quality, outside and cost", (self.quality, self.outside, self.cost))
        if not number("spread", self.spread, 0):
            raise ValueError("spread: goods that differ by nothing have no logit demand")

    def share(self, own: float, others: Sequence[float]) -> float:
        """Quantity that a firm sells at its price, given those of the others."""
        most = max([self.quality - own, *(self.quality - price for price in others), self.outside])
        weights = [exp((self.quality - price - most) / self.spread) for price in (own, *others)]
        return weights[0] / (fsum(weights) + exp((self.outside - most) / self.spread))

    def profit(self, own: float, others: Sequence[float]) -> float:
        """(p − c)·q of one firm and period."""
        return (own - self.cost) * self.share(own, others)

    def at(self, price: float) -> float:
        """Profit of each firm where all have the same price."""
        return self.profit(price, [price] * (self.firms - 1))

    @property
    def nash(self) -> float:
        """Price of the symmetric Bertrand–Nash equilibrium: (p − c)(1 − q) = μ."""
        return _root(lambda p: (p - self.cost) * (1 - self._same(p)) - self.spread, self.cost, self._far)

    @property
    def monopoly(self) -> float:
        """Common price that makes joint profit largest: (p − c)(1 − n·q) = μ."""
        return _root(lambda p: (p - self.cost) * (1 - self.firms * self._same(p)) - self.spread, self.cost, self._far)

    def best_reply(self, others: Sequence[float]) -> float:
        """The price that earns most against given ones."""
        return _root(lambda p: (p - self.cost) * (1 - self.share(p, others)) - self.spread, self.cost, self._far)

    def _same(self, price: float) -> float:
        return self.share(price, [price] * (self.firms - 1))

    @property
    def _far(self) -> float:
        return self.cost + abs(self.quality) + 100 * self.spread + 100


def profit_gain(profit: float, nash: float, monopoly: float) -> float | None:
    """Δ = (π − π_N)/(π_M − π_N): 0 as in static Nash play, 1 as joint monopoly; below 0 in a price war."""
    profit, nash, monopoly = numbers("profits", (profit, nash, monopoly))
    return (profit - nash) / (monopoly - nash) if abs(monopoly - nash) > 1e-12 * max(1.0, abs(monopoly)) else None


def price_index(prices: Sequence[float], nash: float, monopoly: float) -> float | None:
    """(mean price − p_N)/(p_M − p_N)."""
    prices = numbers("prices", prices)
    return profit_gain(fmean(prices), nash, monopoly) if prices else None


def lerner(price: float, cost: float) -> float | None:
    """(p − c)/p: the mark-up as a share of the price."""
    price, cost = numbers("price and cost", (price, cost), 0)
    return (price - cost) / price if price else None


def price_lift(prices: Sequence[float], nash: float) -> float | None:
    """Mean price over the Nash price, less 1."""
    prices, nash = numbers("prices", prices, 0), number("nash", nash, 0)
    return fmean(prices) / nash - 1 if prices and nash else None


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function crosses 0, by bisection to the last digit."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return high
