"""Play: take a seat in a world, see only what it sees, answer what it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from sim.scenarios.scenario import load, loads
from sim.steering.live import Refused
from sim.steering.people import peoples, taking
from sim.types import JSON
from ui import controls, data
from ui.data import Head
from ui.markup import clipped, failure, hint, prose, show, tag
from ui.parts import badge, choice, opened, title
from ui.views.start import chosen_file, named

EVERY = 1.0
"""Seconds between two looks for a question."""
NEW = "a new game"
GAMES = 40
"""Newest runs among which those with a seat of a person are looked for."""


def page() -> None:
    """A new game, or one that goes on."""
    title("Play")
    where = data.folder()
    heads = [data.head(where, name) for name in data.run_ids(where)[:GAMES]]
    games = {head.id: head for head in heads if "(human)" in head.models}
    chosen = choice("Game", [NEW, *games], "game") if games else NEW
    if chosen == NEW:
        _begin(where)
        return
    head = games[chosen]
    seats = _seats(head)
    seat = str(choice("Your seat", seats, "seat")) if len(seats) > 1 else seats[0]
    moving = head.status in ("running", "not started")
    st.fragment(_table, run_every=EVERY if moving else None)(where, head, seat)


def _seats(head: Head) -> list[str]:
    """The seats that people have in a run."""
    with opened(head) as run:
        manifest = run.manifest()
    return peoples(loads(manifest.scenario, manifest.base, file=head.path.name))


# --- a new game -----------------------------------------------------------------------------------------


def _begin(where: Path) -> None:
    words = "Take a seat in any world: you see what its seat sees and answer what it is asked; the others play on."
    show(tag("div", words, cls="dim"))
    file = chosen_file("play")
    if file is None:
        return
    scenario = load(file)
    agents = [agent for _, entry in scenario.entries for agent in entry.agents]
    given = peoples(scenario)
    seat = st.selectbox("Your seat", given or agents, format_func=lambda one: clipped(one, 60))
    more = st.text_area("Changes to the scenario, one KEY=VALUE a line", placeholder="models.small.engine=synthetic")
    if st.button("Take the seat", type="primary", icon=":material/event_seat:"):
        sets = [line.strip() for line in more.splitlines() if line.strip()]
        name = named(file)
        try:
            with st.spinner("Setting the table …"):
                controls.start(file, [*([] if given else taking(seat)), *sets], where, name, None)
        except Refused as why:
            failure(str(why))
            return
        st.query_params["game"] = name
        st.rerun()


# --- at the table ---------------------------------------------------------------------------------------


def _table(where: Path, before: Head, seat: str) -> None:
    """What the seat is asked at the moment."""
    head = data.head(where, before.path.stem)
    if head.status != before.status:
        st.rerun()
    show(
        tag(
            "div",
            tag("b", clipped(head.id, 80)),
            badge(head),
            tag("span", f"you are {clipped(seat, 40)}", cls="dim"),
            cls="row",
        )
    )
    if head.status == "finished":
        _over(head, seat)
        return
    stands = controls.status(head.path)
    if stands is None:
        _left(where, head)
        return
    questions = [one for one in stands["questions"] if one["agent"] == seat]
    if not questions:
        show(tag("div", f"{stands['time']}: it is not your turn. Others are thinking.", cls="card"))
        return
    _question(head, questions[0])


def _over(head: Head, seat: str) -> None:
    with opened(head) as run:
        reward = run.rewards_by(0).get(seat)
    words = "The game is over." + (f" You have earned {reward:,.3g}." if reward is not None else "")
    show(tag("div", tag("h2", words), cls="card"))
    target = st.session_state.get("pages", {}).get("live")
    if target:
        st.page_link(target, label="See the whole game", query_params={"run": head.id})


def _left(where: Path, head: Head) -> None:
    if head.status not in ("interrupted", "paused"):
        show(tag("div", "The table is being set …", cls="dim"))
        return
    hint("Nobody is running this game at the moment. What you have answered is kept.")
    if st.button("Go on", type="primary", icon=":material/play_arrow:"):
        try:
            controls.resume(head.id, where)
        except Refused as why:
            failure(str(why))
        else:
            st.rerun()


def _question(head: Head, one: Mapping[str, Any]) -> None:
    show(tag("div", tag("span", f"at {one['time']}", cls="dim"), prose(one["text"], 4_000), cls="card"))
    with st.expander("The rules, and who you are"):
        show(prose(one["about"], 4_000))
    key = f"answer-{head.id}-{one['id']}"
    variants = _variants(one["format"])
    variant = variants[0]
    if len(variants) > 1:
        variant = st.selectbox("What you do", variants, format_func=_name, key=f"{key}-act")
    with st.form(key):
        answer = _fields(variant, key)
        if st.form_submit_button("Answer", type="primary"):
            try:
                controls.told(head.path, lambda run: run.answer(one["id"], answer))
            except Refused as why:
                failure(str(why))
            else:
                st.rerun()


def _variants(schema: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return schema.get("anyOf") or schema.get("oneOf") or [schema]


def _name(schema: Mapping[str, Any]) -> str:
    """What tells one of several forms apart."""
    act = schema.get("properties", {}).get("act", {})
    word = act.get("const") or next(iter(act.get("enum", ())), schema.get("title", "answer"))
    return clipped(f"{word}: {schema['description']}" if schema.get("description") else str(word), 80)


def _fields(schema: Mapping[str, Any], key: str) -> JSON:
    """Fields for an answer of a JSON schema, and what stands in them."""
    if schema.get("type") != "object":
        return _field("Your answer", schema, key)
    found = {}
    for name, one in schema.get("properties", {}).items():
        fixed = one.get("const", one["enum"][0] if len(one.get("enum", ())) == 1 else None)
        found[name] = fixed if fixed is not None else _field(one.get("description", name), one, f"{key}-{name}")
    return found


def _field(label: str, schema: Mapping[str, Any], key: str) -> JSON:
    """A field fit for what is wanted; labels are the world's own and are shown as plain text above."""
    show(tag("div", clipped(label, 120), cls="dim"))
    hidden: dict[str, Any] = {"key": key, "label_visibility": "collapsed"}
    low, high = schema.get("minimum"), schema.get("maximum")
    if "enum" in schema:
        return st.selectbox("Answer", schema["enum"], format_func=lambda one: clipped(str(one), 120), **hidden)
    match schema.get("type"):
        case "integer":
            return int(st.number_input("Answer", low, high, value=low if low is not None else 0, step=1, **hidden))
        case "number":
            return float(st.number_input("Answer", low, high, value=float(low or 0), **hidden))
        case "boolean":
            return st.checkbox("Answer", **hidden)
        case _:
            return st.text_area("Answer", max_chars=schema.get("maxLength"), height=80, **hidden)
