"""How far two distributions are apart."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from math import fsum, inf, log2

from sim.metrics.statistics.given import alike, numbers


def wasserstein(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Area between two empirical distribution functions (order 1), in the unit of the values."""
    one, other = sorted(numbers("one", one)), sorted(numbers("other", other))
    if not one or not other:
        return None
    points = sorted({*one, *other})
    return fsum((b - a) * abs(_below(one, a) - _below(other, a)) for a, b in pairwise(points))


def ks(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Largest distance of two empirical distribution functions (Kolmogorov and Smirnov)."""
    one, other = sorted(numbers("one", one)), sorted(numbers("other", other))
    if not one or not other:
        return None
    return max(abs(_below(one, point) - _below(other, point)) for point in {*one, *other})


def energy_distance(one: Sequence[float], other: Sequence[float]) -> float | None:
    """2·E|X − Y| − E|X − X′| − E|Y − Y′| = 2∫(F − G)² (Székely and Rizzo 2013), in the unit of the values.

    Nothing where the samples are distributed alike. `scipy.stats.energy_distance` is its square root.
    """
    one, other = sorted(numbers("one", one)), sorted(numbers("other", other))
    if not one or not other:
        return None
    points = sorted({*one, *other})
    return 2 * fsum((b - a) * (_below(one, a) - _below(other, a)) ** 2 for a, b in pairwise(points))


def entropy(weights: Sequence[float]) -> float:
    """In bits, of weights that need not add up to 1; 0 log 0 is 0."""
    weights = numbers("weights", weights, 0)
    total = fsum(weights)
    return -fsum(w / total * log2(w / total) for w in weights if w) + 0.0 if total else 0.0


def kl(p: Sequence[float], q: Sequence[float]) -> float:
    """Σ p log₂ p/q in bits, of weights that are made to add up to 1.

    Infinite where p has what q lacks: `jensen_shannon` is for laws whose supports differ.
    """
    p, q = _laws(p, q)
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return inf
    return fsum(a * log2(a / b) for a, b in zip(p, q, strict=True) if a)


def jensen_shannon(p: Sequence[float], q: Sequence[float]) -> float:
    """½ KL(p‖m) + ½ KL(q‖m), m their mean, in bits: from 0 to 1 (Lin 1991). Weights are made to add up to 1.

    `scipy.spatial.distance.jensenshannon` is its square root, by default in nats.
    """
    p, q = _laws(p, q)
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (kl(p, middle) + kl(q, middle)) / 2


def shares(one: Sequence[Hashable], other: Sequence[Hashable]) -> tuple[list[float], list[float]]:
    """Two samples as shares over the values that either has."""
    counts = Counter(one), Counter(other)
    values = list(dict.fromkeys([*one, *other]))
    found = [[count[value] / max(1, count.total()) for value in values] for count in counts]
    return found[0], found[1]


def normalised(distance: float, floor: float, ceiling: float) -> float | None:
    """(distance − floor)/(ceiling − floor): 0 as near as two halves of the reference, 1 as far as chance."""
    distance, floor, ceiling = numbers("distances", (distance, floor, ceiling), 0)
    return (distance - floor) / (ceiling - floor) if ceiling > floor else None


def as_weights(law: Mapping[Hashable, float], support: Sequence[Hashable]) -> list[float]:
    """Probabilities in the order of a support."""
    return [law.get(value, 0.0) for value in support]


def _laws(p: Sequence[float], q: Sequence[float]) -> tuple[list[float], list[float]]:
    """Weights as probabilities. Raises ValueError for weights of which none is above 0."""
    alike(p=p, q=q)
    p, q = numbers("p", p, 0), numbers("q", q, 0)
    for name, weights in (("p", p), ("q", q)):
        if not any(weights):
            raise ValueError(f"{name}: no weight is above 0")
    return [a / fsum(p) for a in p], [b / fsum(q) for b in q]


def _below(ordered: Sequence[float], point: float) -> float:
    """Share of a sorted sample up to a point."""
    return bisect_right(ordered, point) / len(ordered)
