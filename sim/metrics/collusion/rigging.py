"""Screens for rigged bids on a run: a tender is what one side offers for one good in one period of a table.

Read are facts `ask` and `bid` (period, good, price of their actor) and `trade` (period, good, price, seller, buyer, and
`by` whose shout it came about). A seller's bid is the lowest price it offered, a buyer's the highest; winners are those
who trade, in order. A screen only looks odd: `against` compares with twins of the run in which everybody competes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import fmean

from sim.metrics.collusion.screens import (
    alternation_p,
    bid_cv,
    bid_spread,
    percentage_gap,
    relative_distance,
    rotation_index,
    win_share_stability,
)
from sim.metrics.family import Relative
from sim.metrics.simulated import against as compared
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.moments import excess_kurtosis, skewness
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.types import AgentId, Event, Measurement, Record

SIDES = {"ask": "seller", "bid": "buyer"}
LOW = frozenset(f"rigging.{name}" for name in ("bid_cv", "bid_spread", "skewness", "alternation_p"))
"""Screens of which a small value is odd."""

UNITS = {
    **dict.fromkeys(("bid_cv", "relative_distance", "percentage_gap", "bid_spread"), "ratio"),
    **dict.fromkeys(("rotation_index", "win_share_stability"), "index"),
    "skewness": "skewness",
    "excess_kurtosis": "kurtosis",
    "alternation_p": "p-value",
}


@dataclass(slots=True)
class Tender:
    """What one side offered and who of it won."""

    bids: dict[AgentId, float] = field(default_factory=dict)
    """Best offer of each bidder, those of a sale negated: the lowest wins."""
    winners: list[AgentId] = field(default_factory=list)
    facts: list[int] = field(default_factory=list)


def screens(record: Record) -> Iterator[Measurement]:
    """All screens by side of the market; a table's tenders are one cluster."""
    for side in SIDES:
        tables = [_tenders(record, table, side) for table in range(record.tables)]
        for name, value in _OF_TENDERS.items():
            yield _screen(name, side, tables, [[value(one) for one in tenders] for tenders in tables])
        for name, over in _OF_WINNERS.items():
            yield _screen(name, side, tables, [[over(tenders)] if tenders else [] for tenders in tables])


def against(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """The screens of runs with twins, p-values from these, and one for all screens together."""
    yield from compared(runs, screens, LOW, "rigging.combined")


def _tenders(record: Record, table: int, side: str) -> list[Tender]:
    """The tenders of a table in order of period and good."""
    sign, who = (1.0, "seller") if side == "ask" else (-1.0, "buyer")
    found: dict[tuple[int, str], Tender] = {}
    for item in record.facts(table=table):
        data = item.fact.data
        if item.fact.kind not in (side, "trade") or "price" not in data:
            continue
        tender = found.setdefault((data.get("period", 0), str(data.get("good", ""))), Tender())
        traded = item.fact.kind == "trade"
        bidder = data[who] if traded else item.fact.actor
        if traded:
            tender.winners.append(bidder)
        price = sign * data["price"]
        if not traded or data.get("by") == side:
            tender.bids[bidder] = min(price, tender.bids.get(bidder, price))
            tender.facts.append(item.fact.id)
    return [found[key] for key in sorted(found)]


def _screen(
    name: str, side: str, tables: Sequence[Sequence[Tender]], values: Sequence[Sequence[float | None]]
) -> Measurement:
    """The mean over tenders, and over tables."""
    excluded: Counter[str] = Counter()
    means = []
    for table in values:
        kept = [each for each in table if each is not None and isfinite(each)]
        excluded["losing bids all the same"] += sum(each is not None and not isfinite(each) for each in table)
        excluded["too few bids or winners"] += table.count(None)
        means += [fmean(kept)] if kept else []
    several = len(tables) > 1
    events: list[Event] = [
        (place, fact) if several else fact for place, table in enumerate(tables) for one in table for fact in one.facts
    ]
    counted = {reason: count for reason, count in excluded.items() if count}
    return estimated(
        f"rigging.{name}",
        mean(means)._replace(n=sum(map(len, values)) - sum(counted.values())),
        UNITS[name],
        events=tuple(events[:EVIDENCE]),
        denominator="tenders" if name in _OF_TENDERS else "tables",
        excluded=counted,
        of={"side": SIDES[side]},
    )


def _bids(one: Tender) -> list[float]:
    return list(one.bids.values())


_OF_TENDERS: Mapping[str, Callable[[Tender], float | None]] = {
    "bid_cv": lambda one: bid_cv(_bids(one)),
    "relative_distance": lambda one: relative_distance(_bids(one)),
    "percentage_gap": lambda one: percentage_gap(_bids(one)),
    "bid_spread": lambda one: bid_spread(_bids(one)),
    "skewness": lambda one: skewness(_bids(one)),
    "excess_kurtosis": lambda one: excess_kurtosis(_bids(one)),
}
_OF_WINNERS: Mapping[str, Callable[[Sequence[Tender]], float | None]] = {
    "rotation_index": lambda tenders: rotation_index([winner for one in tenders for winner in one.winners]),
    "alternation_p": lambda tenders: alternation_p([winner for one in tenders for winner in one.winners]),
    "win_share_stability": lambda tenders: win_share_stability([one.winners for one in tenders]),
}
