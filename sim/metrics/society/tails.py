"""Whether sizes of cascades have a heavy tail: their distribution, and a power law against a rival.

Sizes are whole numbers from `least` on. Of fewer than fifty nothing can be said, and two laws that fit about as well
are not told apart by which fits better: the ratio comes with its test and its interval (Clauset et al. 2009).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from math import erfc, exp, fsum, inf, sqrt
from random import Random
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.metrics.statistics.bootstrap import DRAWS, middle
from sim.metrics.statistics.given import numbers, varies, whole

FEWEST = 50
"""Sizes below which tails are not compared."""
Fit = tuple[tuple[float, ...], NDArray[np.float64]]
"""Parameters of greatest likelihood, and the log probability of each size."""


class Tail(NamedTuple):
    """A power law against a rival."""

    exponent: float
    """Of the power law."""
    ratio: float
    """Mean log likelihood ratio of a size, in nats: above 0 the power law fits better."""
    ci: tuple[float, float]
    """Of it, by weighing sizes anew (Bayesian bootstrap, Rubin 1981), both laws held as they were fitted."""
    p: float
    """Two-sided, that both are as near to the truth (Vuong 1989)."""


def ccdf(sizes: Sequence[float]) -> list[tuple[float, float]]:
    """Of each distinct size the share that is at least as large."""
    ordered = sorted(numbers("sizes", sizes))
    return [(size, 1 - bisect_left(ordered, size) / len(ordered)) for size in dict.fromkeys(ordered)]


def vuong(
    sizes: Sequence[int], against: str = "lognormal", least: int = 1, draws: int = DRAWS, seed: int = 0
) -> Tail | None:
    """A power law against a `lognormal` or a `geometric` one; None below `FEWEST` sizes from `least` on, or all alike.

    Raises ValueError for another rival.
    """
    if against not in RIVALS:
        raise ValueError(f"against: {against!r} is none of {', '.join(RIVALS)}")
    kept = sorted(size for each in sizes if (size := whole("sizes", each, 1)) >= whole("least", least, 1))
    if len(kept) < FEWEST or not varies(kept):
        return None
    (exponent, *_), own = power_law(kept, least)
    ratios = (own - RIVALS[against](kept, least)[1]).tolist()
    spread = pstdev(ratios)
    z = fmean(ratios) / spread * sqrt(len(ratios)) if spread else 0.0
    counts, luck = dict(sorted(Counter(ratios).items())), Random(seed)
    weights = [[luck.gammavariate(n, 1) for n in counts.values()] for _ in range(draws)]
    drawn = (fsum(w * each for w, each in zip(own, counts, strict=True)) / fsum(own) for own in weights)
    ends = middle(drawn) or (-inf, inf)
    return Tail(exponent, fmean(ratios), ends, erfc(abs(z) / sqrt(2)))


def power_law(sizes: Sequence[int], least: int) -> Fit:
    """x^(−α)/ζ(α, least)."""
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    logs = np.log(np.asarray(sizes, float))
    found = minimize_scalar(lambda a: a * logs.mean() + np.log(zeta(a, least)), bounds=(1.001, 30), method="bounded")
    exponent = float(found.x)
    return (exponent,), -exponent * logs - np.log(zeta(exponent, least))


def geometric(sizes: Sequence[int], least: int) -> Fit:
    """p(1 − p)^(x − least)."""
    above = np.asarray(sizes, float) - least
    p = float(1 / (1 + above.mean()))
    return (p,), np.log(p) + above * np.log1p(-p)


def lognormal(sizes: Sequence[int], least: int) -> Fit:
    """A lognormal density over x ± ½, from `least` on."""
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    different, place = np.unique(np.asarray(sizes, float), return_inverse=True)
    counts, logs = np.bincount(place), np.log(np.asarray(sizes, float))

    def law(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probabilities of different sizes; tails are taken from above, where they are small."""
        middle_, scale = parameters[0], exp(float(np.clip(parameters[1], -5, 5)))
        low, high = ((middle_ - np.log(different + side)) / scale for side in (-0.5, 0.5))
        beyond, further = log_ndtr(low), log_ndtr(high)
        cell = beyond + np.log1p(-np.exp(np.minimum(further - beyond, -1e-15)))
        found: NDArray[np.float64] = cell - log_ndtr((middle_ - np.log(least - 0.5)) / scale)
        return found

    start = np.array([logs.mean(), np.log(max(logs.std(), 0.1))])
    best = minimize(lambda one: -float(counts @ law(one)), start, method="Nelder-Mead").x
    return (float(best[0]), exp(float(best[1]))), law(best)[place]


RIVALS = {"lognormal": lognormal, "geometric": geometric}
"""What a power law is compared with: one that bends down, and one without a heavy tail."""
