"""Intervals of what is counted or averaged, for metrics and ratings."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean, stdev

Z = NormalDist().inv_cdf(0.975)
"""Of a two-sided interval at 95%."""


def wilson(hits: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share of n independent trials (Wilson 1927); a draw is half a hit.

    Raises ValueError unless 0 <= hits <= n and n > 0.
    """
    if n <= 0 or not 0 <= hits <= n:
        raise ValueError(f"{hits} of {n} is no share")
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = (hits + z2 / 2) / (n + z2)
    half = sqrt(z2 * (hits * (n - hits) / n + z2 / 4)) / (n + z2)
    return (middle - half if hits else 0.0), (middle + half if hits < n else 1.0)


_T: tuple[float, ...] = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t at 97.5% with 1 to 30 degrees of freedom."""


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95% interval of a mean, of paired differences too; None for fewer than two values."""
    if len(values) < 2:
        return None
    half = (_T[len(values) - 2] if len(values) - 2 < len(_T) else Z) * stdev(values) / sqrt(len(values))
    return fmean(values) - half, fmean(values) + half
