"""Baseline traders of the double auction: zero intelligence (Gode and Sunder 1993) and ZIP (Cliff 1997)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.markets import acts


def tradable(view: Mapping[str, JSON]) -> list[str]:
    """Goods for which the trader may place an order now."""
    return [good for good, quotes in view["goods"].items() if quotes["lowest"] is not None]


def order(view: Mapping[str, JSON], good: str, price: int) -> JSON:
    """The answer that places an order."""
    return {"act": acts.name("bid" if view["role"] == "buyer" else "ask", good, view["goods"]), "price": price}


class ZIU:
    """Zero intelligence, unconstrained: any price of the grid that the rules allow."""

    def __init__(self, member: Member) -> None:
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """A uniform price for a good drawn by lot."""
        yield from ()
        goods = tradable(turn.view)
        if not goods:
            return Action(answer=acts.wait())
        good = streams.choice(goods, "good")
        quotes = turn.view["goods"][good]
        low, high = self.span(turn.view, quotes)
        if low > high:
            return Action(answer=acts.wait())
        return Action(answer=order(turn.view, good, streams.integer(low, high, "price")))

    def span(self, view: Mapping[str, JSON], quotes: Mapping[str, JSON]) -> tuple[int, int]:
        """Prices among which it draws."""
        return quotes["lowest"], quotes["highest"]


class ZIC(ZIU):
    """Zero intelligence, constrained: any price at which the next unit is traded without a loss."""

    def span(self, view: Mapping[str, JSON], quotes: Mapping[str, JSON]) -> tuple[int, int]:
        """Prices within the own value or cost."""
        limit = quotes["limits"][0]
        if view["role"] == "buyer":
            return quotes["lowest"], min(quotes["highest"], limit)
        return max(quotes["lowest"], limit), quotes["highest"]


@dataclass(frozen=True, slots=True)
class Margin:
    """How far from its limit a ZIP trader prices one good."""

    markup: float
    """Price = limit × (1 + markup): at least 0 for a seller, from -1 to 0 for a buyer."""
    change: float = 0.0
    """Momentum: the smoothed last change of the price."""
    units: int = 0
    """Units it could still trade when it last looked."""


@dataclass(frozen=True, slots=True)
class Learner:
    """State of a ZIP trader."""

    beta: float
    """Learning rate, U[0.1, 0.5]."""
    gamma: float
    """Momentum coefficient, U[0, 0.1]."""
    margins: Mapping[str, Margin]
    """By good; never changed in place."""


class ZIP:
    """Zero intelligence plus: adapts its profit margin to every shout by the Widrow–Hoff rule.

    Works through all shouts since its last turn, so it learns from each as if it had updated at once.
    Between them the limit price is taken as that of its next unit now. A target lies up to 5% plus
    `absolute` (a share of the limit) away from the shout's price.
    """

    def __init__(self, member: Member, absolute: float = 0.05) -> None:
        self.state: object = None
        self._absolute = absolute

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Learn from what was shouted, then quote the own price."""
        yield from ()
        view = turn.view
        rng = streams.generator("zip")
        learner = self.state if isinstance(self.state, Learner) else _newcomer(view, rng)
        margins = {good: self._learn(view, good, learner, rng) for good in view["goods"]}
        state = Learner(learner.beta, learner.gamma, margins)
        goods = tradable(view)
        if not goods:
            return Action(answer=acts.wait(), state=state)
        good = rng.choice(goods)
        quotes = view["goods"][good]
        price = round(_limit(quotes) * (1 + margins[good].markup))
        price = min(max(price, quotes["lowest"]), quotes["highest"])
        return Action(answer=order(view, good, price), state=state)

    def _learn(self, view: Mapping[str, JSON], good: str, learner: Learner, rng: Random) -> Margin:
        """The margin after all events on the tape."""
        margin, quotes = learner.margins[good], view["goods"][good]
        if not quotes["limits"]:
            return Margin(margin.markup, margin.change)
        limit, buying = _limit(quotes), view["role"] == "buyer"
        markup, change, units = margin.markup, margin.change, margin.units
        for event in view["tape"]:
            if event["event"] == "period" or event["good"] != good:
                continue
            price = limit * (1 + markup)
            active = units > 0 or event["period"] == view["period"]  # who has a unit now had one all this period
            raises = wish(event, round(price), buying=buying, active=active)
            if raises is not None:
                target = self._target(event["price"], limit, up=raises != buying, rng=rng)
                change = learner.gamma * change + (1 - learner.gamma) * learner.beta * (target - price)
                markup = (price + change) / limit - 1
                markup = min(0.0, max(-1.0, markup)) if buying else max(0.0, markup)
            if event["event"] == "trade" and event["mine"]:
                units -= 1
        return Margin(markup, change, len(quotes["limits"]))

    def _target(self, price: int, limit: int, *, up: bool, rng: Random) -> float:
        """A price a little above or below the shout's."""
        sign = 1 if up else -1
        return (1 + sign * rng.uniform(0, 0.05)) * price + sign * rng.uniform(0, self._absolute * limit)


def wish(event: Mapping[str, JSON], price: int, *, buying: bool, active: bool) -> bool | None:
    """Whether a shout makes a trader at this price want more profit (True), less (False) or no change (None)."""
    beaten = price <= event["price"] if buying else price >= event["price"]
    generous = price >= event["price"] if buying else price <= event["price"]
    traded = event["event"] == "trade"
    if traded and generous:
        return True
    shout = event["by"] if traded else event["event"]
    own_side = "bid" if buying else "ask"
    lost = shout != own_side if traded else shout == own_side  # the deal went to a rival, or a rival offers more
    return False if active and beaten and lost else None


def _limit(quotes: Mapping[str, JSON]) -> int:
    """Limit of the next unit, at least 1 so that a margin can be reckoned from it."""
    return max(1, int(quotes["limits"][0]))


def _newcomer(view: Mapping[str, JSON], rng: Random) -> Learner:
    """Constants and start margins of one trader."""
    sign = -1 if view["role"] == "buyer" else 1
    beta, gamma = rng.uniform(0.1, 0.5), rng.uniform(0, 0.1)
    margins = {
        good: Margin(sign * rng.uniform(0.05, 0.35), units=len(quotes["limits"]))
        for good, quotes in view["goods"].items()
    }
    return Learner(beta, gamma, margins)
