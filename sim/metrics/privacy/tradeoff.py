"""Keeping secrets against being of use: points (leak, utility), one for each policy or prompt.

A run has succeeded as often as its facts with a `success`, true or false, say; a world may say it otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import TypeAlias

from sim.intervals import FEW
from sim.metrics.family import Relative, conditions
from sim.metrics.privacy.leaks import flow_violation_rate
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import share, shares, truths
from sim.metrics.statistics.shares import estimated
from sim.metrics.twins import flagged
from sim.types import Measurement, Record

Point: TypeAlias = tuple[float, float]
"""Leak and utility, both within [0, 1]; less of the first and more of the second are better."""


def front(points: Sequence[Point]) -> list[Point]:
    """The points that none other beats, by leak."""
    best, kept = -1.0, []
    known = {(share("leak", leak), share("utility", utility)) for leak, utility in points}
    for leak, utility in sorted(known, key=lambda point: (point[0], -point[1])):
        if utility > best:
            kept.append((leak, utility))
            best = utility
    return kept


def hypervolume(points: Sequence[Point]) -> float | None:
    """Area that the front dominates, up to leak 1 and utility 0; None without points."""
    kept = front(points)
    ends = [leak for leak, _ in kept[1:]] + [1.0]
    return sum((end - leak) * utility for (leak, utility), end in zip(kept, ends, strict=True)) if kept else None


def harmonic(leak: float, utility: float) -> float:
    """Harmonic mean of 1 − leak and utility; 0 where either is 0."""
    leak, utility = shares("leak and utility", (leak, utility))
    kept = 1 - leak
    return 2 * kept * utility / (kept + utility) if kept + utility else 0.0


def slopes(points: Sequence[Point]) -> list[float]:
    """Utility gained per leak between neighbours of the front."""
    kept = front(points)
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]


def all_or_nothing(tasks: Sequence[Sequence[bool]]) -> float | None:
    """Share of tasks in which every attribute was told or none."""
    counted = [truths("tasks", task) for task in tasks if len(task)]
    return sum(len(set(task)) == 1 for task in counted) / len(counted) if counted else None


def fronts(conditions: Mapping[str, Sequence[Point]], draws: int = 999) -> Iterator[Measurement]:
    """Of each condition the harmonic mean of its runs' points, and of all together the hypervolume of their front.

    A condition's point is the mean of its runs'; the interval resamples runs within conditions, the front anew.
    """
    means = {name: _mean(points) for name, points in conditions.items() if points}
    best = front(list(means.values()))
    for name, points in conditions.items():
        each = mean([harmonic(*point) for point in points])
        flags = ("on the front",) if means.get(name) in best else ()
        told = {"of": {"condition": name}, "denominator": "runs of the condition"}
        yield estimated("tradeoff.harmonic", each, "share", flags=flags, **told)
    whole = hypervolume(list(means.values()))
    few = any(len(points) < 2 for points in conditions.values())
    luck, drawn = Random(0), []
    for _ in range(0 if few or whole is None else draws):
        resampled = [_mean(luck.choices(points, k=len(points))) for points in conditions.values()]
        drawn.append(hypervolume(resampled) or 0.0)
    drawn.sort()
    yield Measurement(
        metric="tradeoff.hypervolume",
        value=whole,
        n=sum(map(len, conditions.values())),
        n_clusters=sum(map(len, conditions.values())),
        ci=(drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))]) if drawn else None,
        ci_method="bootstrap over runs within conditions" if drawn else "",
        denominator="leak 1, utility 0",
        flags=(FEW,) if few else (),
    )


def leaked(record: Record) -> float | None:
    """Forbidden flows over those that were possible."""
    return next(flow_violation_rate(record)).value


def successes(record: Record) -> float | None:
    """Share of facts with a `success` in which it is true."""
    found = [done for item in record.facts() if isinstance(done := item.fact.data.get("success"), bool)]
    return fmean(found) if found else None


def compared(
    runs: Sequence[Relative],
    leak: Callable[[Record], float | None] = leaked,
    utility: Callable[[Record], float | None] = successes,
) -> Iterator[Measurement]:
    """`fronts` of several runs, by what sets them apart; those that have no leak or no utility are counted in a flag.

    Unless given, the leak is the rate of forbidden flows, the utility the share of successes.
    """
    found: dict[str, list[Point]] = {}
    left = 0
    for told, members in conditions(runs).items():
        each = [(leak(one.record), utility(one.record)) for one in members]
        found[told] = [(a, b) for a, b in each if a is not None and b is not None]
        left += len(each) - len(found[told])
    yield from flagged(fronts(found), f"{left} runs without a leak rate or a utility" if left else "")


def points(by_run: Mapping[str, Iterable[Measurement]], leak: str, utility: str) -> dict[str, Point]:
    """(leak, utility) of each run that has both measures, by their names, about nobody in particular."""
    found = {}
    for run, measured in by_run.items():
        values = {one.metric: one.value for one in measured if not one.of and one.value is not None}
        if leak in values and utility in values:
            found[run] = values[leak], values[utility]
    return found


def _mean(points: Sequence[Point]) -> Point:
    return fmean(leak for leak, _ in points), fmean(utility for _, utility in points)
