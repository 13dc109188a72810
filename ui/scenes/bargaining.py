"""Bargaining: the ladder of offers of a pair, what was said with them, and how all pairs stand."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from sim.types import RecordedFact
from ui.charts import Series, in_steps, lines
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import Html, clipped, hint, plotted, show, tag
from ui.parts import choice, figure, table

NAME = "Offers"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"offer"}), frozenset({"pair"}))
READ = 4_000
"""Last facts that the pairs are read from."""
ENDS = {"deal": "deal", "no_deal": "no deal"}


def draw(now: Moment) -> None:
    """One pair's offers, chosen among all."""
    pairs = _pairs(now)
    if not pairs:
        hint("No pair has met yet.")
        return
    rows = [_row(number, facts) for number, facts in sorted(pairs.items())]
    latest = max(pairs, key=lambda number: pairs[number][-1].seq)
    order = [latest, *(number for number in sorted(pairs) if number != latest)]
    names = {row["pair"]: f"pair {row['pair']}: {row['between']} ({row['state']})" for row in rows}
    left, right = st.columns([3, 2])
    with right:
        number = choice("Pair", order, "pair", lambda one: names[one])
        talk = [_said(now, one, pairs[number]) for one in pairs[number][-20:] if one.fact.kind != "pair"]
        show(*(talk or [tag("div", "Nobody has made an offer yet.", cls="dim")]))
    with left:
        figure(_ladder(now, pairs[number]), "offers", "Offers of the pair, round by round")
    table(rows, "pairs")


def _pairs(now: Moment) -> dict[int, list[RecordedFact]]:
    found: dict[int, list[RecordedFact]] = {}
    for fact in reversed(now.last(READ, "pair", "offer", "accept", "reject", "deal", "no_deal")):
        found.setdefault(int(fact.fact.data.get("pair", 0)), []).append(fact)
    return found


def _agents(facts: Sequence[RecordedFact]) -> list[str]:
    named = next((one.fact.data["agents"] for one in facts if "agents" in one.fact.data), None)
    return [str(one) for one in named or dict.fromkeys(one.fact.actor for one in facts if one.fact.actor)]


def _row(number: int, facts: Sequence[RecordedFact]) -> dict[str, object]:
    offers = [one for one in facts if one.fact.kind == "offer"]
    end = next((one for one in facts if one.fact.kind in ENDS), None)
    shares = end.fact.data.get("shares", {}) if end else {}
    return {
        "pair": number,
        "between": " and ".join(_agents(facts)),
        "state": ENDS[end.fact.kind] if end else "open",
        "offers": len(offers),
        "split": ", ".join(f"{agent} {share}" for agent, share in shares.items()),
    }


def _ladder(now: Moment, facts: Sequence[RecordedFact]) -> object:
    """What the first of the pair would keep by each offer, and by the deal."""
    agents = _agents(facts)
    first = agents[0] if agents else ""
    series = []
    for agent in agents:
        mine = [one for one in facts if one.fact.kind == "offer" and one.fact.actor == agent]
        keeps = [one.fact.data["gain" if agent == first else "rest"] for one in mine]
        words = [f"{plotted(agent)} keeps {one.fact.data['gain']} at {now.time(one.tick)}" for one in mine]
        x = [one.fact.data["round"] for one in mine]
        series.append(Series(name=f"offered by {plotted(agent)}", x=x, y=keeps, text=words))
    for one in facts:
        if one.fact.kind == "deal" and first in one.fact.data["shares"]:
            at, share = one.fact.data["round"], one.fact.data["shares"][first]
            said = f"deal at {now.time(one.tick)}: {plotted(first)} gets {share}"
            series.append(Series(name="deal", x=[at], y=[share], text=[said], mode="markers"))
    made = lines(series, "round", f"units for {plotted(first)}", height=380)
    pie = now.run.params.get("pie")
    if isinstance(pie, int | float):
        made.update_yaxes(range=[-0.05 * pie, 1.05 * pie])
    return in_steps(made)


def _said(now: Moment, one: RecordedFact, facts: Sequence[RecordedFact]) -> Html:
    fact, right = one.fact, one.fact.actor != (_agents(facts) or [""])[0]
    match fact.kind:
        case "offer":
            offer = f"I keep {fact.data['gain']}, you get {fact.data['rest']}."
            return bubble(
                now, one, f"{offer}\n{fact.data.get('text', '')}".strip(), right, f"· round {fact.data['round']}"
            )
        case "accept" | "reject":
            return bubble(now, one, f"{fact.kind}s", right)
        case "deal":
            split = ", ".join(f"{clipped(agent, 30)} {share}" for agent, share in fact.data["shares"].items())
            return notice(now, one, f"deal: {split}", "good")
        case _:
            return notice(now, one, "no deal", "bad")
