"""What an oligopoly keeps of past periods, and what of it a firm may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.types import JSON, AgentId, FactId
from worlds.pricing.demand import Sales


@dataclass(frozen=True, slots=True)
class Period:
    """One period that was played."""

    number: int
    """Counted from 1."""
    chosen: Mapping[AgentId, float]
    """By the firms that were there."""
    sold: Mapping[AgentId, tuple[float, float, float]]
    """Price, quantity and profit by firm."""
    fact: FactId
    """What everybody chose."""
    sales: Mapping[AgentId, FactId]
    """What each sold."""

    def seen_by(self, firm: AgentId, public: bool) -> dict[str, JSON]:
        """All choices, or the firm's own; and its own sales."""
        price, quantity, profit = self.sold[firm]
        return {
            "period": self.number,
            "chosen": dict(self.chosen) if public else {firm: self.chosen[firm]},
            "price": price,
            "quantity": quantity,
            "profit": profit,
        }

    def facts(self, firm: AgentId, public: bool) -> tuple[FactId, ...]:
        """The facts behind that."""
        return (self.fact, self.sales[firm]) if public else (self.sales[firm],)

    def json(self) -> JSON:
        """All of it as JSON."""
        return {
            "number": self.number,
            "chosen": dict(self.chosen),
            "sold": {firm: list(each) for firm, each in self.sold.items()},
            "fact": self.fact,
            "sales": dict(self.sales),
        }


@dataclass(frozen=True, slots=True)
class Page:
    """A firm's notebook."""

    notes: Mapping[str, str]
    """Plans and insights."""
    fact: FactId
    """That it wrote them."""


def by_firm(firms: Sequence[AgentId], sales: Sales) -> dict[AgentId, tuple[float, float, float]]:
    """Price, quantity and profit of each."""
    return dict(zip(firms, zip(sales.prices, sales.quantities, sales.profits, strict=True), strict=True))
