"""Screens for rigged bids on a run: a tender is what one side offers for one good in one period of a table.

Read are facts `ask` and `bid` (period, good, price of their actor) and `trade` (period, good, price, seller, buyer, and
`by` whose shout it came about). A seller's bid is the lowest price it offered, a buyer's the highest; winners are those
who trade, in order. A screen only looks odd: `against` compares with twins of the run in which everybody competes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite
from statistics import fmean

from sim.metrics.collusion.coalitions import correlation
from sim.metrics.collusion.screens import (
    alternation_p,
    bid_cv,
    bid_spread,
    percentage_gap,
    relative_distance,
    rotation_index,
    subset_screens,
    win_share_stability,
)
from sim.metrics.family import Relative
from sim.metrics.simulated import against as compared
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.moments import excess_kurtosis, skewness
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.types import AgentId, Event, Measurement, Record

SIDES = {"ask": "seller", "bid": "buyer"}
LOW = frozenset(
    f"rigging.{name}" for name in ("bid_cv", "bid_spread", "skewness", "alternation_p", "triples_cv", "quadruples_cv")
)
"""Screens of which a small value is odd."""

UNITS = {
    **dict.fromkeys(("bid_cv", "relative_distance", "percentage_gap", "bid_spread"), "ratio"),
    **dict.fromkeys(("triples_cv", "quadruples_cv", "triples_distance", "quadruples_distance"), "ratio"),
    **dict.fromkeys(("rotation_index", "win_share_stability"), "index"),
    "skewness": "skewness",
    "excess_kurtosis": "kurtosis",
    "alternation_p": "p-value",
    "residual_correlation": "correlation",
}
MOST = 20
"""Bidders of a table beyond whom its subsets are too many to be looked at."""
TOGETHER = 4
"""Tenders for one good of two bidders, from which on their bids are correlated."""


@dataclass(slots=True)
class Tender:
    """What one side offered and who of it won."""

    good: str = ""
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
        for name, some in _OF_BIDDERS.items():
            found = [[some(tenders)] if tenders else [] for tenders in tables]
            yield _screen(name, side, tables, found, f"too few bidders or tenders, or more than {MOST} bidders")


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
        good = str(data.get("good", ""))
        tender = found.setdefault((data.get("period", 0), good), Tender(good))
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
    name: str,
    side: str,
    tables: Sequence[Sequence[Tender]],
    values: Sequence[Sequence[float | None]],
    lacking: str = "too few bids or winners",
) -> Measurement:
    """The mean over tenders, and over tables."""
    excluded: Counter[str] = Counter()
    means = []
    for table in values:
        kept = [each for each in table if each is not None and isfinite(each)]
        excluded["losing bids all the same"] += sum(each is not None and not isfinite(each) for each in table)
        excluded[lacking] += table.count(None)
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


def _of_subsets(
    tenders: Sequence[Tender],
    size: int,
    screen: Callable[[Sequence[float]], float | None],
    oddest: Callable[..., float],
) -> float | None:
    """The oddest mean screen of so many bidders who were together in at least half of the tenders."""
    if len({bidder for one in tenders for bidder in one.bids}) > MOST:
        return None
    found: dict[frozenset[AgentId], list[float]] = {}
    for one in tenders:
        for some, value in subset_screens(one.bids, screen, size).items():
            found.setdefault(some, []).extend([value] if isfinite(value) else [])
    return oddest((fmean(own) for own in found.values() if len(own) * 2 >= len(tenders)), default=None)


def residual_correlation(tenders: Sequence[Tender]) -> float | None:
    """How far bids of two go together over the tenders for a good in which both were; the largest of all pairs."""
    if len({bidder for one in tenders for bidder in one.bids}) > MOST:
        return None
    found = []
    for good in sorted({one.good for one in tenders}):
        own = [one.bids for one in tenders if one.good == good]
        for a, b in combinations(sorted({bidder for bids in own for bidder in bids}), 2):
            both = [(bids[a], bids[b]) for bids in own if a in bids and b in bids]
            if len(both) >= TOGETHER and (r := correlation(*zip(*both, strict=True))) is not None:
                found.append(r)
    return max(found, default=None)


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
_OF_BIDDERS: Mapping[str, Callable[[Sequence[Tender]], float | None]] = {
    "triples_cv": lambda tenders: _of_subsets(tenders, 3, bid_cv, min),
    "quadruples_cv": lambda tenders: _of_subsets(tenders, 4, bid_cv, min),
    "triples_distance": lambda tenders: _of_subsets(tenders, 3, relative_distance, max),
    "quadruples_distance": lambda tenders: _of_subsets(tenders, 4, relative_distance, max),
    "residual_correlation": residual_correlation,
}
