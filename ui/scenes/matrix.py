"""A game in normal form: a match round by round, who met whom, and how often each joint move came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from sim.types import RecordedFact
from ui.charts import Series, heat, in_steps, lines
from ui.data import Moment
from ui.facts import bubble, notice
from ui.markup import clipped, hint, plotted, show
from ui.parts import choice, figure, table

NAME = "Matches"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"round"}), frozenset({"match"}))
READ = 6_000
"""Last facts that matches are read from."""
MET = 24
"""Most players of a picture of who met whom."""


def draw(now: Moment) -> None:
    """One match, then all of them."""
    matches = _matches(now)
    if not matches:
        hint("No match has begun yet.")
        return
    latest = max(matches, key=lambda number: matches[number][-1].seq)
    order = [latest, *(number for number in sorted(matches) if number != latest)]
    names = {number: " against ".join(_players(facts)) for number, facts in matches.items()}
    left, right = st.columns([3, 2])
    with right:
        number = choice("Match", order, "match", lambda one: f"match {one}: {names[one]}")
        _talk(now, matches[number])
    with left:
        facts = matches[number]
        figure(_payoffs(facts), "payoffs", "Sum of payoffs by player, round by round")
        _joint(facts)
    if len(matches) > 1:
        _met(matches)


def _matches(now: Moment) -> dict[int, list[RecordedFact]]:
    found: dict[int, list[RecordedFact]] = {}
    for fact in reversed(now.last(READ, "match", "round", "match_end", "message")):
        if "match" in fact.fact.data:
            found.setdefault(int(fact.fact.data["match"]), []).append(fact)
    return found


def _players(facts: Sequence[RecordedFact]) -> list[str]:
    for one in facts:
        if "players" in one.fact.data or "moves" in one.fact.data:
            return [str(each) for each in one.fact.data.get("players") or one.fact.data["moves"]]
    return []


def _rounds(facts: Sequence[RecordedFact]) -> list[RecordedFact]:
    return [one for one in facts if one.fact.kind == "round"]


def _payoffs(facts: Sequence[RecordedFact]) -> object:
    rounds, series = _rounds(facts), []
    for player in _players(facts):
        total, y = 0.0, []
        for one in rounds:
            total += float(one.fact.data["payoffs"].get(player, 0))
            y.append(total)
        x = [one.fact.data["round"] for one in rounds]
        text = [
            f"{plotted(player)}, round {at}: {plotted(str(one.fact.data['moves'].get(player, '')))}, in all {sum_:g}"
            for at, one, sum_ in zip(x, rounds, y, strict=True)
        ]
        mode = "lines" if len(x) > 40 else "lines+markers"
        series.append(Series(name=plotted(player, 30), x=x, y=y, text=text, mode=mode))
    return in_steps(lines(series, "round", "sum of payoffs", height=330))


def _joint(facts: Sequence[RecordedFact]) -> None:
    """How often each joint move came, of a match of two."""
    players = _players(facts)
    counts = Counter(tuple(str(one.fact.data["moves"].get(each)) for each in players) for one in _rounds(facts))
    if not counts:
        return
    rows = [{**dict(zip(players, moves, strict=True)), "rounds": count} for moves, count in counts.most_common()]
    table(rows, "joint-moves")


def _talk(now: Moment, facts: Sequence[RecordedFact]) -> None:
    players = _players(facts)
    pieces = []
    for one in facts[-16:]:
        if one.fact.kind == "message":
            right = len(players) > 1 and one.fact.actor != players[0]
            pieces.append(bubble(now, one, str(one.fact.data.get("text", "")), right))
        elif one.fact.kind == "round":
            moves = ", ".join(f"{clipped(each, 24)}: {move}" for each, move in one.fact.data["moves"].items())
            pieces.append(notice(now, one, f"round {one.fact.data['round']}", note=f"· {moves}"))
        elif one.fact.kind == "match_end":
            pieces.append(notice(now, one, "match over", "good"))
    show(*pieces)


def _met(matches: dict[int, list[RecordedFact]]) -> None:
    """Mean payoff of each player against each other one, where few enough have met."""
    sums: dict[tuple[str, str], list[float]] = {}
    for facts in matches.values():
        for one in _rounds(facts):
            payoffs = one.fact.data["payoffs"]
            for player, payoff in payoffs.items():
                for other in payoffs:
                    if other != player:
                        sums.setdefault((player, other), []).append(float(payoff))
    names = sorted({name for pair in sums for name in pair})
    if not 2 < len(names) <= MET:
        return
    means = [
        [sum(found) / len(found) if (found := sums.get((one, other))) else None for other in names] for one in names
    ]
    labels = [plotted(name, 24) for name in names]
    st.caption("Mean payoff a round of the player in the row against the one in the column")
    figure(heat(labels, labels, means, "points", "player", "against"), "met", "Mean payoffs between players")
