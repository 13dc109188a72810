"""The reservoir: everything seen is kept with equal chance, and what is kept goes on after a restart."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.streams import Streams
from training.nfsp import Reservoir, value_of
from training.trajectory import Row


def row(number: int, **fields: object) -> Row:
    return Row(episode=f"run:{number}", prompt=(1, number), ids=(number, 0), options=("x", "y"), **fields)  # type: ignore[arg-type]


def kept(reservoir: Reservoir) -> list[int]:
    return [reservoir.values[place].ids[0] for place in reservoir.slots]


def test_all_are_kept_while_there_is_room() -> None:
    assert kept(Reservoir(capacity=5).added(map(row, (4, 2, 4)), Streams(0))) == [4, 2, 4]


def test_everything_seen_is_kept_with_equal_chance() -> None:
    """Of 20 seen 5 are kept: over 4,000 seeds each in 1,000. Chi-square, 19 degrees, one case in a thousand: 43.8.

    Those kept together exclude each other, which makes the statistic smaller by 15/19.
    """
    counts: Counter[int] = Counter()
    for seed in range(4000):
        counts.update(kept(Reservoir(capacity=5).added(map(row, range(20)), Streams(seed))))
    assert sum(counts.values()) == 20_000
    assert sum((counts[each] - 1000) ** 2 / 1000 for each in range(20)) < 43.8 * 15 / 19


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 60), st.integers(1, 12))
def test_parts_and_restarts_change_nothing(numbers: list[int], cut: int, capacity: int) -> None:
    luck, rows = Streams(7), [row(number) for number in numbers]
    whole = Reservoir(capacity=capacity).added(rows, luck)
    part = Reservoir(capacity=capacity).added(rows[:cut], luck)
    again = Reservoir.from_json(json.loads(json.dumps(part.to_json())))
    assert again == part
    assert kept(again.added(rows[cut:], luck)) == kept(whole)
    assert whole.seen == len(numbers)
    assert len(whole.slots) == min(capacity, len(numbers))
    assert set(whole.slots) == set(range(len(whole.values))), "nothing is stored that is not kept"


def test_equal_decisions_are_one_value_with_a_count() -> None:
    rows = [row(1, seat="a", reward=1.0), row(2), row(1, seat="b", reward=-1.0)]
    rows = [Row(**{name: getattr(one, name) for name in one.__struct_fields__}) for one in rows]
    found = Reservoir(capacity=9).added(rows, Streams(0))
    assert found.counts() == [(value_of(row(1)), 2), (value_of(row(2)), 1)]
    assert value_of(row(1)).episode == ""


def test_draws_are_uniform_and_keyed() -> None:
    reservoir = Reservoir(capacity=9).added(map(row, (1, 2, 1, 1)), Streams(0))
    drawn = reservoir.drawn(2000, Streams(3), "update", 5)
    assert drawn == reservoir.drawn(2000, Streams(3), "update", 5)
    assert sum(one.ids[0] == 1 for one in drawn) == pytest.approx(1500, abs=70)
    with pytest.raises(ValueError, match="empty"):
        Reservoir(capacity=9).drawn(1, Streams(0))
