"""Tails of cascades, ratings over orders and by Nash averaging, sampled play, sampled influence and contributions."""

from __future__ import annotations

from math import log, log2
from random import Random
from statistics import NormalDist, fmean, pstdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openskill.models import PlackettLuce

from sim.metrics.society.averaging import nash_average
from sim.metrics.society.games import (
    cumulative_regret,
    exploitability,
    external_regret,
    response_bound,
    sampled_exploitability,
)
from sim.metrics.society.influence import causal_influence, lazy, sampled_influence, sampled_shapley, shapley
from sim.metrics.society.ratings import Skill, elo_orders, win_probability
from sim.metrics.society.tails import FEWEST, ccdf, geometric, lognormal, power_law, vuong

BEATS = {"R": "S", "S": "P", "P": "R"}
RPS = {(a, b): float((BEATS[a] == b) - (BEATS[b] == a)) for a in "RPS" for b in "RPS"}
SIDES = [RPS, {joint: -value for joint, value in RPS.items()}]
THIRDS = dict.fromkeys("RPS", 1 / 3)

# --- tails ---------------------------------------------------------------------------------------------------


def drawn_power_law(n: int, exponent: float, luck: Random) -> list[int]:
    """By the inverse of its distribution function."""
    xs = np.arange(1, 200_000)
    below = np.cumsum(xs**-exponent / np.sum(xs**-exponent))
    return [int(xs[np.searchsorted(below, luck.random())]) for _ in range(n)]


def drawn_geometric(n: int, p: float, luck: Random) -> list[int]:
    return [1 + int(log(luck.random()) / log(1 - p)) for _ in range(n)]


def test_a_complementary_distribution_by_hand() -> None:
    assert ccdf([1, 1, 2, 5]) == [(1, 1.0), (2, 0.5), (5, 0.25)]
    assert ccdf([]) == []


def test_fits_by_hand_and_in_theory() -> None:
    """Geometric: p = 1/mean; a power law over 1 and 2 only at ζ; each law is near what it was drawn from."""
    assert geometric([1, 1, 4], 1)[0] == pytest.approx((0.5,))
    assert geometric([1, 1, 4], 1)[1].tolist() == pytest.approx([log(0.5), log(0.5), 4 * log(0.5)])
    luck = Random(5)
    (exponent,), logs = power_law(drawn_power_law(3000, 2.5, luck), 1)
    assert exponent == pytest.approx(2.5, abs=0.1)
    assert np.all(logs < 0)
    sizes = [max(1, round(luck.lognormvariate(2, 0.5))) for _ in range(3000)]
    assert lognormal(sizes, 1)[0] == pytest.approx((2, 0.5), abs=0.05)
    few = [3, 3, 4, 9, 20]
    (middle, spread), told = lognormal(few, 3)
    law = NormalDist(middle, spread)
    cells = [law.cdf(log(size + 0.5)) - law.cdf(log(size - 0.5)) for size in few]
    assert told.tolist() == pytest.approx([log(cell / (1 - law.cdf(log(2.5)))) for cell in cells], rel=1e-6)


def test_the_tail_that_was_drawn_is_found() -> None:
    luck = Random(6)
    sizes = drawn_power_law(400, 2.8, luck)
    heavy = vuong(sizes, "geometric")
    light = vuong(drawn_geometric(400, 0.2, luck), "geometric")
    assert heavy is not None and light is not None  # noqa: PT018
    assert heavy.ratio > 0 > light.ratio
    ratios = (power_law(sizes, 1)[1] - geometric(sizes, 1)[1]).tolist()
    z = fmean(ratios) / pstdev(ratios) * 400**0.5
    assert heavy.p == pytest.approx(2 * NormalDist().cdf(-abs(z)))
    assert light.p < 0.01
    assert heavy.ci[0] > 0 > light.ci[1]
    plain = vuong([max(1, round(luck.lognormvariate(3, 0.4))) for _ in range(200)], draws=99)
    assert plain is not None
    assert plain.ratio < 0
    assert plain.p < 0.01


def test_few_cascades_or_those_alike_have_no_tail() -> None:
    assert FEWEST == 50
    assert vuong([1, 2] * 24 + [3]) is vuong([3] * 60) is vuong([]) is None
    assert vuong([1] * 99 + [9] * 49, least=5) is None
    with pytest.raises(ValueError, match="against"):
        vuong([1, 2] * 30, "normal")


# --- ratings -------------------------------------------------------------------------------------------------


