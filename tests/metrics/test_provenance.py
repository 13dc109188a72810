"""The information-flow graph, exposure tables and cascades, on records written by hand."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx as nx
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.frames import frames
from sim.metrics.provenance import (
    ancestors,
    flows,
    known,
    latest_parents,
    made,
    own_doing,
    reach,
    sources,
    tied_parents,
)
from sim.metrics.society.cascades import Cascade, cascades, structural_virality, threads, time_to_half
from sim.metrics.society.tails import vuong
from sim.metrics.statistics.exposure import person_periods, placebo
from sim.record.reader import Run
from tests.metrics.society import Society, values


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """ann says 0; bob sees it and says 1; cid sees 1 alone, remembers nothing, says 2; dan recalls 0 and says 3."""
    society = Society(tmp_path / "run.db")
    for agent in ("ann", "bob", "cid", "dan"):
        society.member(agent)
    society.say("ann", 1, "psst")
    society.say("bob", 4, "psst", shows=[0], seen=2)
    society.say("cid", 6, "psst", shows=[1], audience=["ann"])
    society.look("dan", 7, [0, 1])
    society.say("dan", 9, "well", recalls=[0], shows=[1])
    society.look("ann", 12, [2])
    society.fact(13, "notice", text="rain")
    return society.run()


def test_facts_come_of_decisions(run: Run) -> None:
    assert made(frames(run)).select("agent", "tick", "fact").rows() == [
        ("ann", 1, 0),
        ("bob", 4, 1),
        ("cid", 6, 2),
        ("dan", 9, 3),
    ]
    assert sources(frames(run)).rows() == [(0, 1, 0), (0, 2, 1), (0, 3, 0), (0, 3, 1)]


def test_who_could_know_what_from_whom_since_when(run: Run) -> None:
    rows = known(frames(run)).select("agent", "fact", "source", "since").rows()
    assert rows == [
        ("bob", 0, "ann", 2),
        ("cid", 1, "bob", 6),
        ("dan", 0, "ann", 7),
        ("dan", 1, "bob", 7),
        ("ann", 2, "cid", 12),
    ]


def test_recipients_are_those_who_saw_it(run: Run) -> None:
    sent = flows(frames(run)).filter(pl.col("fact") == 2)
    assert sent.select("sender", "recipient", "since", "audience").rows() == [("cid", "ann", 12, '["ann"]')]


def test_who_is_named_has_it_though_no_turn_follows(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    society.member("bob")
    society.say("ann", 1, "psst", audience=("ann", "bob", "cid"))
    society.look("cid", 2, [0])
    society.say("ann", 3, "hello")
    run = society.run()
    assert flows(frames(run)).select("recipient").rows() == [("cid",)]
    both = flows(frames(run), delivered=True).select("fact", "recipient", "since")
    assert both.rows() == [(0, "bob", 1), (0, "cid", 2)]


def test_ancestors_go_through_any_number_of_decisions(run: Run) -> None:
    assert ancestors(frames(run), 0, 2) == {0, 1}
    assert ancestors(frames(run), 0, 3) == {0, 1}
    assert ancestors(frames(run), 0, 0) == frozenset()


def test_the_latest_seen_is_the_parent(run: Run) -> None:
    carriers = pl.DataFrame({"tbl": [0] * 4, "fact": [0, 1, 2, 3]})
    parents = latest_parents(frames(run), carriers)
    assert parents.select("fact", "parent").rows() == [(0, None), (1, 0), (2, 1), (3, 1)]


def test_what_was_made_and_seen_at_once_shares_what_comes_of_it(tmp_path: Path) -> None:
    """Cid sees ann's and bob's of one tick and an older one of dan's at once; dan sees bob's later than ann's."""
    society = Society(tmp_path / "run.db")
    for name in ("ann", "bob", "cid", "dan"):
        society.member(name)
    old = society.say("dan", 1, "x")
    one, two = society.say("ann", 2, "x"), society.say("bob", 2, "x")
    society.say("cid", 3, "x", shows=[old, one, two])
    society.look("dan", 4, [one])
    society.say("dan", 5, "x", shows=[two])
    run = society.run()
    carriers = pl.DataFrame({"tbl": [0] * 5, "fact": range(5)})
    rows = tied_parents(frames(run), carriers).filter(pl.col("fact") > 2).select("fact", "parent", "part").rows()
    assert rows == [(3, one, 0.5), (3, two, 0.5), (4, two, 1.0)]
    assert latest_parents(frames(run), carriers)["parent"].to_list() == [None, None, None, two, two]


