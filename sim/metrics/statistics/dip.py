"""Hartigan's dip: how far a sample is from the nearest distribution with one mode, and how often chance gives as much.

Chance is the uniform distribution, of all with one mode the one with the largest dips. The steps of a scale would look
like modes: values that repeat are spread evenly over one step first. So two values are no camps where nothing says
that their scale has others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from operator import ge, le
from random import Random
from statistics import fmean, median_low
from typing import NamedTuple

from sim.metrics.statistics.given import numbers
from sim.metrics.statistics.permutation import DRAWS, p_value

LEAST = 4
"""Values below which every sample has one mode."""
EXACT = 200
"""Values up to which chance is drawn; beyond, dips shrink with their root."""


class _Corners(NamedTuple):
    """The empirical distribution function: at each distinct value, just before and at its step."""

    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


def dip(values: Sequence[float]) -> float | None:
    """Least sup |F_n − F| over F with one mode (Hartigan and Hartigan 1985), 1/(2n) to ¼; None below `LEAST` values.

    The mode lies where the least concave majorant of F_n is furthest above its greatest convex minorant: between the
    corners of both there, within which the search goes on. F_n has to be near the minorant before, the majorant after.
    """
    values = numbers("values", values)
    if len(values) < LEAST:
        return None
    corners = _corners(values)
    first, last, found = 0, len(corners.x) - 1, 1 / len(values)
    while True:
        below = _hull(corners.x, corners.low, first, last, ge)
        above = _hull(corners.x, corners.high, first, last, le)
        apart, start, end = _furthest(corners, below, above)
        if apart <= found:
            return found / 2
        before = [corners.high[i] - _on(corners.x, corners.low, below, i) for i in range(first, start)]
        after = [_on(corners.x, corners.high, above, i) - corners.low[i] for i in range(end + 1, last + 1)]
        found = max(found, *before, *after) if before or after else found
        if (start, end) == (first, last):
            return found / 2
        first, last = start, end


def _corners(values: Sequence[float]) -> _Corners:
    ordered, n = sorted(values), len(values)
    x = list(dict.fromkeys(ordered))
    low = [bisect_left(ordered, value) / n for value in x]
    return _Corners(x, low, [*low[1:], 1.0])


def _hull(
    x: Sequence[float], y: Sequence[float], first: int, last: int, bends: Callable[[float, float], bool]
) -> list[int]:
    """Places of a hull's corners over an interval; `bends`: whether slopes before and after a place leave it out."""
    kept: list[int] = []
    for i in range(first, last + 1):
        while len(kept) > 1 and bends(_slope(x, y, kept[-2], kept[-1]), _slope(x, y, kept[-1], i)):
            kept.pop()
        kept.append(i)
    return kept


def _slope(x: Sequence[float], y: Sequence[float], i: int, j: int) -> float:
    return (y[j] - y[i]) / (x[j] - x[i])


def _on(x: Sequence[float], y: Sequence[float], hull: Sequence[int], i: int) -> float:
    """The hull at a place."""
    at = bisect_left(hull, i)
    if hull[at] == i:
        return y[i]
    start = hull[at - 1]
    return y[start] + _slope(x, y, start, hull[at]) * (x[i] - x[start])


def _furthest(corners: _Corners, below: Sequence[int], above: Sequence[int]) -> tuple[float, int, int]:
    """How far the hulls are apart at most, and the places between which that is."""
    best = (-1.0, 0, 0)
    for g in below:
        apart = _on(corners.x, corners.high, above, g) - corners.low[g]
        best = max(best, (apart, g, above[bisect_left(above, g)]), key=lambda one: one[0])
    for h in above:
        apart = corners.high[h] - _on(corners.x, corners.low, below, h)
        at = bisect_left(below, h)
        best = max(best, (apart, h if below[at] == h else below[at - 1], h), key=lambda one: one[0])
    return best


def spread(values: Sequence[float], scale: Sequence[float] = ()) -> list[float]:
    """The values, those that repeat spread evenly over one step of their scale, around where they were.

    A step: the smallest distance of values that repeat; where these are one or two, the median distance of neighbours.
    `scale`: values of the same scale by which to tell; the values themselves where there are none.
    """
    counts, known = Counter(values), Counter(scale or values)
    every = sorted(known)
    repeated = [value for value in every if known[value] > 1]
    gaps = [b - a for a, b in pairwise(repeated if len(repeated) > 2 else every)] or [0.0]
    step, x = min(gaps) if len(repeated) > 2 else median_low(gaps), sorted(counts)
    return [value + step * ((i + 0.5) / counts[value] - 0.5) for value in x for i in range(counts[value])]


def dip_test(samples: Sequence[Sequence[float]], draws: int = DRAWS) -> float | None:
    """p that samples with one mode each have a mean dip as large; None where none has `LEAST` values.

    Values of a scale with steps have to be `spread`.
    """
    kept = [(len(sample), found) for sample in samples if (found := dip(sample)) is not None]
    if not kept:
        return None
    luck = Random(0)
    drawn = zip(*(luck.sample(_chance(n, draws), draws) for n, _ in kept), strict=True)
    return p_value(fmean(found for _, found in kept), [fmean(each) for each in drawn])


@lru_cache(maxsize=64)
def _chance(n: int, draws: int) -> list[float]:
    """Dips of uniform samples, always the same ones."""
    if n > EXACT:
        return [one * sqrt(EXACT / n) for one in _chance(EXACT, draws)]
    luck = Random(n)
    return [dip([luck.random() for _ in range(n)]) or 0.0 for _ in range(draws)]
