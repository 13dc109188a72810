"""The shape of a sample: skewness and excess kurtosis, corrected for small samples (Joanes and Gill 1998)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from sim.metrics.statistics.centred import Vector
from sim.metrics.statistics.given import ROUNDED, numbers


def skewness(values: Sequence[float]) -> float | None:
    """G₁, above 0 with a long tail of large values; None for fewer than three values or all alike."""
    known = np.array(numbers("values", values))
    return weighted_skewness(known, np.ones(len(known)))


def excess_kurtosis(values: Sequence[float]) -> float | None:
    """G₂, 0 for a normal distribution and above it with heavy tails; None for fewer than four values or all alike."""
    known = np.array(numbers("values", values))
    return weighted_kurtosis(known, np.ones(len(known)))


def weighted_skewness(values: Vector, times: Vector) -> float | None:
    """`skewness` where each value is there so many times."""
    n, apart = float(times.sum()), _apart(values, times)
    if n < 3 or apart is None:
        return None
    return sqrt(n * (n - 1)) / (n - 2) * float(times @ apart**3) / n


def weighted_kurtosis(values: Vector, times: Vector) -> float | None:
    """`excess_kurtosis` where each value is there so many times."""
    n, apart = float(times.sum()), _apart(values, times)
    if n < 4 or apart is None:
        return None
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (float(times @ apart**4) / n - 3) + 6)


def _apart(values: Vector, times: Vector) -> Vector | None:
    """Distances from the mean, in standard deviations; None where there is but one value."""
    there = values[times > 0]
    if not len(there) or float(np.ptp(there)) <= ROUNDED * float(np.abs(there).max()):
        return None
    away = values - times @ values / times.sum()
    found: Vector = away / sqrt(float(times @ away**2 / times.sum()))
    return found
