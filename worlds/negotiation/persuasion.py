"""What a first demand and words do to a bargain: deals at the first offer, anchoring, offers that come with words.

In alternating offers one offer is open at a time, so there is no choice among several. That the first mover earns more
is in part equilibrium; in a pair of runs with the seats swapped the same agents are compared in both places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

import polars as pl

from sim.intervals import FEW
from sim.metrics.chosen import both
from sim.metrics.statistics.paired import effect
from sim.metrics.statistics.permutation import exact_exposure, stratified
from sim.metrics.statistics.ratios import Counts, mantel_haenszel
from sim.metrics.statistics.shares import share
from sim.metrics.twins import Relative, flagged, twins
from sim.types import AgentId, Measurement, Record, RecordedFact

TENTHS = 10
"""Bins of what an offer leaves the partner, within which offers with and without words are compared."""


def all(record: Record) -> Iterator[Measurement]:
    """Deals at the first offer, anchoring and the effect of words, with and without what was defaulted."""
    yield from both(persuasion)(record)


def persuasion(record: Record) -> Iterator[Measurement]:
    """All three."""
    offers, deals = _offers(record), list(record.facts("deal"))
    yield _first(offers, deals, record.tables)
    yield _anchoring(offers, deals, record.params["pie"])
    yield _words(record, offers)


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """Of several runs those of the same luck, as `seats_swapped` takes them."""
    pairs = [(one.record, other.record) for one, other in twins(runs)]
    yield from flagged([seats_swapped(pairs)], "" if pairs else "no two runs of the same luck")


def seats_swapped(pairs: Sequence[tuple[Record, Record]]) -> Measurement:
    """Of runs in pairs, the same agents in swapped seats: what moving first adds to an agent's gain, tested.

    Two who share a pie say it once, not each: what one gets for moving first in both runs is what the other lost.
    """
    first, second, left = [], [], 0
    for one, other in pairs:
        gains, swapped = _gains(one), _gains(other)
        for key, (mine, theirs) in gains.items():
            twin = swapped.get(key)
            if twin is None or twin[0].agent != theirs.agent:
                left += 1
                continue
            first.append(fmean((mine.gain, twin[0].gain)))
            second.append(fmean((twin[1].gain, theirs.gain)))
    found = effect(second, first)
    return Measurement(
        metric="bargaining.first_mover_gain",
        value=found.estimate.value if found else None,
        unit="share",
        n=len(first),
        n_clusters=len(first),
        ci=found.estimate.ci if found else None,
        ci_method="t on pairs of agents" if found and found.estimate.ci else "",
        denominator="pairs of agents that bargained in both seats",
        excluded={"no pair in swapped seats": left} if left else {},
        flags=found.estimate.flags if found else (),
        null={"stat": found.estimate.value, "p": found.p, "method": "flipped signs"} if found else {},
    )


def _offers(record: Record) -> dict[tuple[int, int], list[RecordedFact]]:
    """By table and pair."""
    found: dict[tuple[int, int], list[RecordedFact]] = defaultdict(list)
    for item in record.facts("offer"):
        found[item.table, item.fact.data["pair"]].append(item)
    return found


def _first(
    offers: dict[tuple[int, int], list[RecordedFact]], deals: Sequence[RecordedFact], tables: int
) -> Measurement:
    """Share of deals that were struck by the first offer."""
    struck = {(item.table, item.fact.data["pair"]): item for item in deals}
    rows = [(key[0], item.fact.id, item.fact.data["round"] == 1) for key, item in struck.items() if key in offers]
    frame = pl.DataFrame(rows, schema={"tbl": pl.Int64, "fact": pl.Int64, "first": pl.Boolean}, orient="row")
    hit = pl.col("first")
    return share("bargaining.first_offer_taken", frame, hit, tables=tables, denominator="deals", events="fact")


def _anchoring(
    offers: dict[tuple[int, int], list[RecordedFact]], deals: Sequence[RecordedFact], pie: float
) -> Measurement:
    """Points of the final share that go with a point of the first demand, of deals that were not struck at once."""
    later = [item for item in deals if item.fact.data["round"] > 1]
    kept = [item for item in later if offers.get((item.table, item.fact.data["pair"]))]
    asked, got, tables = [], [], []
    for item in kept:
        opening = offers[item.table, item.fact.data["pair"]][0].fact
        asked.append(opening.data["gain"] / pie)
        got.append(item.fact.data["shares"][opening.actor] / pie)
        tables.append(item.table)
    test = stratified(asked, got, [0] * len(asked), _slope) if len(set(asked)) > 1 and len(asked) > 2 else None
    clusters = len(set(tables))
    return Measurement(
        metric="bargaining.anchoring",
        value=test.stat if test else None,
        unit="points a point",
        n=len(kept),
        n_clusters=clusters,
        denominator="deals after the first offer",
        excluded={"struck at once": len(deals) - len(later)} if len(deals) > len(later) else {},
        flags=() if test else ("fewer than 3 deals, or demands all alike",),
        null=test.null if test else {},
    )


def _slope(asked: Sequence[float], got: Sequence[float]) -> float:
    x, y = sum(asked) / len(asked), sum(got) / len(got)
    spread = sum((a - x) ** 2 for a in asked)
    return sum((a - x) * (b - y) for a, b in zip(asked, got, strict=True)) / spread


def _words(record: Record, offers: dict[tuple[int, int], list[RecordedFact]]) -> Measurement:
    """How many times as likely an offer with words is accepted, among offers that leave the partner as much."""
    taken = {(item.table, item.fact.answers[0]) for item in record.facts("accept")}
    answered = taken | {(item.table, item.fact.answers[0]) for item in record.facts("reject")}
    cells: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for item in (one for made in offers.values() for one in made):
        if (item.table, item.fact.id) in answered:
            cell = cells[int(TENTHS * item.fact.data["rest"] / record.params["pie"])]
            said = bool(item.fact.data.get("text"))
            cell[0 if said else 2] += (item.table, item.fact.id) in taken
            cell[1 if said else 3] += 1
    strata = [Counts(*cell) for _, cell in sorted(cells.items())]
    found = mantel_haenszel(strata)
    tested = any(one.exposed and one.others for one in strata)
    null = {"stat": found.value, "p": exact_exposure(strata), "method": "exact, permuting within tenths of the pie"}
    clusters = len({table for table, _ in answered})
    return Measurement(
        metric="bargaining.words_risk_ratio",
        value=found.value,
        unit="ratio",
        n=int(sum(one.exposed + one.others for one in strata)),
        n_clusters=clusters,
        ci=found.ci,
        ci_method="normal on logs, offers independent" if found.ci else "",
        denominator="chance that an offer without words is accepted",
        flags=(*found.flags, *((FEW,) if clusters < 2 else ())),
        null=null if tested else {},
    )


class _Gain(NamedTuple):
    """What an agent got of a pie, waiting counted; nothing without a deal."""

    agent: AgentId
    gain: float


def _gains(record: Record) -> dict[tuple[int, frozenset[AgentId]], tuple[_Gain, _Gain]]:
    """By table and pair of agents: the first and the second mover's."""
    found = {}
    for kind in ("deal", "no_deal"):
        for item in record.facts(kind):
            agents, gains = item.fact.data["agents"], item.fact.data.get("gains", {})
            one, other = (_Gain(agent, gains.get(agent, 0.0)) for agent in agents)
            found[item.table, frozenset(agents)] = (one, other)
    return found
