"""Economy, inequality, fairness, networks, ratings, games, influence: worked examples, theory, edges, invariances."""

from __future__ import annotations

from itertools import product
from math import exp, log
from pathlib import Path
from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import ks_2samp, wasserstein_distance

from sim.metrics.collusion import market
from sim.metrics.collusion.market import (
    dispersion,
    effective_firms,
    hhi,
    pass_through,
    price_range,
    variance_ratio,
    variance_screen,
)
from sim.metrics.society import networks
from sim.metrics.society.bargaining import (
    envy_free_but_one,
    max_envy,
    nash_product,
    nash_ratio,
    proportional_share,
    rationality_violations,
)
from sim.metrics.society.cooperation import cooperation_after, cooperation_rate, cross_play_gap, first_defection
from sim.metrics.society.economy import efficiency, nash_welfare, seller_share, welfare, welfare_ratio
from sim.metrics.society.games import expected, external_regret, nash_conv, regret_growth, swap_regret
from sim.metrics.society.inequality import absolute_gini, gini, lorenz, reward_gini, reward_inequality, theil
from sim.metrics.society.influence import causal_influence, leave_one_out, shapley, shapley_share
from sim.metrics.society.likeness import f1, log_score, step_accuracy
from sim.metrics.society.networks import (
    adjusted_rand,
    answering,
    assortativity,
    clustering,
    communities,
    mean_degree,
    modularity,
    pair_f1,
    reciprocity,
)
from sim.metrics.society.polarisation import affective, bimodality, esteban_ray
from sim.metrics.society.ratings import (
    Glicko,
    Skill,
    alpha_rank,
    bradley_terry,
    elo_expected,
    elo_update,
    glicko2,
    plackett_luce,
)
from sim.metrics.statistics.distances import entropy, jensen_shannon, kl, ks, normalised, shares, wasserstein
from tests.metrics.society import Society, values

TRIANGLES = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "f"), ("f", "d"), ("c", "d")]
BEATS = {"R": "S", "S": "P", "P": "R"}
RPS = {(a, b): float((BEATS[a] == b) - (BEATS[b] == a)) for a in "RPS" for b in "RPS"}
ONE_SIDE = [RPS, {(a, b): -value for (a, b), value in RPS.items()}]
THIRDS = dict.fromkeys("RPS", 1 / 3)


def match(own: object, other: object) -> float:
    return 1.0 if own == other else -1.0


def test_worked_examples_of_the_economy() -> None:
    assert efficiency([10, 8, 5], [2, 4, 6], [(8, 2), (10, 6)]) == pytest.approx(0.833333, abs=5e-7)
    assert seller_share(10, 2, 7) == pytest.approx(0.625)
    assert welfare_ratio([10, 5, 3], 24) == pytest.approx(0.75)
    assert hhi([0.5, 0.3, 0.2]) == pytest.approx(0.38)
    assert dispersion([10, 10, 12]) == pytest.approx(0.0883883, abs=5e-8)
    assert variance_ratio(0.04, 11, 0.25, 11).ratio == pytest.approx(0.16)
    assert variance_ratio(0.04, 11, 0.25, 11).p == pytest.approx(0.0039, abs=5e-5)


def test_worked_examples_of_inequality_and_fairness() -> None:
    assert gini([1, 2, 3, 4]) == pytest.approx(0.25)
    assert gini([0, 0, 0, 10], small=True) == pytest.approx(1)
    assert lorenz([1, 2, 3, 4], 0.5) == pytest.approx(0.3)
    assert nash_ratio([7, 3], [2, 1], 7) == pytest.approx(0.816327, abs=5e-7)
    assert max_envy([{"x": 6, "y": 4}, {"x": 7, "y": 3}], [["x"], ["y"]]) == 4
    assert proportional_share([{"x": 6, "y": 4}, {"x": 7, "y": 3}], [["x"], ["y"]]) == 0.5
    assert esteban_ray([0, 1]) == pytest.approx(0.203063, abs=5e-7)
    assert bimodality([0, 0, 0, 1, 1, 1]) == pytest.approx(0.342857, abs=5e-7)


