"""What the market keeps for each trader: its units, its cash, and how far it has read the tape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sim.types import JSON, AgentId, FactId
from worlds.markets.order_book import Side
from worlds.markets.schedules import Limits


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the tape."""

    id: int
    """Of the fact."""
    event: dict[str, JSON]
    """As strangers see it: without names. Copied before it is shown."""
    parties: tuple[AgentId, ...]
    """Whose doing it was."""

    def seen_by(self, agent: AgentId) -> dict[str, JSON]:
        """The event with a mark on the trader's own part in it."""
        return {**self.event, "mine": agent in self.parties}


@dataclass(slots=True)
class Trader:
    """What the market knows of one trader."""

    agent: AgentId
    side: Side
    """Buyers bid, sellers ask."""
    limits: Limits
    endowment: int
    """Cash at the start of a period."""
    cash: int
    traded: dict[str, int]
    """Units bought or sold this period, by good."""
    profit: int = 0
    read: int = 0
    """Facts below this id have been shown to it."""
    woken: int = -1
    """Latest tick for which it was sent a wake."""
    turns: int = 0
    """Decisions stepped so far."""
    news: list[Entry] = field(default_factory=list)
    """Its own trades that it has not been shown, which no limit on the tape drops."""

    def left(self, good: str) -> tuple[int, ...]:
        """Limits of the units it can still trade this period."""
        return self.limits[good][self.traded[good] :]

    def active(self) -> bool:
        """Whether it can still trade anything this period."""
        return any(self.traded[good] < len(units) for good, units in self.limits.items())

    def endow(self) -> None:
        """A new period: all units to trade again, and the cash to do it."""
        self.cash = self.endowment
        self.traded = dict.fromkeys(self.limits, 0)

    def settle(self, good: str, price: int) -> int:
        """Trade the next unit at a price; returns the gain."""
        sign = 1 if self.side == "bid" else -1
        gain = sign * (self.left(good)[0] - price)
        self.cash -= sign * price
        self.traded[good] += 1
        self.profit += gain
        return gain

    def mark_read(self, shows: Iterable[FactId]) -> None:
        """A decision that saw these facts stands: they need not be shown again."""
        self.turns += 1
        self.read = max(self.read, max(shows, default=-1) + 1)
        self.news = [entry for entry in self.news if entry.id >= self.read]
