"""Sets that cover the truth as often as promised, wherever calibration cases are exchangeable with those to come."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import ceil, inf

from sim.metrics.statistics.permutation import binomial_tail


def rank(n: int, alpha: float) -> int:
    """Place of the threshold among n sorted scores: ⌈(n + 1)(1 − α)⌉, reckoned without rounding."""
    return ceil((n + 1) * (1 - Fraction(str(alpha))))


def threshold(scores: Sequence[float], alpha: float) -> float:
    """Split-conformal threshold (Vovk et al. 2005): cover scores up to it; inf where there are too few."""
    place = rank(len(scores), alpha)
    return sorted(scores)[place - 1] if place <= len(scores) else inf


def fewest(alpha: float) -> int:
    """Smallest number of calibration cases with a finite threshold."""
    n = 1
    while rank(n, alpha) > n:
        n += 1
    return n


def coverage(scores: Sequence[float], limit: float) -> float | None:
    """Share of new cases that a threshold covers."""
    return sum(score <= limit for score in scores) / len(scores) if scores else None


def by_group(scores: Mapping[Hashable, Sequence[float]], alpha: float) -> dict[Hashable, float]:
    """A threshold for each group, so that each is covered by itself (Mondrian)."""
    return {group: threshold(each, alpha) for group, each in scores.items()}


def risk_p(misses: int, n: int, alpha: float) -> float:
    """P(Bin(n, α) ≤ misses): p of "this setting misses more than α" (Angelopoulos et al. 2021)."""
    return binomial_tail(misses, n, alpha)


def learn_then_test(misses: Sequence[int], n: int, alpha: float, level: float = 0.05) -> int | None:
    """Place of the last setting that passes before the first that fails, from the safest on; None if the first fails.

    A fixed sequence keeps the chance of any false pass below `level`.
    """
    passed = None
    for place, missed in enumerate(misses):
        if risk_p(missed, n, alpha) > level:
            break
        passed = place
    return passed
