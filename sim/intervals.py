"""Intervals of what is counted, for metrics and ratings.

What happens at one table of a run hangs together: where trials are not independent, intervals come from the spread
between clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import fsum, isclose, sqrt
from statistics import NormalDist
from typing import NamedTuple

Z = NormalDist().inv_cdf(0.975)
"""Of a two-sided interval at 95%."""
FEW = "n_clusters<2"
"""Flag of a number without an interval, because nothing is known of the spread between runs."""
HEADLINE = 20
"""Runs that a headline number should rest on: over twelve, a t-interval at 95% holds the truth nine times in ten."""
UNDER = f"n_clusters<{HEADLINE}"
"""Flag of a number of several runs that rests on fewer; what people read says it once a table, as `TOO_FEW`."""
TOO_FEW = f"Fewer than {HEADLINE} runs are too few for headline numbers."

ALIKE = "all clusters alike"
"""Flag of a number without an interval, because so few clusters say nothing of the spread."""
DEPENDENT = "design effect unknown"
"""Flag of a bound that takes trials for independent."""
BOUNDS = "all that is unknown failed, all of it worked"
"""Method of bounds that are no interval at 95%: between them a share lies for certain."""


class Interval(NamedTuple):
    """An interval, how it was made, and what to know of it."""

    ci: tuple[float, float] | None
    method: str = ""
    flags: tuple[str, ...] = ()


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


def t_quantile(confidence: float, degrees: int) -> float:
    """Half-width of a two-sided t-interval in standard errors."""
    from scipy.special import stdtrit  # only who measures needs it: worlds are imported without

    return float(stdtrit(degrees, (1 + confidence) / 2))


def by_cluster(found: Iterable[tuple[Hashable, float]]) -> tuple[list[float], list[int]]:
    """Sums and counts of values, each given after the cluster it is of."""
    sums: dict[Hashable, float] = {}
    sizes: Counter[Hashable] = Counter()
    for cluster, value in found:
        sums[cluster] = sums.get(cluster, 0.0) + value
        sizes[cluster] += 1
    return list(sums.values()), list(sizes.values())


def ratio_error(parts: Sequence[float], sizes: Sequence[float]) -> float:
    """Linearised standard error of Σ parts over Σ sizes, one of each a cluster, two clusters or more.

    se² = m/(m − 1) · Σ(part − r·size)² / (Σ size)² (Cochran 1977); with equal sizes it is the standard deviation of
    the clusters' own ratios over √m.
    """
    m, total = len(sizes), fsum(sizes)
    value = fsum(parts) / total
    deviations = fsum((part - value * size) ** 2 for part, size in zip(parts, sizes, strict=True))
    return sqrt(m / (m - 1) * deviations) / total


def few_alike(values: Sequence[float], confidence: float = 0.95) -> bool:
    """Whether values that are all one are too few for an interval, as the one by t would be a point.

    Where only the side is chance, n of them fall on one with 2/2ⁿ (the sign test), so that it takes six at 95%.
    """
    return isclose(min(values), max(values), rel_tol=1e-9) and 2 * 0.5 ** len(values) > 1 - confidence


def clustered_mean(sums: Sequence[float], sizes: Sequence[float], confidence: float = 0.95) -> Interval:
    """Of Σ sums over Σ sizes, one of each a cluster: by t with one degree of freedom less than there are clusters.

    Fewer than six that are all alike have none (`few_alike`).
    """
    sums, sizes = [part for part, n in zip(sums, sizes, strict=True) if n], [n for n in sizes if n]
    if len(sizes) < 2:
        return Interval(None, flags=(FEW,) if sizes else ())
    if few_alike([part / n for part, n in zip(sums, sizes, strict=True)], confidence):
        return Interval(None, flags=(ALIKE,))
    value = fsum(sums) / fsum(sizes)
    half = t_quantile(confidence, len(sizes) - 1) * ratio_error(sums, sizes)
    return Interval((value - half, value + half), "t over clusters")


def clustered(hits: Sequence[float], sizes: Sequence[float], confidence: float = 0.95) -> Interval:
    """Of a share, hits and trials by cluster: as `clustered_mean`, within 0 and 1.

    If all or none are hits the bound is exact and one-sided, and takes trials for independent. Raises ValueError where
    hits are fewer than 0 or more than the trials.
    """
    for hit, n in zip(hits, sizes, strict=True):
        if not 0 <= hit <= n:
            raise ValueError(f"{hit} of {n} is no share")
    found, total = clustered_mean(hits, sizes, confidence), fsum(sizes)
    if len([n for n in sizes if n]) > 1 and fsum(hits) in (0, total):
        bound = none_upper(total, confidence=confidence)
        ends = (1 - bound, 1.0) if fsum(hits) else (0.0, bound)
        return Interval(ends, "exact, one-sided", (DEPENDENT,))
    return found._replace(ci=(max(0.0, found.ci[0]), min(1.0, found.ci[1]))) if found.ci else found


def none_upper(n: float, design_effect: float = 1.0, confidence: float = 0.95) -> float:
    """Upper bound, exact and one-sided, of a share of which none of n was seen: 1 − (1 − confidence)^(deff/n).

    Raises ValueError unless n > 0 and the design effect is too.
    """
    if not n > 0 or not design_effect > 0:
        raise ValueError(f"none of {n} with a design effect of {design_effect} has no bound")
    return float(1 - (1 - confidence) ** (design_effect / n))
