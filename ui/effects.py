"""Runs beside each other: what differs, by how much, and from where on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import orjson

from sim.commands.measured import about
from sim.metrics.statistics.clusters import mean
from sim.types import Measurement
from ui.data import Head

Subject = tuple[str, str]
"""Metric, and what it is about as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean paired difference."""

    metric: str
    of: str
    """What it is about, in words; empty: everybody."""
    before: float
    """Mean of the first sides of the pairs."""
    after: float
    """Mean of the second sides."""
    difference: float
    """Mean of second less first."""
    ci: tuple[float, float] | None
    """Student's 95% interval; None for fewer than two pairs."""
    pairs: int
    unit: str

    @property
    def apart(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.ci is not None and not self.ci[0] <= 0 <= self.ci[1]

    @property
    def row(self) -> dict[str, object]:
        """As a row of a table."""
        low, high = self.ci or (None, None)
        return {
            "metric": self.metric,
            "of": self.of or "all",
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "low": low,
            "high": high,
            "pairs": self.pairs,
            "unit": self.unit,
            "0 is outside": self.apart,
        }


def subject(one: Measurement) -> Subject:
    """What a number is about, so that the same of two runs can be put side by side."""
    return one.metric, orjson.dumps(one.of, option=orjson.OPT_SORT_KEYS).decode()


def by_subject(found: Iterable[Measurement]) -> dict[Subject, Measurement]:
    """Measurements by what they are about, those that have a value."""
    return {subject(one): one for one in found if one.value is not None}


def within(one: Sequence[Measurement], other: Sequence[Measurement]) -> list[Difference]:
    """Two runs, paired by what each number is about (the same agent in both): a row for each metric."""
    first, second = by_subject(one), by_subject(other)
    pairs: dict[str, list[tuple[Measurement, Measurement]]] = {}
    for key in first.keys() & second.keys():
        if first[key].of:
            pairs.setdefault(key[0], []).append((first[key], second[key]))
    return [_difference(metric, "", found) for metric, found in sorted(pairs.items()) if len(found) > 1]


def between(pairs: Sequence[tuple[Sequence[Measurement], Sequence[Measurement]]]) -> list[Difference]:
    """Pairs of runs (untreated, treated): the effect on each number that all of them have about everybody."""
    sides = [(by_subject(one), by_subject(other)) for one, other in pairs]
    if not sides:
        return []
    common = set.intersection(*(set(first) & set(second) for first, second in sides))
    return [
        _difference(key[0], about(sides[0][0][key]), [(first[key], second[key]) for first, second in sides])
        for key in sorted(common)
    ]


def _difference(metric: str, of: str, pairs: Sequence[tuple[Measurement, Measurement]]) -> Difference:
    before = [one.value or 0.0 for one, _ in pairs]
    after = [other.value or 0.0 for _, other in pairs]
    each = [there - here for here, there in zip(before, after, strict=True)]
    return Difference(
        metric=metric,
        of=of,
        before=fmean(before),
        after=fmean(after),
        difference=fmean(each),
        ci=mean(each).ci,
        pairs=len(pairs),
        unit=pairs[0][0].unit,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Forks of one run at one tick: those with a change, and the untreated ones of the same luck."""

    tick: int
    change: str
    """What was changed, as YAML or JSON."""
    pairs: Sequence[tuple[Head, Head]]
    """Untreated and treated fork of each replicate that has both."""
    missing: int
    """Treated forks without an untreated one."""


def experiments(parent: Head, forks: Sequence[tuple[Head, str]]) -> list[Experiment]:
    """What was tried on a run, from its forks and what each of them changed (empty: nothing)."""
    groups: dict[tuple[int, str], dict[int, Head]] = {}
    for fork, change in forks:
        if fork.parent == parent.id and fork.fork_tick is not None:
            groups.setdefault((fork.fork_tick, change), {})[fork.replicate] = fork
    found = []
    for (tick, change), treated in sorted(groups.items()):
        if change:
            plain: Mapping[int, Head] = groups.get((tick, ""), {})
            pairs = [(plain[r], one) for r, one in sorted(treated.items()) if r in plain]
            found.append(Experiment(tick=tick, change=change, pairs=pairs, missing=len(treated) - len(pairs)))
    return found
