"""Demand and profits of an oligopoly, with its two benchmarks: the static Nash equilibrium and the joint optimum.

What a firm chooses is a price (logit, homogeneous goods) or a quantity (Cournot). A firm sells at constant unit cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Protocol, TypeAlias

from msgspec import to_builtins

from sim.types import JSON

Choices: TypeAlias = Sequence[float]
"""One price or quantity a firm, in the order of the firms."""

_CLOSE = 1e-14
_SWEEPS = 10_000
_DECIMALS = 12
"""Of an equilibrium, so that firms who are alike choose the same to the last bit."""


@dataclass(frozen=True, slots=True)
class Sales:
    """What one period brings."""

    prices: tuple[float, ...]
    """What customers pay each firm for a unit."""
    quantities: tuple[float, ...]
    profits: tuple[float, ...]
    surplus: float
    """Of the consumers, against buying nothing."""


class Demand(Hashable, Protocol):
    """A market as its customers and its firms' costs make it."""

    @property
    def costs(self) -> tuple[float, ...]:
        """Unit cost by firm, in money."""

    def sell(self, chosen: Choices) -> Sales:
        """What a period brings where the firms have chosen so."""

    def best_reply(self, firm: int, chosen: Choices) -> float:
        """The choice that earns the firm most in one period against those of the others."""

    def nash(self) -> tuple[float, ...]:
        """The choices that are best replies to each other."""

    def optimum(self) -> tuple[float, ...]:
        """The choices with the largest sum of profits."""


def omega(x: float) -> float:
    """The y with y + ln y = x (Wright's omega), by Newton's method."""
    if x < -40:
        return exp(x)
    y = exp(x) if x < 1 else x
    for _ in range(50):
        following = y * (1 + x - log(y)) / (1 + y)
        if abs(following - y) <= _CLOSE * following:
            return following
        y = following
    return y


def _settled(reply: Callable[[int, Choices], float], start: Choices) -> tuple[float, ...]:
    """Where best replies, one firm after the other, come to rest. Raises ValueError where they never do."""
    chosen = list(start)
    for _ in range(_SWEEPS):
        before = tuple(chosen)
        for firm in range(len(chosen)):
            chosen[firm] = reply(firm, chosen)
        if max(abs(new - old) for new, old in zip(chosen, before, strict=True)) <= _CLOSE * (1 + max(map(abs, chosen))):
            return tuple(round(each, _DECIMALS) for each in chosen)
    raise ValueError("best replies come to no rest: this market has no equilibrium that they find")


@dataclass(frozen=True, slots=True)
class Logit:
    """Price competition with differentiated goods (Calvano et al. 2020; `unit`, `scale`: Fish et al. 2024).

    q_i = scale exp((a_i - p_i/unit)/mu) / (sum_j exp((a_j - p_j/unit)/mu) + exp(outside/mu)).
    """

    costs: tuple[float, ...]
    """In money, `unit` times the c of the literature."""
    qualities: tuple[float, ...]
    """a_i."""
    outside: float
    """Of buying nothing."""
    mu: float
    """How different the goods are."""
    scale: float
    """Customers."""
    unit: float
    """Money in one unit of utility."""

    def _utilities(self, chosen: Choices) -> list[float]:
        """Over mu, buying nothing last."""
        own = [(a - p / self.unit) / self.mu for a, p in zip(self.qualities, chosen, strict=True)]
        return [*own, self.outside / self.mu]

    def sell(self, chosen: Choices) -> Sales:
        """Customers buy one unit of what suits each of them best; surplus is the log-sum."""
        utilities = self._utilities(chosen)
        whole = _log_sum(utilities)
        sold = tuple(self.scale * exp(utility - whole) for utility in utilities[:-1])
        profits = tuple((p - c) * q for p, c, q in zip(chosen, self.costs, sold, strict=True))
        surplus = self.scale * self.unit * self.mu * (whole - utilities[-1])
        return Sales(tuple(chosen), sold, profits, surplus)

    def best_reply(self, firm: int, chosen: Choices) -> float:
        """p = c + mu / (1 - share), solved for p."""
        utilities = self._utilities(chosen)
        own = (self.qualities[firm] - self.costs[firm] / self.unit) / self.mu
        others = _log_sum([each for n, each in enumerate(utilities) if n != firm])
        return self.costs[firm] + self.unit * self.mu * (1 + omega(own - others - 1))

    def nash(self) -> tuple[float, ...]:
        """From costs upwards: prices are strategic complements, so replies rise to the one equilibrium."""
        return _settled(self.best_reply, self.costs)

    def optimum(self) -> tuple[float, ...]:
        """All firms take the same margin: mu over the share of those who buy nothing."""
        whole = _log_sum(self._utilities(self.costs)[:-1]) - self.outside / self.mu
        margin = self.unit * self.mu * (1 + omega(whole - 1))
        return tuple(cost + margin for cost in self.costs)


