"""How like people agents behave: energy distance, the scale between halves and chance, persons drawn anew."""

from __future__ import annotations

from math import sqrt
from random import Random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import energy_distance as root_of_energy

from sim.intervals import FEW
from sim.metrics.society.likeness import accuracy, final_f1, floor, scaled, step_accuracy
from sim.metrics.statistics.bootstrap import bootstrap, middle, two_stage
from sim.metrics.statistics.distances import energy_distance, ks, wasserstein

amounts = st.lists(st.integers(-20, 20), min_size=1, max_size=9)


def test_energy_distance_by_hand() -> None:
    """2·E|X − Y| − E|X − X'| − E|Y − Y'| of {0, 1, 2} and {1, 2, 3}: 2·11/9 − 8/9 − 8/9."""
    assert energy_distance([0, 1, 2], [1, 2, 3]) == pytest.approx(2 * 11 / 9 - 8 / 9 - 8 / 9)
    assert energy_distance([0], [3]) == pytest.approx(6)
    assert energy_distance([2, 1], [1, 2]) == 0
    assert energy_distance([], [1]) is energy_distance([1], []) is None


@given(amounts, amounts)
def test_energy_distance_is_the_square_of_scipys(one: list[int], other: list[int]) -> None:
    found = energy_distance(one, other)
    assert found is not None
    assert sqrt(found) == pytest.approx(root_of_energy(one, other), abs=1e-7)


def test_the_middle_of_draws() -> None:
    assert middle(range(1000)) == (25, 975)
    assert middle([]) is None


def test_a_bootstrap_has_the_spread_of_a_mean() -> None:
    """Half of its interval is near 1.96·s/√n."""
    luck = Random(1)
    values = [luck.gauss(0, 1) for _ in range(400)]
    found = bootstrap(values, fmean, over="persons")
    assert found.value == pytest.approx(fmean(values))
    assert (found.n, found.clusters, found.method) == (400, 400, "bootstrap over persons")
    low, high = found.ci or (0, 0)
    assert (high - low) / 2 == pytest.approx(1.96 / 20, rel=0.15)
    assert bootstrap(values, fmean, over="persons").ci == found.ci
    alone = bootstrap([3.0], fmean)
    assert (alone.value, alone.ci, alone.flags) == (3, None, (FEW,))
    assert bootstrap([], fmean).value is None
    assert bootstrap([1.0, 2.0], lambda _: None).value is None


def test_two_stages_add_up_what_varies_between_runs_and_within() -> None:
    """Of runs whose members are all alike only runs vary; of equal runs only members do; else both."""

    def of(between: float, within: float) -> float:
        luck = Random(7)
        runs = []
        for _ in range(30):
            level = luck.gauss(0, between)
            runs.append([luck.gauss(level, within) for _ in range(10)])
        low, high = two_stage(runs, lambda drawn: fmean(map(fmean, drawn)), 299).ci or (0.0, 0.0)
        return (high - low) / 2 / 1.96

    assert of(1, 0) == pytest.approx(1 / sqrt(30), rel=0.3)
    assert of(0, 1) == pytest.approx(sqrt(2) / sqrt(300), rel=0.3)  # members vary in both stages
    assert of(0, 0) == 0
    one = two_stage([[1.0, 5.0, 3.0]], lambda drawn: fmean(map(fmean, drawn)))
    assert one.value == 3
    assert one.ci is not None
    assert one.flags == (FEW,)
    assert two_stage([], lambda drawn: 1.0).value is None


def test_steps_alike_exactly_and_by_their_type() -> None:
    human = [("click", "red"), ("click", "blue"), ("type", "hat"), ("buy", "")]
    agent = [("click", "red"), ("click", "red"), ("click", "blue"), ("buy", "")]
    assert step_accuracy(human, agent) == 0.5
    assert step_accuracy(human, agent, kind=lambda act: act[0]) == 0.75


def test_accuracy_and_final_outcomes_with_persons_drawn_anew() -> None:
    """Of sessions with 3 of 4, 0 of 1 and 1 of 1 right, 4 of 6; purchases: one in common, one missed, one invented."""
    sessions = [("abcd", "abcx"), ("a", "b"), ("a", "a")]
    found = accuracy(sessions)
    assert found.value == pytest.approx(4 / 6)
    assert found.ci == (0, 1)
    assert (found.clusters, found.method) == (3, "bootstrap over persons")
    assert accuracy(sessions, kind=lambda _: "any").value == 1
    ends = [("cp", "ap"), ("p", "c"), ("c", "p"), ("c", "c")]
    assert final_f1(ends, "p").value == pytest.approx(0.5)
    assert final_f1(ends, "z").value is accuracy([]).value is None
    with pytest.raises(ValueError, match="no step"):
        final_f1([("", "")], "p")


def test_the_floor_is_of_two_halves_of_persons() -> None:
    """Two persons are halves of each other; those who are alike are no distance apart."""
    assert floor([[0, 1], [2, 3]], wasserstein) == pytest.approx(2)
    assert floor([[1, 2]] * 4, ks) == 0
    assert floor([[1]], wasserstein) is None


def test_the_scale_is_0_for_people_and_1_for_chance() -> None:
    luck = Random(3)

    def people(middle: float) -> list[list[float]]:
        return [[luck.gauss(middle, 1) for _ in range(5)] for _ in range(30)]

    reference, chance = people(0), people(3)
    for agents, wanted in ((people(0), 0), (people(1.5), 0.5), (people(3), 1)):
        found = scaled(reference, agents, chance, draws=99)
        assert found.value == pytest.approx(wanted, abs=0.12)
        low, high = found.ci or (0, 0)
        assert low < found.value < high
        assert high - low < 0.4
    assert scaled(reference, reference, reference, draws=9).value is None
    assert scaled([[1.0]], [[2.0]], [[3.0]]).value is None


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=3, max_size=5), st.integers(2, 5))
def test_the_scale_has_no_unit(people: list[list[int]], unit: int) -> None:
    agents, chance = [[3, 4]], [[50, 60]]
    found = scaled(people, agents, chance, draws=5).value
    other = scaled(*([[unit * x for x in own] for own in side] for side in (people, agents, chance)), draws=5).value
    assert other == (None if found is None else pytest.approx(found))
