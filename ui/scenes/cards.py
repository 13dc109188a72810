"""A game hand by hand: who holds what, who did what, who won, and how everybody stands."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from sim.record.browse import Filter
from sim.types import RecordedFact
from ui.charts import Series, in_steps, lines
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import Html, chip, clipped, hint, plotted, show, tag
from ui.parts import figure

NAME = "Table"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"hand"}), frozenset({"action", "deal", "result"}))
READ = 400
"""Last facts that a hand is looked for in."""
RESULTS = 4_000
"""Last results that standings are added up from."""


def draw(now: Moment) -> None:
    """The hand in progress, and the sums of returns so far."""
    facts = _hand(now)
    if not facts:
        hint("No hand has begun yet.")
        return
    left, right = st.columns([3, 2])
    with left:
        number = facts[0].fact.data.get("hand")
        eyes = f"as {clipped(now.viewer, 40)} sees it" if now.viewer else "as a watcher, who sees all"
        show(tag("h2", f"Hand {number}, {eyes}"))
        players = [str(one) for one in facts[0].fact.data.get("players", ())]
        show(tag("div", *(_seat(now, player, facts) for player in players), cls="cards"))
        _moves(now, players, [one for one in facts if now.sees(one)])
    with right:
        figure(_standings(now, players), "standings", "Sum of returns by player, hand by hand")


def _hand(now: Moment) -> list[RecordedFact]:
    """Facts of the hand in progress or just over, the hand's first."""
    start = now.run.last_facts(now.table, now.seq, 1, Filter(kinds=("hand",)))
    if not start:
        return []
    facts = [one for one in reversed(now.run.last_facts(now.table, now.seq, READ)) if one.seq >= start[0].seq]
    if len(facts) > 3 or start[0].fact.id == 0:
        return facts
    # A hand that has just been dealt begins at the tick at which the one before ended: show that one's end too.
    return facts


def _seat(now: Moment, player: str, facts: Sequence[RecordedFact]) -> Html:
    """What a player holds, face down where the viewer may not see it."""
    held = [one for one in facts if one.fact.kind == "deal" and player in _to(one)]
    faces = [
        tag("span", _text(one) if now.sees(one) else "hidden", cls="face" if now.sees(one) else "face down")
        for one in held
    ]
    shown = [one.fact.data["cards"][player] for one in facts if player in one.fact.data.get("cards", {})]
    if shown:
        faces.append(chip(f"shows {shown[-1]}"))
    result = next((one for one in facts if one.fact.data.get("agent") == player), None)
    if result and now.sees(result):
        got, place = result.fact.data.get("got", 0), str(result.fact.data.get("place", ""))
        faces.append(chip(f"{place} {got:+g}", "good" if place == "won" else "bad" if place == "lost" else ""))
    return tag("div", tag("b", clipped(player, 40)), tag("div", *faces), cls="card seat")


def _to(one: RecordedFact) -> Sequence[str]:
    return () if isinstance(one.fact.audience, str) else one.fact.audience


def _text(one: RecordedFact) -> str:
    return clipped(str(one.fact.data.get("text", "")), 60)


def _moves(now: Moment, players: Sequence[str], facts: Sequence[RecordedFact]) -> None:
    pieces: list[Html] = []
    for one in facts:
        if one.fact.kind == "action":
            pieces.append(bubble(now, one, _text(one), bool(players) and one.fact.actor != players[0]))
        elif one.fact.kind == "deal" and isinstance(one.fact.audience, str):
            pieces.append(notice(now, one, f"dealt for all: {_text(one)}"))
        elif one.fact.kind == "showdown":
            pieces.append(notice(now, one, "showdown"))
        elif one.fact.kind == "message":
            pieces.append(notice(now, one, _text(one)))
    show(*(pieces or [tag("div", "Nobody has moved yet.", cls="dim")]))


def _standings(now: Moment, players: Sequence[str]) -> object:
    results = [
        one for one in reversed(now.run.last_facts(now.table, now.seq, RESULTS, Filter(kinds=("result",))))
        if now.sees(one)
    ]  # fmt: skip
    series = []
    for player in sorted({*players, *(str(one.fact.data.get("agent")) for one in results)}):
        total, x, y = 0.0, list[float](), list[float]()
        for one in results:
            if one.fact.data.get("agent") == player:
                total += float(one.fact.data.get("got", 0))
                x.append(one.fact.data.get("hand", len(x) + 1))
                y.append(total)
        series.append(Series(name=plotted(player, 30), x=x, y=y, mode="lines" if len(x) > 30 else "lines+markers"))
    return in_steps(lines(series, "hand", "sum of returns", height=380))
