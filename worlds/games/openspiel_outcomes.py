"""What came of an OpenSpiel game: metrics over the facts `hand` and `result`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.intervals import Z, wilson
from sim.types import JSON, Measurement, Metric, Record, RecordedFact


def normal(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95% interval of a mean from its standard error; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    half = Z * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return mean - half, mean + half


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


def _tables(items: Iterable[RecordedFact]) -> int:
    return len({item.table for item in items})


def mean_return(record: Record) -> Iterable[Measurement]:
    """Mean return of a game by seat (1 moves first in most games) and by agent; games count as independent."""
    excluded = _unfinished(record)
    for of, items in _groups(record):
        values = [item.fact.data["got"] for item in items]
        yield Measurement(
            metric="openspiel.mean_return",
            value=sum(values) / len(values),
            unit="points",
            n=len(values),
            n_clusters=_tables(items),
            ci=normal(values),
            ci_method="normal",
            excluded=excluded,
            of=of,
        )


def outcomes(record: Record) -> Iterable[Measurement]:
    """Share of games won (a higher return than all others) and drawn (nobody's is higher), by seat and by agent."""
    excluded = _unfinished(record)
    for metric, place in (("win_rate", "won"), ("draw_rate", "drew")):
        for of, items in _groups(record):
            hits = [item for item in items if item.fact.data["place"] == place]
            yield _share(metric, hits, items, excluded, of)


def _share(
    metric: str,
    hits: Sequence[RecordedFact],
    items: Sequence[RecordedFact],
    excluded: Mapping[str, int],
    of: Mapping[str, JSON],
) -> Measurement:
    return Measurement(
        metric=f"openspiel.{metric}",
        value=len(hits) / len(items),
        unit="share",
        n=len(items),
        n_clusters=_tables(items),
        ci=wilson(len(hits), len(items)),
        ci_method="wilson",
        events=tuple(item.fact.id for item in hits),
        excluded=excluded,
        of=of,
    )


METRICS: tuple[Metric, ...] = (mean_return, outcomes)
"""All of them."""