def test_worked_examples_of_networks() -> None:
    edges = [("a1", "a2"), ("a2", "a3"), ("b1", "b2"), ("b2", "b3"), ("a1", "b1")]
    assert assortativity(edges, {name: name[0] for edge in edges for name in edge}) == pytest.approx(0.6)
    assert reciprocity([("a", "b"), ("b", "a"), ("a", "c")]) == pytest.approx(0.666667, abs=5e-7)
    assert modularity(TRIANGLES, [set("abc"), set("def")]) == pytest.approx(0.357143, abs=5e-7)


def test_worked_examples_of_ratings() -> None:
    assert elo_expected(1600, 1400) == pytest.approx(0.759747, abs=5e-7)
    assert elo_update(1500, 1500, 1) == 1516
    winner = plackett_luce([Skill(), Skill()], [1, 2])[0]
    assert winner == pytest.approx((27.6352, 8.0655), abs=5e-5)
    drifting = plackett_luce([Skill(), Skill()], [1, 2], tau=25 / 300)[0]
    assert drifting == pytest.approx((27.6354, 8.0659), abs=5e-5)
    games = [(Glicko(1400, 30), 1.0), (Glicko(1550, 100), 0.0), (Glicko(1700, 300), 0.0)]
    found = glicko2(Glicko(1500, 200), games)
    assert (found.rating, found.deviation) == (pytest.approx(1464.05, abs=0.01), pytest.approx(151.517, abs=5e-3))
    assert found.volatility == pytest.approx(0.05999, abs=1e-5)


def test_alpha_rank_by_hand() -> None:
    """A circle shares, the best of a ladder has all; of two with a gain u each the odds are e^(m − 1)u."""
    assert alpha_rank([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]) == pytest.approx([1 / 3] * 3)
    assert alpha_rank([[0.5, 0.9, 0.8], [0.1, 0.5, 0.7], [0.2, 0.3, 0.5]]) == pytest.approx([1, 0, 0])
    assert alpha_rank([[3.0]]) == [1]
    first, second = alpha_rank([[0, 0.02], [0, 0]], population=11, alpha=5)
    assert first / second == pytest.approx(exp(10 * 0.1))
    assert alpha_rank([[0, 5], [5, 0]]) == pytest.approx([0.5, 0.5])


@settings(max_examples=30)
@given(st.lists(st.floats(-1, 1), min_size=16, max_size=16), st.floats(0.1, 3), st.integers(2, 20))
def test_alpha_rank_is_where_takeovers_even_out(drawn: list[float], alpha: float, population: int) -> None:
    """A mutant takes over with 1/Σ e^(−ku), k from 0 to m − 1, as a chain of imitations with odds e^u has it."""
    payoffs = [drawn[4 * i : 4 * i + 4] for i in range(4)]
    shares = alpha_rank(payoffs, population, alpha)
    assert sum(shares) == pytest.approx(1)

    def flow(resident: int, mutant: int) -> float:
        gain = alpha * (payoffs[mutant][resident] - payoffs[resident][mutant])
        return shares[resident] / sum(exp(-k * gain) for k in range(population))

    for one in range(4):
        others = [other for other in range(4) if other != one]
        assert sum(flow(one, other) for other in others) == pytest.approx(
            sum(flow(other, one) for other in others), abs=1e-9
        )


def test_worked_examples_of_games() -> None:
    assert nash_conv(ONE_SIDE, [{"R": 0.5, "P": 0.25, "S": 0.25}, THIRDS]) == pytest.approx(0.25)
    assert external_regret("HHH", "THT", match, "HT") == 2
    assert external_regret("HTHT", "THTH", match, "HT") == 4
    assert cross_play_gap([[1, 0.4], [0.3, 0.9]]) == pytest.approx(0.6)
    assert cooperation_rate("CCDC") == 0.75
    assert cooperation_after("CCDC", "CDCC", "C") == 1


def test_worked_examples_of_influence_and_likeness() -> None:
    worth = {frozenset(): 0.0, frozenset("1"): 0.5, frozenset("2"): 0.1, frozenset("12"): 0.8}
    assert shapley_share("12", worth.__getitem__, "2") == pytest.approx(0.25)
    assert wasserstein([0, 1, 2], [1, 2, 3]) == pytest.approx(1)
    assert ks([0, 1, 2], [1, 2, 3]) == pytest.approx(0.333333, abs=5e-7)
    assert jensen_shannon([0.5, 0.5], [1, 0]) == pytest.approx(0.311278, abs=5e-7)
    assert step_accuracy("abcde", "abxdy") == pytest.approx(0.6)


