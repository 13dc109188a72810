"""The mean of numbers of which some are only known to be at least, or at most, so much (Tobin 1958).

Maximum likelihood of a normal law. The interval is by profile likelihood, with the cut that gives Student's interval
where all are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, log1p, sqrt
from statistics import fmean, pstdev

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from sim.intervals import t_quantile
from sim.metrics.statistics import clusters
from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.given import alike, numbers, varies, whole
from sim.metrics.statistics.profile import interval

METHOD = "Tobit"


def mean(values: Sequence[float], known: Sequence[int]) -> Estimate:
    """Mean of values each of which is known (0), or is a bound: it is at least that (1), at most that (−1).

    As `clusters.mean` where all are known. None where fewer than two are, or these are all alike: no spread to go by.
    """
    alike(values=values, known=known)
    values, sides = numbers("values", values), [whole("known", each, -1) for each in known]
    if max(sides, default=0) > 1:
        raise ValueError(f"known: {max(sides)} is none of -1, 0, 1")
    seen = [value for value, side in zip(values, sides, strict=True) if not side]
    n = len(values)
    if len(seen) == n:
        return clusters.mean(values)
    if not varies(seen):
        return Estimate(None, n, n, flags=("fewer than two that differ are known",))
    middle, spread = fmean(seen), pstdev(seen)
    low, high = min(values) - middle, max(values) - middle
    reach = 10 * max(high - low, spread)
    model = _Model((np.array(values) - middle) / spread, np.array(sides))
    far = reach / spread
    best = float(minimize_scalar(model.loss, bounds=(-far, far), method="bounded", options={"xatol": 1e-10}).x)
    cut = n / 2 * log1p(t_quantile(0.95, n - 1) ** 2 / (n - 1))
    ends = interval(model.loss, best, -inf, inf, cut)
    ci = (middle + spread * ends[0], middle + spread * ends[1])
    return Estimate(middle + spread * best, n, n, ci=ci, method=METHOD)


class _Model:
    """A normal law of values with bounds; its standard deviation is profiled out."""

    def __init__(self, values: np.ndarray, sides: np.ndarray) -> None:
        self._seen, self._bounds, self._sides = values[sides == 0], values[sides != 0], sides[sides != 0]

    def loss(self, mean: float) -> float:
        """−log-likelihood of a mean, at the best of all standard deviations."""
        squares = float(((self._seen - mean) ** 2).sum())

        def of_spread(log_sd: float) -> float:
            sd = np.exp(log_sd)
            told = len(self._seen) * log_sd + squares / (2 * sd * sd)
            return float(told - log_ndtr(self._sides * (mean - self._bounds) / sd).sum())

        start = log(sqrt(squares / len(self._seen)))
        found = minimize_scalar(of_spread, bounds=(start - 4, start + 4), method="bounded", options={"xatol": 1e-9})
        return float(found.fun)
