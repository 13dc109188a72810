"""The facts behind a number, as measurements name them."""

from __future__ import annotations

from collections.abc import Iterable

from sim.types import Event, FactId, Record, RecordedFact


def cited(record: Record, facts: Iterable[tuple[int, FactId]]) -> tuple[Event, ...]:
    """Facts by table and id: their ids alone where the record has one table."""
    return tuple(facts) if record.tables > 1 else tuple(fact for _, fact in facts)


def places(items: Iterable[RecordedFact]) -> Iterable[tuple[int, FactId]]:
    """Table and id of facts."""
    return ((item.table, item.fact.id) for item in items)
