"""Measures: every number that was measured on a run, by family, and the events behind each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import streamlit as st

from sim.commands.measured import about
from sim.record.browse import Browse
from sim.types import Measurement
from ui import charts, controls, data
from ui.data import Head
from ui.facts import fact_line
from ui.markup import chip, clipped, failure, hint, plotted, prose, show, tag
from ui.parts import badge, choice, chosen_run, chosen_table, figure, opened, table, title, watch

EVERY = 2.0
"""Seconds between two looks at the numbers of a run that goes on."""
DRAWN = 40
"""Most rows of a figure."""
BEHIND = 30
"""Facts behind a number that are shown."""
CARDS = 8
"""Numbers about everybody at the top."""


def page() -> None:
    """Numbers about everybody first, then one metric in full."""
    head = chosen_run()
    if head is None:
        return
    watch([head])
    moving = _moving(head)
    st.fragment(_numbers, run_every=EVERY if moving else None)(head, chosen_table(head), moving)


def _moving(head: Head) -> bool:
    """Whether there is more to come: numbers so far, or the final ones of a run that has just finished."""
    return head.status in ("running", "finished") and not data.measured(data.folder(), head.id)


def _numbers(head: Head, at: int, moving: bool) -> None:
    found, when = data.measured(data.folder(), head.id), ""
    if moving and found:  # what makes it look again is set when the whole page is drawn
        st.rerun()
    if not found:
        found, when = data.measured_so_far(data.folder(), head)
    title("Measures", tag("b", clipped(head.id, 60)), badge(head), *([chip(when, "live")] if when else []))
    if moving and head.status == "running":
        _follow(head)
    if not found:
        hint(f"Nothing is measured on this run: that is done when a run has finished, or by: agora measure {head.id}")
        return
    show(*(prose(reason, cls="said warn") for reason in data.unfit(found)))
    general = {data.family(one.metric) for one in found if not one.of}
    families = sorted(
        {data.family(one.metric) for one in found}, key=lambda one: (one == data.HONESTY, one not in general, one)
    )
    family = choice("Family", families, "family") if len(families) > 1 else families[0]
    inside = [one for one in found if data.family(one.metric) == family]
    _overall([one for one in inside if not one.of])
    rows_of = Counter(one.metric for one in inside)
    metrics = sorted(rows_of, key=lambda one: (rows_of[one] < 2, one))
    metric = choice("Metric", metrics, "metric")
    rows = sorted((one for one in inside if one.metric == metric), key=_order)
    _drawn(rows)
    chosen = table([_row(one) for one in rows], "measures", select=True)
    show(tag("div", "Choose a row in the first column to see the events behind it.", cls="dim"))
    if chosen is not None and chosen < len(rows):
        with opened(head) as run:
            _behind(run, head, rows[chosen], at)


def _follow(head: Head) -> None:
    """Start what measures the run while it goes on, and say so where that came to nothing."""
    key = f"follows-{head.id}"
    started: controls.Started | None = st.session_state.get(key)
    code = started.process.poll() if started else 0
    if st.button(
        "Measure while it runs",
        icon=":material/monitoring:",
        disabled=code is None,
        help="By agora measure --follow, which ends with the run",
    ):
        st.session_state[key] = controls.follow(head.id, data.folder())
        st.rerun(scope="fragment")
    if started and code:
        failure(started.text())


def _order(one: Measurement) -> tuple[object, ...]:
    return len(one.of), *(f"{key}{value!s:>12}" for key, value in sorted(one.of.items()))


def _overall(found: Sequence[Measurement]) -> None:
    """The numbers about everybody, as large figures."""
    cards = [
        tag(
            "div",
            tag("div", clipped(one.metric.rpartition(".")[2].replace("_", " "), 40), cls="dim"),
            tag("h1", "–" if one.value is None else f"{one.value:.4g}", tag("span", f" {one.unit}", cls="dim")),
            tag(
                "div", f"95% {one.ci[0]:.3g} to {one.ci[1]:.3g} · n {one.n:,}" if one.ci else f"n {one.n:,}", cls="dim"
            ),
            cls="card",
        )
        for one in found[:CARDS]
    ]
    if cards:
        show(tag("div", *cards, cls="cards"))


def _drawn(rows: Sequence[Measurement]) -> None:
    known = [one for one in rows if one.value is not None]
    if len(known) < 2:
        return
    drawn = [
        (plotted(about(one) or "all", 40), float(one.value or 0), *(one.ci or (None, None))) for one in known[:DRAWN]
    ]
    name = plotted(known[0].metric.rpartition(".")[2].replace("_", " "), 40)
    title = f"{name} ({plotted(known[0].unit, 20)})" if known[0].unit else name
    figure(charts.intervals(drawn, title), "metric", f"Values of the metric with intervals, {len(drawn)} rows")
    if len(known) > DRAWN:
        show(tag("div", f"The first {DRAWN} of {len(known)}; the table has all.", cls="dim"))


def _row(one: Measurement) -> dict[str, object]:
    low, high = one.ci or (None, None)
    return {
        "of": about(one) or "all",
        "value": one.value,
        "unit": one.unit,
        "n": one.n,
        "low": low,
        "high": high,
        "interval": one.ci_method,
        "independent": one.n_clusters,
        "events": len(one.events),
        "left out": ", ".join(f"{count} {why}" for why, count in one.excluded.items()),
        "flags": ", ".join(one.flags),
    }


def _behind(run: Browse, head: Head, one: Measurement, at: int) -> None:
    """The facts that a number is made of."""
    place = int(one.of.get("table", at)) if str(one.of.get("table", at)).isdecimal() else at
    show(tag("h2", f"{len(one.events)} events behind {clipped(one.metric, 60)}, {clipped(about(one), 80) or 'all'}"))
    if not one.events:
        hint("This number names no events: it is made of all decisions of its kind.")
        return
    placed = list(dict.fromkeys(event if isinstance(event, tuple) else (place, event) for event in one.events))
    for number, group in groupby(sorted(placed[:BEHIND]), key=itemgetter(0)):
        if head.tables > 1:
            show(tag("div", f"table {number}", cls="dim"))
        now = data.moment(run, head, number)
        show(*(fact_line(now, fact) for fact in run.facts_by_id(number, [fact for _, fact in group]).values()))
    if len(placed) > BEHIND:
        show(tag("div", f"The first {BEHIND} of {len(placed):,}.", cls="dim"))