# --- edges -------------------------------------------------------------------------------------------------


def test_economy_at_its_edges() -> None:
    assert efficiency([1], [2], []) is seller_share(1, 1, 1) is welfare_ratio([1], 0) is None
    assert seller_share(2, 4, 3) is None, "a loss is no surplus to share"
    assert efficiency([5], [2], [(5, 8)]) == -1
    assert nash_welfare([-1, -1]) is nash_welfare([]) is None
    assert (nash_welfare([2, 8]), nash_welfare([0, 8])) == (pytest.approx(4), 0)
    assert nash_welfare([1e200] * 4) == pytest.approx(1e200), "where the product is no number"
    assert hhi([]) is hhi([0]) is effective_firms([]) is dispersion([]) is price_range([]) is None
    assert effective_firms([1, 1, 1, 1]) == pytest.approx(4)
    assert price_range([2, 3]) == 0.5
    assert variance_screen([1], [1, 2]) is variance_screen([1, 2], [1, 1]) is None
    assert variance_screen([1, 2], [1, 3]) == pytest.approx(variance_ratio(0.5, 2, 2, 2))
    assert pass_through([1], [1]) is pass_through([1, 1], [1, 2]) is None
    assert pass_through([1, 2, 3], [2, 4, 6]) == 2


def test_inequality_and_fairness_at_their_edges() -> None:
    assert gini([1]) is gini([0, 0]) is gini([-1, 2]) is absolute_gini([1]) is theil({}) is lorenz([], 0.5) is None
    assert theil({"a": [5]}) is theil({"a": [0], "b": [0]}) is lorenz([5], 0.5) is None, "one agent, or nothing"
    assert absolute_gini([-1, 1]) == 0.5
    assert max_envy([], []) is max_envy([{"x": 1}], [["x"]]) is None
    assert lorenz([1, 2, 3], 0.5) == pytest.approx(2 / 6)
    assert nash_product([1, 1], [2, 2]) is None
    assert rationality_violations([1, 1], [2, 2]) == 2
    assert not envy_free_but_one([{"x": 1, "y": 1, "z": 0}] * 2, [["z"], ["x", "y"]])
    assert envy_free_but_one([{"x": 1, "y": 1}] * 2, [[], ["x"]])
    assert proportional_share([], []) is None
    assert esteban_ray([]) is bimodality([1, 1, 1, 1]) is bimodality([1]) is affective([], [1]) is None
    assert esteban_ray([3, 3, 3]) == 0
    assert affective([1, 0.5], [0]) == 0.75
    with pytest.raises(ValueError, match="alpha"):
        esteban_ray([1], alpha=2)


def test_small_samples_of_two_points_look_like_one() -> None:
    found = [bimodality([0] * n + [1] * n) for n in (3, 5, 15)]
    assert found == pytest.approx([0.34, 0.57, 0.84], abs=5e-3)


def test_networks_at_their_edges() -> None:
    assert reciprocity([]) is reciprocity([("a", "a")]) is assortativity([], {}) is clustering([]) is None
    assert assortativity([("a", "b")], {"a": 1, "b": 1}) is communities([]) is modularity([], []) is None
    assert clustering(TRIANGLES) == pytest.approx(nx.average_clustering(nx.Graph(TRIANGLES)))
    assert mean_degree(TRIANGLES) == pytest.approx(14 / 6)
    assert pair_f1([], []) is adjusted_rand([], []) is None
    assert pair_f1([set("ab"), set("c")], [set("abc")]) == pytest.approx(0.5)
    assert adjusted_rand([set("ab"), set("cd")], [set("ab"), set("cd")]) == 1


