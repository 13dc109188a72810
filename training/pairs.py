"""Pairs for the losses that compare: a better and a worse row, or trajectory, of the same key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import fsum
from typing import Literal, NamedTuple

from training.keys import key_of
from training.paths import trajectories
from training.trajectory import Row


class Pair(NamedTuple):
    """Indices of rows."""

    better: tuple[int, ...]
    worse: tuple[int, ...]


def pairs(
    rows: Sequence[Row],
    scores: Sequence[float],
    kept: Sequence[int],
    key: Sequence[str],
    unit: Literal["turn", "episode"],
    rule: Literal["best_worst", "halves"],
) -> list[Pair]:
    """Pairs of decisions or trajectories of one key, by the sum of their decisions' scores; equal ones make no pair.

    best_worst: the highest against the lowest. halves: n-th of the upper half against n-th of the lower half
    (SWEET-RL); of an odd number the middle one stays out. Only kept rows take part.
    """
    alive = set(kept)
    groups: defaultdict[str, list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
    for path in trajectories(rows):
        decisions = [here for decision in path if (here := tuple(index for index in decision if index in alive))]
        for one in [(each,) for each in decisions] if unit == "turn" else [tuple(decisions)] if decisions else []:
            row = rows[one[0][0]]
            score = fsum(scores[decision[0]] for decision in one)
            members = tuple(index for decision in one for index in decision)
            groups[key_of(row, key, f"{row.episode} {row.seat} {row.turn}")].append((score, members))
    found: list[Pair] = []
    for units in groups.values():
        ranked = sorted(units, key=lambda each: -each[0])
        half = len(ranked) // 2
        upper, lower = ranked[:half], ranked[len(ranked) - half :]
        if rule == "best_worst":
            upper, lower = ranked[:1], ranked[-1:]
        both = zip(upper, lower, strict=True)
        found += [Pair(better, worse) for (high, better), (low, worse) in both if high > low]
    return found
