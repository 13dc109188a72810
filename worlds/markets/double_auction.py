"""Continuous double auction: buyers and sellers post and take orders whenever they have made up their mind.

Left out: orders of more than one unit, market orders, traders who both buy and sell, short sales.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import ClassVar

from msgspec import to_builtins
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Fact,
    Join,
    Leave,
    Metric,
    Outcome,
    Result,
    Say,
    Seat,
    Set,
    Turn,
    Wake,
)
from worlds.happened import Happened
from worlds.markets import acts, outcomes, wording
from worlds.markets.accounts import Entry, Trader
from worlds.markets.order_book import Order, OrderBook, Side
from worlds.markets.rules import Rules
from worlds.markets.schedules import limits
from worlds.markets.traders import ZIC, ZIP, ZIU

__all__ = ["ZIC", "ZIP", "ZIU", "DoubleAuction"]


class DoubleAuction:
    """Buyers and sellers trade single units of one or several goods in trading periods."""

    Params: ClassVar[type[BaseModel]] = Rules
    metrics: ClassVar[tuple[Metric, ...]] = outcomes.OUTCOMES
    changeable: ClassVar[frozenset[str]] = frozenset(
        {"budget_constraint", "clear_after_trade", "order_life", "interrupt_on_trade", "pause", "tape"}
    )

    def __init__(self, params: Rules) -> None:
        self._given = params
        self._wipe()

    def _wipe(self) -> None:
        """An empty market under the rules it was given."""
        params = self._params = self._given
        self._books = {good: OrderBook() for good in params.goods}
        self._last: dict[str, Fact | None] = dict.fromkeys(params.goods)
        self._traders: dict[AgentId, Trader] = {}
        self._expiries: list[tuple[int, int, str, AgentId]] = []
        self._tape: deque[Entry] = deque(maxlen=params.tape)
        self._messages: list[Fact] = []
        self._facts = 0
        self._period = 0
        self._starts = 0
        self._open = True

    # --- rules ------------------------------------------------------------------------------------

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Seat everybody and open the first period."""
        self._wipe()
        self._streams = streams
        happened = Happened()
        for seat in seats:
            self._seat(seat)
        self._open_period(0, happened)
        return happened.outcome()

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Expire orders, end the period if it is over, then apply the actions in an order drawn by lot."""
        happened = Happened()
        self._expire(now, happened)
        if self._open and now >= self._starts + self._params.period:
            self._end_period(now, happened)
        happened.results = [APPLIED] * len(actions)
        for index in self._lots(actions):
            happened.results[index] = self._apply(now, actions[index], happened)
        for action in actions:
            self._look_again(now, action, happened)
        return happened.outcome()

    def change(self, now: int, change: Change) -> Outcome:
        """Interventions: a message, a new rule, a trader who comes or goes."""
        happened = Happened()
        match change:
            case Say(text=text, to=to):
                self._messages.append(self._announce(happened, "message", audience=to, text=text))
            case Set(key=key, value=value):
                self._set(key, value)
                self._announce(happened, "rule", key=key, value=value)
            case Join(seat=seat):
                trader = self._seat(seat)
                self._announce(happened, "join", seat.agent, role=seat.role)
                trader.read = self._facts
                if self._open:
                    self._wake(happened, trader, now)
            case Leave(agent=agent):
                withdrawn = [order.id for book in self._books.values() if (order := book.withdraw(agent))]
                self._announce(happened, "leave", agent, answers=withdrawn)
                del self._traders[agent]
        return happened.outcome()

    def _seat(self, seat: Seat) -> Trader:
        try:
            own = limits(seat.role, seat.private, self._params.goods)
        except ValueError as error:
            raise ValueError(f"{seat.agent}: {error}") from None
        purse: JSON = seat.private.get("cash", self._params.cash)
        if isinstance(purse, bool) or not isinstance(purse, int | float) or purse < 0:
            raise ValueError(f"{seat.agent}: the private value cash is a number of at least 0, not {purse!r}")
        cash = round(purse)
        side: Side = "bid" if seat.role == "buyer" else "ask"
        trader = Trader(seat.agent, side, own, cash, cash, dict.fromkeys(self._params.goods, 0))
        self._traders[seat.agent] = trader
        return trader

    def _set(self, key: str, value: JSON) -> None:
        if key not in self.changeable:
            raise ValueError(f"{key!r} cannot be changed while running; can be: {sorted(self.changeable)}")
        self._params = Rules.model_validate({**self._params.model_dump(), key: value})
        self._tape = deque(self._tape, maxlen=self._params.tape)

    def _open_period(self, now: int, happened: Happened) -> None:
        self._period += 1
        self._starts = now
        ends = now + self._params.period
        happened.timers.append(ends)
        self._announce(happened, "period", ends=ends)
        for trader in self._traders.values():
            trader.endow()
            self._wake(happened, trader, now)

    def _end_period(self, now: int, happened: Happened) -> None:
        for book in self._books.values():
            book.clear()
        if self._period < self._params.periods:
            self._open_period(now, happened)
        else:
            self._open = False
            happened.ended.update(dict.fromkeys(self._traders, "terminated"))

    def _expire(self, now: int, happened: Happened) -> None:
        while self._expiries and self._expiries[0][0] <= now:
            _, order_id, good, agent = heappop(self._expiries)
            order = self._books[good].of(agent)
            if order is not None and order.id == order_id:
                self._books[good].withdraw(agent)
                self._announce(happened, "expire", agent, answers=[order_id], good=good)

    def _lots(self, actions: Sequence[Action]) -> Sequence[int]:
        """Positions of simultaneous actions in the order in which they reach the market."""
        if len(actions) < 2:
            return range(len(actions))
        agents = [action.agent for action in actions]
        lots = [self._streams.bits("lot", agent, self._traders[agent].turns) for agent in agents]
        return sorted(range(len(actions)), key=lots.__getitem__)

    def _apply(self, now: int, action: Action, happened: Happened) -> Result:
        trader = self._traders[action.agent]
        trader.mark_read(action.shows)
        if not self._open or action.seen < self._starts:
            return Result(status="stale", reason="the period is over")
        act, _, good = action.answer["act"].partition(" ")
        if act == "wait":
            return APPLIED
        good = good or self._params.goods[0]
        if act == "cancel":
            order = self._books[good].withdraw(trader.agent)
            if order is None:
                return Result(status="stale", reason="no order stands")
            self._announce(happened, "cancel", trader.agent, answers=[order.id], good=good)
            return APPLIED
        price = action.answer["price"]
        if reason := self._barred(trader, good, price):
            return Result(status="stale", reason=reason)
        self._shout(now, trader, good, price, happened)
        return APPLIED

    def _span(self, trader: Trader, good: str) -> tuple[int, int]:
        """Lowest and highest price that a trader with a unit left may name; empty if lowest > highest."""
        low, high = self._params.price_low, self._params.price_high
        limit = trader.left(good)[0]
        if trader.side == "ask":
            return (max(low, limit), high) if self._params.budget_constraint else (low, high)
        high = min(high, trader.cash - self._pledged(trader, good))
        return (low, min(high, limit)) if self._params.budget_constraint else (low, high)

    def _pledged(self, trader: Trader, good: str) -> int:
        """Cash behind the buyer's standing bids for other goods."""
        orders = (book.of(trader.agent) for other, book in self._books.items() if other != good)
        return sum(order.price for order in orders if order)

    def _barred(self, trader: Trader, good: str, price: int) -> str:
        """Why this order cannot be taken now; empty if it can."""
        if not trader.left(good):
            return f"no unit of {good} is left"
        low, high = self._span(trader, good)
        if low <= price <= high:
            return ""
        if trader.side == "bid" and price > trader.cash - self._pledged(trader, good):
            return f"{price} can no longer be paid"
        return f"{price} is outside {low} to {high}, what the next unit allows"

    def _shout(self, now: int, trader: Trader, good: str, price: int, happened: Happened) -> None:
        """Replace the trader's order; trade at the standing price if it crosses, else let it stand."""
        book = self._books[good]
        old = book.withdraw(trader.agent)
        standing = book.match(trader.side, price)
        if standing is not None:
            self._trade(now, trader, good, standing, happened)
            return
        fact = self._announce(
            happened, trader.side, trader.agent, answers=[old.id] if old else [], good=good, price=price
        )
        expires = None if self._params.order_life is None else now + self._params.order_life
        book.rest(Order(id=fact.id, trader=trader.agent, side=trader.side, price=price, expires=expires))
        if expires is not None:
            heappush(self._expiries, (expires, fact.id, good, trader.agent))
            happened.timers.append(expires)

    def _trade(self, now: int, taker: Trader, good: str, standing: Order, happened: Happened) -> None:
        maker, price, book = self._traders[standing.trader], standing.price, self._books[good]
        book.withdraw(maker.agent)
        buyer, seller = (taker, maker) if taker.side == "bid" else (maker, taker)
        for trader in (buyer, seller):
            happened.rewards[trader.agent] = happened.rewards.get(trader.agent, 0) + trader.settle(good, price)
        if self._params.clear_after_trade:
            book.clear()
        self._last[good] = self._announce(
            happened,
            "trade",
            taker.agent,
            answers=[standing.id],
            good=good,
            price=price,
            by=taker.side,
            buyer=buyer.agent,
            seller=seller.agent,
        )
        if self._params.interrupt_on_trade and maker.active():
            self._wake(happened, maker, now, interrupt=True)

    def _look_again(self, now: int, action: Action, happened: Happened) -> None:
        """Wake a trader after its decision, unless a wake sent since it looked is still to come."""
        trader = self._traders[action.agent]
        if self._open and trader.woken <= action.seen and trader.active():
            self._wake(happened, trader, now + self._params.pause)

    def _wake(self, happened: Happened, trader: Trader, tick: int, *, interrupt: bool = False) -> None:
        trader.woken = max(trader.woken, tick)
        happened.wakes.append(Wake(agent=trader.agent, tick=tick, interrupt=interrupt))

    def _announce(
        self,
        happened: Happened,
        kind: str,
        actor: AgentId = "",
        *,
        audience: Audience = ALL,
        answers: Sequence[int] = (),
        **data: JSON,
    ) -> Fact:
        """Make a fact; shouts, trades and period starts also go on the tape that traders read."""
        data = {"period": self._period, **data}
        fact = Fact(id=self._facts, kind=kind, actor=actor, audience=audience, data=data, answers=tuple(answers))
        self._facts += 1
        happened.facts.append(fact)
        if kind in ("bid", "ask", "trade", "period"):
            self._print(fact)
        return fact

    def _print(self, fact: Fact) -> None:
        """Put a fact on the tape, and a trade on the two traders' news."""
        shown = {key: fact.data[key] for key in ("period", "good", "price", "by") if key in fact.data}
        parties = (fact.data["buyer"], fact.data["seller"]) if fact.kind == "trade" else (fact.actor,)
        entry = Entry(fact.id, {"id": fact.id, "event": fact.kind, **shown}, parties)
        self._tape.append(entry)
        if fact.kind == "trade":
            for agent in parties:
                self._traders[agent].news.append(entry)

    # --- observation ------------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The market as the trader sees it; None once it has nothing left to trade this period."""
        trader = self._traders.get(agent)
        if trader is None or not self._open or not trader.active():
            return None
        tape = self._unread(trader)
        messages = [fact for fact in self._messages if fact.id >= trader.read and _heard(fact, agent)]
        ends = self._starts + self._params.period
        view: dict[str, JSON] = {
            "role": "buyer" if trader.side == "bid" else "seller",
            "period": self._period,
            "periods": self._params.periods,
            "left": 100 * (ends - now) // self._params.period,
            "grid": [self._params.price_low, self._params.price_high],
            "cash": trader.cash,
            "profit": trader.profit,
            "goods": {good: self._quotes(trader, good) for good in self._params.goods},
            "tape": [entry.seen_by(agent) for entry in tape],
            "messages": [fact.data["text"] for fact in messages],
        }
        shown = {entry.id for entry in tape} | {fact.id for fact in messages} | self._displayed()
        return Turn(
            agent=agent,
            now=now,
            view=view,
            format=acts.form(trader.side, view["goods"]),
            default=acts.wait(),
            render=wording.describe,
            recap=wording.recap,
            rules=wording.RULES[view["role"]],
            shows=tuple(sorted(shown)),
        )

    def _unread(self, trader: Trader) -> list[Entry]:
        """The tape since the trader's last turn, and its own trades if they have run off the tape."""
        unread: list[Entry] = []
        for entry in reversed(self._tape):
            if entry.id < trader.read:
                break
            unread.append(entry)
        first = unread[-1].id if unread else self._facts
        return [entry for entry in trader.news if entry.id < first] + unread[::-1]

    def _displayed(self) -> set[int]:
        """Facts behind the best quotes and last prices, which everybody sees."""
        shown = {fact.id for fact in self._last.values() if fact}
        for book in self._books.values():
            shown.update(order.id for order in (book.best("bid"), book.best("ask")) if order is not None)
        return shown

    def _quotes(self, trader: Trader, good: str) -> dict[str, JSON]:
        book, last, units = self._books[good], self._last[good], trader.left(good)
        bid, ask, own = book.best("bid"), book.best("ask"), book.of(trader.agent)
        low, high = self._span(trader, good) if units else (1, 0)
        return {
            "best_bid": bid.price if bid else None,
            "best_ask": ask.price if ask else None,
            "last": last.data["price"] if last else None,
            "limits": list(units),
            "order": own.price if own else None,
            "lowest": low if low <= high else None,
            "highest": high if low <= high else None,
        }

    def state(self) -> JSON:
        """Everything: rules in force, traders, books, tape, messages."""
        state = {
            "params": self._params,
            "open": self._open,
            "period": self._period,
            "starts": self._starts,
            "facts": self._facts,
            "traders": list(self._traders.values()),
            "books": {good: list(book) for good, book in self._books.items()},
            "last": self._last,
            "tape": list(self._tape),
            "messages": self._messages,
        }
        return to_jsonable_python(state, fallback=to_builtins)


def _heard(message: Fact, agent: AgentId) -> bool:
    return message.audience == ALL or (isinstance(message.audience, tuple) and agent in message.audience)
