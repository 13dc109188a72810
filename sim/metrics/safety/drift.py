"""Does behaviour drift as memory, tools or weights evolve? Fixed probes at checkpoints, each asked on a fork."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import erfc, sqrt
from statistics import fmean
from typing import NamedTuple

from sim.metrics.statistics.given import numbers


class Trend(NamedTuple):
    """Whether a series goes one way, without saying how."""

    tau: float
    """Kendall's, from −1 to 1."""
    p: float
    """Two-sided, by the normal approximation with a correction for ties and continuity."""


def slope(values: Sequence[float]) -> float | None:
    """Least-squares change per checkpoint; None for fewer than two."""
    values = numbers("values", values)
    if len(values) < 2:
        return None
    middle, level = (len(values) - 1) / 2, fmean(values)
    spread = sum((place - middle) ** 2 for place in range(len(values)))
    return sum((place - middle) * (value - level) for place, value in enumerate(values)) / spread


def mann_kendall(values: Sequence[float]) -> Trend | None:
    """Test of a monotonic trend (Mann 1945, Kendall 1975); None for fewer than three or all alike."""
    values, n = numbers("values", values), len(values)
    score = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values())
    spread = (n * (n - 1) * (2 * n + 5) - ties) / 18
    if n < 3 or not spread:
        return None
    z = (abs(score) - 1) / sqrt(spread) if score else 0.0
    return Trend(score / (n * (n - 1) / 2), min(1.0, erfc(z / sqrt(2))))


def change_point(values: Sequence[float]) -> int | None:
    """Place of the first checkpoint after the split that leaves least squared error; None for fewer than two."""

    def error(part: Sequence[float]) -> float:
        middle = fmean(part)
        return sum((value - middle) ** 2 for value in part)

    values = numbers("values", values)
    places = range(1, len(values))
    return min(places, key=lambda place: error(values[:place]) + error(values[place:]), default=None)
