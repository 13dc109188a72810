"""Tests against simulation: a run beside twins of which the null is true, as where known competitors took all seats.

Any metric of single runs serves. Twins have the cast's private values and other luck: `agora fork RUN --at 0 --mind
module:Name --replicates 99`. Under the null the run and its twins are alike in law, so ranks are exact p-values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import log
from statistics import fmean, pstdev
from typing import TypeAlias

import orjson
from msgspec.structs import replace

from sim.metrics.family import Relative
from sim.metrics.statistics.permutation import p_value
from sim.types import Measurement

Subject: TypeAlias = tuple[str, bytes]
LEAST = 19
"""Twins without which no p-value is as low as 5%."""


def twins(runs: Sequence[Relative]) -> Iterator[tuple[Relative, list[Relative]]]:
    """Each run that has some with its forks from the start in which other minds decided."""
    for one in runs:
        found = [fork for fork in runs if fork.parent == one.id and not fork.tick and '"seats"' in fork.change]
        if found:
            yield one, found


def against(
    runs: Sequence[Relative], metric: Callable[..., Iterable[Measurement]], low: Collection[str], combined: str
) -> Iterator[Measurement]:
    """What a metric says of each run that has twins, with p from these; and all together by the largest distance.

    One-sided: large is odd, small for the metrics in `low`. Ratios are compared on logarithms. Numbers that the run or
    some twin lacks have no p and no part in what is said of all together.
    """
    several = sum(1 for _ in twins(runs)) > 1
    for run, others in twins(runs):
        of = {"run": run.id} if several else {}
        observed = _by_subject(metric(run.record))
        known = [_by_subject(metric(other.record)) for other in others]
        tested: dict[Subject, list[float]] = {}
        for subject, one in observed.items():
            values = [found[subject].value if subject in found else None for found in (observed, *known)]
            known_all = [value for value in values if value is not None]
            if len(known_all) == len(values):
                on_logs = one.unit == "ratio" and min(known_all) > 0
                scaled = list(map(log, known_all)) if on_logs else known_all
                tested[subject] = [-each for each in scaled] if one.metric in low else scaled
            yield _told(one, tested.get(subject), of, values.count(None))
        yield _together(combined, list(tested.values()), len(others), of)


def largest(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Of the first run the largest distance from the mean of all, in standard deviations, over several statistics.

    And its p among all runs. The statistics need not be independent, nor odd all at once.
    """
    moments = [(column, fmean(column), pstdev(column)) for column in columns]
    standard = [[(value - mean) / spread for value in column] for column, mean, spread in moments if spread > 0]
    most = [max(distances) for distances in zip(*standard, strict=True)]
    return (most[0], p_value(most[0], most[1:])) if most else (0.0, 1.0)


def _told(one: Measurement, values: Sequence[float] | None, of: Mapping[str, str], without: int) -> Measurement:
    flags = one.flags if values else (*one.flags, f"{without} runs without a value")
    if not values:
        return replace(one, flags=flags, of={**one.of, **of})
    p = p_value(values[0], values[1:])
    few = (f"fewer than {LEAST} twins",) if len(values) <= LEAST else ()
    null = {"stat": one.value, "p": p, "method": "simulated twins", "n_perm": len(values) - 1}
    return replace(one, null=null, flags=(*flags, *few), of={**one.of, **of})


def _together(name: str, columns: Sequence[Sequence[float]], n: int, of: Mapping[str, str]) -> Measurement:
    if not columns:
        return Measurement(metric=name, value=None, n_clusters=1, flags=("nothing to combine",), of=of)
    stat, p = largest(columns)
    null = {"stat": stat, "p": p, "method": "largest distance among simulated twins", "n_perm": n}
    few = (f"fewer than {LEAST} twins",) if n < LEAST else ()
    return Measurement(metric=name, value=stat, unit="sd", n=len(columns), null=null, flags=few, of=of)


def _by_subject(found: Iterable[Measurement]) -> dict[Subject, Measurement]:
    return {(one.metric, orjson.dumps(one.of, option=orjson.OPT_SORT_KEYS)): one for one in found}
