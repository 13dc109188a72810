"""A limit order book for one good: price–time priority, one order of one unit per trader."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.types import AgentId

Side: TypeAlias = Literal["bid", "ask"]
OTHER: dict[Side, Side] = {"bid": "ask", "ask": "bid"}
"""The side that an order trades with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An offer to buy or sell one unit."""

    id: int
    """Grows with time, so that it also decides between equal prices."""
    trader: AgentId
    side: Side
    price: int
    expires: int | None = None
    """Tick from which it no longer stands; None: it stays."""


def rank(order: Order) -> tuple[int, int]:
    """Sort key within a side: the better price first, then the earlier order."""
    return (-order.price if order.side == "bid" else order.price, order.id)


class OrderBook:
    """Standing orders of one good. Never crossed, because `match` is asked before `rest`."""

    __slots__ = ("_of", "_sides")

    def __init__(self) -> None:
        self._sides: dict[Side, list[Order]] = {"bid": [], "ask": []}
        self._of: dict[AgentId, Order] = {}

    def __iter__(self) -> Iterator[Order]:
        """Bids, then asks, each by priority."""
        yield from self._sides["bid"]
        yield from self._sides["ask"]

    def best(self, side: Side) -> Order | None:
        """The order of this side that trades first."""
        orders = self._sides[side]
        return orders[0] if orders else None

    def of(self, trader: AgentId) -> Order | None:
        """The trader's standing order."""
        return self._of.get(trader)

    def match(self, side: Side, price: int) -> Order | None:
        """The standing order that a new order of this side and price trades with."""
        best = self.best(OTHER[side])
        if best is None or (best.price > price if side == "bid" else best.price < price):
            return None
        return best

    def rest(self, order: Order) -> None:
        """Let an order stand that matches nothing and whose trader has none standing."""
        insort(self._sides[order.side], order, key=rank)
        self._of[order.trader] = order

    def withdraw(self, trader: AgentId) -> Order | None:
        """Take out the trader's order, if any."""
        order = self._of.pop(trader, None)
        if order is not None:
            orders = self._sides[order.side]
            del orders[bisect_left(orders, rank(order), key=rank)]
        return order

    def clear(self) -> None:
        """Take out every order."""
        for orders in self._sides.values():
            orders.clear()
        self._of.clear()
