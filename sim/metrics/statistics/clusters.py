"""Rates, means and ratios whose independent units are clusters: runs, or the tables of one.

What happens inside a run hangs together, so intervals come from the spread between clusters, by t with one degree
of freedom less than there are; a single cluster has no interval. Shares of independent trials have Wilson's.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, inf, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

from sim.intervals import wilson

FEW = "n_clusters<2"
"""Flag of a number without an interval, because nothing is known of the spread between runs."""


class Estimate(NamedTuple):
    """A number, and how well it is known."""

    value: float | None
    n: float = 0
    """Units in the denominator."""
    clusters: int = 0
    """Clusters with at least one of them."""
    se: float | None = None
    ci: tuple[float, float] | None = None
    method: str = ""
    flags: tuple[str, ...] = ()


def t_quantile(confidence: float, degrees: int) -> float:
    """Half-width of a two-sided t-interval in standard errors."""
    return float(stdtrit(degrees, (1 + confidence) / 2))


def mean(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Mean of one value a cluster, with its t-interval."""
    n = len(values)
    if n == 0:
        return Estimate(None)
    middle = fmean(values)
    if n == 1:
        return Estimate(middle, n, n, flags=(FEW,))
    se = stdev(values) / sqrt(n)
    half = t_quantile(confidence, n - 1) * se
    return Estimate(middle, n, n, se, (middle - half, middle + half), "t")


def geometric_mean(ratios: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Geometric mean of positive ratios, with the t-interval of their logarithms. Raises ValueError for others."""
    if any(not 0 < each < inf for each in ratios):
        raise ValueError(f"ratios are positive numbers, not {list(ratios)}")
    logs = mean([log(each) for each in ratios], confidence)
    if logs.value is None:
        return logs
    ci = (exp(logs.ci[0]), exp(logs.ci[1])) if logs.ci else None
    return logs._replace(value=exp(logs.value), ci=ci, method="t on logs" if ci else "")


def ratio(parts: Sequence[float], sizes: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Σ parts over Σ sizes, one of each a cluster, with the linearised standard error and a t-interval.

    se² = m/(m − 1) · Σ(part − r·size)² / (Σ size)² (Cochran 1977); with equal sizes it is the standard deviation of
    the clusters' own ratios over √m.
    """
    pairs = [(part, size) for part, size in zip(parts, sizes, strict=True) if size]
    total, m = fsum(size for _, size in pairs), len(pairs)
    if m == 0:
        return Estimate(None)
    value = fsum(part for part, _ in pairs) / total
    if m == 1:
        return Estimate(value, total, m, flags=(FEW,))
    se = sqrt(m / (m - 1) * fsum((part - value * size) ** 2 for part, size in pairs)) / total
    half = t_quantile(confidence, m - 1) * se
    return Estimate(value, total, m, se, (value - half, value + half), "t over clusters")


def rate(hits: Sequence[float], sizes: Sequence[float], confidence: float = 0.95) -> Estimate:
    """A share, as `ratio` with an interval within [0, 1].

    If all or none are hits the bound is one-sided and takes units for independent: 1 − (1 − confidence)^(1/n).
    """
    found = ratio(hits, sizes, confidence)
    if found.value is None or found.ci is None:
        return found
    if found.value in (0, 1):
        bound = none_upper(found.n, confidence=confidence)
        ci = (0.0, bound) if found.value == 0 else (1 - bound, 1.0)
        return found._replace(ci=ci, method="exact, one-sided", flags=("design effect unknown",))
    return found._replace(ci=(max(0.0, found.ci[0]), min(1.0, found.ci[1])))


def independent_rate(hits: float, n: float, confidence: float = 0.95) -> Estimate:
    """Share of independent trials, as of outcomes that a run has one of, with Wilson's interval."""
    if n == 0:
        return Estimate(None)
    share = hits / n
    return Estimate(share, n, int(n), sqrt(share * (1 - share) / n), wilson(hits, n, confidence), "wilson")


def none_upper(n: float, design_effect: float = 1.0, confidence: float = 0.95) -> float:
    """Upper bound, exact and one-sided, of a share of which none of n was seen: 1 − (1 − confidence)^(deff/n)."""
    return float(1 - (1 - confidence) ** (design_effect / n))


def cluster_se(hits: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Standard error of a rate over clusters; None for fewer than two."""
    return rate(hits, sizes).se


def design_effect(hits: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Variance over clusters, as a multiple of that of as many independent trials (Kish 1965); None where undefined."""
    found = rate(hits, sizes)
    if found.value is None or found.se is None or found.value in (0, 1):
        return None
    return found.se**2 / (found.value * (1 - found.value) / found.n)
