"""Runs: what there is, how it stands, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from sim.library import PROJECT, remove
from sim.record.project import Project
from sim.record.store import RunLocked
from sim.steering.live import Refused
from sim.types import Measurement
from ui import controls, data
from ui.data import Head
from ui.markup import clipped, failure, hint, prose, show, tag
from ui.parts import run_line, table, title, watch
from ui.views import start

PAGE = 20
"""Runs of a page of the list."""
EVERY = 2.0
"""Seconds after which a list with a running run is read again."""
HEADLINES = 2
"""Measures of a run in the list."""


def page() -> None:
    """The list of runs, and one of them to act on."""
    where = data.folder()
    title("Runs", tag("span", f"in {where}", cls="dim"))
    with st.expander("Start a run", icon=":material/add:", expanded=not data.run_ids(where)):
        start.form(where)
    ids = data.run_ids(where)
    if not ids:
        hint(f"There are no runs in {where} yet. Start one above, or with: agora run SCENARIO")
        return
    found = _searched(where, ids)
    heads = [data.head(where, name) for name in found[:PAGE]]
    watch(heads)
    moving = any(head.status == "running" for head in heads)
    st.fragment(_list, run_every=EVERY if moving else None)(where, found)


def _searched(where: Path, ids: Sequence[str]) -> list[str]:
    """Runs whose id or tags have all words that are looked for."""
    words = (
        st.text_input("Search", placeholder="words of an id or a tag", key="search", bind="query-params")
        .lower()
        .split()
    )
    with data.numbers(where) as numbers:
        tags = numbers.all_tags() if numbers else {}
    if not words:
        return list(ids)
    return [one for one in ids if all(word in f"{one} {' '.join(tags.get(one, ()))}".lower() for word in words)]


def _list(where: Path, ids: Sequence[str]) -> None:
    pages = -(-len(ids) // PAGE)
    place = st.number_input(f"Page of {pages}", 1, pages, key="runs-page") - 1 if pages > 1 else 0
    heads = [data.head(where, name) for name in ids[place * PAGE : (place + 1) * PAGE]]
    if not heads:
        hint("No run has these words in its id or its tags.")
        return
    with data.numbers(where) as numbers:
        tags = numbers.all_tags() if numbers else {}
        overall = numbers.overall() if numbers else {}
    rows = [_row(one, tags, *_headlines(where, one, overall)) for one in heads]
    chosen = table(
        rows,
        "runs",
        select=True,
        run=st.column_config.TextColumn("run", width=190),
        decisions=st.column_config.NumberColumn("decisions", format="localized"),
        tokens=st.column_config.NumberColumn("tokens", format="localized"),
        progress=st.column_config.ProgressColumn("progress", min_value=0, max_value=1, format="percent", width="small"),
    )
    if chosen is None:
        show(tag("div", "Choose a run in the first column to watch, tag, stop, resume or delete it.", cls="dim"))
        return
    _one(where, heads[chosen], tags.get(heads[chosen].id, ()))


def _headlines(where: Path, head: Head, overall: Mapping[str, list[Measurement]]) -> tuple[list[Measurement], str]:
    """The final numbers about everybody, or those so far and up to when they hold."""
    if head.id in overall:
        return overall[head.id], ""
    held, when = data.measured_so_far(where, head)
    return [one for one in held if not one.of], when


def _row(head: Head, tags: Mapping[str, Sequence[str]], found: Sequence[Measurement], when: str) -> dict[str, object]:
    known = [one for one in found if one.value is not None and data.family(one.metric) != data.HONESTY][:HEADLINES]
    headlines = ["not fit for claims"] * bool(data.unfit(found))
    headlines += [f"{one.metric.rpartition('.')[2]} {one.value:.3g}" for one in known]
    headlines += [when] * bool(when)
    return {
        "state": head.words,
        "run": head.id,
        "progress": head.progress,
        "at": head.time(head.now),
        "decisions": head.decisions,
        "tokens": head.prompt_tokens + head.completion_tokens,
        "measures": " · ".join(headlines),
        "tags": ", ".join(tags.get(head.id, ())),
        "scenario": head.name,
        "model": head.models,
        "made (UTC)": head.made,
    }


def _one(where: Path, head: Head, tags: Sequence[str]) -> None:
    with st.container(border=True):
        show(run_line(head))
        if head.cause:
            show(prose(f"{head.words}: {head.cause}"))
        with st.container(horizontal=True):
            for address, label in (("live", "Watch"), ("measures", "Measures"), ("whatif", "What if")):
                target = st.session_state.get("pages", {}).get(address)
                if target and head.readable:
                    st.page_link(target, label=label, query_params={"run": head.id})
            _acts(where, head)
        _tags(where, head, tags)
        _delete(where, head)


def _acts(where: Path, head: Head) -> None:
    """Stop what is running, go on with what can."""
    if head.status == "running" and st.button("Stop", icon=":material/stop:", help="Before the next event; resumable"):
        _tried(lambda: controls.stop(head.path, head.pid))
    resumable = ("interrupted", "paused", "failed", "not started")
    if head.status in resumable and st.button("Resume", icon=":material/play_arrow:"):
        _tried(lambda: controls.resume(head.id, where))


def _tried(act: Callable[[], None]) -> None:
    try:
        act()
    except Refused as problem:
        failure(str(problem))
    else:
        st.rerun()


def _tags(where: Path, head: Head, tags: Sequence[str]) -> None:
    wanted = st.multiselect(
        "Tags",
        list(tags),
        list(tags),
        key=f"tags-{head.id}",
        accept_new_options=True,
        placeholder="write a tag, then Enter",
    )
    if set(wanted) != set(tags) and st.button("Keep tags"):
        project = Project(where / PROJECT)
        project.tag(head.id, *wanted)
        for gone in set(tags) - set(wanted):
            project.untag(head.id, gone)
        project.close()
        st.rerun()


def _delete(where: Path, head: Head) -> None:
    """Asked twice."""
    asked = f"delete-{head.id}"
    if not st.session_state.get(asked):
        if st.button("Delete …", icon=":material/delete:", disabled=head.status == "running" or not head.readable):
            st.session_state[asked] = True
            st.rerun()
        return
    show(tag("div", f"Delete {clipped(head.id, 80)} and its numbers for good?", cls="failure"))
    with st.container(horizontal=True):
        if st.button("Yes, delete it", type="primary"):
            st.session_state.pop(asked)
            try:
                remove(head.path)
            except RunLocked as problem:
                failure(str(problem))
                return
            st.rerun()
        if st.button("Keep it"):
            st.session_state.pop(asked)
            st.rerun()
