"""Superspreading: whether few infect most, by the dispersion k of a negative binomial law of offspring.

1 as if everybody infected at random for a random time, near 0 where one in many infects all, without end where all
are alike (Lloyd-Smith et al. 2005). Maximum likelihood, with an interval by profile likelihood that takes infectors for
independent given k.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, fsum, inf, lgamma, log, log1p
from statistics import fmean, pvariance

from scipy.optimize import minimize_scalar

from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.given import numbers
from sim.metrics.statistics.profile import interval

FAR = 12.0
"""Logarithm of a k that is as good as infinite, or, negative, as 0."""
ALIKE = "offspring varies no more than by chance"


def dispersion(offspring: Sequence[float]) -> Estimate:
    """k, from how many each infector infected, parts of one included; None where that varies no more than by chance.

    An interval without an upper end says so in a flag with its lower one.
    """
    counts = numbers("offspring", offspring, 0)
    n, mean = len(counts), fmean(counts) if counts else 0.0
    if n < 2 or not mean:
        return Estimate(None, n, n)
    often, total = Counter(counts), fsum(counts)

    def loss(log_k: float) -> float:
        k = exp(log_k)
        ways = fsum(many * (lgamma(x + k) - lgamma(k)) for x, many in often.items())
        return n * k * log1p(mean / k) - total * (log(mean) - log(k + mean)) - ways

    spread = pvariance(counts) > mean
    best = FAR
    if spread:
        best = float(minimize_scalar(loss, bounds=(-FAR, FAR), method="bounded", options={"xatol": 1e-9}).x)
    low, high = (exp(end) if end < FAR else inf for end in interval(loss, best, -FAR, FAR))
    found = Estimate(exp(best) if spread else None, n, n, flags=() if spread else (ALIKE,))
    if high == inf:
        return found._replace(flags=(*found.flags, f"at least {low:.3g}"))
    return found._replace(ci=(low, high), method="profile likelihood")
