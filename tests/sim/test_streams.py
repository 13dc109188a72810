"""Keyed draws: a function of (seed, path) and of nothing else."""

from __future__ import annotations

import random
import threading
from statistics import fmean

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.streams import Root, Streams

PATHS = st.lists(st.one_of(st.text(max_size=8), st.integers(-1000, 10**9)), max_size=4).map(tuple)


@settings(max_examples=50, deadline=None)
@given(PATHS, PATHS, st.integers(0, 2**40))
def test_equal_paths_equal_draws_other_paths_other_draws(
    one: tuple[str | int, ...], two: tuple[str | int, ...], seed: int
) -> None:
    streams = Streams(seed)
    assert streams.bits(*one) == Streams(seed).bits(*one)
    assert (streams.bits(*one) == streams.bits(*two)) == (one == two)
    assert streams.sub(*one).bits(*two) == streams.bits(*one, *two)
    assert 0 <= streams.draw(*one) < 1


@settings(max_examples=50, deadline=None)
@given(PATHS, PATHS, st.text(max_size=8), st.integers(0, 10**9), st.integers(0, 9), st.booleans())
def test_what_is_drawn_at_every_wake_is_what_draw_gives(
    one: tuple[str | int, ...], two: tuple[str | int, ...], agent: str, tick: int, number: int, forked: bool
) -> None:
    streams = Streams(3, one)
    streams.replicate(forked)
    assert streams.by_wake(*two)(agent, tick, number) == streams.draw(*two, agent, tick, number)


def test_uniform_mean_and_53_bits() -> None:
    draws = [Streams(1).draw("u", i) for i in range(4000)]
    assert abs(fmean(draws) - 0.5) < 0.02
    assert any(int(draw * 2**53) % 2 for draw in draws)


def test_integers_choices_and_shuffles_cover_their_range() -> None:
    streams = Streams(3)
    assert {streams.integer(2, 4, i) for i in range(100)} == {2, 3, 4}
    assert {streams.choice("abc", i) for i in range(100)} == set("abc")
    assert sorted(streams.shuffled(range(9), "s")) == list(range(9))
    assert streams.shuffled(range(9), "s") == streams.shuffled(range(9), "s") != streams.shuffled(range(9), "t")


def test_a_replicate_changes_later_draws_of_one_table_only() -> None:
    root = Root(5)
    table, other = Streams(root, ("table", 0)), Streams(Root(5), ("table", 1))
    before, there = table.draw("x"), other.draw("x")
    apart = table.apart()
    table.replicate(2)
    assert table.draw("x") != before
    assert table.sub("x").draw() != before
    assert apart.draw("x") == before
    assert other.draw("x") == there
    again = table.draw("x")
    table.replicate(0)
    assert table.draw("x") == again, "replicate 0 is the untreated run itself"


def test_global_random_state_is_neither_read_nor_written() -> None:
    stop = threading.Event()

    def hammer() -> None:
        while not stop.is_set():
            random.seed(1)
            random.random()

    expected = [Streams(9).generator("g", i).random() for i in range(200)]
    thread = threading.Thread(target=hammer)
    thread.start()
    try:
        state_free = [Streams(9).generator("g", i).random() for i in range(200)]
    finally:
        stop.set()
        thread.join()
    assert state_free == expected
