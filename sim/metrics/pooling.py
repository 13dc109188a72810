"""One number from several runs: each run is a cluster, so intervals come from the spread between runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson

from sim.intervals import ALIKE, DEPENDENT, FEW, HEADLINE, UNDER, clustered
from sim.metrics.statistics.clusters import Estimate, geometric_mean, mean
from sim.types import Measurement

NO_VALUE = "runs without a value"
OWN = (FEW, ALIKE, UNDER, DEPENDENT)
"""Flags of a run's own interval, which says nothing of the one over runs."""


def pooled(by_run: Mapping[str, Iterable[Measurement]]) -> Iterator[Measurement]:
    """Of each metric and subject the mean over runs with its t-interval; of ratios the geometric mean, on logs.

    The interval of shares between 0 and 1 ends there too; where all runs have none or all, it is exact and one-sided.

    `n` adds up, `n_clusters` counts runs with a value; runs without one are excluded and counted. A flag of some runs
    says of how many. Fewer than `HEADLINE` runs are flagged.
    """
    groups: dict[tuple[str, bytes], list[Measurement]] = {}
    for measured in by_run.values():
        for one in measured:
            about = orjson.dumps(one.of, option=orjson.OPT_SORT_KEYS)
            groups.setdefault((one.metric, about), []).append(one)
    for group in groups.values():
        yield _pooled(group, len(by_run))


def _pooled(group: Sequence[Measurement], runs: int) -> Measurement:
    first = group[0]
    values = [one.value for one in group if one.value is not None]
    on_logs = first.unit == "ratio" and all(value > 0 for value in values)
    found = geometric_mean(values) if on_logs else mean(values)
    bounded = first.unit == "share" and all(0 <= value <= 1 for value in values)
    if bounded and len(values) > 1:
        found = _within(found, [one for one in group if one.value is not None])
    excluded: Counter[str] = Counter()
    for one in group:
        excluded.update(one.excluded)
    if missing := runs - len(values):
        excluded[NO_VALUE] = missing
    return Measurement(
        metric=first.metric,
        value=found.value,
        unit=first.unit,
        n=sum(one.n for one in group),
        n_clusters=len(values),
        ci=found.ci,
        ci_method=f"{found.method} over runs" if found.ci else "",
        denominator=first.denominator,
        excluded=dict(excluded),
        flags=tuple(dict.fromkeys((*_flags(group, runs), *found.flags, *_under(len(values))))),
        version=first.version,
        of=first.of,
    )


def _within(found: Estimate, shares: Sequence[Measurement]) -> Estimate:
    """A share with an interval between 0 and 1; where it is one of these in all runs, with the exact bound."""
    if found.value in (0, 1):
        sizes = [max(one.n, 1) for one in shares]
        return found._replace(**clustered([found.value * n for n in sizes], sizes)._asdict())
    return found._replace(ci=(max(found.ci[0], 0.0), min(found.ci[1], 1.0)) if found.ci else None)


def _under(runs: int) -> tuple[str, ...]:
    return (UNDER,) if 1 < runs < HEADLINE else ()


def _flags(group: Sequence[Measurement], runs: int) -> Iterator[str]:
    counts = Counter(flag for one in group for flag in dict.fromkeys(one.flags) if flag not in OWN)
    for flag, count in counts.items():
        yield flag if count == runs else f"{flag} ({count} of {runs} runs)"
