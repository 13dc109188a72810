"""Runs beside each other: what differs, by how much, and from where on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from sim.commands.measured import about
from sim.metrics.differences import Difference, difference
from sim.types import Measurement
from ui.data import Head

Subject = tuple[str, str]
"""Metric, and what it is about as JSON."""


def tabled(found: Iterable[Difference]) -> list[dict[str, object]]:
    """Differences as rows of a table."""
    return [_row(one) for one in found]


def _row(one: Difference) -> dict[str, object]:
    low, high = one.estimate.ci or (None, None)
    return {
        "metric": one.metric,
        "of": about(one) or "all",
        "before": one.base,
        "after": one.treated,
        "difference": one.estimate.value,
        "low": low,
        "high": high,
        "pairs": one.pairs,
        "unit": one.unit,
        "apart": one.apart,
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
    found = [difference(pairs[metric]) for metric in sorted(pairs) if len(pairs[metric]) > 1]
    return [one._replace(of={}) for one in found if one is not None]


def between(pairs: Sequence[tuple[Sequence[Measurement], Sequence[Measurement]]]) -> list[Difference]:
    """Pairs of runs (untreated, treated): the effect on each number that all of them have about everybody."""
    sides = [(by_subject(one), by_subject(other)) for one, other in pairs]
    if not sides:
        return []
    common = set.intersection(*(set(first) & set(second) for first, second in sides))
    found = [difference([(first[key], second[key]) for first, second in sides]) for key in sorted(common)]
    return [one for one in found if one is not None]


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
