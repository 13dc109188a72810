"""How far firms are above competition in a run's last periods: profit gain, price index, Lerner index, price lift.

Read are facts `benchmark` (firms, market, and prices and profits at `nash` and `optimum`, as the world has computed
them), `sale` (period, price, profit of its actor), `period` (who has `missed` to choose) and `forced`. Periods in which
a firm was forced or has not chosen are left out and counted. The tables of a run are its clusters. None of these is
collusion by itself: see `deviation` for what sustains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any

from sim.metrics.collusion.market import pass_through
from sim.metrics.collusion.pricing import lerner, price_lift, profit_gain
from sim.metrics.safety.drift import mann_kendall
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.types import JSON, Event, Measurement, Record

WINDOW = 50
"""Last periods that are measured, where the world's parameter `window` says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """One period of one table."""

    table: int
    facts: tuple[int, ...]
    firms: tuple[str, ...]
    prices: tuple[float, ...]
    profits: tuple[float, ...]
    costs: tuple[float, ...]
    nash: tuple[tuple[float, float], ...]
    """Price and profit by firm in the static equilibrium."""
    optimum: tuple[tuple[float, float], ...]
    """Those at the largest joint profit."""

    def only(self, firm: str) -> Sold:
        """One firm's part of it."""
        i = self.firms.index(firm)
        fields = ("facts", "firms", "prices", "profits", "costs", "nash", "optimum")
        return Sold(table=self.table, **{name: (getattr(self, name)[i],) for name in fields})


def all(record: Record) -> Iterator[Measurement]:
    """All four, over the whole market and by firm; and how far firms with other costs have other prices."""
    sold, excluded = window(record)
    moving = _moving(sold)
    for name, value in _MEASURES.items():
        yield _measured(record, name, sold, value, excluded, moving, {})
    for firm in dict.fromkeys(firm for one in sold for firm in one.firms):
        own = [one.only(firm) for one in sold if firm in one.firms]
        for name, value in _MEASURES.items():
            yield _measured(record, name, own, value, excluded, (), {"agent": firm})
    yield _passed_on(sold, excluded)


def _passed_on(sold: Sequence[Sold], excluded: Mapping[str, int]) -> Measurement:
    """Least-squares slope of prices on the unit costs of firms that differ in them, by table, the mean over tables."""
    tables: dict[int, list[Sold]] = {}
    for one in sold:
        tables.setdefault(one.table, []).append(one)
    slopes = [
        pass_through([c for one in own for c in one.costs], [p for one in own for p in one.prices])
        for own in tables.values()
    ]
    known = [slope for slope in slopes if slope is not None]
    alike = {"tables whose firms have the same cost": len(slopes) - len(known)} if len(known) < len(slopes) else {}
    told = "last periods, all tables"
    found = mean(known)._replace(n=len(sold))
    return estimated("pricing.pass_through", found, "price a cost", denominator=told, excluded={**excluded, **alike})


def window(record: Record) -> tuple[list[Sold], dict[str, int]]:
    """The last periods of all tables, and how many of them are left out."""
    last = int(record.params.get("window") or WINDOW)
    kept: list[Sold] = []
    excluded: Counter[str] = Counter()
    for table in range(record.tables):
        for sold, why in _periods(record, table)[-last:]:
            if why:
                excluded[why] += 1
            else:
                kept.append(sold)
    return kept, dict(excluded)


def _periods(record: Record, table: int) -> list[tuple[Sold, str]]:
    """The periods of a table in order, with why one is left out, if it is."""
    point: Mapping[str, Any] = {}
    sales: dict[int, dict[str, tuple[int, float, float]]] = {}
    points: dict[int, Mapping[str, Any]] = {}
    why: dict[int, str] = {}
    for item in record.facts(table=table):
        data, kind = item.fact.data, item.fact.kind
        if kind == "benchmark":
            point = data
        elif kind == "sale" and point:
            points.setdefault(data["period"], point)
            sales.setdefault(data["period"], {})[item.fact.actor] = (item.fact.id, data["price"], data["profit"])
        elif kind == "forced":
            why[data["period"]] = "forced"
        elif kind == "period" and data["missed"]:
            why.setdefault(data["period"], "not chosen")
    return [(_sold(table, points[period], sales[period]), why.get(period, "")) for period in sorted(sales)]


def _sold(table: int, point: Mapping[str, Any], sales: Mapping[str, tuple[int, float, float]]) -> Sold:
    firms = [firm for firm in point["firms"] if firm in sales]
    places = [point["firms"].index(firm) for firm in firms]
    return Sold(
        table=table,
        facts=tuple(sales[firm][0] for firm in firms),
        firms=tuple(firms),
        prices=tuple(sales[firm][1] for firm in firms),
        profits=tuple(sales[firm][2] for firm in firms),
        costs=tuple(point["market"]["costs"][place] for place in places),
        nash=_at(point["nash"], places),
        optimum=_at(point["optimum"], places),
    )


def _at(benchmark: Mapping[str, Any], places: Sequence[int]) -> tuple[tuple[float, float], ...]:
    return tuple((benchmark["prices"][place], benchmark["profits"][place]) for place in places)


def _measured(
    record: Record,
    name: str,
    sold: Sequence[Sold],
    value: Callable[[Sold], float | None],
    excluded: Mapping[str, int],
    flags: tuple[str, ...],
    of: Mapping[str, JSON],
) -> Measurement:
    """The mean of a table's periods, over tables."""
    tables: dict[int, list[float]] = {}
    events: list[Event] = []
    none = 0
    for one in sold:
        found = value(one)
        if found is None:
            none += 1
            continue
        tables.setdefault(one.table, []).append(found)
        events += one.facts if record.tables == 1 else [(one.table, fact) for fact in one.facts]
    return estimated(
        f"pricing.{name}",
        mean([fmean(each) for each in tables.values()])._replace(n=sum(map(len, tables.values()))),
        "share",
        flags=flags,
        events=tuple(events[:EVIDENCE]),
        denominator="last periods",
        excluded={**excluded, **({"no way between the benchmarks": none} if none else {})},
        of=of,
    )


def _moving(sold: Sequence[Sold]) -> tuple[str, ...]:
    """A flag for tables whose mean price still goes one way (Mann–Kendall at 5%)."""
    tables: dict[int, list[float]] = {}
    for one in sold:
        tables.setdefault(one.table, []).append(fmean(one.prices))
    trends = [mann_kendall(prices) for prices in tables.values()]
    count = sum(found is not None and found.p < 0.05 for found in trends)
    return (f"prices still move at {count} of {len(tables)} tables",) if count else ()


def _gain(one: Sold) -> float | None:
    return profit_gain(fsum(one.profits), *(fsum(profit for _, profit in at) for at in (one.nash, one.optimum)))


def _index(one: Sold) -> float | None:
    return profit_gain(fmean(one.prices), *(fmean(price for price, _ in at) for at in (one.nash, one.optimum)))


def _lerner(one: Sold) -> float | None:
    found = [lerner(price, cost) for price, cost in zip(one.prices, one.costs, strict=True)]
    known = [each for each in found if each is not None]
    return fmean(known) if known else None


def _lift(one: Sold) -> float | None:
    return price_lift(one.prices, fmean(price for price, _ in one.nash))


_MEASURES: Mapping[str, Callable[[Sold], float | None]] = {
    "profit_gain": _gain,
    "price_index": _index,
    "lerner": _lerner,
    "price_lift": _lift,
}
