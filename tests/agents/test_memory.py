"""Memory values: estimates, cutting, windows."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.memory import MOST_FACTS, START, Entry, Memory, clip, weight
from sim.types import Completion, Message, Usage


def entry(tick: int, words: int = 10) -> Entry:
    return Entry(tick=tick, seen="word " * words, did="wait", facts=(tick,))


def memory(*ticks: int) -> Memory:
    return Memory(entries=tuple(entry(tick) for tick in ticks))


def test_weight() -> None:
    assert weight("abc") == 3
    assert weight("a 12, b.") == 8 + 2 * 4
    assert weight("é") == 3
    assert weight("你好") == 10
    assert weight("👍") == 7
    assert weight("\ud800") == 3  # half a surrogate pair counts as a question mark


def test_clip_keeps_both_ends() -> None:
    assert clip("short", 5) == "short"
    assert clip("a" * 500 + "b" * 500, 100) == "a" * 26 + " [… 949 characters left out …] " + "b" * 25
    assert clip("x" * 1_000, 3) == ""


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1), st.integers(1, 40), st.integers(0, 600))
def test_clip_never_exceeds(text: str, times: int, most: int) -> None:
    cut = clip(text * times, most)
    assert weight(cut) <= most
    assert cut == text * times or "left out" in cut or cut == ""


def test_estimates_follow_usage() -> None:
    start = Memory()
    assert start.per_token == START
    messages = (Message(role="user", text="x" * 4_000),)
    seen = start.corrected(messages, Completion(text="", usage=Usage(prompt=1_008)))
    assert seen.per_token == pytest.approx(3.25)  # a quarter of the way from 3 to 4
    for _ in range(40):
        seen = seen.corrected(messages, Completion(text="", usage=Usage(prompt=1_008)))
    assert seen.per_token == pytest.approx(4, abs=0.01)
    assert seen.tokens("x" * 4_000) == pytest.approx(1_111, abs=2)  # on the safe side of 1,000
    assert start.corrected(messages, Completion(text=None)) is start


def test_estimates_stay_sane() -> None:
    messages = (Message(role="user", text="x" * 4_000),)
    wild = Memory()
    for _ in range(100):
        wild = wild.corrected(messages, Completion(text="", usage=Usage(prompt=10)))
    assert wild.per_token <= 6
    for _ in range(100):
        wild = wild.corrected(messages, Completion(text="", usage=Usage(prompt=100_000)))
    assert wild.per_token >= 1


@settings(max_examples=50, deadline=None)
@given(st.text(), st.integers(1, 2_000))
def test_what_fits_the_room_fits_the_tokens(text: str, tokens: int) -> None:
    assert Memory().tokens(clip(text * 20, Memory().room(tokens))) <= tokens


def test_recent_keeps_the_newest_without_a_gap() -> None:
    one = Memory().tokens(entry(10).text)
    whole = memory(11, 12, 13, 14)
    assert whole.recent(4 * one) == whole
    assert [each.tick for each in whole.recent(2 * one).entries] == [13, 14]
    assert whole.recent(0).entries == whole.recent(-5).entries == ()


def test_a_summary_comes_before_entries() -> None:
    whole = memory(1, 2).summarised("apples", (entry(0),))
    assert whole.text.startswith("Earlier, in short: apples\nAt 1: word")
    assert whole.facts == (0, 1, 2)
    assert whole.recent(20).text == "Earlier, in short: apples"
    assert whole.recent(20).facts == (0,)
    assert whole.recent(5).text == ""


def test_split_frees_room() -> None:
    one = Memory().tokens(entry(10).text)
    old, rest = memory(11, 12, 13, 14).split(2 * one)
    assert ([each.tick for each in old], [each.tick for each in rest.entries]) == ([11, 12], [13, 14])
    old, rest = memory(11, 12).split(100 * one)
    assert len(old) == 1
    assert Memory().split(0) == ((), Memory())


def test_facts_of_a_summary_are_the_newest_once() -> None:
    many = Entry(tick=0, seen="", did="", facts=tuple(range(1_000)))
    once = Memory().summarised("s", (many, many))
    assert once.summary_facts == tuple(range(1_000 - MOST_FACTS, 1_000))
    assert once.summarised("t", (entry(2_000),)).summary_facts[-1] == 2_000


def test_one_turn_cannot_fill_the_memory() -> None:
    one = Memory().with_turn(Entry(tick=1, seen="x" * 9_000, did="y" * 9_000), 300).entries[0]
    assert weight(one.seen) <= 200
    assert weight(one.did) <= 100


def test_memory_is_a_value() -> None:
    with pytest.raises(FrozenInstanceError):
        Memory().summary = "x"  # type: ignore[misc]
