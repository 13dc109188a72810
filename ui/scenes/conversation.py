"""One asks, another answers: conversations about what may be told, with what was given away."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from sim.types import RecordedFact
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import Html, hint, show, tag
from ui.parts import choice, table

NAME = "Conversations"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"ask"}), frozenset({"answer"}))
READ = 4_000
"""Last facts that conversations are read from."""


def draw(now: Moment) -> None:
    """One pair's conversation, chosen among all."""
    pairs: dict[int, list[RecordedFact]] = {}
    for fact in reversed(now.last(READ, "pair", "ask", "answer", "verification", "outcome")):
        pairs.setdefault(int(fact.fact.data.get("pair", 0)), []).append(fact)
    if not pairs:
        hint("Nobody has asked anything yet.")
        return
    latest = max(pairs, key=lambda number: pairs[number][-1].seq)
    order = [latest, *(number for number in sorted(pairs) if number != latest)]
    rows = {number: _row(number, facts) for number, facts in sorted(pairs.items())}
    left, right = st.columns([2, 3])
    with left:
        number = choice(
            "Pair", order, "pair", lambda one: f"pair {one}: {rows[one]['holder']} and {rows[one]['recipient']}"
        )
        said = [_said(now, one, str(rows[number]["holder"])) for one in pairs[number] if one.fact.kind != "pair"]
        show(*(said or [tag("div", "Nobody has asked anything yet.", cls="dim")]))
    with right:
        table(list(rows.values()), "conversations")


def _row(number: int, facts: Sequence[RecordedFact]) -> dict[str, object]:
    known: dict[str, object] = {}
    for one in facts:
        known |= {key: one.fact.data[key] for key in ("holder", "recipient") if key in one.fact.data}
    end = next((one.fact.data for one in facts if one.fact.kind == "outcome"), {})
    return {
        "pair": number,
        "holder": known.get("holder", ""),
        "recipient": known.get("recipient", ""),
        "asked": sum(one.fact.kind == "ask" for one in facts),
        "recipient is": end.get("intent", "not known yet"),
        "told": ", ".join(map(str, end.get("told", ()))),
        "leaked": ", ".join(map(str, end.get("leaked", ()))),
        "ended": end.get("reason", ""),
    }


def _said(now: Moment, one: RecordedFact, holder: str) -> Html:
    data = one.fact.data
    match one.fact.kind:
        case "ask":
            words = f"{data.get('manner', 'ask')}s for: {data.get('item', '')}\n{data.get('text', '')}".strip()
            return bubble(now, one, words, right=False)
        case "answer":
            told = f": {data['value']}" if "value" in data else ""
            words = f"{data.get('answer', '')} {data.get('item', '')}{told}"
            return bubble(now, one, words, right=one.fact.actor == holder)
        case "verification":
            return notice(now, one, "verified" if data.get("verified") else "not verified")
        case _:
            leaked = ", ".join(map(str, data.get("leaked", ())))
            return notice(
                now, one, f"leaked: {leaked}" if leaked else f"over: {data.get('reason', '')}", "bad" * bool(leaked)
            )
