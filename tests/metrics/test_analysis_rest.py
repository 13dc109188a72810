"""Attribution against planted faults, sets of outcomes, clipped weights, equal guesses: by hand and theory."""

from __future__ import annotations

from collections import Counter
from math import inf, log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.analysis.attribution import Named, first_wrong, measured, repair_minimality, sets_to_try, validated
from sim.metrics.analysis.conformal import group_coverage, nearest, needed, threshold, weighted_threshold
from sim.metrics.analysis.offpolicy import clip_level, clipped, empirical_bernstein, ips
from sim.metrics.statistics.bayes import Guess, NaiveBayes
from tests.metrics.society import values

EDGES = [(1, 2), (2, 4), (4, 6), (3, 5)]

# --- attribution ---------------------------------------------------------------------------------------------


def test_the_first_wrong_step_has_right_inputs() -> None:
    assert first_wrong(range(1, 7), EDGES, {2, 4, 6}) == 2
    assert first_wrong(range(1, 7), EDGES, {4, 3}) == 3
    assert first_wrong(range(1, 7), EDGES, ()) is first_wrong([1, 2], [(1, 2), (2, 1)], {1, 2}) is None


def test_a_repair_is_as_small_as_its_edits() -> None:
    step = [f"w{n}" for n in range(20)]
    assert repair_minimality(step, ["x", *step[1:9], "y", *step[10:19], "z"]) == pytest.approx(0.85)
    assert repair_minimality(step, step[:-1]) == pytest.approx(0.95)
    assert (repair_minimality("ab", "cdefg"), repair_minimality("", "a")) == (0, None)


def test_an_attributor_is_held_against_planted_faults() -> None:
    """Five cases: right; one step off, same agent; three off, another agent; second of its list; nothing named."""
    cases = [
        Named((2, "a"), [(2, "a")]),
        Named((2, "a"), [(3, "a"), (9, "b")]),
        Named((5, "b"), [(2, "a")]),
        Named((5, "b"), [(9, "a"), (5, "b")]),
        Named((7, "b"), []),
    ]
    found = values(validated(cases))
    assert found["attribution.agent_accuracy"].value == pytest.approx(2 / 5)
    assert found["attribution.step_accuracy"].value == pytest.approx(1 / 5)
    assert found["attribution.step_accuracy"].ci == pytest.approx((0.036224, 0.624465), abs=1e-5), "Wilson"
    assert found["attribution.step_accuracy_within_1"].value == pytest.approx(2 / 5)
    assert found["attribution.reciprocal_rank"].value == pytest.approx((1 + 0 + 0 + 1 / 2 + 0) / 5)
    chance = (2 * 4) / 25
    assert found["attribution.kappa"].value == pytest.approx((2 / 5 - chance) / (1 - chance))
    assert {one.value for one in validated([])} == {None}


def test_sets_of_causes_are_tried_from_the_smallest() -> None:
    assert sets_to_try([3, 1]) == [frozenset({3}), frozenset({1}), frozenset({1, 3})]
    assert len(sets_to_try(range(6))) == 6 + 15
    assert sets_to_try([]) == []
    with pytest.raises(ValueError, match="most"):
        sets_to_try([1], 0)


def test_blames_have_a_test_each_and_one_for_all() -> None:
    """Four of four against none of four: 1/C(8, 4), times two for two suspects; few replays are said."""
    first, second, *_ = measured([(3, "a"), (5, "b")], [(4, 0, 4), (2, 2, 4)], 9)
    assert (first.null["p"], first.null["adjusted"]) == (pytest.approx(1 / 70), pytest.approx(2 / 70))
    assert second.null["p"] == pytest.approx((36 + 16 + 1) / 70)
    assert first.flags == ("fewer than 20 replays",)
    assert next(measured([(3, "a")], [(4, 0, 20)], 9)).flags == ()


# --- sets of generated outcomes ------------------------------------------------------------------------------


def test_scores_of_generated_outcomes_by_hand() -> None:
    assert nearest(3.0, [1.0, 4.5, 9.0], lambda a, b: abs(a - b)) == 1.5
    assert needed("b", ["a", "c", "b", "b"], str.__eq__) == 3
    assert nearest(3.0, [], lambda a, b: abs(a - b)) == needed("b", "ac", str.__eq__) == inf
    with pytest.raises(ValueError, match="distance"):
        nearest(1, [2], lambda a, b: a - b)


