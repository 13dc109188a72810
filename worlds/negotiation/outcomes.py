"""What came of a bargaining: metrics over the facts `pair`, `deal` and `no_deal`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import dist

from sim.intervals import by_cluster, clustered, clustered_mean
from sim.types import JSON, Measurement, Metric, Record, RecordedFact
from worlds.evidence import cited, places


def fairness(share: float) -> float:
    """1 for an even split, 0 where one side takes all: 1 - 4 (share - 1/2)^2."""
    return 1 - 4 * (share - 0.5) ** 2


def _mean(
    record: Record,
    metric: str,
    values: Sequence[float],
    facts: Sequence[RecordedFact],
    excluded: Mapping[str, int],
    **of: JSON,
) -> Measurement:
    """Mean of one value a fact; the tables are the clusters, as who bargains again at one may have learnt."""
    sums, sizes = by_cluster((item.table, value) for item, value in zip(facts, values, strict=True))
    bounds = clustered(sums, sizes) if metric in ("agreement_rate", "breakdown") else clustered_mean(sums, sizes)
    return Measurement(
        metric=f"bargaining.{metric}",
        value=sum(values) / len(values) if values else None,
        unit="rounds" if metric == "agreement_round" else "share",
        n=len(values),
        n_clusters=len(sizes),
        ci=bounds.ci,
        ci_method=bounds.method,
        events=cited(record, places(facts)),
        excluded={reason: count for reason, count in excluded.items() if count},
        flags=bounds.flags,
        of=of,
    )


def _ends(record: Record) -> tuple[list[RecordedFact], list[RecordedFact], int]:
    """Deals, endings without one, and how many pairs were cut off."""
    deals, failures = list(record.facts("deal")), list(record.facts("no_deal"))
    return deals, failures, sum(1 for _ in record.facts("pair")) - len(deals) - len(failures)


def self_gain(record: Record) -> Iterable[Measurement]:
    """Mean discounted share of the pie (no deal: 0) by mover and by agent."""
    deals, failures, cut = _ends(record)
    won: dict[tuple[str, str], list[float]] = {("mover", "first"): [], ("mover", "second"): []}
    where: dict[tuple[str, str], list[RecordedFact]] = {}
    for item in [*deals, *failures]:
        by_agent = item.fact.data.get("gains", {})
        for mover, agent in zip(("first", "second"), item.fact.data["agents"], strict=True):
            for key in (("mover", mover), ("agent", agent)):
                won.setdefault(key, []).append(by_agent.get(agent, 0.0))
                where.setdefault(key, []).append(item)
    for (kind, name), values in won.items():
        yield _mean(record, "self_gain", values, where.get((kind, name), []), {"unfinished": cut}, **{kind: name})


def efficiency(record: Record) -> Iterable[Measurement]:
    """Mean sum of both discounted shares; no deal counts 0."""
    deals, failures, cut = _ends(record)
    values = [sum(item.fact.data["gains"].values()) for item in deals] + [0.0] * len(failures)
    yield _mean(record, "efficiency", values, [*deals, *failures], {"unfinished": cut})


def deal_fairness(record: Record) -> Iterable[Measurement]:
    """Mean of 1 - 4 (share - 1/2)^2 over the deals, undiscounted."""
    deals, failures, cut = _ends(record)
    pie = record.params["pie"]
    values = [fairness(item.fact.data["shares"][item.fact.data["agents"][0]] / pie) for item in deals]
    yield _mean(record, "fairness", values, deals, {"no deal": len(failures), "unfinished": cut})


def agreement(record: Record) -> Iterable[Measurement]:
    """Share of ended pairs with a deal, and the mean round in which it was made; shares without one, by the reason."""
    deals, failures, cut = _ends(record)
    values = [1.0] * len(deals) + [0.0] * len(failures)
    yield _mean(record, "agreement_rate", values, [*deals, *failures], {"unfinished": cut})
    rounds = [float(item.fact.data["round"]) for item in deals]
    yield _mean(record, "agreement_round", rounds, deals, {"no deal": len(failures), "unfinished": cut})
    for reason in sorted({item.fact.data.get("reason", "") for item in failures}):
        broken = [0.0] * len(deals) + [float(item.fact.data.get("reason", "") == reason) for item in failures]
        yield _mean(record, "breakdown", broken, [*deals, *failures], {"unfinished": cut}, reason=reason)


def solution(record: Record) -> Iterable[Measurement]:
    """Product of both discounted shares over the largest, ¼, and distance to an even split, over all that ended.

    Who can divide a pie at once, and has nothing without a deal, ends at (½, ½) for Nash and for Kalai and Smorodinsky.
    """
    deals, failures, cut = _ends(record)
    gains = [tuple(item.fact.data["gains"].values()) for item in deals] + [(0.0, 0.0)] * len(failures)
    for name, values in (
        ("nash_product", [4 * one * other for one, other in gains]),
        ("nash_distance", [dist(each, (0.5, 0.5)) for each in gains]),
    ):
        yield _mean(record, name, values, [*deals, *failures], {"unfinished": cut})


METRICS: tuple[Metric, ...] = (self_gain, efficiency, deal_fairness, agreement, solution)
"""All of them."""