@dataclass(frozen=True, slots=True)
class Cournot:
    """Quantity competition with one good: the price is intercept - slope x total quantity, never below 0."""

    costs: tuple[float, ...]
    intercept: float
    slope: float

    def sell(self, chosen: Choices) -> Sales:
        """All is sold at one price."""
        total = min(sum(chosen), self.intercept / self.slope)
        price = self.intercept - self.slope * total
        profits = tuple((price - c) * q for c, q in zip(self.costs, chosen, strict=True))
        return Sales((price,) * len(self.costs), tuple(chosen), profits, self.slope * total**2 / 2)

    def best_reply(self, firm: int, chosen: Choices) -> float:
        """Half of what the others and the cost leave of the market."""
        others = sum(q for n, q in enumerate(chosen) if n != firm)
        return max(0.0, (self.intercept - self.costs[firm]) / self.slope - others) / 2

    def nash(self) -> tuple[float, ...]:
        """One firm after the other: where all move at once, three firms would go round in circles."""
        return _settled(self.best_reply, [0.0] * len(self.costs))

    def optimum(self) -> tuple[float, ...]:
        """Monopoly output, by the firms with the lowest cost."""
        least = min(self.costs)
        cheapest = [cost == least for cost in self.costs]
        each = max(0.0, self.intercept - least) / (2 * self.slope) / sum(cheapest)
        return tuple(each if one else 0.0 for one in cheapest)


@dataclass(frozen=True, slots=True)
class Homogeneous:
    """Price competition with one good (Bertrand 1883): all buy from the lowest price.

    Of several firms at it those with the lowest cost share the customers.
    """

    costs: tuple[float, ...]
    intercept: float
    slope: float
    tick: float
    """Smallest step below another price."""

    def sell(self, chosen: Choices) -> Sales:
        """(intercept - price) / slope units at the lowest price."""
        price = min(chosen)
        least = min(cost for cost, own in zip(self.costs, chosen, strict=True) if own == price)
        winners = [own == price and cost == least for cost, own in zip(self.costs, chosen, strict=True)]
        total = max(0.0, self.intercept - price) / self.slope
        sold = tuple(total / sum(winners) if wins else 0.0 for wins in winners)
        profits = tuple((p - c) * q for p, c, q in zip(chosen, self.costs, sold, strict=True))
        return Sales(tuple(chosen), sold, profits, self.slope * total**2 / 2)

    def _monopoly(self, cost: float) -> float:
        return max(cost, (self.intercept + cost) / 2)

    def best_reply(self, firm: int, chosen: Choices) -> float:
        """One tick below the others, or the monopoly price where that is lower; never below cost."""
        others = min((p for n, p in enumerate(chosen) if n != firm), default=inf)
        return max(self.costs[firm], min(others - self.tick, self._monopoly(self.costs[firm])))

    def nash(self) -> tuple[float, ...]:
        """Cost; a firm alone at the lowest cost asks the next one's, or its monopoly price where that is lower."""
        least, *others = sorted(self.costs)
        limit = min([*others[:1], self._monopoly(least)])
        return tuple(max(cost, limit) for cost in self.costs)

    def optimum(self) -> tuple[float, ...]:
        """The monopoly price of the lowest cost."""
        return (self._monopoly(min(self.costs)),) * len(self.costs)


def best_level(demand: Demand, firm: int, chosen: Choices, levels: Sequence[float]) -> float:
    """Of some levels the one that earns the firm most against the others' choices; the first of equals."""
    tried = list(chosen)

    def profit(level: float) -> float:
        tried[firm] = level
        return demand.sell(tried).profits[firm]

    return max(levels, key=profit)


def _log_sum(exponents: Sequence[float]) -> float:
    top = max(exponents)
    return top + log(sum(exp(each - top) for each in exponents))


KINDS: Mapping[str, Callable[..., Demand]] = {"logit": Logit, "cournot": Cournot, "homogeneous": Homogeneous}
"""Markets by the setting `demand`."""


def written(demand: Logit | Cournot | Homogeneous) -> dict[str, JSON]:
    """A market as JSON."""
    (kind,) = [name for name, each in KINDS.items() if type(demand) is each]
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in to_builtins(demand).items()}
    return {"demand": kind, **fields}


def read(market: Mapping[str, JSON]) -> Demand:
    """The market that `written` wrote."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in market.items()}
    return KINDS[str(fields.pop("demand"))](**fields)
