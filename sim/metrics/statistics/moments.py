"""The shape of a sample: skewness and excess kurtosis, corrected for small samples (Joanes and Gill 1998)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean

from sim.metrics.statistics.given import numbers, varies


def skewness(values: Sequence[float]) -> float | None:
    """G₁, above 0 with a long tail of large values; None for fewer than three values or all alike."""
    values, n = numbers("values", values), len(values)
    if n < 3 or not varies(values):
        return None
    return float(sqrt(n * (n - 1)) / (n - 2) * _moment(values, 3) / _moment(values, 2) ** 1.5)


def excess_kurtosis(values: Sequence[float]) -> float | None:
    """G₂, 0 for a normal distribution and above it with heavy tails; None for fewer than four values or all alike."""
    values, n = numbers("values", values), len(values)
    if n < 4 or not varies(values):
        return None
    raw = _moment(values, 4) / _moment(values, 2) ** 2 - 3
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * raw + 6)


def _moment(values: Sequence[float], power: int) -> float:
    """Mean power of distances from the mean."""
    middle = fmean(values)
    return fmean((value - middle) ** power for value in values)
