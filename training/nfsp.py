"""The reservoir of neural fictitious self-play: best-response decisions, each seen one kept with equal chance.

A decision is kept by value: what its asker saw and said, nothing of where and by whom, so equal ones are stored once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from sim.streams import Streams
from sim.types import JSON
from training.trajectory import Row


class Reservoir(Struct, frozen=True, kw_only=True):
    """A uniform sample of all decisions seen so far (Vitter 1985, algorithm R).

    The n-th decision's luck is keyed by n, so no generator's state has to be kept.
    """

    capacity: int
    seen: int = 0
    values: tuple[Row, ...] = ()
    """Distinct decisions; of a row's fields only those that say what was asked and said."""
    slots: tuple[int, ...] = ()
    """Places in `values`, one per decision kept."""

    def to_json(self) -> JSON:
        """As a JSON value."""
        return msgspec.to_builtins(self)

    @classmethod
    def from_json(cls, data: JSON) -> Reservoir:
        """From what `to_json` gave. Raises msgspec.ValidationError."""
        return msgspec.convert(data, cls)

    def added(self, rows: Iterable[Row], streams: Streams) -> Reservoir:
        """After more decisions, in this order; `streams` are the same ones every time."""
        values, slots, seen = list(self.values), list(self.slots), self.seen
        places = {value: place for place, value in enumerate(values)}
        for row in rows:
            slot = seen if seen < self.capacity else streams.integer(0, seen, "reservoir", seen)
            seen += 1
            if slot >= self.capacity:
                continue
            place = places.setdefault(value_of(row), len(places))
            if place == len(values):
                values.append(value_of(row))
            slots[slot : slot + 1] = [place]
        kept = dict.fromkeys(slots)
        renamed = {place: number for number, place in enumerate(kept)}
        return Reservoir(
            capacity=self.capacity,
            seen=seen,
            values=tuple(values[place] for place in kept),
            slots=tuple(renamed[place] for place in slots),
        )

    def counts(self) -> list[tuple[Row, int]]:
        """Every distinct decision with how often it is kept."""
        found = Counter(self.slots)
        return [(value, found[place]) for place, value in enumerate(self.values)]

    def drawn(self, count: int, streams: Streams, *about: str | int) -> list[Row]:
        """So many of the kept decisions, with replacement, uniformly. Raises ValueError where none are kept."""
        if not self.slots:
            raise ValueError("the reservoir is empty")
        return [self.values[streams.choice(self.slots, *about, number)] for number in range(count)]


def value_of(row: Row) -> Row:
    """The row without what does not matter to whoever learns to say the same."""
    return Row(
        episode="", prompt=row.prompt, ids=row.ids, options=row.options, temperature=row.temperature, key=row.key
    )