def test_reach(run: Run) -> None:
    found = values(reach(run))
    assert found["provenance.reach"].value == pytest.approx(5 / 4)
    assert found["provenance.reach"].n == 4
    assert found["provenance.reach kind=message"].value == pytest.approx(5 / 4)


def test_nothing_happened(tmp_path: Path) -> None:
    run = Society(tmp_path / "run.db").run()
    assert values(reach(run))["provenance.reach"].value is None
    assert all(one.value is None for one in threads(run))


# --- exposure tables ---------------------------------------------------------------------------------------


def exposed(run: Run, **more: int) -> list[tuple[object, ...]]:
    carriers = pl.DataFrame({"tbl": [0], "fact": [0]})
    outcomes = pl.DataFrame({"tbl": [0, 0], "fact": [1, 3]})
    rows = person_periods(frames(run), outcomes, carriers, **more)
    rows = placebo(frames(run), rows, carriers, **more)
    return list(rows.select("agent", "nth", "y", "e", "future").rows())


def test_a_row_for_each_decision(run: Run) -> None:
    assert exposed(run) == [
        ("ann", 0, False, False, False),
        ("ann", 1, False, False, False),
        ("bob", 0, True, True, False),
        ("cid", 0, False, False, False),
        ("dan", 0, False, True, False),
        ("dan", 1, True, False, False),
    ]


