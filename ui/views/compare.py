"""Compare: runs side by side, what differs between them, and from where on; or the settings of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import streamlit as st

from sim.commands.measured import about
from sim.record.browse import Browse, first_divergence
from sim.sweep import known
from sim.types import Measurement
from ui import charts, data
from ui.data import Head
from ui.effects import by_subject, tabled, within
from ui.markup import clipped, grid, hint, plotted, prose, show, tag
from ui.parts import choice, figure, table, title
from ui.views import sweeps

WHAT = ("runs", "settings of a sweep")
MOST = 6
"""Runs beside each other."""
NEWEST = 20
"""Runs among which two of one scenario are looked for."""
BINS = 60
"""Points of a time line."""
ROWS = 300
"""Most numbers that are put side by side."""


def page() -> None:
    """Two or more runs."""
    title("Compare")
    where = data.folder()
    ids = data.run_ids(where)
    if len(ids) < 2:
        hint("There is nothing to compare yet: it takes two runs.")
        return
    with data.numbers(where) as numbers:
        swept = known(numbers.all_tags()) if numbers else {}
    if swept and choice("Compare", WHAT, "what") == WHAT[1]:
        sweeps.section(swept)
        return
    chosen = st.multiselect(
        "Runs, the first one is what the others are compared with",
        ids,
        _asked(ids),
        key="compared",
        max_selections=MOST,
    )
    st.query_params["runs"] = ",".join(chosen)
    heads = [head for head in (data.head(where, name) for name in chosen) if head.readable]
    if len(heads) < 2:
        hint("Choose at least two runs.")
        return
    show(_facts(heads))
    found = [data.measured(where, head.id) for head in heads]
    _side_by_side(heads, found)
    _paired(heads, found)
    _diverges(heads)
    _time_lines(heads)


def _asked(ids: Sequence[str]) -> list[str]:
    """The runs that the page's address names, else the newest and the next one of the same scenario, or the next."""
    named = [one for one in st.query_params.get("runs", "").split(",") if one in ids]
    if named:
        return named
    heads = [head for head in (data.head(data.folder(), one) for one in ids[:NEWEST]) if head.readable]
    alike = [one for one in heads[1:] if one.name == heads[0].name]
    return [one.id for one in (*heads[:1], *(alike or heads[1:])[:1])]


def _facts(heads: Sequence[Head]) -> str:
    rows = [
        [
            head.id, head.words, head.name, str(head.seed), head.models, head.time(head.now), f"{head.decisions:,}",
            f"{head.prompt_tokens + head.completion_tokens:,}",
            f"{head.parent} at {head.time(head.fork_tick or 0)}" if head.parent else "",
        ]
        for head in heads
    ]  # fmt: skip
    heads_ = ["run", "state", "scenario", "seed", "model", "at", "decisions", "tokens", "forked from"]
    return grid(heads_, [[clipped(cell, 60) for cell in row] for row in rows], {6, 7})


def _side_by_side(heads: Sequence[Head], found: Sequence[Sequence[Measurement]]) -> None:
    numbers = [by_subject(one) for one in found]
    keys = sorted({key for one in numbers for key in one}, key=lambda key: (len(key[1]) > 2, key))
    show(tag("h2", "Measures side by side"))
    if not keys:
        hint("None of these runs has been measured yet.")
        return
    rows = []
    for key in keys[:ROWS]:
        there = [one.get(key) for one in numbers]
        known = next(one for one in there if one is not None)
        row: dict[str, object] = {"metric": key[0], "of": about(known) or "all", "unit": known.unit}
        row |= {head.id: one.value if one else None for head, one in zip(heads, there, strict=True)}
        first = there[0].value if there[0] else None
        for head, one in list(zip(heads, there, strict=True))[1:]:
            other = one.value if one else None
            row[f"{head.id} less the first"] = None if first is None or other is None else other - first
        rows.append(row)
    table(rows, "side-by-side", height=360)


def _paired(heads: Sequence[Head], found: Sequence[Sequence[Measurement]]) -> None:
    for head, other in list(zip(heads, found, strict=True))[1:]:
        differences = within(found[0], other)
        if differences:
            show(tag("h2", f"Paired differences: {clipped(head.id, 60)} less {clipped(heads[0].id, 60)}"))
            show(
                tag(
                    "div",
                    "Pairs are the same agent, period or good in both runs; intervals are Student's at 95%.",
                    cls="dim",
                )
            )
            table(tabled(differences), f"paired-{heads.index(head)}")


def _diverges(heads: Sequence[Head]) -> None:
    show(tag("h2", "First divergence"))
    with Browse(heads[0].path) as one:
        for head in heads[1:]:
            with Browse(head.path) as other:
                _first(one, other, heads[0], head)


def _first(one: Browse, other: Browse, first: Head, second: Head) -> None:
    names = f"{clipped(first.id, 60)} and {clipped(second.id, 60)}"
    tables = min(first.tables, second.tables, data.LOOKED_AT)
    for at in range(tables):
        found = first_divergence(one, other, at)
        if found is not None:
            break
    else:
        ends = [max(run.end(at)[0] for at in range(tables)) if tables else -1 for run in (one, other)]
        equal = "are equal event by event" if ends[0] == ends[1] else "are equal as far as the shorter one goes"
        show(tag("div", f"{names} {equal}."))
        return
    tick = found[0][1][2]
    show(
        tag(
            "div",
            f"{names} are equal up to {first.time(tick)}" + (f" of table {at}" if first.tables > 1 else "") + "; then:",
        )
    )
    columns = st.columns(2)
    for column, (name, row), head in zip(columns, found, (first, second), strict=True):
        with column:
            show(tag("div", clipped(head.id, 60), cls="dim"), prose(_row_said(name, row), 500))


def _row_said(name: str, row: Sequence[Any]) -> str:
    """A row of a log in words."""
    if name == "decisions":
        return f"{row[4]} decides ({row[8]}): {data.told(orjson.loads(row[7]))}"
    if name == "facts":
        return f"{row[6] or 'the world'}, {row[5]}: {data.told(orjson.loads(row[8]))}"
    return f"{row[4]} {row[5]} {data.told(orjson.loads(row[6]))}"


def _time_lines(heads: Sequence[Head]) -> None:
    """One kind of fact over time in every run."""
    show(tag("h2", "Over time"))
    counts = []
    for head in heads:
        with Browse(head.path) as run:
            counts.append(data.over_time(data.moment(run, head, 0), BINS))
    kinds = sorted({kind for one in counts for kind, _, _ in one})
    if not kinds:
        hint("Nothing has happened in these runs.")
        return
    kind = st.selectbox("Facts of kind", kinds, format_func=lambda one: clipped(one, 40))
    series = []
    unit, words = data.axis(max(head.now * head.tick_ms for head in heads))
    for head, found in zip(heads, counts, strict=True):
        x, y = [0.0], [0.0]
        for each, at, count in found:
            if each == kind:
                x.append(at * head.tick_ms / unit)
                y.append(y[-1] + count)
        x, y = [*x, head.now * head.tick_ms / unit], [*y, y[-1]]
        series.append(charts.Series(name=plotted(head.id, 40), x=x, y=y, mode="lines"))
    made = charts.lines(series, words, f"{plotted(kind)} so far")
    figure(made, "over-time", "Facts of one kind so far, by run")
