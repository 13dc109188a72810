"""Outcome metrics of a market, from its trades and the private values and costs of the recorded cast."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from msgspec.structs import replace

from sim.types import AgentId, Fact, FactId, Measurement, Metric, Record
from worlds.evidence import cited
from worlds.markets.schedules import KEYS, Equilibrium, Limits, equilibrium, limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One good in one trading period of one table."""

    table: int
    period: int
    good: str
    values: Mapping[AgentId, tuple[int, ...]]
    """Unit values of the buyers present."""
    costs: Mapping[AgentId, tuple[int, ...]]
    """Unit costs of the sellers present."""
    trades: list[Fact] = field(default_factory=list)

    @property
    def equilibrium(self) -> Equilibrium | None:
        """What theory predicts."""
        return equilibrium(_units(self.values), _units(self.costs))

    @property
    def prices(self) -> list[int]:
        """Prices in order of trading."""
        return [trade.data["price"] for trade in self.trades]

    @property
    def ids(self) -> tuple[FactId, ...]:
        """Ids of the trades."""
        return tuple(trade.id for trade in self.trades)

    @property
    def sold(self) -> list[tuple[int, int]]:
        """Unit cost and price of each trade: the n-th unit that a seller trades counts at its n-th cost."""
        found: list[tuple[int, int]] = []
        traded: Counter[AgentId] = Counter()
        for trade in self.trades:
            seller = trade.data["seller"]
            found.append((self.costs[seller][traded[seller]], trade.data["price"]))
            traded[seller] += 1
        return found

    def profits(self) -> dict[AgentId, int]:
        """Realised profit of everybody: the n-th unit traded counts at the n-th limit."""
        profits = dict.fromkeys([*self.values, *self.costs], 0)
        traded: Counter[AgentId] = Counter()
        for trade in self.trades:
            price, buyer, seller = trade.data["price"], trade.data["buyer"], trade.data["seller"]
            profits[buyer] += self.values[buyer][traded[buyer]] - price
            profits[seller] += price - self.costs[seller][traded[seller]]
            traded.update((buyer, seller))
        return profits


def _units(schedules: Mapping[AgentId, tuple[int, ...]]) -> list[int]:
    return [unit for units in schedules.values() for unit in units]


def sessions(record: Record) -> Iterator[Session]:
    """All periods and goods of all tables that opened, traded or not."""
    for table in range(record.tables):
        goods = record.params["goods"]
        stays, periods = _presence(record, table)
        own: dict[str, dict[AgentId, Limits]] = {"buyer": {}, "seller": {}}
        for member in record.cast(table):
            if member.seat.role in KEYS:
                own[member.seat.role][member.seat.agent] = limits(member.seat.role, member.seat.private, goods)
        trades: dict[tuple[int, str], list[Fact]] = defaultdict(list)
        for recorded in record.facts("trade", table):
            trades[recorded.fact.data["period"], recorded.fact.data["good"]].append(recorded.fact)
        for period in range(1, periods + 1):
            for good in goods:
                values, costs = (
                    {a: by[good] for a, by in own[role].items() if stays[a][0] <= period <= stays[a][1]} for role in own
                )
                yield Session(
                    table=table, period=period, good=good, values=values, costs=costs, trades=trades[period, good]
                )


def _presence(record: Record, table: int) -> tuple[Mapping[AgentId, tuple[int, float]], int]:
    """First and last period of everybody's stay, and the number of periods that opened."""
    first: dict[AgentId, int] = {}
    last: dict[AgentId, int] = {}
    periods = 0
    for recorded in record.facts(table=table):
        fact = recorded.fact
        if fact.kind == "period":
            periods = max(periods, fact.data["period"])
        elif fact.kind == "join":
            first[fact.actor] = fact.data["period"]
        elif fact.kind == "leave":
            last[fact.actor] = fact.data["period"]
    agents = [member.seat.agent for member in record.cast(table)]
    return {agent: (first.get(agent, 1), last.get(agent, math.inf)) for agent in agents}, periods


def _by_period(record: Record) -> dict[tuple[int, str], list[Session]]:
    grouped: dict[tuple[int, str], list[Session]] = defaultdict(list)
    for session in sessions(record):
        grouped[session.period, session.good].append(session)
    return grouped


def _measure(record: Record, metric: str, value: float | None, group: list[Session], n: int, unit: str) -> Measurement:
    """A measurement of one good in one period, over all tables."""
    about = {"period": group[0].period, "good": group[0].good}
    return replace(_overall(record, metric, value, group, n, unit), of=about)


