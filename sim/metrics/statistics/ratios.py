"""How many times as likely: risk, odds and hazard ratios of an exposure, crude and within strata.

Say which one: 16 of 40 against 5 of 100 is a risk ratio of 8.0, a hazard ratio of 9.96 and an odds ratio of 12.7.
Intervals are on the scale of logarithms and take rows for independent; ½ is added to all cells only where one is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erfc, exp, fsum, log, log1p, prod, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import hypergeom

from sim.intervals import Z
from sim.metrics.statistics.given import share_of, whole

FARTHEST = 60.0
"""Logarithm of an odds ratio beyond which none is looked for."""
CONTINUITY = "continuity"
"""Flag of a ratio for which ½ was added to all cells."""


class Counts(NamedTuple):
    """One stratum: how many have the outcome, among those exposed and among the others."""

    exposed_with: float
    exposed: float
    others_with: float
    others: float

    @property
    def known(self) -> bool:
        """Whether both groups have members and somebody has the outcome."""
        return bool(self.exposed and self.others and (self.exposed_with or self.others_with))

    @classmethod
    def of(cls, table: Sequence[float]) -> Counts:
        """A stratum from four numbers. Raises ValueError where more have the outcome than there are."""
        made = cls(*table)
        share_of(made.exposed_with, made.exposed)
        share_of(made.others_with, made.others)
        return made


class Ratio(NamedTuple):
    """A ratio with its interval; None where it is not defined."""

    value: float | None
    ci: tuple[float, float] | None = None
    flags: tuple[str, ...] = ()


def risk_ratio(counts: Counts) -> Ratio:
    """Risk of the exposed over that of the others (Katz et al. 1978)."""

    def variance(a: float, n: float, c: float, m: float) -> float:
        return 1 / a - 1 / n + 1 / c - 1 / m

    return _with_interval(counts, lambda a, n, c, m: (a / n) / (c / m), variance, full=False)


def odds_ratio(counts: Counts) -> Ratio:
    """Odds of the exposed over those of the others (Woolf 1955)."""

    def variance(a: float, n: float, c: float, m: float) -> float:
        return 1 / a + 1 / (n - a) + 1 / c + 1 / (m - c)

    return _with_interval(counts, lambda a, n, c, m: (a / (n - a)) / (c / (m - c)), variance, full=True)


def hazard_ratio(counts: Counts) -> Ratio:
    """ln(1 − risk of the exposed)/ln(1 − that of the others): the rate ratio behind risks of one period (cloglog)."""

    def variance(a: float, n: float, c: float, m: float) -> float:
        return sum(k / (size * (size - k)) / log1p(-k / size) ** 2 for k, size in ((a, n), (c, m)))

    return _with_interval(counts, lambda a, n, c, m: log1p(-a / n) / log1p(-c / m), variance, full=True)


def mantel_haenszel(strata: Sequence[Counts]) -> Ratio:
    """Risk ratio common to strata (Mantel and Haenszel 1959), its interval by Greenland and Robins (1985)."""
    kept = [one for one in map(Counts.of, strata) if one.known]
    top = fsum(s.exposed_with * s.others / (s.exposed + s.others) for s in kept)
    bottom = fsum(s.others_with * s.exposed / (s.exposed + s.others) for s in kept)
    if not top or not bottom:
        return Ratio(0.0 if bottom else None, None, ("no outcome in one group",) if kept else ())
    spread = fsum(_robins(s) for s in kept) / (top * bottom)
    middle, half = log(top / bottom), Z * sqrt(spread)
    return Ratio(top / bottom, (exp(middle - half), exp(middle + half)))


def exact_odds_ratio(strata: Sequence[Counts]) -> Ratio:
    """Odds ratio common to strata, conditional on their margins, for where one group has no outcome or every one.

    The value is median-unbiased: at it, as much as was seen or more has a chance of one half, or as much or less; where
    both are there, their geometric mean (after Hirji, Tsiatis and Mehta 1989).
    Its interval is exact (Cornfield 1956); where it has no end on one side it is a bound, told in a flag. None where
    the margins leave no choice.
    """
    law, seen = np.ones(1), 0
    for stratum in map(Counts.of, strata):
        hits, exposed, others_with, others = (whole("counts", count) for count in stratum)
        cases = hits + others_with
        counts = np.arange(max(0, cases - others), min(exposed, cases) + 1)
        law = np.convolve(law, hypergeom.pmf(counts, exposed + others, exposed, cases))
        seen += hits - int(counts[0])
    if len(law) < 2 or not law[seen]:
        return Ratio(None, None, ("no choice within strata" if len(law) < 2 else "too far from chance to be counted",))
    with np.errstate(divide="ignore"):
        logs, places = np.log(law), np.arange(len(law))

    def tail(theta: float, *, above: bool) -> float:
        weights = logs + theta * places
        shares = np.exp(weights - weights.max())
        return float((shares[seen:] if above else shares[: seen + 1]).sum() / shares.sum())

    def solved(chance: float, *, above: bool) -> float | None:
        """The odds ratio at which so much or more, or less, has a chance; None where it always has all of it."""
        if seen == (0 if above else len(law) - 1):
            return None
        return exp(brentq(lambda theta: tail(theta, above=above) - chance, -FARTHEST, FARTHEST))

    low, high = solved(0.025, above=True), solved(0.025, above=False)
    halves = [half for above in (True, False) if (half := solved(0.5, above=above)) is not None]
    middle = prod(halves) ** (1 / len(halves))
    if low is None or high is None:
        bound = f"at most {high:.3g}" if low is None else f"at least {low:.3g}"
        return Ratio(middle, None, (f"{bound}, at 97.5%",))
    return Ratio(middle, (low, high))


def cochran_mantel_haenszel(strata: Sequence[Counts]) -> float | None:
    """Two-sided p that exposure goes with the outcome within strata: χ² of one degree, without a correction."""
    gap, spread = 0.0, 0.0
    for a, n, c, m in map(Counts.of, strata):
        total, cases = n + m, a + c
        if total > 1:
            gap += a - n * cases / total
            spread += n * m * cases * (total - cases) / (total**2 * (total - 1))
    return erfc(abs(gap) / sqrt(2 * spread)) if spread else None


def risk_difference(strata: Sequence[Counts]) -> float | None:
    """Risk of the exposed less that of the others within strata, weighed by n·m/(n + m) (Greenland and Robins 1985).

    None where no stratum has both.
    """
    both = [one for one in strata if one.exposed and one.others]
    weights = [one.exposed * one.others / (one.exposed + one.others) for one in both]
    apart = [one.exposed_with / one.exposed - one.others_with / one.others for one in both]
    return fsum(w * d for w, d in zip(weights, apart, strict=True)) / fsum(weights) if both else None


def crude(strata: Sequence[Counts]) -> Counts:
    """All strata thrown together."""
    return Counts(*(fsum(one[place] for one in strata) for place in range(4)))


def _with_interval(counts: Counts, ratio: Callable[..., float], variance: Callable[..., float], *, full: bool) -> Ratio:
    """A ratio of one table; `full`: it needs all four cells above 0, not only those with the outcome."""
    a, n, c, m = known = Counts.of(counts)
    if not known.known:
        return Ratio(None)
    empty = 0 in ((a, n - a, c, m - c) if full else (a, c))
    if empty:
        a, n, c, m = a + 0.5, n + 1, c + 0.5, m + 1
    value = ratio(a, n, c, m)
    half = Z * sqrt(max(0.0, variance(a, n, c, m)))
    return Ratio(value, (value * exp(-half), value * exp(half)), (CONTINUITY,) if empty else ())


def _robins(s: Counts) -> float:
    total = s.exposed + s.others
    cases = s.exposed_with + s.others_with
    return (s.exposed * s.others * cases - s.exposed_with * s.others_with * total) / total**2
