"""Effects of an intervention between forks that share their luck: paired differences.

Sampling of a model shares luck only where its server answers alike in any batch; else the luck of the world is all that
is shared, and a fork without an intervention says how much that leaves to chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import variance
from typing import NamedTuple

from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.given import alike, numbers, varies
from sim.metrics.statistics.permutation import sign_flips


class Effect(NamedTuple):
    """A mean paired difference."""

    estimate: Estimate
    p: float
    """By flipping signs."""
    reduction: float | None
    """Variance of unpaired over paired differences; 1 or less says that shared luck did not help."""


def effect(base: Sequence[float], treated: Sequence[float]) -> Effect | None:
    """treated − base of each pair: its mean with a t-interval; None without pairs."""
    alike(base=base, treated=treated)
    base, treated = numbers("base", base), numbers("treated", treated)
    differences = [t - b for b, t in zip(base, treated, strict=True)]
    if not differences:
        return None
    return Effect(mean(differences), sign_flips(differences), variance_reduction(base, treated))


def variance_reduction(base: Sequence[float], treated: Sequence[float]) -> float | None:
    """(V₀ + V₁)/V_d; None for fewer than two pairs or differences that do not vary."""
    alike(base=base, treated=treated)
    base, treated = numbers("base", base), numbers("treated", treated)
    differences = [t - b for b, t in zip(base, treated, strict=True)]
    if len(base) < 2 or not varies(differences):
        return None
    return (variance(base) + variance(treated)) / variance(differences)
