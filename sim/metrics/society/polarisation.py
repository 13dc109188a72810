"""How far opinions are apart in camps.

A bimodality coefficient above 5/9 only hints at two camps, and small samples stay below it even where they are two
points: .34 at six agents, .57 at ten. Hartigan's dip, with its test, stands beside it
(`sim.metrics.statistics.dip`). Units of K are those of `scale`, 1 where nothing else is said.

Over tables, intervals are by t; at a single one its agents, if many, are drawn anew. Not so for Esteban and Ray's index
or a dip of opinions that all differ, in which agents who are drawn twice would look like a camp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TypeAlias

import numpy as np

from sim.metrics.statistics.centred import Vector
from sim.metrics.statistics.given import number, numbers
from sim.metrics.statistics.moments import weighted_kurtosis, weighted_skewness

Weighted: TypeAlias = Callable[[Vector, Vector], float | None]
"""An index of opinions that are there so many times each."""

SUGGESTIVE = 5 / 9
"""Bimodality of a uniform distribution."""


def esteban_ray(opinions: Sequence[float], alpha: float = 1.3, scale: float = 1.0) -> float | None:
    """K·ΣΣ π_i^(1+α)·π_j·|y_i − y_j| over distinct opinions (Esteban and Ray 1994), 0 < α ≤ 1.6."""
    if not 0 < alpha <= 1.6:
        raise ValueError(f"alpha is {alpha}; it lies in (0, 1.6]")
    opinions, scale, n = numbers("opinions", opinions), number("scale", scale, 0), len(opinions)
    groups = {opinion: count / n for opinion, count in Counter(opinions).items()}
    if not n:
        return None
    apart = sum(p ** (1 + alpha) * q * abs(y - z) for y, p in groups.items() for z, q in groups.items())
    return float(scale * apart)


def bimodality(opinions: Sequence[float]) -> float | None:
    """(g² + 1)/(k + 3(n − 1)²/((n − 2)(n − 3))), g and k sample skewness and excess kurtosis; None for all alike."""
    known = np.array(numbers("opinions", opinions))
    return weighted_bimodality(known, np.ones(len(known)))


def weighted_variance(opinions: Vector, times: Vector) -> float | None:
    """Variance where each opinion is there so many times; None for nobody."""
    n = times.sum()
    return float(times @ (opinions - times @ opinions / n) ** 2 / n) if n else None


def weighted_bimodality(opinions: Vector, times: Vector) -> float | None:
    """`bimodality` where each opinion is there so many times."""
    n, skew, excess = float(times.sum()), weighted_skewness(opinions, times), weighted_kurtosis(opinions, times)
    if skew is None or excess is None:
        return None
    return (skew**2 + 1) / (excess + 3 * (n - 1) ** 2 / ((n - 2) * (n - 3)))


def affective(own: Sequence[float], other: Sequence[float]) -> float | None:
    """Mean sentiment towards the own group less that towards others."""
    own, other = numbers("own", own), numbers("other", other)
    return fmean(own) - fmean(other) if own and other else None
