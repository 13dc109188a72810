"""Keeping secrets against being of use: points (leak, utility), one for each policy or prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]
"""Leak and utility, both within [0, 1]; less of the first and more of the second are better."""


def front(points: Sequence[Point]) -> list[Point]:
    """The points that none other beats, by leak."""
    best, kept = float("-inf"), []
    for leak, utility in sorted(set(points), key=lambda point: (point[0], -point[1])):
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
    kept = 1 - leak
    return 2 * kept * utility / (kept + utility) if kept + utility else 0.0


def slopes(points: Sequence[Point]) -> list[float]:
    """Utility gained per leak between neighbours of the front."""
    kept = front(points)
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(kept)]


def all_or_nothing(tasks: Sequence[Sequence[bool]]) -> float | None:
    """Share of tasks in which every attribute was told or none."""
    counted = [task for task in tasks if task]
    return sum(len(set(task)) == 1 for task in counted) / len(counted) if counted else None
