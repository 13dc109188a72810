"""A metric again, of what models really chose: without the decisions that were put in their place.

What came of a default or a fault is left out with it, so the difference between both numbers says what these did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any

import polars as pl
from msgspec.structs import replace

from sim.metrics.frames import frames
from sim.metrics.provenance import made
from sim.types import JSON, AgentId, Measurement, Member, Metric, Record, RecordedDecision, RecordedFact

CHOSEN = ("chosen", "retried")


def chosen_only(metric: Metric) -> Metric:
    """The metric of a record without decisions that were not chosen and the facts that came of them."""

    @wraps(metric)
    def measured(record: Record) -> Iterator[Measurement]:
        for one in metric(_Chosen(record)):
            yield replace(one, of={**one.of, "decisions": "chosen"})

    return measured


def both(metric: Metric) -> Metric:
    """The metric, and again of what was chosen where there are decisions that were not."""

    def measured(record: Record) -> Iterator[Measurement]:
        yield from metric(record)
        if substituted(record):
            yield from chosen_only(metric)(record)

    return measured


def unsaid(record: Record, found: Iterable[tuple[Metric, Sequence[Measurement]]]) -> Iterator[Metric]:
    """Of metrics, with what they found, those again that did not say so by themselves what was chosen, where anything
    was not. What is about honesty, or failed, has nothing to say of that."""
    for metric, numbers in found if substituted(record) else ():
        if not any("decisions" in one.of or one.metric.startswith("honesty.") or ":" in one.metric for one in numbers):
            yield chosen_only(metric)


def substituted(record: Record) -> bool:
    """Whether there are decisions that were not chosen."""
    return not frames(record).decisions["how"].is_in(CHOSEN).all()


class _Chosen:
    """The record, but for such decisions and facts."""

    def __init__(self, record: Record) -> None:
        self._record = record

    @property
    def params(self) -> Mapping[str, JSON]:
        return self._record.params

    @property
    def tables(self) -> int:
        return self._record.tables

    def cast(self, table: int = 0) -> Sequence[Member]:
        return self._record.cast(table)

    def rewards(self, table: int = 0) -> Mapping[AgentId, float]:
        return self._record.rewards(table)

    def facts(self, kind: str | None = None, table: int | None = None) -> Iterator[RecordedFact]:
        return (one for one in self._record.facts(kind, table) if (one.table, one.seq) not in self._left_out)

    def decisions(self, table: int | None = None) -> Iterator[RecordedDecision]:
        return (one for one in self._record.decisions(table) if one.action.how in CHOSEN)

    def pages(self, name: str) -> Iterator[list[tuple[Any, ...]]]:
        for page in self._record.pages(name):
            kept = page if name not in ("facts", "decisions") else [r for r in page if r[:2] not in self._left_out]
            yield kept

    @cached_property
    def _left_out(self) -> frozenset[tuple[int, int]]:
        """Tables and places in the log."""
        read = frames(self._record)
        bad = read.decisions.filter(~pl.col("how").is_in(CHOSEN)).select("tbl", "seq")
        came = made(read).join(bad, on=["tbl", "seq"]).select("tbl", "fact")
        facts = read.facts.join(came, left_on=["tbl", "id"], right_on=["tbl", "fact"]).select("tbl", "seq")
        return frozenset(pl.concat([bad, facts]).iter_rows())
