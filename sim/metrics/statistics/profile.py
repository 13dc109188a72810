"""Intervals by profile likelihood: all values of one parameter that make the data hardly less likely than the best."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log

from scipy.optimize import brentq

from sim.intervals import Z

CUT = Z * Z / 2
"""How far below its maximum a log-likelihood may be at 95%: half the quantile of chi-square (Wilks 1938)."""
EDGE = -log(0.05)
"""The same of a bound on one side, where the best value is the least or the largest there is: exact for a share."""
STEEP = 1e3
"""What an impossible value counts as."""


def interval(
    loss: Callable[[float], float], best: float, low: float, high: float, cut: float = CUT
) -> tuple[float, float]:
    """The values within the cut, from `low` to `high`; where that is infinite, as far as the likelihood falls at all.

    `loss`: −log-likelihood of a value, the largest over all other parameters; it rises to both sides of `best`.
    """
    least = loss(best) + (EDGE if best in (low, high) else cut)

    def over(value: float) -> float:
        return min(loss(value) - least, STEEP)

    return _end(over, best, low), _end(over, best, high)


def _end(over: Callable[[float], float], best: float, bound: float) -> float:
    """Where the cut is passed between the best value and a bound; the bound where it never is."""
    far, step = bound, 1.0
    if abs(bound) == inf:
        while over(far := best + (step if bound > 0 else -step)) < 0:
            step *= 2
            if step > STEEP:
                return bound
    if far == best or over(far) <= 0:
        return far
    return float(brentq(over, best, far, xtol=1e-9))
