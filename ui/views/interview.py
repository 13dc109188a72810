"""Interview: ask an agent something at any moment; the run never hears of it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from sim.steering.live import Refused
from sim.studies.interview import Answer, answers
from ui import controls, data
from ui.data import Head
from ui.markup import Html, chip, clipped, failure, hint, joined, prose, show, tag
from ui.parts import badge, choice, chosen_run, chosen_table, opened, title

PATIENCE = 600.0
"""Seconds within which a model has to answer."""
SHOWN = 10
"""Interviews that are shown, the newest first."""


def page() -> None:
    """Whom to ask, when and what; then what was said so far."""
    head = chosen_run()
    if head is None:
        return
    at = chosen_table(head)
    title("Interview", tag("b", clipped(head.id, 60)), badge(head))
    with opened(head) as run:
        names = [one.seat.agent for one in data.members(run, at) if one.model]
    if not names:
        hint("Nobody in this run speaks with a model, so there is nobody to ask.")
        return
    show(
        tag(
            "div",
            "A copy of the agent, with its persona and what it remembers then, is asked by its own model.",
            cls="dim",
        )
    )
    with st.sidebar:
        name = str(choice("Agent", names, "agent"))
    with st.form("ask"):
        moment = st.text_input("At", head.time(head.now), help="A moment like 1h30m, or a tick")
        question = st.text_area("Question", placeholder="Why did you do that?")
        if st.form_submit_button("Ask", type="primary", icon=":material/forum:") and question.strip():
            _ask(head, name, moment, question.strip(), at)
    _told(head, name)


def _ask(head: Head, name: str, moment: str, question: str, at: int) -> None:
    words = ("interview", "--agent", name, "--at", moment, "--table", str(at), "--", head.id, question)
    try:
        with st.spinner("The agent is thinking …"):
            controls.finished(*words, where=data.folder(), patience=PATIENCE)
    except Refused as why:
        failure(str(why))


def _told(head: Head, name: str) -> None:
    """Interviews of the agent, the newest first."""
    start = f"{head.id}-{name}-at"
    found = [one for one in data.run_ids(data.folder()) if one.startswith(start)][:SHOWN]
    if not found:
        hint("Nobody has asked this agent anything yet.")
    for one in found:
        asked = data.head(data.folder(), one)
        if asked.parent == head.id:
            at = one.rpartition("-at")[2]
            moment = head.time(int(at)) if at.isdecimal() else clipped(at, 20)
            show(*(_said(name, each, moment) for each in _answers(asked.path)))


def _answers(path: Path) -> list[Answer]:
    try:
        return answers(path)
    except (KeyError, TypeError):  # a run of that name that is no interview
        return []


def _said(name: str, one: Answer, moment: str) -> Html:
    note = [] if one.how == "chosen" else [chip(one.how, "warn")]
    return joined(
        tag(
            "div",
            tag("span", f"you, about what it knew at {moment}", cls="dim"),
            prose(one.question),
            cls="card quiet right",
        ),
        tag("div", tag("b", clipped(name, 60)), *note, prose(one.text), cls="card quiet left"),
    )
