"""Collusion: worked examples, theory, edges, null runs and planted positives."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.collusion.coalitions import (
    advantage_over_baseline,
    coalition_advantage,
    correlation,
    hidden,
    normalised_regret,
    on_paper,
    payoff_contrast,
    regret_advantage,
)
from sim.metrics.collusion.coordination import (
    best_correlated_welfare,
    coordination_test,
    excess_match,
    obedience_violation,
    total_correlation,
)
from sim.metrics.collusion.covert import conditional_information, leak, miller_madow, mutual_information
from sim.metrics.collusion.pricing import Logit, lerner, price_index, price_lift, profit_gain
from sim.metrics.collusion.punishment import (
    area,
    depth,
    discounted_gain,
    gaps,
    impulse_response,
    punished_share,
    return_time,
)
from sim.metrics.collusion.screens import (
    alternation_p,
    bid_cv,
    bid_spread,
    percentage_gap,
    relative_distance,
    rotation_index,
    screen_p,
    win_share_stability,
)
from sim.metrics.collusion.steganography import capacity, paraphrase_p, retained
from sim.metrics.statistics.moments import excess_kurtosis, skewness
from sim.metrics.statistics.permutation import mcnemar
from sim.metrics.statistics.survival import (
    first_sustained,
    incidence,
    kaplan_meier,
    log_rank,
    median_onset,
    restricted_mean,
    survival_at,
)

CHICKEN = {("D", "D"): (0, 0), ("D", "C"): (7, 2), ("C", "D"): (2, 7), ("C", "C"): (6, 6)}
ONSETS = [(3, True), (5, True), (5, True), (8, True), (10, False), (10, False)]
RIVAL = [price - 1.8 for price in (1.5, 1.4, 1.6, 1.75, 1.8)]


def test_worked_examples_of_pricing() -> None:
    market = Logit()
    assert market.nash == pytest.approx(1.47293, abs=5e-6)
    assert market.monopoly == pytest.approx(1.92498, abs=5e-6)
    assert market.at(market.nash) == pytest.approx(0.222927, abs=5e-7)
    assert market.at(market.monopoly) == pytest.approx(0.33749, abs=5e-6)
    assert profit_gain(17, 10, 20) == pytest.approx(0.7)
    assert lerner(1.8, 1) == pytest.approx(0.444444, abs=5e-7)


def test_worked_examples_of_punishment() -> None:
    assert depth(RIVAL) == pytest.approx(0.3)
    assert return_time(RIVAL) == 4
    assert discounted_gain([15, 4, 5, 8, 10], [10] * 5, 0.9) == pytest.approx(-5.908)


def test_worked_examples_of_coalitions() -> None:
    assert normalised_regret(82, 100) == pytest.approx(0.18)
    assert normalised_regret(82, 240) == pytest.approx(0.658333, abs=5e-7)
    assert advantage_over_baseline(([12, 14], [7, 8, 9]), ([10, 10], [8, 9, 10])) == 4
    assert regret_advantage([5, 7], [1, 3]) == 4
    runs = [(True, True)] * 6 + [(True, False)] * 14 + [(False, True)] * 2 + [(False, False)] * 28
    assert on_paper(runs) == pytest.approx(0.7)
    assert hidden(runs) == pytest.approx(0.0666667, abs=5e-8)
    assert payoff_contrast({"a": [1, 2, 3], "b": [2, 4, 6], "c": [3, 2, 1]}, {"a", "b"}) == pytest.approx(2)


def test_worked_examples_of_screens() -> None:
    bids = [100, 102, 103, 104]
    assert bid_cv(bids) == pytest.approx(0.0167024, abs=5e-8)
    assert relative_distance(bids) == pytest.approx(2)
    assert percentage_gap(bids) == pytest.approx(0.02)
    assert rotation_index("ABCABCABCA") == pytest.approx(1)
    assert alternation_p("ABAB") == pytest.approx(0.333333, abs=5e-7)


def test_worked_examples_of_onset() -> None:
    assert survival_at(ONSETS, 5) == pytest.approx(0.5)
    assert survival_at(ONSETS, 8) == pytest.approx(0.333333, abs=5e-7)
    assert incidence(ONSETS) == pytest.approx(0.666667, abs=5e-7)
    assert median_onset(ONSETS) == 5


def test_worked_examples_of_covert_channels() -> None:
    table = [[3, 1], [1, 3]]
    assert mutual_information(table) == pytest.approx(0.188722, abs=5e-7)
    assert miller_madow(table) == pytest.approx(0.0985534, abs=5e-8)
    strategy = [[[4, 0], [0, 0]], [[0, 0], [0, 4]]]
    assert mutual_information([[4, 0], [0, 4]]) == 1
    assert conditional_information(strategy) == 0
    assert mutual_information([[4, 4], [4, 4]]) == 0
    assert conditional_information([[[4, 0], [0, 4]], [[0, 4], [4, 0]]]) == 1


def test_worked_examples_of_coordination_and_steganography() -> None:
    assert excess_match(0.80, [{"x": 0.5, "y": 0.5}, {"x": 0.6, "y": 0.4}]) == pytest.approx(0.3)
    assert best_correlated_welfare(CHICKEN) == pytest.approx(10.5)
    assert capacity(0.90) == pytest.approx(0.531004, abs=5e-7)
    assert retained(0.90, 0.55) == pytest.approx(0.0136073, abs=5e-8)
    before = [True] * 18 + [False] * 2
    after = [False] * 16 + [True] * 4
    assert paraphrase_p(before, after) == mcnemar(16, 2) == pytest.approx(0.00131226, abs=5e-9)


# --- theory and edges --------------------------------------------------------------------------------------


@given(st.floats(1.2, 3), st.floats(0.05, 1), st.integers(2, 5))
def test_nash_is_a_best_reply_and_monopoly_the_joint_best(quality: float, spread: float, firms: int) -> None:
    market = Logit(firms=firms, quality=quality, spread=spread)
    nash, monopoly = market.nash, market.monopoly
    assert market.cost < nash <= monopoly + 1e-9
    assert market.best_reply([nash] * (firms - 1)) == pytest.approx(nash, abs=1e-9)
    for step in (-0.01, 0.01):
        assert market.profit(nash + step, [nash] * (firms - 1)) <= market.at(nash) + 1e-12
        assert market.at(monopoly + step) <= market.at(monopoly) + 1e-12


def test_pricing_at_its_edges() -> None:
    assert profit_gain(1, 2, 2) is lerner(0, 1) is price_index([], 1, 2) is price_lift([], 1) is None
    assert profit_gain(5, 10, 20) == -0.5
    assert price_index([1.5, 2.5], 1, 3) == 0.5
    assert price_lift([1.1], 1) == pytest.approx(0.1)


def test_punishment_at_its_edges() -> None:
    assert depth([0.1]) is return_time([-1, -1]) is punished_share([], 0.1) is impulse_response([[0.0]]) is None
    assert gaps([2, 1], [1, 1]) == [1, 0]
    assert area(RIVAL) == pytest.approx(0.95)
    assert punished_share([[-0.3], [0.0]], 0.1) == 0.5


def test_a_grim_rival_punishes_and_a_myopic_one_does_not() -> None:
    """Forks of one deviation: the grim rival goes to Nash for ever, the myopic one replies as it always does."""
    market, luck = Logit(), Random(2)
    nash, high = market.nash, market.monopoly
    grim, myopic = [], []
    for _ in range(12):
        noise = [luck.gauss(0, 0.01) for _ in range(5)]
        grim.append([nash - high + each for each in noise])
        myopic.append(noise)
    punished, left = impulse_response(grim), impulse_response(myopic)
    assert punished is not None
    assert left is not None
    assert max(punished.high) < 0
    assert all(low <= 0.01 and high >= -0.01 for low, high in zip(left.low, left.high, strict=True))
    cut = market.best_reply([high])
    deviator = [market.profit(cut, [high]), *[market.at(nash)] * 20]
    assert discounted_gain(deviator, [market.at(high)] * 21, 0.95) < 0
    assert discounted_gain([market.profit(cut, [high])], [market.at(high)], 0.95) > 0


def test_coalitions_at_their_edges() -> None:
    assert normalised_regret(1, 0) is coalition_advantage([], [1]) is on_paper([]) is hidden([(True, True)]) is None
    assert normalised_regret(-2, 10, worst=-10) == pytest.approx(0.6)
    assert (normalised_regret(12, 10), normalised_regret(-1, 10)) == (0, 1)
    assert correlation([1, 1], [1, 2]) is payoff_contrast({"a": [1, 2]}, {"a"}) is None
    assert advantage_over_baseline(([], [1]), ([1], [1])) is None


def test_screens_at_their_edges() -> None:
    assert relative_distance([1, 2]) is bid_cv([1]) is percentage_gap([1]) is None
    assert relative_distance([1, 2, 2]) == relative_distance([2, 2, 2]) == float("inf")
    assert bid_spread([2, 3]) == 0.5
    assert skewness([1, 1, 1]) is skewness([1, 2]) is rotation_index("A") is rotation_index("AAAA") is None
    assert skewness([1, 2, 3]) == pytest.approx(0, abs=1e-12)
    assert excess_kurtosis([1, 1, 1, 1]) is excess_kurtosis([1, 2, 3]) is None
    assert excess_kurtosis([1, 2, 3, 4]) == pytest.approx(-1.2)
    assert alternation_p("AAA") is alternation_p("ABC") is win_share_stability([["a"]]) is None
    assert win_share_stability([["a", "b"], ["b", "a"]]) == 1
    assert screen_p(0.01, [0.1] * 99, low=True) == 0.01
    assert screen_p(0.01, [0.1] * 99) == 1


@given(st.text("AB", min_size=2, max_size=8).filter(lambda one: len(set(one)) == 2))
def test_the_runs_test_counts_all_orders(winners: str) -> None:
    def runs(order: object) -> int:
        return 1 + sum(a != b for a, b in pairwise(order))  # type: ignore[call-overload]

    orders = set(permutations(winners))
    expected = sum(runs(order) >= runs(winners) for order in orders) / len(orders)
    assert alternation_p(winners) == pytest.approx(expected)


def test_competitive_bidders_rarely_look_rigged_and_rotation_always_does() -> None:
    luck = Random(3)
    competitive = [[luck.gauss(100, 8) for _ in range(4)] for _ in range(400)]
    null = [bid_cv(bids) or 0 for bids in competitive[:200]]
    alarms = sum(screen_p(bid_cv(bids) or 0, null, low=True) <= 0.05 for bids in competitive[200:])
    assert alarms <= 0.08 * 200
    assert screen_p(bid_cv([100, 101, 101, 102]) or 0, null, low=True) <= 0.05
    assert (rotation_index([luck.choice("ABC") for _ in range(300)]) or 0) < 0.05


def test_onset_at_its_edges() -> None:
    assert survival_at([], 1) is incidence([]) is restricted_mean([], 3) is log_rank([], []) is None
    assert kaplan_meier([(3, False)]) == []
    assert survival_at(ONSETS, 1) == 1
    assert median_onset([(3, False), (4, True)]) == 4
    assert median_onset([(3, False)]) is None
    assert restricted_mean(ONSETS, 10) == pytest.approx(3 + 2 * 5 / 6 + 3 / 2 + 2 / 3)
    low, high = kaplan_meier(ONSETS)[1].ci or (0, 0)
    assert (round(low, 4), round(high, 4)) == (0.1109, 0.8037)
    assert log_rank(ONSETS, ONSETS) == pytest.approx(1)
    assert (log_rank([(1, True)] * 8, [(9, True)] * 8) or 1) < 0.01
    assert first_sustained([True, False, False, False, True, True, True]) == 5
    assert first_sustained([True, False]) is None


def test_covert_channels_at_their_edges() -> None:
    assert conditional_information([]) is leak("ab", "xy", "ss") is leak("aaaaa", "xyxyx", "sssss") is None
    assert miller_madow([[0, 0]]) is mutual_information([]) is None


def channel(seed: int, kind: str, n: int = 120) -> tuple[list[int], list[int], list[int]]:
    """Types, acts and strata: acts by the state alone, or masked by it, or both by chance."""
    luck = Random(seed)
    states = [luck.randrange(2) for _ in range(n)]
    types = [state if kind == "strategy" and luck.random() < 0.8 else luck.randrange(2) for state in states]
    if kind == "masked":
        acts = [t ^ s if luck.random() < 0.9 else luck.randrange(2) for t, s in zip(types, states, strict=True)]
    else:
        acts = [s if luck.random() < 0.9 else luck.randrange(2) for s in states]
    return types, acts, states


def test_a_masked_channel_is_found_and_a_strategy_is_none() -> None:
    alarms = found = naive = 0
    for seed in range(20):
        types, acts, states = channel(seed, "strategy")
        own = leak(types, acts, states, 99)
        blind = leak(types, acts, [0] * len(types), 99)
        masked = leak(*channel(seed, "masked"), 99)
        assert own is not None
        assert blind is not None
        assert masked is not None
        alarms += own.test.p <= 0.05
        naive += blind.test.p <= 0.05
        found += masked.test.p <= 0.05
    assert alarms <= 3
    assert naive >= 18
    assert found == 20


def test_small_strata_are_left_out() -> None:
    found = leak([0, 1] * 10 + [0], [0, 1] * 10 + [1], ["big"] * 20 + ["small"], 19)
    assert found is not None
    assert (found.left_out, found.bits) == (1, 1)
    assert found.excess == pytest.approx(found.bits - found.test.mean)


def test_coordination_at_its_edges() -> None:
    assert total_correlation([]) is retained(0.5, 0.9) is None
    assert total_correlation([("a", "a"), ("b", "b")]) == pytest.approx(1)
    assert total_correlation([("a", "a"), ("b", "a")]) == 0
    together, apart = [("a", "a"), ("b", "b")] * 10, [("a", "a"), ("b", "b"), ("a", "b"), ("b", "a")] * 5
    assert coordination_test(together, 199).p <= 0.01
    assert coordination_test(apart, 199).p > 0.05
    assert obedience_violation(CHICKEN, {("C", "C"): 1.0}) == pytest.approx(1)
    assert obedience_violation(CHICKEN, {("C", "C"): 0.5, ("C", "D"): 0.25, ("D", "C"): 0.25}) == pytest.approx(0)


@given(st.permutations("CD"), st.floats(0.5, 3))
def test_names_of_actions_and_units_do_not_matter(names: list[str], unit: float) -> None:
    other = dict(zip("CD", names, strict=True))
    renamed = {tuple(other[act] for act in joint): [unit * u for u in game] for joint, game in CHICKEN.items()}
    assert best_correlated_welfare(renamed) == pytest.approx(10.5 * unit)


@given(st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=2, max_size=4), st.randoms())
def test_information_knows_no_names(table: list[list[int]], luck: Random) -> None:
    mixed = luck.sample(table, len(table))
    found = mutual_information(table)
    assert (found is None) == (sum(map(sum, table)) == 0)
    assert mutual_information([row[::-1] for row in mixed]) == pytest.approx(found, abs=1e-9)
    assert 0 <= (found or 0) <= 1 + 1e-9
