"""Runs against each other: which of them share their luck, and what a condition changes of every number.

Runs are of one *condition* where their scenarios are equal but for the seed. Two conditions of one scenario name and
world are compared in pairs wherever a run of each shares the luck: the same seed, and after a fork the same replicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias

import orjson

from sim.commands.terminal import short
from sim.metrics.differences import Difference, difference
from sim.metrics.luck import Parted, parted
from sim.metrics.pooling import pooled
from sim.report.gather import Gathered
from sim.types import JSON, Measurement

Subject: TypeAlias = tuple[str, bytes]
"""Metric, and what it is about as JSON."""
Luck: TypeAlias = tuple[int, int, int]
"""Seed, replicate, and the tick from which a replicate has luck of its own."""
LETTERS = ascii_uppercase
"""Names of conditions."""
_NONE = object()


class Condition(NamedTuple):
    """Runs whose scenarios are equal but for the seed."""

    name: str
    what: str
    """What it has that the first condition has not."""
    runs: Sequence[Gathered]


def luck(one: Gathered) -> Luck:
    """What two runs of different conditions share if they are a pair."""
    manifest = one.manifest
    since = manifest.fork_tick if manifest.replicate and manifest.fork_tick is not None else -1
    return manifest.seed, manifest.replicate, since


def conditions(runs: Sequence[Gathered]) -> list[list[Condition]]:
    """Conditions by scenario name and world, in the order of the runs."""
    groups: dict[tuple[str, str], dict[bytes, list[Gathered]]] = {}
    for one in runs:
        world = one.scenario.get("world")
        used = str(world.get("use")) if isinstance(world, dict) else ""
        key = orjson.dumps(_plan(one.scenario), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        groups.setdefault((one.manifest.name, used), {}).setdefault(key, []).append(one)
    return [_named(name, list(same.values())) for (name, _), same in groups.items()]


def _named(name: str, same: Sequence[Sequence[Gathered]]) -> list[Condition]:
    if len(same) == 1:
        return [Condition(name, "", same[0])]
    return [
        Condition(f"{name} {LETTERS[n] if n < len(LETTERS) else n}", _more(same[0][0], runs[0]), runs)
        for n, runs in enumerate(same)
    ]


def _more(first: Gathered, other: Gathered) -> str:
    return first.mask.text(other.mask.text(changes(first.scenario, other.scenario)))


def _plan(scenario: Mapping[str, JSON]) -> dict[str, JSON]:
    """A scenario without its seed, and without keys that say nothing."""
    return {key: value for key, value in scenario.items() if key != "seed" and value not in (None, [], {})}


def changes(first: Mapping[str, JSON], other: Mapping[str, JSON]) -> str:
    """What a scenario has otherwise than the first one: a line for each key, and what the first has."""
    return "\n".join(
        f"{key}: {_told(new)} (the first: {_told(old)})" for key, old, new in _changed(_plan(first), _plan(other), "")
    )


def _changed(first: JSON, other: JSON, key: str) -> Iterator[tuple[str, JSON, JSON]]:
    if isinstance(first, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*first, *other)):
            yield from _changed(first.get(name, _NONE), other.get(name, _NONE), f"{key}.{name}".lstrip("."))
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for place, pair in enumerate(zip(first, other, strict=True), 1):
            yield from _changed(*pair, f"{key}.{place}")
    elif first != other:
        yield key, first, other


def _told(value: JSON) -> str:
    return "nothing" if value is _NONE else short(value)


def differences(base: Condition, other: Condition) -> tuple[list[Difference], int]:
    """Of each number that pairs have: the mean of treated less base, of ratios their quotient; and how many pairs."""
    sides = [_by_luck(condition) for condition in (base, other)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    found = []
    subjects = dict.fromkeys(key for at in shared for key in sides[0][at])
    for key in subjects:
        there = [(sides[0][at][key], sides[1][at][key]) for at in shared if key in sides[0][at] and key in sides[1][at]]
        if (one := difference(there)) is not None:
            found.append(one)
    return found, len(shared)


def partings(base: Condition, other: Condition) -> list[tuple[Gathered, Gathered, Parted]]:
    """Where the runs of each pair part: of runs that share all of their luck, the first of each side."""
    sides = [{luck(one): one for one in reversed(condition.runs)} for condition in (base, other)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    return [(sides[0][at], sides[1][at], parted(sides[0][at].traces, sides[1][at].traces)) for at in shared]


def _by_luck(condition: Condition) -> dict[Luck, dict[Subject, Measurement]]:
    """Numbers with a value by luck and subject; runs that share all of it count as one, their mean."""
    groups: dict[Luck, dict[str, Sequence[Measurement]]] = {}
    for one in condition.runs:
        groups.setdefault(luck(one), {})[one.manifest.id] = one.numbers
    return {at: {_subject(one): one for one in _one(same) if one.value is not None} for at, same in groups.items()}


def _one(same: Mapping[str, Sequence[Measurement]]) -> Sequence[Measurement]:
    return next(iter(same.values())) if len(same) == 1 else list(pooled(same))


def _subject(one: Measurement) -> Subject:
    return one.metric, orjson.dumps(one.of, option=orjson.OPT_SORT_KEYS)


def means(condition: Condition) -> list[Measurement]:
    """Means over the seeds of a condition; runs of one seed come to one value first."""
    seeds: dict[int, dict[str, Sequence[Measurement]]] = {}
    for one in condition.runs:
        seeds.setdefault(one.manifest.seed, {})[one.manifest.id] = one.numbers
    return list(pooled({str(seed): _one(same) for seed, same in seeds.items()}))
