"""A market: the order book now, prices so far, the latest trades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from sim.types import FactId, RecordedFact
from ui.charts import Series, lines
from ui.data import Moment, axis
from ui.markup import Html, clipped, hint, joined, plotted, show, tag
from ui.parts import choice, figure, table

NAME = "Order book"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"bid", "ask"}), frozenset({"bid", "trade", "period"}))
READ = 6_000
"""Last facts that the book is built from, at most one period's."""
DRAWN = 1_500
"""Last shouts and trades that are drawn."""
RUNGS = 10
"""Prices of each side of the ladder."""


def draw(now: Moment) -> None:
    """Book, prices and trades of one good."""
    facts = list(reversed(now.last(READ)))
    goods = list(dict.fromkeys(str(one.fact.data["good"]) for one in facts if "good" in one.fact.data))
    if not goods:
        hint("Nobody has made an offer yet.")
        return
    good = choice("Good", goods, "good") if len(goods) > 1 else goods[0]
    facts = [one for one in facts if one.fact.data.get("good", good) == good]
    period = next((one.fact.data["period"] for one in reversed(facts) if "period" in one.fact.data), None)
    bids, asks = standing(facts, bool(now.run.params.get("clear_after_trade")))
    trades = [one for one in facts if one.fact.kind == "trade"]
    left, right = st.columns([3, 2])
    with left:
        figure(_prices(now, facts[-DRAWN:]), "prices", "Bids, asks and trades over time")
    with right:
        show(tag("h2", f"Book of {clipped(good, 30)}" + (f", period {period}" if period is not None else "")))
        show(ladder(bids, asks), _spread(bids, asks))
    st.caption(f"The last {min(len(trades), 12)} trades")
    table([_trade(now, one) for one in trades[:-13:-1]], "trades")


def standing(facts: Sequence[RecordedFact], clears: bool = False) -> tuple[list[RecordedFact], list[RecordedFact]]:
    """Bids, the highest first, and asks, the lowest first, that stand after these facts in order.

    An order leaves by a trade, cancellation, expiry or another order that answers it, and at a period's end.
    """
    book: dict[FactId, RecordedFact] = {}
    for one in facts:
        for answered in one.fact.answers:
            book.pop(answered, None)
        if one.fact.kind == "period" or (clears and one.fact.kind == "trade"):
            book.clear()
        if one.fact.kind in ("bid", "ask"):
            book[one.fact.id] = one
    bids = sorted((one for one in book.values() if one.fact.kind == "bid"), key=lambda one: -one.fact.data["price"])
    asks = sorted((one for one in book.values() if one.fact.kind == "ask"), key=lambda one: one.fact.data["price"])
    return bids, asks


def ladder(bids: Sequence[RecordedFact], asks: Sequence[RecordedFact]) -> Html:
    """Prices with who stands there, asks above bids."""
    rungs = [
        *((one, "ask") for one in _by_price(asks)[:RUNGS][::-1]),
        *((one, "bid") for one in _by_price(bids)[:RUNGS]),
    ]
    if not rungs:
        return tag("div", "The book is empty.", cls="dim")
    most = max(len(names) for (_, names), _ in rungs)
    rows = [
        tag(
            "tr",
            tag("td", side),
            tag("td", f"{price:g}", cls="n"),
            tag("td", str(len(names)), cls=f"n {side}bar", style=f"--w:{100 * len(names) // most}%"),
            tag("td", clipped(", ".join(names), 60)),
        )
        for (price, names), side in rungs
    ]
    head = tag("tr", tag("th", "side"), tag("th", "price", cls="n"), tag("th", "orders", cls="n"), tag("th", "of"))
    return tag("table", tag("thead", head), tag("tbody", *rows))


def _by_price(side: Sequence[RecordedFact]) -> list[tuple[float, list[str]]]:
    found: dict[float, list[str]] = {}
    for one in side:
        found.setdefault(one.fact.data["price"], []).append(one.fact.actor)
    return list(found.items())


def _spread(bids: Sequence[RecordedFact], asks: Sequence[RecordedFact]) -> str:
    if not bids or not asks:
        return joined()
    return tag("div", f"spread {asks[0].fact.data['price'] - bids[0].fact.data['price']:g}", cls="dim")


def _prices(now: Moment, facts: Sequence[RecordedFact]) -> object:
    unit, title = axis((facts[-1].tick if facts else 0) * now.head.tick_ms)
    per_tick = now.head.tick_ms / unit
    series = []
    for kind, words in (("bid", "bids"), ("ask", "asks"), ("trade", "trades")):
        some = [one for one in facts if one.fact.kind == kind]
        series.append(
            Series(
                name=words,
                x=[one.tick * per_tick for one in some],
                y=[one.fact.data["price"] for one in some],
                text=[f"{_who(one)}: {kind} {one.fact.data['price']:g} at {now.time(one.tick)}" for one in some],
                mode="lines+markers" if kind == "trade" else "markers",
                faint=kind != "trade",
            )
        )
    made = lines(series, title, "price", height=400)
    for one in facts:
        if one.fact.kind == "period":
            made.add_vline(x=one.tick * per_tick, line={"width": 1, "dash": "dot", "color": "gray"})
    return made


def _who(one: RecordedFact) -> str:
    data: Mapping[str, object] = one.fact.data
    return plotted(f"{data['buyer']} from {data['seller']}" if "buyer" in data else one.fact.actor)


def _trade(now: Moment, one: RecordedFact) -> dict[str, object]:
    data = one.fact.data
    return {"at": now.time(one.tick), **{key: data.get(key) for key in ("price", "buyer", "seller", "by", "period")}}
