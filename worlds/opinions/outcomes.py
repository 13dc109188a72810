"""What came of opinions: metrics over the facts `opinion` and `end`, taking the tables of a run for independent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, pstdev, stdev

from sim.intervals import FEW, clustered, t_quantile
from sim.types import AgentId, Measurement, Metric, Record

LARGE = 0.05
"""Share of all agents that a cluster has to be larger than to count."""


def clusters(opinions: Sequence[float], apart: float) -> list[int]:
    """Sizes of the groups that opinions fall into, lowest opinion first; gaps above `apart` part them."""
    ordered = sorted(opinions)
    starts = [place for place, x in enumerate(ordered) if not place or x - ordered[place - 1] > apart]
    return [end - start for start, end in pairwise([*starts, len(ordered)])]


def large(opinions: Sequence[float], apart: float) -> int:
    """How many clusters have more than 5% of all."""
    return sum(size > LARGE * len(opinions) for size in clusters(opinions, apart))


def _last(record: Record) -> list[list[float]]:
    """By table, what each agent thought last."""
    found: list[dict[AgentId, float]] = [{} for _ in range(record.tables)]
    for item in record.facts("opinion"):
        found[item.table][item.fact.actor] = item.fact.data["opinion"]
    return [list(each.values()) for each in found if each]


def _mean(metric: str, values: Sequence[float], unit: str = "", excluded: int = 0) -> Measurement:
    """Mean over tables, with a t-interval."""
    m, several = len(values), len(values) > 1
    half = t_quantile(0.95, m - 1) * stdev(values) / sqrt(m) if several else 0.0
    value = fmean(values) if values else None
    return Measurement(
        metric=f"opinions.{metric}",
        value=value,
        unit=unit,
        n=m,
        n_clusters=m,
        ci=(value - half, value + half) if several and value is not None else None,
        ci_method="t over tables" if several else "",
        excluded={"not settled": excluded} if excluded else {},
        flags=() if several else (FEW,),
    )


def settled(record: Record) -> Iterable[Measurement]:
    """Clusters of last opinions that hold more than 5% of the agents, how far opinions spread, and their mean."""
    last = _last(record)
    yield _mean("clusters", [large(own, record.params["apart"]) for own in last], "clusters")
    yield _mean("spread", [pstdev(own) for own in last], "opinion")
    yield _mean("mean", [fmean(own) for own in last], "opinion")


def consensus(record: Record) -> Iterable[Measurement]:
    """Share of tables whose last opinions are one cluster; rounds until opinions settled, where they did."""
    last = _last(record)
    alike = [len(clusters(own, record.params["apart"])) == 1 for own in last]
    bounds = clustered(alike, [1] * len(alike))
    yield Measurement(
        metric="opinions.consensus",
        value=fmean(alike) if alike else None,
        unit="share",
        n=len(alike),
        n_clusters=len(alike),
        ci=bounds.ci,
        ci_method=bounds.method,
        flags=bounds.flags,
    )
    quiet = [item.fact.data["round"] for item in record.facts("end") if item.fact.data["reason"] == "settled"]
    yield _mean("rounds", quiet, "rounds", len(last) - len(quiet))


METRICS: tuple[Metric, ...] = (settled, consensus)
"""All of them."""
