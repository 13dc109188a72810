"""Populations in a folder: the fittest settings win, nothing stops the search for good, and what is wrong is told."""

from __future__ import annotations

from math import fsum
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from sim.record.project import Project
from sim.record.reader import Run
from sim.scenarios.yaml_text import read_yaml
from sim.streams import Streams
from sim.types import Request
from tests.training.dying import killed, moment
from training import checkpoint
from training.command import begun, cost
from training.genetic import search
from training.plan import Plan, TrainingError
from training.population import BEST, Breeding
from training.recipe import load as load_recipe
from training.slots import Population

SCENARIO = """
name: dilemma
clock: {tick: 1s, until: 1h}
world: {use: worlds.games.matrix:Matrix, game: pd, rounds: 2}
cast:
  - {name: me, agent: worlds.games.strategies:Fixed, with: {action: cooperate}, think: 1s}
  - {name: other, agent: worlds.games.strategies:Fixed, with: {action: cooperate}, think: 1s}
"""
SPACE = (
    "{cast.me.with.action: {kind: options, values: [cooperate, defect]}, "
    "cast.me.think: {kind: options, values: [1s, 2s]}}"
)


MOODY = """
name: moody
clock: {tick: 1s, until: 1h}
world: {use: worlds.games.matrix:Matrix, game: pd, rounds: 4}
models: {m: {engine: synthetic, rule: "tests.training.test_population:angry"}}
cast:
  - {name: me, agent: agents.llm:LLMAgent, model: m, with: {emotion: {start: neutral}}, think: 1s}
  - {name: other, agent: worlds.games.strategies:Fixed, with: {action: cooperate}, think: 1s}
"""
MOODS = (
    "{cast.me.with.emotion.start: {kind: distribution, over: [anger, joy, neutral]}, "
    "cast.me.with.emotion.moves: {kind: chain, states: [anger, joy, neutral]}}"
)


def angry(request: Request) -> str:
    """Whoever is angry defects."""
    return "defect" if "You feel anger." in request.messages[1].text else "cooperate"


def plan(tmp_path: Path, *changes: str, scenario: str = SCENARIO) -> Plan:
    file = tmp_path / "dilemma.yaml"
    file.write_text(scenario, encoding="utf-8")
    small = ["structure={kind: group, size: 2}", "actors.size=4", "actors.elite=1", "rollout.episodes=8"]
    return Plan(recipe=load_recipe("evoemo_like", [*small, f"actors.space={SPACE}", *changes]), scenario=file, seed=5)


def bred(folder: Path, what: Plan, generations: int) -> Any:
    """The checkpoint's notes after so many generations."""
    what.write(folder)
    with begun(what, folder) as breeding:
        breeding.run(updates=generations)
        assert breeding.done == generations
    found = checkpoint.read_notes(folder)
    assert found is not None
    return found[1]


