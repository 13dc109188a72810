"""Fairness of a division: Nash products, envy, proportional shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import TypeAlias

Bundles: TypeAlias = Sequence[Sequence[Hashable]]
"""What each agent holds."""
Values: TypeAlias = Sequence[Mapping[Hashable, float]]
"""What each item is worth to each agent; bundles are worth their sum."""


def nash_product(utilities: Sequence[float], disagreement: Sequence[float]) -> float | None:
    """Π(u − d); None where somebody is worse off than without a deal."""
    gains = [u - d for u, d in zip(utilities, disagreement, strict=True)]
    return prod(gains) if gains and min(gains) >= 0 else None


def nash_ratio(utilities: Sequence[float], disagreement: Sequence[float], surplus: float) -> float | None:
    """Nash product over the largest one where a surplus can be transferred: (surplus/n)ⁿ."""
    found = nash_product(utilities, disagreement)
    return found / (surplus / len(utilities)) ** len(utilities) if found is not None and surplus > 0 else None


def rationality_violations(utilities: Sequence[float], disagreement: Sequence[float]) -> int:
    """How many are worse off than without a deal."""
    return sum(u < d for u, d in zip(utilities, disagreement, strict=True))


def envy(values: Values, bundles: Bundles) -> list[list[float]]:
    """max(0, v_i(X_j) − v_i(X_i)) of each i for each j."""
    return [[max(0.0, worth(own, other) - worth(own, bundles[i])) for other in bundles] for i, own in enumerate(values)]


def max_envy(values: Values, bundles: Bundles) -> float:
    """The largest envy of all pairs."""
    return max((each for row in envy(values, bundles) for each in row), default=0.0)


def envy_free_but_one(values: Values, bundles: Bundles) -> bool:
    """Whether nobody envies another bundle once its best item for them is taken away (EF1, Budish 2011)."""
    return all(
        worth(own, bundles[i]) >= worth(own, other) - max((own[item] for item in other), default=0.0)
        for i, own in enumerate(values)
        for other in bundles
    )


def proportional_share(values: Values, bundles: Bundles) -> float | None:
    """Share of agents who hold at least 1/n of what all is worth to them."""
    n = len(bundles)
    if not n:
        return None
    everything = [item for bundle in bundles for item in bundle]
    return sum(worth(own, bundles[i]) >= worth(own, everything) / n for i, own in enumerate(values)) / n


def worth(own: Mapping[Hashable, float], bundle: Sequence[Hashable]) -> float:
    """What a bundle is worth to one agent."""
    return sum(own[item] for item in bundle)
