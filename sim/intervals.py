"""Intervals of what is counted, for metrics and ratings."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

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