def test_planted_communities_are_found_and_random_graphs_have_none() -> None:
    luck = Random(4)
    planted = [(a, b) for a in range(16) for b in range(a) if luck.random() < (0.8 if a // 8 == b // 8 else 0.05)]
    found = communities(planted, n_perm=19)
    assert found is not None
    assert adjusted_rand(found.groups, [set(range(8)), set(range(8, 16))]) == 1
    assert found.p == 0.05
    blurred = communities([(a, b) for a in range(16) for b in range(a) if luck.random() < 0.4], n_perm=19)
    assert blurred is not None
    assert blurred.p > 0.05


def test_games_and_cooperation_at_their_edges() -> None:
    assert nash_conv(ONE_SIDE, [THIRDS, THIRDS]) == pytest.approx(0)
    assert expected(RPS, [{"R": 1.0}, {"S": 1.0}]) == 1
    assert swap_regret("HHTT", "TTHH", match, "HT") == 8
    assert external_regret("HHTT", "TTHH", match, "HT") == 4
    assert regret_growth([1]) is regret_growth([]) is None
    assert regret_growth([t**0.5 for t in range(1, 50)]) == pytest.approx(0.5)
    assert cooperation_rate("") is cooperation_after("C", "C", "C") is first_defection("CC") is None
    assert first_defection("CD") == 2
    assert cross_play_gap([[1]]) is None


def test_influence_and_likeness_at_their_edges() -> None:
    assert (
        causal_influence([])
        is step_accuracy([], [])
        is log_score([])
        is log_score([0.0])
        is f1([False], [False])
        is None
    )
    assert causal_influence([({"x": 0.5, "y": 0.5}, {"x": {"l": 1.0}, "y": {"r": 1.0}})]) == pytest.approx(1)
    assert causal_influence([({"x": 0.5, "y": 0.5}, {"x": {"l": 1.0}, "y": {"l": 1.0}})]) == 0
    assert leave_one_out("ab", lambda group: float(len(group)), "a") == 1
    assert log_score([0.5, 0.5]) == pytest.approx(-log(2))
    assert f1([True, True, False], [True, False, True]) == 0.5
    assert entropy([]) == entropy([3]) == 0
    assert kl([1, 0], [0, 1]) == float("inf")
    assert normalised(0.3, 0.1, 0.5) == pytest.approx(0.5)
    assert normalised(0.3, 0.5, 0.5) is wasserstein([], [1]) is ks([1], []) is None
    assert shares("aab", "b") == ([2 / 3, 1 / 3], [0, 1])
    with pytest.raises(ValueError, match="9 agents"):
        shapley(range(9), lambda _: 0.0)


def test_ratings_at_their_edges() -> None:
    assert glicko2(Glicko(1500, 50), []).deviation > 50
    assert bradley_terry([("a", "b", 1), ("c", "d", 1)]) is bradley_terry([]) is None
    games = [("a", "b", 1), ("b", "a", 1), ("c", "d", 1), ("d", "c", 1), ("a", "c", 1), ("b", "d", 1)]
    assert bradley_terry(games, prior=0) is None, "two who never lost to the other two"
    assert bradley_terry([*games, ("c", "a", 0.5)], prior=0) is not None
    alone = bradley_terry([("a", "b", 1)] * 9)
    assert alone is not None
    assert alone["a"] - alone["b"] == pytest.approx(log(9.5 / 0.5), abs=1e-6)
    drawn = plackett_luce([Skill(), Skill()], [1, 1])
    assert drawn[0].mu == pytest.approx(25)
    assert drawn[0].sigma < 25 / 3
    assert drawn[0].ordinal == pytest.approx(drawn[0].mu - 3 * drawn[0].sigma)


def test_strengths_are_recovered_in_any_order() -> None:
    luck, truth = Random(1), {"a": 1.0, "b": 0.0, "c": -1.0}
    games = []
    for _ in range(3000):
        one, other = luck.sample(sorted(truth), 2)
        games.append((one, other, float(luck.random() < 1 / (1 + 2.718281828 ** (truth[other] - truth[one])))))
    found, mixed = bradley_terry(games), bradley_terry(luck.sample(games, len(games)))
    assert found == pytest.approx(truth, abs=0.15)
    assert found == pytest.approx(mixed, abs=1e-6)


# --- properties --------------------------------------------------------------------------------------------

amounts = st.lists(st.integers(0, 50), min_size=2, max_size=9)


@given(amounts, st.integers(1, 5), st.randoms())
def test_inequality_knows_no_names_and_no_unit(held: list[int], unit: int, luck: Random) -> None:
    found = gini(held)
    other = gini([unit * each for each in luck.sample(held, len(held))])
    assert other == (None if found is None else pytest.approx(found))
    assert found is None or 0 <= found <= 1 - 1 / len(held) + 1e-12
    split = theil({"a": held[:1], "b": held[1:]})
    assert split is None or split.within >= -1e-9


@given(amounts, amounts)
def test_distances_agree_with_scipy(one: list[int], other: list[int]) -> None:
    assert wasserstein(one, other) == pytest.approx(wasserstein_distance(one, other))
    assert ks(one, other) == pytest.approx(ks_2samp(one, other, method="asymp").statistic)
    p, q = shares(one, other)
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-9)


@given(st.lists(st.floats(0, 5), min_size=3, max_size=3), st.floats(0, 3))
def test_shapley_values_add_up_and_ignore_who_adds_nothing(worth: list[float], together: float) -> None:
    def value(group: frozenset[object]) -> float:
        return sum(worth[i] for i in group if i in (0, 1, 2)) + together * ({0, 1} <= group)  # type: ignore[misc]

    found = shapley(range(4), value)
    assert sum(found.values()) == pytest.approx(value(frozenset(range(4))))
    assert found[3] == pytest.approx(0, abs=1e-12)


@given(st.permutations(range(6)))
def test_names_of_nodes_do_not_matter(names: list[int]) -> None:
    renamed = [(names["abcdef".index(a)], names["abcdef".index(b)]) for a, b in reversed(TRIANGLES)]
    assert clustering(renamed) == pytest.approx(clustering(TRIANGLES))
    assert reciprocity(renamed) == reciprocity(TRIANGLES)


# --- on records --------------------------------------------------------------------------------------------


@pytest.fixture
def society(tmp_path: Path) -> Society:
    made = Society(tmp_path / "run.db", tables=2)
    made.member("ann", role="x")
    made.member("bob", role="x")
    made.member("cid", role="y")
    return made


def test_rewards_as_welfare_and_inequality(society: Society) -> None:
    society.logs[0].event(1, 0, "rewards", "", {"ann": 3.0, "bob": 1.0})
    society.logs[0].event(2, 0, "rewards", "", {"ann": 1.0, "cid": 1.0})
    society.logs[1].event(1, 0, "rewards", "", {"ann": -1.0, "bob": 3.0})
    run = society.run()
    found = values([*welfare(run), *reward_gini(run), *reward_inequality(run)])
    assert found["welfare.utilitarian"].value == pytest.approx((6 + 2) / 2)
    assert found["welfare.egalitarian"].value == pytest.approx((1 - 1) / 2)
    assert found["inequality.reward_gini"].value == gini([4, 1, 1], small=True)
    assert found["welfare.nash"].value == pytest.approx(4 ** (1 / 3))
    assert found["welfare.nash"].excluded == {"somebody earned less than nothing": 1}
    assert "taken to compare" in found["welfare.utilitarian"].denominator
    assert found["inequality.absolute_gini"].value == pytest.approx((6 / 9 + 8 / 9) / 2)
    split = theil({"x": [4, 1], "y": [1]})
    for part in ("whole", "between", "within"):
        assert found[f"inequality.theil part={part}"].value == pytest.approx(getattr(split, part))
    assert found["inequality.theil part=between"].excluded == {"tables without an index": 1}
    for poorest, part in ((0.25, 0.75 / 6), (0.5, 1.5 / 6), (0.75, (2 + 0.25 * 4) / 6)):
        assert found[f"inequality.lorenz poorest={poorest}"].value == pytest.approx(part)
    assert found["inequality.lorenz poorest=0.5"].excluded == {"tables without an index": 1}
    assert found["inequality.reward_gini"].excluded == {"tables without an index": 1}


def test_no_rewards_no_welfare(society: Society) -> None:
    run = society.run()
    assert {one.value for one in [*welfare(run), *reward_gini(run), *reward_inequality(run), *answering(run)]} == {None}
    assert list(market.all(run)) == []


def test_trades(society: Society) -> None:
    for price, seller in ((10, "ann"), (10, "ann"), (12, "bob")):
        society.fact(1, "trade", price=price, seller=seller, good="apple")
    society.fact(2, "trade", price=5, seller="cid", good="apple", quantity=2, table=1)
    found = values(market.all(society.run()))
    assert found["market.price_dispersion good=apple"].value == pytest.approx((0.0883883 + 0) / 2, abs=1e-7)
    assert found["market.hhi good=apple"].value == pytest.approx((5 / 9 + 1) / 2)
    assert found["market.effective_firms good=apple"].value == pytest.approx((9 / 5 + 1) / 2)
    assert found["market.hhi good=apple"].events == ((0, 0), (0, 1), (0, 2), (1, 0))
    assert (found["market.hhi good=apple"].n, found["market.hhi good=apple"].n_clusters) == (4, 2)


def test_a_market_that_gets_calm_and_falls_to_one_seller(tmp_path: Path) -> None:
    """Both medians are 11, mean distances from them (3 + 1 + 1 + 5)/4 and (1 + 0 + 0 + 1)/4; b sells no more."""
    society = Society(tmp_path / "run.db")
    for tick, (seller, price) in enumerate(zip("ababaaaa", (8, 10, 12, 16, 10, 11, 11, 12), strict=True)):
        society.fact(tick, "trade", price=price, seller=seller, good="apple")
    found = values(market.all(society.run()))
    assert found["market.calm_ratio good=apple"].value == pytest.approx(0.5 / 2.5)
    assert found["market.hhi_change good=apple"].value == pytest.approx(1 - 0.5)


def test_who_answers_whom(society: Society) -> None:
    first = society.fact(1, "post", "ann")
    second = society.fact(2, "comment", "bob", answers=[first])
    society.fact(3, "comment", "ann", answers=[second])
    society.fact(4, "comment", "cid", answers=[second])
    society.fact(5, "comment", "cid", answers=[second])
    found = values(answering(society.run()))
    assert found["network.reciprocity"].value == pytest.approx(2 / 3)
    assert found["network.reciprocity"].n == 3
    assert found["network.role_assortativity"].value == pytest.approx(
        assortativity([("ann", "bob"), ("bob", "ann"), ("cid", "bob")], {"ann": 1, "bob": 1, "cid": 2})
    )


def test_private_groups(society: Society) -> None:
    """Two triangles that whisper, and one bridge; what all see is no secret group."""
    names = [("a", "b", "c"), ("d", "e", "f")]
    for group in names:
        for sender in group:
            others = tuple(one for one in group if one != sender)
            fact = society.fact(1, "message", sender, audience=others, text="psst")
            for other in others:
                society.look(other, 2, [fact])
    bridge = society.fact(3, "message", "c", audience=("d",), text="psst")
    society.look("d", 4, [bridge])
    loud = society.fact(5, "post", "a", text="hello")
    society.look("f", 6, [loud])
    (found,) = networks.private_groups(society.run(), n_perm=19)
    assert (found.null["n_perm"], found.null["p"] >= 1 / 20) == (19, True)
    assert found.value == pytest.approx(0.357143, abs=5e-7)
    assert found.flags == ("group: a, b, c", "group: d, e, f")
    assert (found.n, found.of) == (13, {"table": 0})


# --- Kuhn poker in normal form -----------------------------------------------------------------------------


def kuhn() -> dict[tuple[str, str], float]:
    """What the first player wins by pure strategies of both: a letter (pass or bet) for each card and history."""
    found = {}
    for first in map("".join, product("pb", repeat=6)):
        for second in map("".join, product("pb", repeat=6)):
            deals = [(a, b) for a in range(3) for b in range(3) if a != b]
            found[first, second] = sum(_won(a, b, first, second) for a, b in deals) / 6
    return found


def _won(a: int, b: int, first: str, second: str) -> int:
    higher = 1 if a > b else -1
    if first[a] == "b":
        return 2 * higher if second[3 + b] == "b" else 1
    if second[b] == "p":
        return higher
    return 2 * higher if first[3 + a] == "b" else -1


def test_uniform_play_in_kuhn_poker() -> None:
    """A uniform behaviour is the uniform mixture of pure strategies, as nobody forgets (Kuhn 1953)."""
    own = kuhn()
    uniform = dict.fromkeys(map("".join, product("pb", repeat=6)), 1 / 64)
    other = {joint: -value for joint, value in own.items()}
    assert nash_conv([own, other], [uniform, uniform]) == pytest.approx(0.916667, abs=5e-7)
