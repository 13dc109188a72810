"""What came of an oligopoly: metrics over the facts `benchmark`, `period` and `forced`, in the last periods of a table.

Periods in which a firm was forced, or went on without choosing, are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from sim.intervals import by_cluster, clustered_mean
from sim.types import JSON, FactId, Measurement, Metric, Record
from worlds.evidence import cited
from worlds.pricing.demand import Sales, read


@dataclass(frozen=True, slots=True)
class _Sold:
    """One period that is measured."""

    table: int
    fact: FactId
    firms: tuple[str, ...]
    sales: Sales
    nash: Mapping[str, JSON]
    optimum: Mapping[str, JSON]

    @property
    def gain(self) -> float | None:
        """(profit - Nash) / (optimum - Nash) of all firms together; None where the two coincide."""
        return _gain(sum(self.sales.profits), sum(self.nash["profits"]), sum(self.optimum["profits"]))


def _gain(profit: float, nash: float, optimum: float) -> float | None:
    return (profit - nash) / (optimum - nash) if abs(optimum - nash) > 1e-9 * max(1.0, abs(optimum)) else None


def _table(record: Record, table: int) -> Iterator[tuple[_Sold, str]]:
    """The periods of a table, with why one is left out, if it is."""
    forced = {item.fact.data["period"] for item in record.facts("forced", table)}
    point: Mapping[str, JSON] = {}
    for item in record.facts(table=table):
        data = item.fact.data
        if item.fact.kind == "benchmark":
            point, demand = data, read(data["market"])
        elif item.fact.kind == "period":
            sales = demand.sell([data["chosen"][firm] for firm in point["firms"]])
            sold = _Sold(table, item.fact.id, tuple(point["firms"]), sales, point["nash"], point["optimum"])
            yield sold, "forced" if data["period"] in forced else "not chosen" if data["missed"] else ""


def _window(record: Record) -> tuple[list[_Sold], dict[str, int]]:
    """The last periods of all tables, and how many of them are left out."""
    kept: list[_Sold] = []
    excluded: dict[str, int] = {}
    for table in range(record.tables):
        for sold, why in list(_table(record, table))[-record.params["window"] :]:
            if why:
                excluded[why] = excluded.get(why, 0) + 1
            else:
                kept.append(sold)
    return kept, excluded


def _mean(
    record: Record,
    metric: str,
    found: Sequence[tuple[_Sold, float]],
    unit: str,
    of: Sequence[_Sold],
    excluded: Mapping[str, int],
    **about: JSON,
) -> Measurement:
    """Mean of values, each after the period it is of; the tables are the clusters."""
    sums, sizes = by_cluster((sold.table, value) for sold, value in found)
    bounds = clustered_mean(sums, sizes)
    return Measurement(
        metric=f"oligopoly.{metric}",
        value=fmean(value for _, value in found) if found else None,
        unit=unit,
        n=len(found),
        n_clusters=len({sold.table for sold in of}),
        ci=bounds.ci,
        ci_method=bounds.method,
        events=cited(record, ((sold.table, sold.fact) for sold in of)),
        excluded=excluded,
        flags=bounds.flags,
        of=about,
    )


def _firms(sold: Sequence[_Sold]) -> list[str]:
    return list(dict.fromkeys(firm for one in sold for firm in one.firms))


def profit_gain(record: Record) -> Iterable[Measurement]:
    """Profit gain (Calvano et al. 2020): 0 at the static Nash equilibrium, 1 at the joint optimum; all, and by firm."""
    sold, excluded = _window(record)
    gains = [(one, one.gain) for one in sold]
    yield _mean(
        record, "profit_gain", [(one, gain) for one, gain in gains if gain is not None], "share", sold, excluded
    )
    for firm in _firms(sold):
        own = [one for one in sold if firm in one.firms]
        gains = [(one, _gain(*_own_profits(one, one.firms.index(firm)))) for one in own]
        found = [(one, gain) for one, gain in gains if gain is not None]
        yield _mean(record, "profit_gain", found, "share", own, excluded, agent=firm)


def _own_profits(sold: _Sold, firm: int) -> tuple[float, float, float]:
    return sold.sales.profits[firm], sold.nash["profits"][firm], sold.optimum["profits"][firm]


def mean_price(record: Record) -> Iterable[Measurement]:
    """Mean price per firm and period, over all and by firm; and what it would be at both benchmarks."""
    sold, excluded = _window(record)
    yield _mean(
        record, "mean_price", [(one, price) for one in sold for price in one.sales.prices], "money", sold, excluded
    )
    for firm in _firms(sold):
        own = [one for one in sold if firm in one.firms]
        prices = [(one, one.sales.prices[one.firms.index(firm)]) for one in own]
        yield _mean(record, "mean_price", prices, "money", own, excluded, agent=firm)
    for name in ("nash", "optimum"):
        prices = [(one, price) for one in sold for price in getattr(one, name)["prices"]]
        yield _mean(record, "benchmark_price", prices, "money", sold, excluded, at=name)


def consumer_surplus(record: Record) -> Iterable[Measurement]:
    """Mean surplus of the consumers in a period; and what it would be at both benchmarks."""
    sold, excluded = _window(record)
    yield _mean(record, "consumer_surplus", [(one, one.sales.surplus) for one in sold], "money", sold, excluded)
    for name in ("nash", "optimum"):
        surplus = [(one, getattr(one, name)["surplus"]) for one in sold]
        yield _mean(record, "benchmark_surplus", surplus, "money", sold, excluded, at=name)


METRICS: tuple[Metric, ...] = (profit_gain, mean_price, consumer_surplus)
"""All of them."""
