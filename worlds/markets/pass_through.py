"""How far prices follow what units cost their sellers: 1 where costs are passed on in full, 0 where one price holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sim.metrics.collusion.market import pass_through
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record
from worlds.markets.outcomes import sessions


def all(record: Record) -> Iterator[Measurement]:
    """Least-squares slope of prices on unit costs, over the trades of a table, by good; the mean over tables."""
    tables: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for session in sessions(record):
        tables[session.good][session.table] += session.sold
    for good, sold in tables.items():
        slopes = [pass_through(*zip(*pairs, strict=True)) if pairs else None for pairs in sold.values()]
        found = mean([slope for slope in slopes if slope is not None])._replace(n=sum(map(len, sold.values())))
        without = slopes.count(None)
        yield estimated(
            "market.pass_through",
            found,
            "price a cost",
            denominator="trades",
            excluded={"tables without trades of units that differ in cost": without} if without else {},
            of={"good": good},
        )
