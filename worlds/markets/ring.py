"""Sellers who fix a price: the planted positive of screens for rigged bids."""

from __future__ import annotations

from sim.streams import Streams
from sim.types import Action, Member, Mind, Turn
from worlds.markets import acts
from worlds.markets.traders import order, tradable


class Ring:
    """Asks the agreed price, or its cost where that is higher, give or take `cover` of it; a buyer bids likewise."""

    def __init__(self, member: Member, price: float, cover: float = 0.02) -> None:
        self.state: object = None
        self._price, self._cover = price, cover

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Quote it for the first good that can be traded."""
        yield from ()
        goods = tradable(turn.view)
        if not goods:
            return Action(answer=acts.wait())
        quotes = turn.view["goods"][goods[0]]
        wanted = self._price * (1 + self._cover * (2 * streams.draw("cover") - 1))
        limit = quotes["limits"][0]
        bearable = min(wanted, limit) if turn.view["role"] == "buyer" else max(wanted, limit)
        price = min(max(round(bearable), quotes["lowest"]), quotes["highest"])
        return Action(answer=order(turn.view, goods[0], price))