def test_a_window_reaches_back_and_its_placebo_ahead(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    society.member("bob")
    society.say("ann", 1, "psst")
    for tick in range(2, 7):
        society.look("bob", tick, [0] if tick >= 4 else [])
    run = society.run()
    bob = [row[2:] for row in exposed(run, window=2) if row[0] == "bob"]
    nothing, ahead, there = (False, False, False), (False, False, True), (False, True, False)
    assert bob == [ahead, ahead, there, there, nothing]


@pytest.mark.parametrize("names", [("ann", "bob", "cid"), ("zoe", "yan", "xi")])
def test_what_came_of_the_agent_itself_is_no_placebo(tmp_path: Path, names: tuple[str, str, str]) -> None:
    """ann speaks; bob who saw it and cid who did not tell her something. What came through bob is of her own doing."""
    ann, bob, cid = names
    society = Society(tmp_path / "run.db")
    for name in names:
        society.member(name)
    first, apart = society.say(ann, 1, "psst"), society.say(cid, 1, "psst")
    through = society.say(bob, 2, "psst", shows=[first])
    heard = society.say(bob, 3, "so it goes", shows=[first])
    further = society.say(cid, 4, "psst", shows=[heard])
    for tick, told in enumerate((through, further, apart), 5):
        society.look(ann, tick, [told])
    run = society.run()
    read = frames(run)
    carriers = pl.DataFrame({"tbl": [0] * 3, "fact": [through, further, apart]})
    for window, future in ((1, [False, True, True, False]), (2, [False, True, True, False]), (3, [True] * 3 + [False])):
        rows = placebo(read, person_periods(read, carriers, carriers), carriers, window)
        assert rows.filter(pl.col("agent") == ann).sort("nth")["future"].to_list() == future
    whole = pl.DataFrame({"tbl": [0] * 3, "agent": [ann] * 3, "seq": [0] * 3, "fact": [through, further, apart]})
    assert own_doing(read, whole)["fact"].to_list() == [through, further]
    later = whole.with_columns(pl.lit(read.decisions.filter(pl.col("agent") == ann)["seq"].to_list()[-1]).alias("seq"))
    assert own_doing(read, later).is_empty()


def test_after_the_first_outcome_an_agent_is_no_longer_at_risk(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    for tick in (1, 2, 3):
        society.say("ann", tick, "psst")
    run = society.run()
    rows = person_periods(frames(run), pl.DataFrame({"tbl": [0], "fact": [1]}), frames(run).answers, first=True)
    assert rows["y"].to_list() == [False, True]
    assert rows["dose"].to_list() == [0, 0]


# --- cascades ----------------------------------------------------------------------------------------------


def test_the_worked_example_of_virality() -> None:
    assert structural_virality({0: None, 1: 0, 2: 0, 3: 0}) == pytest.approx(1.5)


def test_shapes() -> None:
    assert cascades({}) == []
    assert cascades({7: None}) == [Cascade(1, 0, 1, None)]
    chain, star = {0: None, 1: 0, 2: 1, 3: 2}, {"r": None, "a": "r", "b": "r"}
    assert cascades({**chain, **star}) == [
        Cascade(4, 3, 1, pytest.approx(10 / 6)),
        Cascade(3, 1, 2, pytest.approx(4 / 3)),
    ]
    assert time_to_half([]) is None
    assert time_to_half([5, 1, 2, 9]) == 1


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.permutations(range(21)))
def test_virality_is_the_mean_distance_whatever_nodes_are_called(parents: list[int], names: list[int]) -> None:
    tree: dict[int, int | None] = {0: None}
    for node, parent in enumerate(parents, 1):
        tree[node] = parent % node
    graph = nx.Graph((node, parent) for node, parent in tree.items() if parent is not None)
    distances = dict(nx.all_pairs_shortest_path_length(graph))
    pairs = list(combinations(tree, 2))
    expected = sum(distances[a][b] for a, b in pairs) / len(pairs)
    renamed = {names[node]: None if parent is None else names[parent] for node, parent in reversed(tree.items())}
    assert structural_virality(renamed) == pytest.approx(expected)


def test_threads_of_answers(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    for tick, answers in enumerate(([], [0], [0], [1, 2], [])):
        society.fact(tick, "post", "ann", answers=answers)
    found = values(threads(society.run()))
    assert found["cascade.size"].value == pytest.approx((4 + 1) / 2)
    assert found["cascade.depth"].value == pytest.approx(2 / 2)
    assert (found["cascade.virality"].value, found["cascade.virality"].n) == (pytest.approx(10 / 6), 1)
    assert found["cascade.virality"].excluded == {"cascades of one": 1}
    assert (found["cascade.time_to_half"].value, found["cascade.time_to_half"].n) == (1, 1), "two of four at tick 1"
    assert (found["cascade.tail"].value, found["cascade.tail"].flags) == (
        None,
        ("fewer than 50 cascades, or all alike",),
    )
    assert found["cascade.share_of_one"].value == 0.5


def test_of_several_parents_the_one_seen_last_counts(tmp_path: Path) -> None:
    """bob saw the second post before the first, and answers both: he follows the first, as ann does. One is left."""
    society = Society(tmp_path / "run.db")
    society.member("ann")
    society.member("bob")
    first, second = (society.fact(1, "post", "ann") for _ in range(2))
    society.look("bob", 2, [second])
    society.look("bob", 3, [first])
    society.fact(4, "post", "bob", answers=[first, second])
    society.fact(5, "post", "ann", answers=[first])
    found = values(threads(society.run()))
    assert (found["cascade.size"].value, found["cascade.breadth"].value) == ((3 + 1) / 2, (2 + 1) / 2)
    assert found["cascade.share_of_one"].value == 0.5


def test_many_cascades_have_a_tail(tmp_path: Path) -> None:
    """Sixty chains of one to eight, most of them short: what `vuong` says of their sizes."""
    society = Society(tmp_path / "run.db")
    society.member("ann")
    sizes = [1] * 30 + [2] * 15 + [3] * 8 + [5] * 5 + [8] * 2
    for size in sizes:
        above: list[int] = []
        for tick in range(size):
            above = [society.fact(tick, "post", "ann", answers=above)]
    found, wanted = values(threads(society.run()))["cascade.tail"], vuong(sizes)
    assert wanted is not None
    assert found.value == pytest.approx(wanted.ratio)
    assert found.ci == pytest.approx(wanted.ci)
    assert (found.n, found.null["p"]) == (60, pytest.approx(wanted.p))