def test_elo_over_orders() -> None:
    """One win each: of two orders either player may be ahead at last, so the mean is even and the spread is not 0."""
    found = elo_orders([("a", "b", 1), ("a", "b", 0)])
    assert found["a"].mean == pytest.approx(1500, abs=0.3)
    assert found["a"].mean + found["b"].mean == pytest.approx(3000)
    first = 1500 + 16 - 32 / (1 + 10 ** (-32 / 400))
    assert found["a"].sd == pytest.approx(abs(1500 - first), abs=0.05)
    alone = elo_orders([("a", "b", 1)])
    assert (alone["a"].mean, alone["a"].sd) == (1516, 0)
    assert elo_orders([]) == {}


def test_win_probabilities() -> None:
    """Φ of the distance over the spread of both skills and performances; even for those alike."""
    assert win_probability(Skill(), Skill()) == pytest.approx(0.5)
    assert win_probability(Skill(30, 3), Skill(25, 4), beta=5) == pytest.approx(0.718149, abs=5e-6)
    model = PlackettLuce()
    one, other = model.rating(mu=30, sigma=3), model.rating(mu=25, sigma=4)
    theirs = model.predict_win([[one], [other]])[0]
    assert win_probability(Skill(30, 3), Skill(25, 4)) == pytest.approx(theirs, abs=1e-6)


