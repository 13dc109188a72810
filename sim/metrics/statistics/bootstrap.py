"""Intervals by drawing anew (Efron 1979): units with replacement, or clusters and then the units of each.

The middle 95% of what is found, of draws that are the same every time. Where a mean of clusters is asked for,
`clusters` has its t-interval, which covers better when there are few: drawing anew is for what has no such formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

from sim.intervals import FEW
from sim.metrics.statistics.clusters import Estimate

T = TypeVar("T")
DRAWS = 999
"""How often units are drawn anew."""


def bootstrap(
    units: Sequence[T],
    value: Callable[[Sequence[T]], float | None],
    over: str = "units",
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """A value of independent units (persons, runs), which are drawn anew; one unit has no interval.

    Draws that have no value are left out.
    """
    found, n, luck = value(units) if units else None, len(units), Random(seed)
    if found is None or n < 2:
        return Estimate(found, n, n, flags=(FEW,) if n == 1 else ())
    ci = middle(each for _ in range(draws) if (each := value(luck.choices(units, k=n))) is not None)
    return Estimate(found, n, n, ci=ci, method=f"bootstrap over {over}")


def two_stage(
    clusters: Sequence[Sequence[T]],
    value: Callable[[Sequence[Sequence[T]]], float | None],
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """A value of clusters of units: clusters are drawn anew, then the units of each (Davison and Hinkley 1997, §3.8).

    Of one cluster, which is flagged, only its units vary. What units vary by counts in both stages, so that the
    interval is wide where clusters differ by no more than their units do.
    """
    kept = [own for own in clusters if len(own)]
    found, luck, sizes = value(kept) if kept else None, Random(seed), [len(own) for own in kept]
    if found is None:
        return Estimate(None)
    drawn = []
    for _ in range(draws):
        each = value([luck.choices(own, k=len(own)) for own in luck.choices(kept, k=len(kept))])
        drawn += [] if each is None else [each]
    flags = (FEW,) if len(kept) < 2 else ()
    return Estimate(found, sum(sizes), len(kept), None, middle(drawn), "bootstrap within and over clusters", flags)


def middle(drawn: Iterable[float]) -> tuple[float, float] | None:
    """The ends of the middle 95%; None for nothing."""
    ends = sorted(drawn)
    return (ends[int(0.025 * len(ends))], ends[int(0.975 * len(ends))]) if ends else None
