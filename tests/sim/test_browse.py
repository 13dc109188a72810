"""Pages and moments of a stored run, against the whole log read from its start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.record.browse import END, Browse, Filter, first_divergence
from sim.record.schema import LOG
from sim.record.store import Store
from tests.sim.rows import call, decision, event, fact, manifest, member, numbered


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Browse]:
    """One table: a post, two answers to it, what was shown to whom; a second table of numbered rows."""
    path = tmp_path / "run.db"
    with Store.create(path, manifest()) as store:
        store.put("cast", member(0, "ann"))
        store.put("events", event(0, "start", []))
        store.put("facts", fact(1, 0, "post", actor="ann", audience="#a", data={"text": "Größe <b>"}))
        store.put("events", event(2, "tick", "h0"))
        store.put("decisions", decision(3, "bob", tick=5, seen=2, shows=[0]))
        store.put("facts", fact(4, 1, "comment", actor="bob", tick=5, answers=[0]))
        store.put("events", event(5, "rewards", {"ann": 1.5}, tick=5))
        store.put("decisions", decision(6, "cleo", tick=9, seen=6, shows=[0, 1]))
        store.put("facts", fact(7, 2, "vote", actor="cleo", tick=9, answers=[0]))
        store.put("facts", fact(8, 3, "vote", actor="cleo", tick=9, answers=[1]))
        store.put("events", event(9, "rewards", {"ann": -1, "bob": 2}, tick=9))
        store.put("calls", call("bob", tick=2))
        for seq in range(500):
            store.put(*numbered(seq, 1))
    with Browse(path) as browse:
        yield browse


def test_moments_are_found_by_tick_and_by_seq(run: Browse) -> None:
    assert run.end() == (9, 9)
    assert [run.moment(0, tick) for tick in (-1, 0, 4, 5, 8, 9, 99)] == [-1, 2, 2, 5, 5, 9, 9]
    assert [run.tick_at(0, seq) for seq in (0, 2, 3, 6, 99)] == [0, 0, 5, 9, 9]
    assert [run.tick_after(0, tick) for tick in (-1, 0, 5, 9)] == [0, 5, 9, None]
    assert [run.tick_before(0, tick) for tick in (99, 9, 5, 0)] == [9, 5, 0, None]


def test_moments_agree_with_the_whole_log(run: Browse) -> None:
    rows = [row for _, row in run.log(1)]
    assert run.end(1) == (499, rows[-1][2])
    for tick in (-1, 0, 1, 30, 71, 72):
        assert run.moment(1, tick) == max((row[1] for row in rows if row[2] <= tick), default=-1)


def test_a_table_without_rows_is_empty(run: Browse) -> None:
    assert run.end(7) == (-1, 0)
    assert run.moment(7, 5) == -1
    assert run.last_facts(7, END, 5) == run.last_decisions(7, END, 5) == []
    assert run.kinds(7) == {}
    assert run.tick_after(7, 0) is None


def test_pages_of_facts_go_both_ways_and_are_filtered(run: Browse) -> None:
    def ids(wanted: Filter, upto: int = END) -> list[int]:
        return [one.fact.id for one in run.last_facts(0, upto, 10, wanted)]

    assert ids(Filter()) == [3, 2, 1, 0]
    assert ids(Filter(), upto=7) == [2, 1, 0]
    assert ids(Filter(kinds=("vote", "post"))) == [3, 2, 0]
    assert ids(Filter(actors=("bob",))) == [1]
    assert ids(Filter(audience="#a")) == ids(Filter(text="<B>")) == ids(Filter(text="größe")) == [0]
    assert ids(Filter(text='"')) == []
    assert [one.fact.id for one in run.next_facts(0, 1, 2)] == [1, 2]


def test_facts_are_found_by_their_ids(run: Browse) -> None:
    assert {number: one.seq for number, one in run.facts_by_id(0, [3, 0, 77]).items()} == {3: 8, 0: 1}
    assert run.facts_by_id(1, [160])[160].seq == 480


def test_answers_to_facts_within_moments(run: Browse) -> None:
    def found(ids: list[int], upto: int = END) -> list[int]:
        return [one.fact.id for one in run.answers_to(0, ids, ("vote", "comment"), 0, upto, 9)]

    assert found([0]) == [1, 2]
    assert found([0, 1]) == [1, 2, 3]
    assert found([0], upto=5) == [1]


def test_who_was_shown_a_fact_and_when_first(run: Browse) -> None:
    post = run.facts_by_id(0, [0])[0]
    assert run.shown_to(0, post, END) == {"bob": (3, 2), "cleo": (6, 6)}
    assert run.shown_to(0, post, 5) == {"bob": (3, 2)}


def test_decisions_by_page_and_by_place(run: Browse) -> None:
    assert [one.seq for one in run.last_decisions(0, END, 9)] == [6, 3]
    assert [one.seq for one in run.last_decisions(0, END, 9, "bob")] == [3]
    found = run.decision(0, 3)
    assert found is not None
    assert found.action.agent == "bob"
    assert run.decision(0, 4) is None


def test_sums_up_to_a_moment(run: Browse) -> None:
    assert run.rewards_by(0) == {"ann": 0.5, "bob": 2}
    assert run.rewards_by(0, 5) == {"ann": 1.5}
    assert run.kinds() == {"post": 1, "comment": 1, "vote": 2}
    assert run.over_time(0, END, 2) == [("comment", 5, 1), ("post", 0, 1), ("vote", 5, 2)]
    spent = run.spent()
    assert (spent.calls, spent.prompt_tokens, spent.completion_tokens) == (1, 10, 2)


def test_the_log_between_two_moments_is_the_log(run: Browse) -> None:
    assert run.log_between(0, 2, 7) == [one for one in run.log(0) if 2 < one[1][1] <= 7]


def written(path: Path, marks: str, last: str = "a") -> Path:
    """A run of so many rounds of one decision, its hash standing for all before it."""
    with Store.create(path, manifest()) as store:
        for number, mark in enumerate(marks):
            agent = last if number == len(marks) - 1 else "a"
            store.put("decisions", decision(2 * number, agent, tick=number))
            store.put("events", event(2 * number + 1, "tick", mark, tick=number))
    return path


def test_the_first_divergence_is_found_by_the_marks(tmp_path: Path) -> None:
    with (
        Browse(written(tmp_path / "a.db", "abcdefgh")) as one,
        Browse(written(tmp_path / "b.db", "abcdeXYZ")) as other,
        Browse(written(tmp_path / "c.db", "abcd")) as start,
        Browse(written(tmp_path / "d.db", "abcdQ", last="b")) as own,
    ):
        differ = first_divergence(one, other)
        assert differ is not None
        assert [side[1][1] for side in differ] == [11, 11]
        assert first_divergence(one, start) is None
        assert first_divergence(one, one) is None
        differ = first_divergence(one, own)
        assert differ is not None
        assert [(name, row[1], row[4]) for name, row in differ] == [("decisions", 8, "a"), ("decisions", 8, "b")]


def test_every_query_is_bounded(run: Browse) -> None:
    assert len(run.last_facts(1, END, 7)) == len(run.next_facts(1, -1, 7)) == len(run.last_decisions(1, END, 7)) == 7
    assert set(LOG) == {"events", "decisions", "facts"}
