"""Getting better within an episode: success by turn, steps that only repeat, what memory is worth.

Read are facts of any kind with a `success`, true or false: attempts of their actor at an `item`, where they name one.
An agent's attempts at one item are a task, its first attempt is turn 0, and the tables of a run are the clusters.

The exact normalisation of the published area (TIDE) was not at hand: this one is its trapezoid over the turns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from sim.intervals import by_cluster
from sim.metrics.frames import frames
from sim.metrics.statistics.clusters import ratio
from sim.metrics.statistics.given import alike, shares, truths, whole
from sim.metrics.statistics.shares import estimated, share
from sim.types import FactId, Measurement, Record


def success_curve(solved_at: Sequence[int | None], turns: int) -> list[float]:
    """Share solved by turn 0, 1, …, `turns`; None: never. A task that ends early keeps its value."""
    solved, turns = [None if at is None else whole("solved_at", at) for at in solved_at], whole("turns", turns)
    if not solved:
        return []
    return [sum(at is not None and at <= turn for at in solved) / len(solved) for turn in range(turns + 1)]


def area_under(curve: Sequence[float]) -> float | None:
    """Trapezoid area over the number of turns: 1 where all is solved from the start."""
    curve = shares("curve", curve)
    return sum((a + b) / 2 for a, b in pairwise(curve)) / (len(curve) - 1) if len(curve) > 1 else None


class Task(NamedTuple):
    """What an agent attempted once or several times."""

    table: int
    item: str
    """What it is, as Python writes it."""
    solved_at: int | None
    """Turn, from 0; None: never."""
    events: tuple[FactId, ...]
    """Its attempts."""


def tasks(record: Record) -> list[Task]:
    """All tasks, in the order of their first attempts."""
    found: dict[tuple[int, str, str], list[tuple[FactId, bool]]] = {}
    for item in record.facts():
        success = item.fact.data.get("success")
        if isinstance(success, bool):
            key = item.table, item.fact.actor, repr(item.fact.data.get("item"))
            found.setdefault(key, []).append((item.fact.id, success))
    return [
        Task(
            table,
            item,
            next((turn for turn, (_, done) in enumerate(tried) if done), None),
            tuple(fact for fact, _ in tried),
        )
        for (table, _, item), tried in found.items()
    ]


def dynamics(record: Record) -> Iterator[Measurement]:
    """Share of tasks solved by each turn, and the area under that curve; a task given up keeps its value."""
    found = tasks(record)
    turns = max((len(one.events) for one in found), default=0)
    rows = [(one.table, one.solved_at, one.events[one.solved_at or 0]) for one in found]
    kinds = {"tbl": pl.Int64, "solved": pl.Int64, "fact": pl.Int64}
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    told: dict[str, Any] = {"tables": record.tables, "denominator": "tasks", "events": "fact"}
    for turn in range(turns):
        yield share("improvement.success", frame, pl.col("solved") <= turn, of={"turn": turn}, **told)
    by_table: dict[int, list[float]] = {}
    for one in found if turns > 1 else ():
        area = area_under(success_curve([one.solved_at], turns - 1))
        by_table.setdefault(one.table, []).append(area or 0.0)
    area_found = ratio([sum(each) for each in by_table.values()], [len(each) for each in by_table.values()])
    flags = () if turns > 1 else ("nothing was attempted twice",)
    yield estimated("improvement.area", area_found, "share", flags, denominator="tasks", of={"turns": turns})


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
    """Decisions that repeat an answer at an information state of the agent's own, over decisions that have a state; and
    of each agent most of them in a row."""
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
    steps: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for table, agent, *step in keyed.select("tbl", "agent", "key", "answer").iter_rows():
        steps.setdefault((table, agent), []).append((step[0], step[1]))
    longest = by_cluster((table, float(longest_loop(each))) for (table, _), each in steps.items())
    over = "agents with information states"
    yield estimated("improvement.longest_loop", ratio(*longest), "decisions in a row", denominator=over)


def memory_index(with_memory: Sequence[bool], without: Sequence[bool]) -> float | None:
    """Success with memory less that without, on the same tasks."""
    alike(with_memory=with_memory, without=without)
    pairs = list(zip(truths("with_memory", with_memory), truths("without", without), strict=True))
    return sum(a - b for a, b in pairs) / len(pairs) if pairs else None
