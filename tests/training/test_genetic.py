"""The genetic search: laws of inheritance, what selection does, and the same children after a restart."""

from __future__ import annotations

import json
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.streams import Streams
from training.genes import Chain, Distribution, Gene, Number, Options
from training.genetic import Search, search
from training.slots import Population

PROMPTS = ("be kind", "be firm", {"tone": "dry"})
MOODS = ("anger", "joy", "neutral")
SPACE: dict[str, Gene] = {
    "initial": Distribution(over=MOODS),
    "transitions": Chain(states=MOODS),
    "temperature": Number(low=0.1, high=1.5),
    "prompt": Options(values=PROMPTS),
}
"""A Markov chain over three emotions, with the temperature of what is said (EvoEmo), and a prompt."""


def population(**settings: Any) -> Population:
    return Population(**{"kind": "population", "size": 8, "elite": 2, "space": SPACE, **settings})


def check(state: Search) -> None:
    """Every member is a point of the space."""
    for member in state.members:
        assert tuple(member["transitions"]) == MOODS
        for row in [member["initial"], *member["transitions"].values()]:
            assert tuple(row) == MOODS
            assert min(row.values()) >= 0
            assert fsum(row.values()) == pytest.approx(1)
        assert 0.1 <= member["temperature"] <= 1.5
        assert member["prompt"] in PROMPTS


@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_members_stay_in_the_space(seed: int, crossover: float, mutation: float) -> None:
    luck = Streams(seed)
    state = search(population(), luck)
    check(state)
    state = state.evolved([float(i) for i in range(8)], population(crossover=crossover, mutation=mutation), luck)
    check(state)
    assert (len(state.members), state.generation) == (8, 1)


def test_the_elite_passes_on_unchanged_and_the_best_is_remembered() -> None:
    state = search(population(), Streams(0))
    following = state.evolved([1, 5, 0, 5, 2, 0, 0, 3], population(mutation=1.0), Streams(0))
    assert following.members[:2] == (state.members[1], state.members[3]), "of equals the first"
    assert following.best is not None
    assert (following.best.genome, following.best.fitness, following.best.generation) == (state.members[1], 5, 0)
    worse = following.evolved([4.0] * 8, population(), Streams(0))
    assert worse.best == following.best
    assert worse.evolved([6.0] * 8, population(), Streams(0)).best.generation == 2  # type: ignore[union-attr]


def test_without_crossover_and_mutation_children_are_copies() -> None:
    state = search(population(), Streams(0))
    following = state.evolved([0.0] * 8, population(crossover=0, mutation=0), Streams(0))
    assert all(member in state.members for member in following.members)


def test_rows_come_from_either_parent_and_fit_ones_have_more_children() -> None:
    """Members are told apart by their rows: member i has the number i in every gene."""
    space = {"chain": Chain(states=MOODS), "mood": Distribution(over=("a",)), "warmth": Number(low=0, high=100)}
    members = tuple(
        {"chain": {mood: dict.fromkeys(MOODS, float(i)) for mood in MOODS}, "mood": {"a": float(i)}, "warmth": float(i)}
        for i in range(8)
    )
    children: list[Any] = []
    for seed in range(200):
        state = Search(members=members).evolved(
            [float(i) for i in range(8)], population(crossover=1, mutation=0, space=space), Streams(seed)
        )
        children += state.members[2:]
    rows = [[row["joy"] for row in child["chain"].values()] for child in children]
    parents = [{*row, child["mood"]["a"], child["warmth"]} for row, child in zip(rows, children, strict=True)]
    assert {len(each) for each in parents} == {1, 2}, "two at most"
    values = [value for row in rows for value in row]
    # The fitter of two out of 8 is the fittest with probability 15/64, the least fit with 1/64.
    assert values.count(7.0) / len(values) == pytest.approx(15 / 64, abs=0.03)
    assert values.count(0.0) / len(values) == pytest.approx(1 / 64, abs=0.01)


def test_mutation_is_centred_on_what_was() -> None:
    space = {"row": Distribution(over=("a", "b")), "number": Number(low=0, high=10)}
    members = ({"row": {"a": 0.9, "b": 0.1}, "number": 5.0},) * 2
    rows, numbers = [], []
    for seed in range(1000):
        state = Search(members=members).evolved(
            [0.0, 0.0], population(size=2, elite=1, mutation=1, space=space), Streams(seed)
        )
        rows.append(state.members[1]["row"]["a"])
        numbers.append(state.members[1]["number"])
    # Dirichlet(50·0.9 + ½, 50·0.1 + ½): mean 45.5/51, variance mean·(1 − mean)/52.
    mean = 45.5 / 51
    assert fsum(rows) / 1000 == pytest.approx(mean, abs=0.005)
    assert fsum((row - mean) ** 2 for row in rows) / 1000 == pytest.approx(mean * (1 - mean) / 52, rel=0.15)
    assert fsum(numbers) / 1000 == pytest.approx(5, abs=0.1)
    assert fsum((number - 5) ** 2 for number in numbers) / 1000 == pytest.approx(1, rel=0.15)


def test_what_has_died_out_may_come_back() -> None:
    members = ({"row": {"a": 1.0, "b": 0.0}},) * 2
    settings = population(size=2, elite=1, mutation=1, space={"row": Distribution(over=("a", "b"))})
    assert Search(members=members).evolved([0, 0], settings, Streams(1)).members[1]["row"]["b"] > 0


def test_the_search_finds_a_peak() -> None:
    """Fitness is the probability of staying in one emotion, from it and into it."""

    def fitness(member: Any) -> float:
        return float(member["initial"]["neutral"] + member["transitions"]["neutral"]["neutral"]) / 2

    luck, settings = Streams(4), population(size=20, elite=4)
    state = search(settings, luck)
    first = max(map(fitness, state.members))
    for _ in range(30):
        state = state.evolved([fitness(member) for member in state.members], settings, luck)
    assert state.best is not None
    assert first < 0.6
    assert state.best.fitness > 0.85


def test_a_search_goes_on_after_a_restart() -> None:
    luck = Streams(2)
    state = search(population(), luck).evolved([float(i) for i in range(8)], population(), luck)
    again = Search.from_json(json.loads(json.dumps(state.to_json())))
    assert again.members == state.members
    assert again.best == state.best
    scores = [float(-i) for i in range(8)]
    assert again.evolved(scores, population(), luck).members == state.evolved(scores, population(), luck).members


def test_what_does_not_fit_is_refused() -> None:
    state = search(population(), Streams(0))
    with pytest.raises(ValueError, match="as many numbers"):
        state.evolved([1.0], population(), Streams(0))
    with pytest.raises(ValueError, match="no place for children"):
        population(elite=8)
    with pytest.raises(ValueError, match="a name stands twice"):
        Chain(states=("joy", "joy"))
    with pytest.raises(ValueError, match="not below high"):
        Number(low=1, high=1)
