"""The double auction in words, short and plain enough for a very small model."""

from __future__ import annotations

from collections.abc import Mapping

from sim.types import JSON

RULES = {
    "buyer": (
        "You are a buyer in a market. You gain your value minus the price for each unit that you buy. "
        "A bid is an offer to buy one unit. It trades at once if it is at least the best ask, at that ask's price; "
        "otherwise it waits for a seller. Your new bid replaces your old one. Buy cheap, but buy in time."
    ),
    "seller": (
        "You are a seller in a market. You gain the price minus your cost for each unit that you sell. "
        "An ask is an offer to sell one unit. It trades at once if it is at most the best bid, at that bid's price; "
        "otherwise it waits for a buyer. Your new ask replaces your old one. Sell dear, but sell in time."
    ),
}
"""Rules by role: the same text at every turn."""


def describe(view: Mapping[str, JSON]) -> str:
    """Everything a trader sees now."""
    lines = [news] if (news := recap(view)) else []
    for good, quotes in view["goods"].items():
        bid, ask, last = (_or_none(quotes[key]) for key in ("best_bid", "best_ask", "last"))
        lines.append(f"{good}: best bid {bid}, best ask {ask}, last price {last}.")
        lines.append(_own(view["role"], good, quotes))
    lines.append(f"Cash {view['cash']}. Period {view['period']} of {view['periods']}, {view['left']}% of it left.")
    return "\n".join(lines)


def _own(role: str, good: str, quotes: Mapping[str, JSON]) -> str:
    """The trader's own unit, limit and standing order."""
    buying = role == "buyer"
    if not quotes["limits"]:
        return f"You {'want no more' if buying else 'have no more'} {good}."
    text = f"Your next {good} {'is worth' if buying else 'costs you'} {quotes['limits'][0]}."
    if quotes["order"] is not None:
        text += f" Your {'bid' if buying else 'ask'} stands at {quotes['order']}."
    if quotes["lowest"] is None:
        return f"{text} You cannot order now."
    return f"{text} You may {'bid' if buying else 'ask'} {quotes['lowest']} to {quotes['highest']}."


def recap(view: Mapping[str, JSON]) -> str:
    """What is new since the trader's last turn."""
    lines = [f"News: {text}" for text in view["messages"]]
    several = len(view["goods"]) > 1
    events = ", ".join(_event(event, several) for event in view["tape"])
    return "\n".join([*lines, f"Since your last turn: {events}."] if events else lines)


def _event(event: Mapping[str, JSON], several: bool) -> str:
    if event["event"] == "period":
        return f"period {event['period']} began"
    good = f"{event['good']} " if several else ""
    return f"{'your ' if event['mine'] else ''}{good}{event['event']} {event['price']}"


def _or_none(price: int | None) -> str:
    return "none" if price is None else str(price)