def test_nash_averaging_by_hand() -> None:
    """A circle shares; copies of a strategy share its part; who is beaten by all has none (Balduzzi et al. 2018)."""
    circle = nash_average([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    assert circle.shares == pytest.approx([1 / 3] * 3, abs=1e-6)
    assert circle.skills == pytest.approx([0] * 3, abs=1e-6)
    copied = nash_average([[0, 1, -1, -1], [-1, 0, 1, 1], [1, -1, 0, 0], [1, -1, 0, 0]])
    assert copied.shares == pytest.approx([1 / 3, 1 / 3, 1 / 6, 1 / 6], abs=1e-6)
    ladder = nash_average([[0.5, 0.9, 0.8], [0.1, 0.5, 0.7], [0.2, 0.3, 0.5]])
    assert ladder.shares == pytest.approx([1, 0, 0], abs=1e-6)
    assert ladder.skills == pytest.approx([0, -0.4, -0.3], abs=1e-6)
    assert nash_average([[0, 0], [0, 0]]).shares == pytest.approx([0.5, 0.5])
    assert nash_average([[7]]).shares == [1]
    assert nash_average([]).shares == []
    skewed = nash_average([[0, 4, -1], [-4, 0, 2], [1, -2, 0]])
    assert skewed.shares == pytest.approx([2 / 7, 1 / 7, 4 / 7], abs=1e-6)


@settings(max_examples=10)
@given(st.lists(st.integers(-4, 4), min_size=6, max_size=6))
def test_nothing_beats_a_nash_average(upper: list[int]) -> None:
    payoffs = np.zeros((4, 4))
    payoffs[np.triu_indices(4, 1)] = upper
    payoffs -= payoffs.T
    found = nash_average(payoffs.tolist())
    assert sum(found.shares) == pytest.approx(1)
    assert min(found.shares) >= 0
    assert max(found.skills) <= 1e-6
    mixed = nash_average(payoffs[::-1, ::-1].tolist())
    assert mixed.shares[::-1] == pytest.approx(found.shares, abs=1e-5)


# --- games ---------------------------------------------------------------------------------------------------


def test_exploitability_is_a_players_part_of_nash_conv() -> None:
    mixtures = [{"R": 0.5, "P": 0.25, "S": 0.25}, THIRDS]
    assert exploitability(SIDES, mixtures) == pytest.approx(0.125)
    assert exploitability(SIDES, [THIRDS, THIRDS]) == pytest.approx(0)


def test_what_few_samples_tell_of_exploitability() -> None:
    """At the shares as they came; more samples tell more, and the truth of much play lies within."""
    few = sampled_exploitability(SIDES, [{"R": 2, "P": 1, "S": 1}, {"R": 1, "P": 1, "S": 1}], draws=199)
    many = sampled_exploitability(SIDES, [{"R": 2000, "P": 1000, "S": 1000}, dict.fromkeys("RPS", 1000)], draws=199)
    assert few.value == many.value == pytest.approx(0.125)
    (few_low, few_high), (low, high) = few.ci or (0, 0), many.ci or (0, 0)
    assert high - low < 0.04 < few_high - few_low
    assert low < 0.125 < high
    assert (many.n, many.method) == (7000, "credible, Dirichlet")
    pure = sampled_exploitability(SIDES, [{"R": 3}, {"P": 3}], draws=99)
    assert pure.value == 1
    assert pure.ci is not None
    assert sampled_exploitability(SIDES, [{"R": 3}, {}]).value is None


def test_the_best_of_tried_responses_is_a_lower_bound_without_luck() -> None:
    """The best by odd episodes is valued by even ones: of many that earn the same none seems to gain."""
    found = response_bound([1, 1, 1, 1], {"a": [9, 2, 9, 4], "b": [0, 8, 0, 8]})
    assert found.value == pytest.approx(3 - 1)
    luck = Random(2)
    gains = []
    for _ in range(60):
        own, tried = [luck.gauss(0, 1) for _ in range(20)], {n: [luck.gauss(0, 1) for _ in range(20)] for n in range(9)}
        gains.append(response_bound(own, tried).value or 0.0)
    assert abs(fmean(gains)) < 3 * pstdev(gains) / 60**0.5
    assert response_bound([1.0], {}).value is response_bound([], {"a": [1.0, 2.0]}).value is None


def test_regret_grows_round_by_round() -> None:
    def match(own: object, other: object) -> float:
        return 1.0 if own == other else -1.0

    assert cumulative_regret("HTHT", "THTH", match, "HT") == [2, 2, 4, 4]
    for rounds in range(1, 5):
        whole = external_regret("HTHT"[:rounds], "THTH"[:rounds], match, "HT")
        assert cumulative_regret("HTHT", "THTH", match, "HT")[rounds - 1] == whole


# --- influence -----------------------------------------------------------------------------------------------


def test_influence_from_samples_by_hand() -> None:
    """One bit, with nothing to correct where each act is always answered alike but in the mixture: p(1 − p) = ¼ each.

    Plain: H(½) − 0 = 1. The mixture's shares do not vary where answers do not, so the correction is 0.
    """
    states = [({"x": 0.5, "y": 0.5}, {"x": {"l": 50}, "y": {"r": 50}})]
    assert sampled_influence(states) == pytest.approx(1)
    even = [({"x": 0.5, "y": 0.5}, {"x": {"l": 5, "r": 5}, "y": {"l": 5, "r": 5}})]
    assert sampled_influence(even) == pytest.approx(-(1 / 10 - 1 / 20) / 2 / log(2))
    assert sampled_influence([]) is None


def test_correction_takes_away_what_chance_gives() -> None:
    """Answers that do not heed acts: plain estimates are above 0 on average, corrected ones hardly."""
    luck, plain, corrected = Random(8), [], []
    for _ in range(400):
        counts = {act: dict.fromkeys("lmr", 0) for act in "xyz"}
        for own in counts.values():
            for answer in luck.choices("lmr", k=20):
                own[answer] += 1
        policy = dict.fromkeys("xyz", 1 / 3)
        laws = {act: {answer: n / 20 for answer, n in own.items()} for act, own in counts.items()}
        plain.append(causal_influence([(policy, laws)]) or 0.0)
        corrected.append(sampled_influence([(policy, counts)]) or 0.0)
    assert fmean(plain) > 0.03
    assert abs(fmean(corrected)) < 0.005
    truth = log2(3) + 0.8 * log2(0.8) + 2 * 0.1 * log2(0.1)
    heeding = []
    for _ in range(200):
        counts = {act: dict.fromkeys("xyz", 0) for act in "xyz"}
        for act, own in counts.items():
            for answer in luck.choices("xyz", [0.8 if each == act else 0.1 for each in "xyz"], k=30):
                own[answer] += 1
        heeding.append(sampled_influence([(dict.fromkeys("xyz", 1 / 3), counts)]) or 0.0)
    assert fmean(heeding) == pytest.approx(truth, abs=0.02)


def test_sampled_shapley_values_are_near_the_exact_ones() -> None:
    def value(group: frozenset[object]) -> float:
        return float(len(group) ** 2) + 3 * ("a" in group) + 2 * ({"a", "b"} <= group)

    exact, found = shapley("abcd", value), sampled_shapley("abcd", value, orders=499)
    assert sum(one.value or 0 for one in found.values()) == pytest.approx(value(frozenset("abcd")))
    for agent, one in found.items():
        low, high = one.ci or (0, 0)
        assert low <= exact[agent] <= high
        assert one.value == pytest.approx(exact[agent], abs=0.5)
    many = sampled_shapley(range(30), lambda group: float(len(group)), orders=9)
    assert {one.value for one in many.values()} == {1}


def test_who_is_lazy() -> None:
    assert lazy(4, share=0.1) == ("Shapley share below half of an equal one",)
    assert lazy(4) == lazy(4, share=0.2) == ()
    assert lazy(4, influence=0.3, tokens=0.9) == lazy(4, influence=0.0, tokens=0.2) == ()
    assert lazy(4, influence=0.0, tokens=0.3) == ("no influence, yet more than an equal share of tokens",)
    assert lazy(4, influence=0.0, tokens=0.02) == ("no influence, and hardly a token",)
