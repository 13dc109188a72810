"""Fairness of a division: Nash products, envy, proportional shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, prod
from typing import TypeAlias

from sim.metrics.statistics.given import alike, number, numbers

Bundles: TypeAlias = Sequence[Sequence[Hashable]]
"""What each agent holds."""
Values: TypeAlias = Sequence[Mapping[Hashable, float]]
"""What each item is worth to each agent; bundles are worth their sum."""


def nash_product(utilities: Sequence[float], disagreement: Sequence[float]) -> float | None:
    """Π(u − d); None where somebody is worse off than without a deal."""
    gains = _gains(utilities, disagreement)
    return prod(gains) if gains and min(gains) >= 0 else None


def nash_ratio(utilities: Sequence[float], disagreement: Sequence[float], surplus: float) -> float | None:
    """Nash product over the largest one where a surplus can be transferred: (surplus/n)ⁿ."""
    found, surplus = nash_product(utilities, disagreement), number("surplus", surplus)
    return found / (surplus / len(utilities)) ** len(utilities) if found is not None and surplus > 0 else None


def rationality_violations(utilities: Sequence[float], disagreement: Sequence[float]) -> int:
    """How many are worse off than without a deal."""
    return sum(gain < 0 for gain in _gains(utilities, disagreement))


def _gains(utilities: Sequence[float], disagreement: Sequence[float]) -> list[float]:
    alike(utilities=utilities, disagreement=disagreement)
    pairs = zip(numbers("utilities", utilities), numbers("disagreement", disagreement), strict=True)
    return [u - d for u, d in pairs]


def envy(values: Values, bundles: Bundles) -> list[list[float]]:
    """max(0, v_i(X_j) − v_i(X_i)) of each i for each j."""
    alike(values=values, bundles=bundles)
    return [[max(0.0, worth(own, other) - worth(own, bundles[i])) for other in bundles] for i, own in enumerate(values)]


def max_envy(values: Values, bundles: Bundles) -> float | None:
    """The largest envy of all pairs; None where there is none."""
    rows = envy(values, bundles)
    return max(each for row in rows for each in row) if len(rows) > 1 else None


def envy_free_but_one(values: Values, bundles: Bundles) -> bool:
    """Whether nobody envies another bundle once its best item for them is taken away (EF1, Budish 2011)."""
    return envy_free_but_one_share(values, bundles) in (1, None)


def envy_free_share(values: Values, bundles: Bundles) -> float | None:
    """Share of agents who envy nobody."""
    rows = envy(values, bundles)
    return sum(not any(row) for row in rows) / len(rows) if rows else None


def envy_free_but_one_share(values: Values, bundles: Bundles) -> float | None:
    """Share of agents who envy no bundle once its best item for them is taken away."""
    alike(values=values, bundles=bundles)
    content = [all(_but_one(own, bundles[i], other) for other in bundles) for i, own in enumerate(values)]
    return sum(content) / len(content) if content else None


def _but_one(own: Mapping[Hashable, float], mine: Sequence[Hashable], other: Sequence[Hashable]) -> bool:
    return worth(own, mine) >= worth(own, other) - max((worth(own, [item]) for item in other), default=0.0)


def proportional_share(values: Values, bundles: Bundles) -> float | None:
    """Share of agents who hold at least 1/n of what all is worth to them."""
    alike(values=values, bundles=bundles)
    n = len(bundles)
    if not n:
        return None
    everything = [item for bundle in bundles for item in bundle]
    return sum(worth(own, bundles[i]) >= worth(own, everything) / n for i, own in enumerate(values)) / n


def worth(own: Mapping[Hashable, float], bundle: Sequence[Hashable]) -> float:
    """What a bundle is worth to one agent. Raises ValueError for an item that has no value to it."""
    for item in bundle:
        if item not in own:
            raise ValueError(f"values: {item!r} has none")
    return fsum(number("values", own[item]) for item in bundle)
