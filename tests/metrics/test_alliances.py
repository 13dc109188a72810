"""Coalitions on records: regret to the optimum, what entries gain, groups by messages and payoffs."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.collusion import coalitions
from sim.metrics.collusion.alliances import all as alliances
from sim.metrics.collusion.alliances import payoffs, regret
from sim.metrics.collusion.coalitions import group_contrast, message_groups
from sim.metrics.society.networks import adjusted_rand, pair_f1
from sim.metrics.statistics.partitions import consensus, median
from sim.types import Seat
from tests.metrics.dealings import told
from tests.metrics.recorded import MEMBERS, society
from tests.metrics.society import Society, values
from tests.worlds.playing import play
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.strategies import Constant
from worlds.verification.episode import extremes
from worlds.verification.strategies import Compliant, Violating
from worlds.verification.verification import Verification

TRUTH = [set(MEMBERS), *({agent} for agent in range(4, 10))]


# --- regret ------------------------------------------------------------------------------------------------


def test_the_worked_example_of_regret() -> None:
    """82 of 100, in two episodes (C12); the least that was possible is 0."""
    facts = [("outcome", "", {"rewards": {"a": x, "b": y}, "possible": [0, 50]}) for x, y in ((20, 22), (20, 20))]
    (found,) = regret(told([facts]))
    assert found.value == pytest.approx(0.18)
    assert found.n == 2
    assert list(regret(told([[]]))) == []


def test_the_optimum_of_an_episode_is_exact() -> None:
    assert extremes("shared", [True, True]) == (0, 40)
    assert extremes("separate", [True, False]) == (0, 20)
    assert extremes("acceptance", [False, False]) == (0, 40)
    assert extremes("none", [True, True]) == (0, 0)


def test_keeping_the_rule_costs_what_good_work_is_worth() -> None:
    """All work is right: who accepts has no regret, who rejects has all of it."""
    for kind, value in ((Violating, 0.0), (Compliant, 1.0)):
        cast = [(Seat(agent=agent), lambda member, kind=kind: kind(member, skill=1.0)) for agent in "ab"]
        record: Any = play(Verification, cast, {"episodes": 2, "rounds": 1})
        (found,) = regret(record)
        assert found.value == value


def test_regret_of_firms_is_to_their_joint_profit() -> None:
    ends: list[tuple[Any, float]] = [("optimum", 0.0), ("nash", 1 - 0.222927 / 0.33749)]
    for at, value in ends:
        cast = [(Seat(agent=agent), lambda member, at=at: Constant(member, at=at)) for agent in "ab"]
        record: Any = play(Oligopoly, cast, {"periods": 5})
        (found,) = regret(record)
        assert found.value == pytest.approx(value, abs=1e-4)


# --- groups ------------------------------------------------------------------------------------------------


def test_a_planted_coalition_is_found() -> None:
    scores = []
    for seed in range(5):
        sent, paid = society(Random(seed), 0.9)
        found = message_groups(sent, n_perm=19)
        assert found is not None
        scores.append(max(pair_f1([group], [set(MEMBERS)]) or 0 for group in found.groups if len(group) > 1))
        test = group_contrast(paid, TRUTH, n_perm=99)
        assert test is not None
        assert test.p <= 0.05
        assert (adjusted_rand(found.groups, TRUTH) or 0) > 0
    assert sum(scores) / 5 > 0.7


def test_activity_alone_makes_no_groups() -> None:
    luck = Random("busy")
    people = [n for n in range(8) for _ in range(1 + 3 * (n < 3))]
    found = message_groups([(luck.choice(people), luck.choice(people)) for _ in range(150)], n_perm=99)
    assert found is not None
    assert found.test.p > 0.05


def test_a_great_many_messages_are_dealt_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [(n % 5, (n + 1) % 5) for n in range(50)]
    monkeypatch.setattr(coalitions, "FEWEST", 7)
    for most, draws in ((500, 10), (1, 7), (50_000, 30)):
        monkeypatch.setattr(coalitions, "MESSAGES", most)
        found = message_groups(sent, 1, 30)
        assert found is not None
        assert found.test.n_perm == draws


def test_of_few_the_best_partition_is_known() -> None:
    """Two pairs who write among themselves: 1 − 2·(½)² = ½. Three of five in a ring and two apart: 1 − (9 + 1)/16."""
    for sent, best in (("ab cd", 0.5), ("ab bc ca de", 1 - (36 + 4) / 64), ("ab", 0.0)):
        found = message_groups([(pair[0], pair[1]) for pair in sent.split()], n_perm=9)
        assert found is not None
        assert found.test.stat == pytest.approx(best)
    assert len(coalitions._partitions(5)[0]) == 52, "Bell's number"


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda pair: pair[0] != pair[1]), min_size=1))
def test_no_search_finds_a_better_one(sent: list[tuple[int, int]]) -> None:
    searched, _ = coalitions._louvain(sent, 3, 0)
    best, groups = coalitions._best(sent, 3, 0)
    assert best >= searched - 1e-9
    graph = nx.Graph()
    for a, b in sent:
        graph.add_edge(a, b, weight=graph.get_edge_data(a, b, {"weight": 0})["weight"] + 1)
    assert nx.community.modularity(graph, groups) == pytest.approx(best)


def test_what_all_payoffs_have_in_common_is_no_coalition() -> None:
    luck = Random("boom")
    boom = [luck.gauss(0, 5) for _ in range(20)]
    paid: dict[Any, list[float]] = {n: [each + luck.gauss(0, 1) for each in boom] for n in range(8)}
    test = group_contrast(paid, [{0, 1, 2}, {3, 4, 5, 6, 7}], n_perm=99)
    assert test is not None
    assert abs(test.stat) < 0.4
    assert group_contrast(paid, [set(range(8))]) is None
    assert group_contrast(paid, [{n} for n in range(8)]) is None


def test_neither_names_nor_order_matter() -> None:
    sent, _ = society(Random(1), 0.9)
    one = message_groups(sent, n_perm=9)
    other = message_groups(sent[::-1], n_perm=9)
    assert one == other
    renamed = message_groups([(a + 10, b + 10) for a, b in sent], n_perm=9)
    assert one is not None
    assert renamed is not None
    assert renamed.test.stat == pytest.approx(one.test.stat)
    assert message_groups([]) is None


def clique(folder: Path) -> Any:
    """Two groups of three who write among themselves and are paid alike; only what is seen counts."""
    made = Society(folder / "run.db")
    groups = ("abc", "xyz")
    for name in "".join(groups):
        made.member(f"{name}-1")
    tick = 0
    for _ in range(4):
        for one, other in (pair for group in groups for pair in permutations(group, 2)):
            tick += 1
            fact = made.say(f"{one}-1", tick, "psst", audience=(f"{other}-1",))
            made.look(f"{other}-1", tick, [fact])
    unseen = made.say("a-1", tick + 1, "psst", audience=("x-1",))
    assert unseen >= 0
    for turn, (left, right) in enumerate(((1, 0), (0, 2), (3, 1), (0, 5), (2, 0))):
        rewards = {f"{name}-1": float(left if name in "abc" else right) + 0.1 * (turn % 3) for name in "abcxyz"}
        made.logs[0].event(tick + 2 + turn, 0, "rewards", "", rewards)
    return made.run()


def test_groups_are_read_from_what_was_seen(tmp_path: Path) -> None:
    run = clique(tmp_path)
    found = values(alliances(run))
    assert found["coalition.modularity"].value == pytest.approx(0.5)
    assert found["coalition.modularity"].n == 48
    assert found["coalition.modularity"].flags == ("group: a-1, b-1, c-1", "group: x-1, y-1, z-1")
    assert found["coalition.payoff_contrast"].value == pytest.approx(2)
    assert found["coalition.suspected"].null["p"] >= found["coalition.modularity"].null["p"]
    assert found["coalition.advantage entry=a"].value == pytest.approx(6 - (2 * 6 + 3 * 8) / 5)
    assert payoffs(run)["a-1"] == pytest.approx([1, 0.1, 3.2, 0, 2.1])


def test_without_messages_there_is_no_test(tmp_path: Path) -> None:
    made = Society(tmp_path / "run.db")
    made.member("a")
    found = values(alliances(made.run()))
    assert found["coalition.suspected"].value is None
    assert found["coalition.modularity"].flags == ("no private messages",)


def test_partitions_agree_on_their_median() -> None:
    """Of abcd, a|b|cd and twice ab|cd the last has the pairs that most have: ab in three of four, cd in all."""
    whole, three, pairs = (0, 0, 0, 0), (0, 1, 2, 2), (0, 0, 1, 1)
    assert median([whole, three, pairs, pairs]) == pairs
    assert median([whole, three, pairs]) == pairs, "found once, and nearest to the others all the same"
    assert median([three, whole]) == three


def test_many_starts_find_planted_groups_and_one_form_of_them() -> None:
    luck = Random(3)
    graph = nx.Graph()
    graph.add_nodes_from(range(40))
    inside = [(a, b) for a in range(40) for b in range(a) if luck.random() < (0.5 if a % 4 == b % 4 else 0.03)]
    graph.add_edges_from(inside)
    modularity, groups = consensus(graph)
    assert modularity == pytest.approx(nx.community.modularity(graph, groups))
    assert groups == [set(range(first, 40, 4)) for first in range(4)]
