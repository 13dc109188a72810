"""Getting better within an episode: success by turn, steps that only repeat, what memory is worth.

The exact normalisation of the published area (TIDE) was not at hand: this one is its trapezoid over the turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

import polars as pl

from sim.metrics.frames import frames
from sim.metrics.statistics.shares import share
from sim.types import Measurement, Record


def success_curve(solved_at: Sequence[int | None], turns: int) -> list[float]:
    """Share solved by turn 0, 1, …, `turns`; None: never. A task that ends early keeps its value."""
    if not solved_at:
        return []
    return [sum(at is not None and at <= turn for at in solved_at) / len(solved_at) for turn in range(turns + 1)]


def area_under(curve: Sequence[float]) -> float | None:
    """Trapezoid area over the number of turns: 1 where all is solved from the start."""
    return sum((a + b) / 2 for a, b in pairwise(curve)) / (len(curve) - 1) if len(curve) > 1 else None


def loop_ratio(steps: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Share of steps whose state and action were there before; states leave out clocks and ids."""
    return (len(steps) - len(set(steps))) / len(steps) if steps else None


def longest_loop(steps: Sequence[tuple[Hashable, Hashable]]) -> int:
    """Most steps in a row that repeat earlier ones."""
    seen: set[tuple[Hashable, Hashable]] = set()
    longest = here = 0
    for step in steps:
        here = here + 1 if step in seen else 0
        longest = max(longest, here)
        seen.add(step)
    return longest


def loops(record: Record) -> Iterator[Measurement]:
    """Decisions that repeat an answer at an information state of the agent's own, over decisions that have a state."""
    keyed = frames(record).decisions.filter(pl.col("key").is_not_null()).sort("tbl", "seq")
    again = pl.int_range(pl.len()).over("tbl", "agent", "key", "answer") > 0
    yield share(
        "improvement.loop_ratio",
        keyed.with_columns(again.alias("again")),
        pl.col("again"),
        tables=record.tables,
        decisions="seq",
        denominator="decisions with an information state",
        excluded={"decisions without one": len(frames(record).decisions) - len(keyed)},
    )


def memory_index(with_memory: Sequence[bool], without: Sequence[bool]) -> float | None:
    """Success with memory less that without, on the same tasks."""
    pairs = list(zip(with_memory, without, strict=True))
    return sum(a - b for a, b in pairs) / len(pairs) if pairs else None
