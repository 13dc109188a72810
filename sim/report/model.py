"""A report as data: what is said of runs, in the order in which it is read. Every number is put into words once, here.

`agora report --format json` writes a `Report` with these fields; a block says by `type` which of the blocks it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from sim.commands.terminal import number
from sim.types import JSON

SHAPE = 1
"""Raised whenever a field changes its meaning."""
Tone: TypeAlias = Literal["", "warn", "bad"]


class Num(Struct, frozen=True, tag="number"):
    """A number in a table."""

    value: float | None
    shown: str


class Link(Struct, frozen=True, tag="link"):
    """A text in a table that leads to a moment or a metric."""

    text: str
    to: str
    """Its `anchor`."""


Cell: TypeAlias = str | Num | Link


class Line(Struct, frozen=True, kw_only=True):
    """One measurement."""

    run: str
    """Of which run, or of how many."""
    metric: str
    about: str
    """`of` in words; empty: about everything."""
    of: Mapping[str, JSON]
    value: float | None
    shown: str
    unit: str
    n: int
    n_clusters: int
    low: float | None
    high: float | None
    interval: str
    ci_method: str
    denominator: str
    flags: tuple[str, ...]
    excluded: Mapping[str, int]
    null: Mapping[str, JSON]
    judge: Mapping[str, JSON]
    version: int
    notes: str
    """Flags, exclusions, test and judge in words."""
    cited: int
    """Events and decisions that it names."""
    anchor: str
    """Of what the metric is."""


class Note(Struct, frozen=True, kw_only=True, tag="note"):
    """A sentence."""

    text: str
    tone: Tone = ""


class Measures(Struct, frozen=True, kw_only=True, tag="measures"):
    """Measurements, the most general first."""

    title: str
    lines: tuple[Line, ...]
    more: tuple[Line, ...] = ()
    """Of single agents, periods and the like, where they are many."""
    left_out: int = 0
    """How many are in no report of this run, for there are too many."""


class Table(Struct, frozen=True, kw_only=True, tag="table"):
    """Anything else in rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    folded: bool = False


class Points(Struct, frozen=True, kw_only=True):
    """One series of a figure."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    mode: Literal["lines", "markers", "lines+markers"] = "lines+markers"
    faint: bool = False


class Plot(Struct, frozen=True, kw_only=True, tag="plot"):
    """A figure. Of `intervals`, `labels` are the rows, and x, low and high of the only series are theirs."""

    kind: Literal["lines", "intervals"]
    title: str
    caption: str
    x: str
    y: str
    series: tuple[Points, ...]
    labels: tuple[str, ...] = ()
    marks: tuple[float, ...] = ()
    """Places on the x axis with a line of their own."""


class Said(Struct, frozen=True, kw_only=True):
    """One record of a log in a line."""

    at: str
    who: str
    kind: str
    text: str
    to: str = ""
    fact: int | None = None
    """Its id, where it is a fact."""
    itself: bool = False
    """Whether it is the one that the others are the context of."""


class Moment(Struct, frozen=True, kw_only=True):
    """A record that is worth a look, among those around it."""

    anchor: str
    table: int
    seq: int
    at: str
    """When, and at which table where there are several."""
    why: tuple[str, ...]
    """What makes it notable."""
    around: tuple[Said, ...]
    saw: str
    """Who was shown it."""


class Moments(Struct, frozen=True, kw_only=True, tag="moments"):
    """Notable records in the order of the log."""

    moments: tuple[Moment, ...]
    left_out: int = 0


class Source(Struct, frozen=True, kw_only=True, tag="source"):
    """A text as it was written."""

    title: str
    text: str
    left_out: int = 0
    """Characters."""


class Entry(Struct, frozen=True, kw_only=True):
    """A word and what it means."""

    anchor: str
    name: str
    text: str


class Glossary(Struct, frozen=True, kw_only=True, tag="glossary"):
    """What words mean."""

    title: str
    entries: tuple[Entry, ...]


Block: TypeAlias = Note | Measures | Table | Plot | Moments | Source | Glossary


class Section(Struct, frozen=True, kw_only=True):
    """Blocks under a heading."""

    anchor: str
    title: str
    blocks: tuple[Block, ...]


class Part(Struct, frozen=True, kw_only=True):
    """All that is said of one run alone."""

    run: str
    verdict: tuple[str, ...]
    """Why it is not fit for claims; empty: it is, or nobody has measured that."""
    sections: tuple[Section, ...]


class Report(Struct, frozen=True, kw_only=True):
    """The whole."""

    shape: int = SHAPE
    verdict: tuple[str, ...]
    """Why some run is not fit for claims; stands before all else."""
    title: str
    what: str
    """In a line: scenario, world, status."""
    command: str
    """That made it."""
    version: str
    """Of agora-sim."""
    secrets_shown: bool
    notes: tuple[Note, ...]
    """What a reader has to know first."""
    together: tuple[Section, ...] = ()
    """Of all runs, where there are several."""
    parts: tuple[Part, ...]
    method: tuple[Section, ...]

    def sections(self) -> Iterator[Section]:
        """All sections, in order."""
        yield from self.together
        for part in self.parts:
            yield from part.sections
        yield from self.method


def lines(report: Report) -> Iterator[Line]:
    """Every measurement in it, in order."""
    for section in report.sections():
        for block in section.blocks:
            if isinstance(block, Measures):
                yield from block.lines
                yield from block.more


def points(plot: Plot) -> Table:
    """A figure's data as a table."""
    title = f"Data: {plot.title}"
    if plot.kind == "intervals":
        (one,) = plot.series
        lows, highs = one.low or (None,) * len(one.x), one.high or (None,) * len(one.x)
        rows = [
            (label, num(value), num(low), num(high))
            for label, value, low, high in zip(plot.labels, one.x, lows, highs, strict=True)
        ]
        return Table(title=title, heads=(plot.y or "of", plot.x, "low", "high"), rows=tuple(rows), folded=True)
    found = [(one.name, num(x), num(y)) for one in plot.series for x, y in zip(one.x, one.y, strict=True)]
    return Table(title=title, heads=("series", plot.x, plot.y), rows=tuple(found), folded=True)


def trimmed(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> tuple[list[str], list[list[Cell]]]:
    """A table without the columns, but the first, that are empty in all rows."""
    every = list(rows)
    kept = [place for place in range(len(heads)) if place == 0 or any(row[place] != "" for row in every)]
    return [heads[place] for place in kept], [[row[place] for place in kept] for row in every]


def num(value: float | None) -> Num:
    """A number with four digits, or all those before the point; none as a dash."""
    return Num(value, shown(value))


def shown(value: float | None) -> str:
    """The one way in which a report writes numbers."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return number(value)