def test_each_group_is_covered_by_itself() -> None:
    found = group_coverage({"x": [1.0, 2.0, 9.0, 1.0], "y": []}, {"x": 2.0, "y": 1.0})
    assert (found["x"].value, found["x"].method, found["y"].value) == (0.75, "wilson", None)
    with pytest.raises(ValueError, match="no threshold of group 'x'"):
        group_coverage({"x": [1.0]}, {})


def test_a_weighted_threshold_by_hand() -> None:
    """Of all weight, the new case's 1 included, four of five parts lie at or below 3."""
    assert weighted_threshold([3, 1, 2, 4], [1, 1, 2, 0], 1, 0.2) == 3
    assert weighted_threshold([3, 1, 2, 4], [1, 1, 2, 0], 2, 0.2) == inf
    assert weighted_threshold([], [], 1, 0.2) == weighted_threshold([1, 2], [0, 0], 0, 0.2) == inf
    for scores, weights, own, alpha in (([1], [-1], 1, 0.1), ([1], [], 1, 0.1), ([1], [1], 1, 0), ([1], [1], -1, 0.1)):
        with pytest.raises(ValueError):
            weighted_threshold(scores, weights, own, alpha)


@given(
    st.lists(st.integers(0, 5), max_size=30), st.sampled_from([0.05, 0.1, 0.2, 0.5]), st.sampled_from([0.1, 1.0, 3.0])
)
def test_equal_weights_are_none(scores: list[int], alpha: float, weight: float) -> None:
    assert weighted_threshold(scores, [weight] * len(scores), weight, alpha) == threshold(scores, alpha)


def test_a_shift_is_covered_where_its_weights_are_known() -> None:
    """Calibrated where scores are uniform on 0 to 1, used where large ones are likelier (density 2x)."""
    luck, covered, plain = Random(3), 0, 0
    for _ in range(400):
        old = [luck.random() for _ in range(60)]
        new = sqrt(luck.random())
        covered += new <= weighted_threshold(old, [2 * each for each in old], 2 * new, 0.2)
        plain += new <= threshold(old, 0.2)
    assert covered >= 0.77 * 400
    assert plain <= 0.72 * 400


# --- weights -------------------------------------------------------------------------------------------------


def test_clipped_weights_by_hand() -> None:
    assert clip_level([1, 1, 1, 5]) == pytest.approx(8 / 2)
    assert clipped([1, 1, 1, 5]) == [1, 1, 1, 4]
    assert clipped([3, 1], 2) == [2, 1]
    assert (clipped([]), clip_level([])) == ([], 0)
    assert ips(clipped([2, 0.5, 1], 9), [1, 0, 1]) == ips([2, 0.5, 1], [1, 0, 1])
    with pytest.raises(ValueError, match="level"):
        clipped([1], -1)


def test_an_interval_for_any_number_of_bounded_values() -> None:
    logs = log(4 / 0.05)
    half = sqrt(2 * 0.5 * logs / 2) + 7 * logs / 3
    assert half > 1
    assert empirical_bernstein([0, 1], 0, 1) == (0, 1)
    many = empirical_bernstein([0.0, 1.0] * 500, 0, 1)
    spread = 0.25 * 1000 / 999
    half = sqrt(2 * spread * logs / 1000) + 7 * logs / (3 * 999)
    assert many == pytest.approx((0.5 - half, 0.5 + half))
    assert empirical_bernstein([1.0], 0, 1) is None
    with pytest.raises(ValueError, match="values"):
        empirical_bernstein([2.0, 0.5], 0, 1)


# --- equal guesses -------------------------------------------------------------------------------------------


def test_equally_likely_values_are_each_right_in_part() -> None:
    """What was learnt says as much for x as for y: neither is the first."""
    model = NaiveBayes([(Counter({"red": 1}), "x"), (Counter({"blue": 1}), "y")])
    assert [model.guess(Counter(["green"]), truth).right for truth in ("x", "y", "z")] == [0.5, 0.5, 0]
    assert model.guess(Counter(["red"]), "x").right == 1
    assert Guess("x", {"x": 0.5, "y": 0.5}, {"x": -3.0, "y": -2.0}).right == 0
