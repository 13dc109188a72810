"""What memory is worth: tasks of runs beside the same tasks where agents remember less.

A metric of several runs of the same luck, as a sweep over `cast.NAME.with.memory_tokens` has them, or over a world's
`memory`, the last episodes that it shows: `agora measure RUN RUN … --across sim.metrics.analysis.remembering:compared`.
Compared are two runs that differ in such settings alone, and of which one has no less of any. Tasks are those of
`improvement`: an agent's attempts at one item at a table. Clusters are the families of runs of the same luck; of a
single one its tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum, inf
from typing import TypeAlias

from sim.metrics.analysis.improvement import over_tasks, tasks
from sim.metrics.statistics.bootstrap import DRAWS
from sim.metrics.statistics.given import alike, truths
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import estimated
from sim.metrics.twins import Relative, same_luck
from sim.types import JSON, Measurement, Record

MEMORY = ("memory", "memory_tokens")
"""Settings that say how much is remembered; without a number: all that can be."""
Pair: TypeAlias = tuple[Relative, Relative]
Paths: TypeAlias = Mapping[tuple[str, ...], JSON]


def memory_index(with_memory: Sequence[bool], without: Sequence[bool]) -> float | None:
    """Success with memory less that without, on the same tasks."""
    alike(with_memory=with_memory, without=without)
    pairs = list(zip(truths("with_memory", with_memory), truths("without", without), strict=True))
    return sum(a - b for a, b in pairs) / len(pairs) if pairs else None


def compared(runs: Sequence[Relative], draws: int = DRAWS) -> Iterator[Measurement]:
    """Memory index of each two settings of memory: share of tasks solved with the fuller one less with the other, by
    task; tested by flipping the signs of clusters."""
    found: dict[tuple[str, str], dict[int, list[Pair]]] = {}
    for family, group in enumerate(same_luck(runs)):
        for full, less in _pairs(group):
            one, other = _leaves(full.condition), _leaves(less.condition)
            apart = [path for path in sorted({*one, *other}) if one.get(path) != other.get(path)]
            told = _told(apart, one), _told(apart, other)
            found.setdefault(told, {}).setdefault(family, []).append((full, less))
    if not found:
        flag = "no two runs of the same luck that differ in memory alone"
        yield Measurement(metric="improvement.memory_index", value=None, unit="share", n_clusters=0, flags=(flag,))
    for told, families in sorted(found.items()):
        yield _index(list(families.values()), draws, dict(zip(("full", "less"), told, strict=True)))


def _index(families: Sequence[Sequence[Pair]], draws: int, of: Mapping[str, JSON]) -> Measurement:
    gaps: dict[tuple[int, int], list[float]] = {}
    alone = 0
    for family, pairs in enumerate(families):
        for full, less in pairs:
            one, other = _solved(full.record), _solved(less.record)
            alone += len(one.keys() ^ other.keys())
            for key in one.keys() & other.keys():
                cluster = (family, 0) if len(families) > 1 else (0, key[0])
                gaps.setdefault(cluster, []).append(float(one[key]) - other[key])
    sums = [fsum(own) for own in gaps.values()]
    found = over_tasks(gaps.values(), draws)
    null = {"stat": found.value, "p": sign_flips(sums), "method": "flipped signs"} if len(sums) > 1 else {}
    excluded = {"attempted in one run only": alone} if alone else {}
    over = "tasks, with and without"
    return estimated("improvement.memory_index", found, "share", denominator=over, excluded=excluded, null=null, of=of)


def _solved(record: Record) -> dict[tuple[int, str, str], bool]:
    return {(one.table, one.agent, one.item): one.solved_at is not None for one in tasks(record)}


def _pairs(group: Sequence[Relative]) -> Iterator[Pair]:
    """Two runs that memory alone sets apart, the one that has more of it first."""
    for one, other in combinations(group, 2):
        signs = _signs(_leaves(one.condition), _leaves(other.condition))
        if signs in ({1}, {-1}):
            yield (one, other) if signs == {1} else (other, one)


def _signs(one: Paths, other: Paths) -> set[int]:
    """Of settings that differ, whether the first has more (1) or the second (-1); 0: no setting of memory."""
    apart = [path for path in {*one, *other} if one.get(path) != other.get(path)]
    amounts = [(_amount(one.get(path)), _amount(other.get(path))) if path[-1] in MEMORY else (0, 0) for path in apart]
    return {(a > b) - (a < b) for a, b in amounts}


def _amount(setting: JSON) -> float:
    return setting if isinstance(setting, int | float) else inf


def _leaves(value: JSON, *path: str) -> Paths:
    """Settings by where they stand, those within others too; entries of a list by their names, if they have any."""
    if isinstance(value, list):
        value = {one.get("name", n) if isinstance(one, Mapping) else n: one for n, one in enumerate(value)}
    if isinstance(value, Mapping):
        return {place: leaf for key, own in value.items() for place, leaf in _leaves(own, *path, str(key)).items()}
    return {path: value}


def _told(apart: Sequence[tuple[str, ...]], settings: Paths) -> str:
    return ", ".join(f"{'.'.join(path)}={'all' if settings.get(path) is None else settings[path]}" for path in apart)
