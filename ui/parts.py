"""Pieces that several views have: which run is looked at, tables and figures with their downloads, badges."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import plotly.graph_objects as go
import polars
import streamlit as st

from sim.record.browse import Browse
from sim.types import JSON
from ui import data
from ui.charts import inked
from ui.data import Head
from ui.markup import Html, chip, clipped, failure, hint, joined, show, tag

CELL = 300
"""Characters of a table's cell on the page; a download has them all."""
COLOURS = {"running": "live", "finished": "good", "failed": "bad", "interrupted": "warn", "paused": "warn"}
UNFINISHED = ("not started", "running", "interrupted", "paused")
"""How a run stands that may go on."""
LOOK = 2.0
"""Seconds between two looks at how runs stand."""
ROWS = 25
"""Rows of a page of a list."""
LINE = 36
"""Pixels of a row of a table."""

Row = Mapping[str, JSON]


def title(text: str, *more: str) -> None:
    """The head of a page: what it is, then about what."""
    show(tag("div", tag("h1", text), *more, cls="row"))


def badge(head: Head) -> Html:
    """How a run stands."""
    return chip(head.words, COLOURS.get(head.status, ""))


def run_line(head: Head) -> Html:
    """One run in a line."""
    made_of = f"{head.name} · seed {head.seed} · {head.models}"
    return joined(tag("b", clipped(head.id, 80)), " ", badge(head), " ", tag("span", made_of, cls="dim"))


def choice(label: str, options: Sequence[Any], key: str, words: Callable[[Any], str] = str, **more: Any) -> Any:
    """A box to choose from; None where there is nothing to choose.

    The choice stands in the page's address, and is kept from view to view.
    """
    if not options:
        return None
    widget = f"pick-{key}"
    named = {str(one): one for one in options}
    before = st.session_state.get(widget, st.session_state.get(f"kept-{key}"))
    first = before if before in options else options[0]
    # Set even where it is known: a box of the same key on another view would start anew.
    st.session_state[widget] = named.get(linked(key) or "", first)
    chosen = st.selectbox(label, options, key=widget, format_func=lambda one: clipped(words(one), 80), **more)
    keep(key, chosen)
    return chosen


def linked(key: str) -> str | None:
    """What the page's address says of something, where a link has set it and not we."""
    written = st.query_params.get(key)
    return None if written == str(st.session_state.get(f"kept-{key}")) else written


def keep(key: str, value: Any) -> None:
    """Put something into the page's address, and remember it from view to view."""
    st.session_state[f"kept-{key}"] = value
    st.query_params[key] = str(value)


def asked(key: str) -> int | None:
    """A number that a link has set; None where none has."""
    written = linked(key) or ""
    return int(written) if written.isdecimal() and len(written) < 19 else None


def watch(heads: Sequence[Head]) -> None:
    """Draw the page anew as soon as one of these runs stands otherwise."""
    waiting = [head for head in heads if head.status in UNFINISHED]

    def look() -> None:
        if any(data.head(data.folder(), head.path.stem).status != head.status for head in waiting):
            st.rerun()

    if waiting:
        st.fragment(look, run_every=LOOK)()


def chosen_run() -> Head | None:
    """The run that the page is about, chosen at the side; None, and a hint, where there is none to look at."""
    where = data.folder()
    ids = data.run_ids(where)
    if not ids:
        hint(f"There are no runs in {where} yet. Start one on the page Runs, or with: agora run SCENARIO")
        return None
    with st.sidebar:
        name = choice("Run", ids, "run")
    head = data.head(where, name)
    if not head.readable:
        failure(head.cause)
        return None
    return head


def chosen_table(head: Head) -> int:
    """The game table that the page is about; a run with one has no choice."""
    if head.tables < 2:
        return 0
    with st.sidebar:
        found = choice(f"Table (of {head.tables})", range(head.tables), "table")
    return int(found or 0)


def table(
    rows: Sequence[Row], name: str, *, select: bool = False, height: int | None = None, **columns: Any
) -> int | None:
    """Rows as a table with downloads; with `select`, the place of the row that was chosen.

    `height`: most pixels that it takes. `columns`: what Streamlit's `column_config` says of some of them.
    """
    shown = [{key: _cell(value) for key, value in row.items()} for row in rows]
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "single-row"} if select else {}
    event = st.dataframe(
        polars.DataFrame(shown, infer_schema_length=None, strict=False) if shown else shown,
        hide_index=True,
        column_config=columns or None,
        height=_height(len(shown), height),
        placeholder="",
        key=f"table-{name}",
        **options,
    )
    downloads(rows, name)
    chosen = event.selection.rows if select else []
    return chosen[0] if chosen else None


def _height(rows: int, most: int | None) -> int | Literal["auto", "content"]:
    """As tall as its rows where that is not too tall."""
    if most is not None and (rows + 1) * LINE > most:
        return most
    return "content" if rows <= ROWS else "auto"


def _cell(value: JSON) -> JSON:
    return clipped(value, CELL) if isinstance(value, str) else value


def downloads(rows: Sequence[Row], name: str) -> None:
    """The rows as files, made when they are asked for."""
    if not rows:
        return
    with st.container(horizontal=True, gap="small"):
        for ending, make in (("csv", as_csv), ("parquet", as_parquet)):
            st.download_button(
                ending.upper(),
                partial(make, rows),
                f"{name}.{ending}",
                key=f"{name}-{ending}",
                on_click="ignore",
                type="tertiary",
                icon=":material/download:",
                help="Download this table",
            )


def _frame(rows: Sequence[Row]) -> polars.DataFrame:
    return polars.DataFrame(list(rows), infer_schema_length=None, strict=False)


def as_csv(rows: Sequence[Row]) -> bytes:
    """Rows as CSV; a cell that a spreadsheet would take for a formula is led by an apostrophe."""
    safe = [{key: _harmless(value) for key, value in row.items()} for row in rows]
    return _frame(safe).write_csv().encode()


def _harmless(value: JSON) -> JSON:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_parquet(rows: Sequence[Row]) -> bytes:
    """Rows as Parquet."""
    buffer = io.BytesIO()
    _frame(rows).write_parquet(buffer)
    return buffer.getvalue()


def figure(made: go.Figure, name: str, alt: str) -> None:
    """A figure, with a picture from its tool bar and a file that works offline below it."""
    config = {"displaylogo": False, "toImageButtonOptions": {"filename": name}}
    shown = inked(made, st.context.theme.type)
    st.plotly_chart(shown, key=f"figure-{name}", config=config, alt=alt)
    st.download_button(
        "HTML", lambda: made.to_html(include_plotlyjs=True).encode(), f"{name}.html", key=f"{name}-html",
        on_click="ignore", type="tertiary", icon=":material/download:", help="Download this figure",
    )  # fmt: skip


def paged(name: str, more: bool) -> int:
    """Buttons to turn pages; which one is shown, counted from 0."""
    key = f"page-{name}"
    place = int(st.session_state.get(key, 0))

    def turn(by: int) -> None:
        st.session_state[key] = max(0, int(st.session_state.get(key, 0)) + by)

    with st.container(horizontal=True, gap="small"):
        st.button(
            "Newer", key=f"{key}-newer", disabled=place == 0, on_click=turn, args=(-1,), icon=":material/chevron_left:"
        )
        st.button(
            "Older", key=f"{key}-older", disabled=not more, on_click=turn, args=(1,), icon=":material/chevron_right:"
        )
        if place:
            show(tag("span", f"page {place + 1}", cls="dim"))
    return place


def opened(head: Head) -> Browse:
    """The run's file, to read."""
    return Browse(Path(head.path))
