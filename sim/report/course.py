"""A run over time: its facts, thinned where they are many, and series of points made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import fmean

from sim.record.survey import Survey
from sim.report.model import Points
from sim.types import JSON, RecordedFact

READ = 20_000
"""Most facts behind a figure."""
POINTS = 300
"""Most points of one series."""
SERIES = 8
"""Most series of a figure."""
UNITS = {"s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds."""
LONG = 3
"""Of how many units a run has to be for an axis in it."""


class Course:
    """A run as the figures ask for it."""

    def __init__(self, run: Survey, tables: int, tick_ms: float) -> None:
        self.run = run
        self.tables = tables
        self.tick_ms = tick_ms

    def facts(self, kind: str, table: int | None = None, most: int = READ) -> list[RecordedFact]:
        """Facts of one kind."""
        return self.run.thinned(kind, most, table)

    def time(self, tick: int) -> float:
        """Simulated time from the start, in the unit that fits the whole run."""
        return tick * self.tick_ms / UNITS[self._unit]

    @property
    def axis(self) -> str:
        """What an axis of time is called."""
        return f"simulated time ({self._unit})"

    @cached_property
    def _unit(self) -> str:
        whole = self.run.end(0)[1] * self.tick_ms
        return next((unit for unit in ("d", "h", "min") if whole >= LONG * UNITS[unit]), "s")

    @property
    def first(self) -> str:
        """Which table is drawn, where there are several."""
        return f" Table 0 of {self.tables}." if self.tables > 1 else ""

    @property
    def every(self) -> str:
        """That all tables are drawn, where there are several."""
        return f" All {self.tables} tables." if self.tables > 1 else ""


def thinned(name: str, x: Sequence[float], y: Sequence[float], **more: JSON) -> Points:
    """A series with at most `POINTS` points, the last one always among them."""
    step = -(-len(x) // POINTS) or 1
    kept = sorted({*range(0, len(x), step), *([len(x) - 1] if x else [])})
    return Points(name=name, x=tuple(float(x[k]) for k in kept), y=tuple(float(y[k]) for k in kept), **more)


def means(found: Iterable[tuple[str, float, float]]) -> list[Points]:
    """Mean of y at each x, by series, the first few series."""
    sums: dict[str, dict[float, list[float]]] = {}
    for name, x, y in found:
        sums.setdefault(name, defaultdict(list))[x].append(y)
    return [
        thinned(name, sorted(at), [fmean(at[x]) for x in sorted(at)], mode="lines" if len(at) > 40 else "lines+markers")
        for name, at in list(sums.items())[:SERIES]
    ]


def left(count: int) -> str:
    """How many series are not drawn."""
    return f" The first {SERIES} of {count}." if count > SERIES else ""
