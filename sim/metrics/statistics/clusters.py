"""Rates, means and ratios whose independent units are clusters: runs, or the tables of one.

What happens inside a run hangs together, so intervals come from the spread between clusters, by t with one degree
of freedom less than there are; a single cluster has no interval. Shares of independent trials have Wilson's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import exp, fsum, inf, log, sqrt
from statistics import fmean, stdev
from typing import NamedTuple, TypeVar

from sim.intervals import ALIKE, FEW, clustered, clustered_mean, few_alike, ratio_error, t_quantile, wilson
from sim.metrics.statistics.given import alike, numbers, share_of

T = TypeVar("T")


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


def mean(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Mean of one value a cluster, with its t-interval; fewer than six that are all alike have none."""
    values = numbers("values", values)
    n = len(values)
    if n == 0:
        return Estimate(None)
    middle = fmean(values)
    if n == 1:
        return Estimate(middle, n, n, flags=(FEW,))
    se = stdev(values) / sqrt(n)
    if few_alike(values, confidence):
        return Estimate(middle, n, n, se, flags=(ALIKE,))
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
    """Σ parts over Σ sizes, one of each a cluster, with the linearised standard error and a t-interval."""
    alike(parts=parts, sizes=sizes)
    parts, sizes = numbers("parts", parts), numbers("sizes", sizes, 0)
    pairs = [(part, size) for part, size in zip(parts, sizes, strict=True) if size]
    total, m = fsum(size for _, size in pairs), len(pairs)
    if m == 0:
        return Estimate(None)
    value = fsum(part for part, _ in pairs) / total
    se = ratio_error(*zip(*pairs, strict=True)) if m > 1 else None
    return Estimate(value, total, m, se, *clustered_mean(parts, sizes, confidence))


def rate(hits: Sequence[float], sizes: Sequence[float], confidence: float = 0.95) -> Estimate:
    """A share, as `ratio` with the interval of `sim.intervals.clustered`; more hits than trials are a ValueError."""
    return ratio(hits, sizes, confidence)._replace(**clustered(hits, sizes, confidence)._asdict())


def mean_share(shares: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Mean of one share a cluster, each from 0 to 1, as `rate`: within these, and a bound where all are 0 or all 1."""
    return rate(shares, [1.0] * len(shares), confidence)


def independent_rate(hits: float, n: float, confidence: float = 0.95) -> Estimate:
    """Share of independent trials, as of outcomes that a run has one of, with Wilson's interval."""
    share = share_of(hits, n)
    if share is None:
        return Estimate(None)
    return Estimate(share, n, int(n), sqrt(share * (1 - share) / n), wilson(hits, n, confidence), "wilson")


def jackknife(
    units: Sequence[T],
    cluster: Callable[[T], Hashable],
    value: Callable[[Sequence[T]], float | None],
    most: float = inf,
) -> Estimate:
    """A value of units from 0 to `most`, with a t-interval from leaving out one cluster at a time (Tukey 1958)."""
    clusters = list(dict.fromkeys(map(cluster, units)))
    whole, m = value(units), len(clusters)
    if whole is None or m < 2:
        return Estimate(whole, len(units), m, flags=(FEW,) if units else ())
    without = [value([one for one in units if cluster(one) != out]) for out in clusters]
    parts = [m * whole - (m - 1) * each for each in without if each is not None]
    half = t_quantile(0.95, m - 1) * stdev(parts) / sqrt(m)
    ci = (max(0.0, fmean(parts) - half), min(most, fmean(parts) + half))
    return Estimate(whole, len(units), m, ci=ci, method="t, jackknife over clusters")


def cluster_se(hits: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Standard error of a rate over clusters; None for fewer than two."""
    return rate(hits, sizes).se


def design_effect(hits: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Variance over clusters, as a multiple of that of as many independent trials (Kish 1965); None where undefined."""
    found = rate(hits, sizes)
    if found.value is None or found.se is None or found.value in (0, 1):
        return None
    return found.se**2 / (found.value * (1 - found.value) / found.n)