def test_whoever_defects_earns_more_and_takes_over(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    found = bred(folder, plan(tmp_path), 4)
    assert found["search"]["best"]["genome"]["cast.me.with.action"] == "defect"
    assert [one["cast.me.with.action"] for one in found["search"]["members"]].count("defect") >= 3
    best = read_yaml((folder / BEST).read_text(encoding="utf-8"), BEST).data
    assert 'cast.me.with.action="defect"' in best["sets"]
    project = Project(folder / "project.db")
    numbers = {one.of["update"]: one.value for _, one in project.measurements("search", "train.best_fitness")}
    members = [one for _, one in project.measurements("search", "population.fitness")]
    project.close()
    assert list(numbers.values()) == sorted(numbers.values()), "the best so far never falls"  # type: ignore[type-var]
    # Against whoever cooperates the dilemma pays 5 to defect and 3 to cooperate, in each of two rounds.
    assert {one.value for one in members} <= {6.0, 10.0}
    assert len(members) == 16
    assert all((one.n, one.n_clusters) == (2, 1) for one in members)


def expected(member: Any) -> float:
    """What a chain earns in four rounds, in the mean: 5 for each in anger and 3 for any other."""
    felt, moves, earned = member["cast.me.with.emotion.start"], member["cast.me.with.emotion.moves"], 0.0
    for _ in range(4):
        earned += 3 + 2 * felt["anger"]
        felt = {word: fsum(felt[before] * moves[before][word] for before in felt) for word in felt}
    return earned


def test_how_an_emotion_moves_is_bred(tmp_path: Path) -> None:
    """The best chain is one that is always angry; what a chain earns is known, so that children can be seen to gain."""
    what = plan(tmp_path, f"actors.space={MOODS}", scenario=MOODY)
    with Breeding(tmp_path / "search", what) as breeding:
        breeding.run(updates=3)
        assert isinstance(what.recipe.actors, Population)
        first = search(what.recipe.actors, Streams(what.seed).sub("population"))
    found = checkpoint.read_notes(tmp_path / "search")
    assert found is not None
    means = [fmean(map(expected, members)) for members in (first.members, found[1]["search"]["members"])]
    assert means[1] - means[0] > 1
    project = Project(tmp_path / "search" / "project.db")
    measured = {
        (one.of["update"], one.of["member"]): one.value
        for _, one in project.measurements("search", "population.fitness")
    }
    project.close()
    with Run(tmp_path / "search" / "rollouts" / "update-000001-2.db") as run:
        angers = sum(one.action.feels == "anger" for one in run.decisions())
        assert measured[1, 2] == 4 * 3 + 2 * angers / run.tables


def test_members_of_a_generation_meet_the_same_luck(tmp_path: Path) -> None:
    bred(tmp_path / "search", plan(tmp_path), 2)
    seeds: dict[int, set[int]] = {1: set(), 2: set()}
    for path in (tmp_path / "search" / "rollouts").glob("*.db"):
        with Run(path) as run:
            seeds[int(path.stem.split("-")[1])].add(run.manifest().seed)
    assert all(len(each) == 1 for each in seeds.values())
    assert seeds[1] != seeds[2]


def test_killed_and_gone_on_with_it_is_the_same(tmp_path: Path) -> None:
    what = plan(tmp_path)
    expected = bred(tmp_path / "whole", what, 3)
    killed(bred, tmp_path / "cut", what, 3, at=moment(62, "population"))
    assert bred(tmp_path / "cut", what, 3) == expected
    assert list((tmp_path / "cut" / "rollouts").glob("abandoned-*.db"))


def test_only_those_whom_the_settings_are_about_count(tmp_path: Path) -> None:
    """The other one is paid 0 by a defector; were it counted, the mean would be half of 10 and 0."""
    what = plan(tmp_path, "actors.space={cast.me.with.action: {kind: options, values: [defect]}}")
    what.write(tmp_path / "search")
    with Breeding(tmp_path / "search", what) as breeding:
        assert breeding.update()["fitness"] == 10
    both = "{cast.me.with.action: {kind: options, values: [defect]}, cast.other.think: {kind: options, values: [1s]}}"
    what = plan(tmp_path, f"actors.space={both}")
    what.write(tmp_path / "both")
    with Breeding(tmp_path / "both", what) as breeding:
        assert breeding.update()["fitness"] == fmean((10, 0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("actors.space={}", "actors.space is empty"),
        ("actors.space={cast.nobody.persona: {kind: options, values: [a]}}", "cast.nobody.persona is about nobody"),
        ("actors.space={world.rounds: {kind: options, values: [1]}}", "world.rounds is about nobody who speaks"),
        ("actors.space={models.small.engine: {kind: options, values: [vllm]}}", "models.small.engine is about nobody"),
        ("rollout.episodes=7", "7 are too few for 4 members; expected at least 8"),
    ],
)
def test_searches_about_nothing_are_refused(tmp_path: Path, change: str, why: str) -> None:
    with pytest.raises(TrainingError, match=why):
        Breeding(tmp_path / "search", plan(tmp_path, change))


def test_a_reward_that_nobody_works_out_is_told(tmp_path: Path) -> None:
    what = plan(tmp_path, "reward=[{kind: judge, rubric: Is it good?}]")
    with pytest.raises(TrainingError, match="reward judge: nobody works it out"):
        Breeding(tmp_path / "search", what)


def test_a_dry_run_says_what_a_generation_costs(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="costs what its 8 episodes cost"):
        cost(plan(tmp_path))
