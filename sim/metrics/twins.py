"""Runs of the same luck, for metrics of several runs; metrics of worlds take what a run among others is from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from msgspec.structs import replace

from sim.metrics.family import Relative
from sim.types import JSON, Measurement

__all__ = ["Relative", "flagged", "same_luck", "twins"]


def same_luck(runs: Sequence[Relative]) -> list[list[Relative]]:
    """Runs of one seed, and the forks of one run at one tick and of one replicate, their control before them."""
    whole = {one.id: one for one in runs}
    found: dict[tuple[JSON, ...], list[Relative]] = {}
    for one in runs:
        key = (one.parent, one.tick, one.replicate) if one.parent else (one.scenario.get("seed"),)
        found.setdefault(key, []).append(one)
    for key, group in found.items():
        if len(key) > 1 and not group[0].replicate and all(one.change for one in group):
            group.insert(0, whole[key[0]])  # a run is itself the control of its forks with unchanged luck
    return list(found.values())


def twins(runs: Sequence[Relative]) -> list[tuple[Relative, Relative]]:
    """Any two runs of the same luck that something sets apart."""
    pairs = [pair for group in same_luck(runs) for pair in combinations(group, 2)]
    return [(one, other) for one, other in pairs if (one.change, one.condition) != (other.change, other.condition)]


def flagged(found: Iterable[Measurement], flag: str) -> Iterator[Measurement]:
    """Measurements with one more flag, if there is one."""
    for one in found:
        yield replace(one, flags=(*one.flags, flag)) if flag else one