def _overall(record: Record, metric: str, value: float | None, group: list[Session], n: int, unit: str) -> Measurement:
    tables = {session.table for session in group}
    events = cited(record, ((session.table, fact) for session in group for fact in session.ids))
    return Measurement(metric=f"market.{metric}", value=value, unit=unit, n=n, n_clusters=len(tables), events=events)


def _efficiency(group: list[Session]) -> float | None:
    realised = sum(sum(session.profits().values()) for session in group)
    possible = sum(session.equilibrium.surplus for session in group if session.equilibrium)
    return realised / possible if possible else None


def allocative_efficiency(record: Record) -> Iterable[Measurement]:
    """Realised over greatest possible gains from trade: the whole run, then each period and good."""
    groups = _by_period(record).values()
    everything = [session for group in groups for session in group]
    if everything:
        yield _overall(record, "allocative_efficiency", _efficiency(everything), everything, len(everything), "share")
    for group in groups:
        yield _measure(record, "allocative_efficiency", _efficiency(group), group, len(group), "share")


def smiths_alpha(record: Record) -> Iterable[Measurement]:
    """Smith's (1962) convergence: 100 × root mean squared distance of prices from p*, over p*, by period."""
    for group in _by_period(record).values():
        gaps = [
            (price - session.equilibrium.price) / session.equilibrium.price
            for session in group
            if session.equilibrium and session.equilibrium.price
            for price in session.prices
        ]
        value = 100 * math.sqrt(fmean(gap * gap for gap in gaps)) if gaps else None
        yield _measure(record, "smiths_alpha", value, group, len(gaps), "%")


def surplus_split(record: Record) -> Iterable[Measurement]:
    """The sellers' part of what trades gained, Σ(price − cost)/Σ(value − cost), by period; buyers have the rest."""
    for group in _by_period(record).values():
        sellers = gained = 0
        for session in group:
            profits = session.profits()
            sellers += sum(profits[agent] for agent in session.costs)
            gained += sum(profits.values())
        value = sellers / gained if gained > 0 else None
        yield _measure(record, "seller_share", value, group, sum(len(session.trades) for session in group), "share")


def profit_dispersion(record: Record) -> Iterable[Measurement]:
    """Root mean squared distance of traders' profits from those at p* (Gode and Sunder 1993), by period."""
    for group in _by_period(record).values():
        gaps = [gap for session in group for gap in _profit_gaps(session)]
        value = math.sqrt(fmean(gap * gap for gap in gaps)) if gaps else None
        yield _measure(record, "profit_dispersion", value, group, len(gaps), "money")


def _profit_gaps(session: Session) -> list[float]:
    theory = session.equilibrium
    if theory is None:
        return []
    profits = session.profits()
    due = {agent: sum(max(0, value - theory.price) for value in units) for agent, units in session.values.items()}
    due |= {agent: sum(max(0, theory.price - cost) for cost in units) for agent, units in session.costs.items()}
    return [profits[agent] - due[agent] for agent in due]


def trades(record: Record) -> Iterable[Measurement]:
    """Units traded, and the equilibrium quantity beside it, by period."""
    for group in _by_period(record).values():
        count = sum(len(session.trades) for session in group)
        yield _measure(record, "trades", count, group, count, "units")
        predicted = sum(session.equilibrium.quantity for session in group if session.equilibrium)
        yield _measure(record, "equilibrium_quantity", predicted, group, len(group), "units")


def prices(record: Record) -> Iterable[Measurement]:
    """Mean price, mean p*, and the share of trades at a market-clearing price, by period."""
    for group in _by_period(record).values():
        paid = [price for session in group for price in session.prices]
        yield _measure(record, "mean_price", fmean(paid) if paid else None, group, len(paid), "money")
        theory = [(session.equilibrium, session.prices) for session in group]
        clearing = [known.price for known, _ in theory if known]
        yield _measure(
            record, "equilibrium_price", fmean(clearing) if clearing else None, group, len(clearing), "money"
        )
        inside = [known.low <= price <= known.high for known, paid_here in theory if known for price in paid_here]
        yield _measure(record, "price_in_equilibrium", fmean(inside) if inside else None, group, len(inside), "share")


OUTCOMES: tuple[Metric, ...] = (allocative_efficiency, smiths_alpha, surplus_split, profit_dispersion, trades, prices)
"""The outcome metrics of a market world."""
