"""Trajectories of a set of rows: what one seat decided in one episode, in order, up to an end."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from math import fsum
from typing import TypeAlias

from training.trajectory import Row

Decision: TypeAlias = tuple[int, ...]
"""Indices of the rows that hold one decision."""
Trajectory: TypeAlias = tuple[Decision, ...]


@lru_cache(65_536)
def episode_order(episode: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts `run:table` as people count: table 2 before table 10."""
    parts = re.findall(r"\d+|\D+", episode)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def decisions(rows: Sequence[Row]) -> list[Decision]:
    """The rows' decisions, in the order of their first rows."""
    found: dict[tuple[str, str, int], list[int]] = {}
    for index, row in enumerate(rows):
        found.setdefault((row.episode, row.seat, row.turn), []).append(index)
    return [tuple(each) for each in found.values()]


def answering(rows: Sequence[Row]) -> set[int]:
    """The rows that are answers, by index: the last one of each decision."""
    return {decision[-1] for decision in decisions(rows)}


def beginning(rows: Sequence[Row], decision: Decision, kinds: Collection[str] = ()) -> tuple[int, int]:
    """Row and token at which a decision's tokens of these kinds begin; its very first where it has none of them."""
    spans = [(index, span) for index in decision for span in rows[index].spans if span.kind in kinds]
    return (spans[0][0], spans[0][1].start) if spans else (decision[0], 0)


def trajectories(rows: Sequence[Row]) -> list[Trajectory]:
    """The rows' trajectories in episode order, then by seat, whatever the order of the rows.

    A decision after an end begins a new trajectory.
    """
    seats: defaultdict[tuple[str, str], defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, row in enumerate(rows):
        seats[row.episode, row.seat][row.turn].append(index)
    found: list[Trajectory] = []
    for name in sorted(seats, key=lambda name: (episode_order(name[0]), name[1])):
        decisions: list[Decision] = []
        for turn in sorted(seats[name]):
            decisions.append(tuple(seats[name][turn]))
            if rows[decisions[-1][0]].ended:
                found.append(tuple(decisions))
                decisions = []
        if decisions:
            found.append(tuple(decisions))
    return found


def rewards_of(trajectory: Trajectory, rewards: Sequence[float]) -> list[float]:
    """One reward a decision. Raises ValueError where rows of one decision disagree."""
    for decision in trajectory:
        if len({rewards[index] for index in decision}) > 1:
            raise ValueError(f"rows {decision} hold one decision with different rewards")
    return [rewards[decision[0]] for decision in trajectory]


def totals(paths: Iterable[Trajectory], rewards: Sequence[float]) -> list[float]:
    """Undiscounted return of each trajectory."""
    return [fsum(rewards_of(path, rewards)) for path in paths]
