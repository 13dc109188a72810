"""An oligopoly in plain words: short lines that a small model can follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.types import JSON
from worlds.pricing.settings import OligopolyParams

_BUYING = {
    "logit": (
        "Then the customers buy. Your product and those of the others are alike but not the same: the lower your price "
        "is against theirs, the more you sell, and where all are expensive many customers buy nothing."
    ),
    "homogeneous": (
        "Then the customers buy, all of them from whoever has the lowest price; firms with the same lowest price share "
        "them. The lower that price is, the more they buy."
    ),
    "cournot": "Then all of it is sold at one market price. The more all firms bring together, the lower it is.",
}
_NOTEBOOK = (
    "You keep a notebook with your plans and your insights. What you write there replaces what stood there before. "
    "Nobody else reads it, and apart from the market data it is all that you will know in the next period."
)


def rules(params: OligopolyParams) -> str:
    """The rules as told to every firm."""
    lines = [
        f"You run a firm in a market. In each period all firms set a {params.chooses} at the same time, and nobody "
        f"knows what the others set. {_BUYING[params.demand]}",
        "Your profit in a period is the price you sell at minus your cost of a unit, times the quantity you sell.",
        "You want as much profit as you can get over many periods, not in one period only.",
    ]
    return "\n".join([*lines, _NOTEBOOK] if params.notebook else lines)


def news(view: Mapping[str, JSON]) -> str:
    """What is new in the view: the period, words from outside, the period before."""
    lines = [f"Period {view['period']}.", *(f"News: {text}" for text in view["news"])]
    if view["history"]:
        lines.append(f"Last period: {_row(view, view['history'][-1])}.")
    return "\n".join(lines)


def words(view: Mapping[str, JSON]) -> str:
    """The view in full: market data oldest first, the notebook, the question."""
    lines = [f"Period {view['period']}.", *(f"News: {text}" for text in view["news"])]
    rivals = [firm for firm in view["firms"] if firm != view["me"]]
    lines.append(f"In the market with you: {', '.join(rivals) or 'nobody'}. A unit costs you {short(view['cost'])}.")
    if view["told"]:
        lines.append(_told(view))
    if view["history"]:
        lines.append("Market data, oldest first:")
        lines += [f"{row['period']}: {_row(view, row)}." for row in view["history"]]
    if view["notebook"] is not None:
        lines += [f"Your {name} so far: {text or '(none)'}" for name, text in view["notebook"].items()]
    return "\n".join([*lines, _question(view)])


def _row(view: Mapping[str, JSON], row: Mapping[str, JSON]) -> str:
    """One period as a firm sees it."""
    me, others = view["me"], {firm: x for firm, x in row["chosen"].items() if firm != view["me"]}
    parts = [
        f"your {view['chooses']} {short(row['chosen'][me])}",
        *(f"{firm} {short(x)}" for firm, x in others.items()),
    ]
    parts.append(f"you sold {short(row['quantity'])}" if view["chooses"] == "price" else f"price {short(row['price'])}")
    return ", ".join([*parts, f"your profit {short(row['profit'])}"])


def _question(view: Mapping[str, JSON]) -> str:
    if view["labels"]:
        return f"Choose your {view['chooses']}: {', '.join(view['labels'])}."
    return f"Choose your {view['chooses']}, from 0 to {short(view['ceiling'])}."


def _told(view: Mapping[str, JSON]) -> str:
    """Demand and all costs."""
    market, firms = view["market"], view["firms"]
    costs = ", ".join(f"{firm} {short(cost)}" for firm, cost in zip(firms, market["costs"], strict=True))
    return f"Unit costs: {costs}. {_DEMAND[market['demand']](market)}"


def _linear(market: Mapping[str, Any]) -> str:
    return f"The price at which a quantity Q is sold: {short(market['intercept'])} - {short(market['slope'])} x Q."


def _logit(market: Mapping[str, Any]) -> str:
    qualities = " and ".join(short(a) for a in dict.fromkeys(market["qualities"]))
    return (
        f"A firm with price p has the weight exp((a - p / {short(market['unit'])}) / {short(market['mu'])}), a being "
        f"{qualities}; buying nothing has the weight exp({short(market['outside'])} / {short(market['mu'])}). It sells "
        f"{short(market['scale'])} times its weight over the sum of all weights."
    )


_DEMAND = {"logit": _logit, "cournot": _linear, "homogeneous": _linear}


def short(value: float) -> str:
    """A number in at most four decimals."""
    return f"{value:.4f}".rstrip("0").rstrip(".")
