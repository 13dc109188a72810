"""What came of an OpenSpiel game: metrics over the facts `hand` and `result`.

The tables of a run are the clusters: those who play one game after the other may learn from them, and luck is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sim.intervals import Interval, by_cluster, clustered, clustered_mean
from sim.types import JSON, Measurement, Metric, Record, RecordedFact


def _groups(record: Record) -> Iterator[tuple[dict[str, JSON], list[RecordedFact]]]:
    """The results by seat of the game and by agent."""
    groups: dict[tuple[str, JSON], list[RecordedFact]] = {}
    for item in record.facts("result"):
        for of in ("seat", "agent"):
            groups.setdefault((of, item.fact.data[of]), []).append(item)
    for (of, whom), items in sorted(groups.items(), key=lambda group: (group[0][0] == "agent", group[0][1])):
        yield {of: whom}, items


def _unfinished(record: Record) -> dict[str, int]:
    """Games that were begun and not played to their end."""
    finished = {(item.table, item.fact.data["hand"]) for item in record.facts("result")}
    left = sum(1 for _ in record.facts("hand")) - len(finished)
    return {"unfinished": left} if left else {}


def mean_return(record: Record) -> Iterable[Measurement]:
    """Mean return of a game by seat (1 moves first in most games) and by agent."""
    excluded = _unfinished(record)
    for of, items in _groups(record):
        values = [float(item.fact.data["got"]) for item in items]
        yield _measured("mean_return", items, values, clustered_mean, unit="points", excluded=excluded, of=of)


def outcomes(record: Record) -> Iterable[Measurement]:
    """Share of games won (a higher return than all others) and drawn (nobody's is higher), by seat and by agent."""
    excluded = _unfinished(record)
    for metric, place in (("win_rate", "won"), ("draw_rate", "drew")):
        for of, items in _groups(record):
            values = [float(item.fact.data["place"] == place) for item in items]
            hits = [(item.table, item.fact.id) for item, hit in zip(items, values, strict=True) if hit]
            events = tuple(hits if record.tables > 1 else (fact for _, fact in hits))
            yield _measured(metric, items, values, clustered, unit="share", events=events, excluded=excluded, of=of)


def _measured(
    metric: str,
    items: Sequence[RecordedFact],
    values: Sequence[float],
    interval: Callable[[Sequence[float], Sequence[float]], Interval],
    **more: Any,
) -> Measurement:
    """The mean over games of one value each."""
    sums, sizes = by_cluster((item.table, value) for item, value in zip(items, values, strict=True))
    bounds = interval(sums, sizes)
    return Measurement(
        metric=f"openspiel.{metric}",
        value=sum(values) / len(values),
        n=len(values),
        n_clusters=len(sizes),
        ci=bounds.ci,
        ci_method=bounds.method,
        flags=bounds.flags,
        **more,
    )


METRICS: tuple[Metric, ...] = (mean_return, outcomes)
"""All of them."""
