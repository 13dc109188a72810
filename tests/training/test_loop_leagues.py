"""Leagues, best responses, averages and mixes in the loop, on a tiny model: who trains, who joins, what is kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from typer.testing import CliRunner

from sim.commands.cli import app
from sim.record.project import Project
from sim.record.reader import Run
from sim.streams import Streams
from tests.training.dying import killed, moment
from training import checkpoint, learner, sync
from training.acting import Mixing
from training.averages import Averages
from training.command import standings
from training.league import LeagueState
from training.loop import Trainer
from training.nfsp import Reservoir
from training.plan import Plan, TrainingError
from training.policy import saved_in, tiny_model
from training.recipe import load as load_recipe
from training.trajectory import Row
from training.trajectory import rows as rows_of

SCENARIO = Path(__file__).parents[2] / "scenarios" / "games" / "kuhn_train.yaml"
SMALL = ("policy.kind=full", "rollout.episodes=12", "optimiser.lr=1e-2", "optimiser.epochs=1", "threads=1")
PFSP = "actors={kind: pool, weight: pfsp_hard}"
LEAGUE = "actors={kind: league, add_every: 2, patience: 2}"
PSRO = "actors={kind: psro, every: 1, games: 4}"
NFSP = "actors={kind: nfsp, eta: 0, reservoir: 20}"
MIX = "actors={kind: mix, last: 2}"
MAIN, LEAGUE_EXPLOITER = "kuhn-main-exploiter-1", "kuhn-league-exploiter-1"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=16, layers=1)


def plan(model: Path, actors: str) -> Plan:
    recipe = "nfsp_like" if actors == NFSP else "spiral"
    sets = tuple(f"models.{seat}.model={model}" for seat in ("first", "second"))
    return Plan(recipe=load_recipe(recipe, [*SMALL, actors]), scenario=SCENARIO, sets=sets, seed=3)


class Trained(NamedTuple):
    """A folder after some updates."""

    folder: Path
    tensors: dict[str, Any]
    notes: dict[str, Any]

    @property
    def league(self) -> LeagueState:
        return LeagueState.from_json(self.notes["league"])

    def runs(self, update: int) -> list[Path]:
        return sorted((self.folder / "rollouts").glob(f"update-{update:06d}-*.db"))


def trained(folder: Path, what: Plan, updates: int) -> Trained:
    what.write(folder)
    with Trainer(folder, what) as trainer:
        trainer.run(updates=updates)
    found = checkpoint.read(folder)
    assert found is not None
    assert found[0] == updates
    return Trained(folder, found[1], found[2])


WHOLE: dict[str, Trained] = {}


def whole(model: Path, actors: str, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Three updates without a break."""
    if actors not in WHOLE:
        WHOLE[actors] = trained(tmp_path_factory.mktemp("whole") / "kuhn", plan(model, actors), 3)
    return WHOLE[actors]


# --- nothing stops them for good ------------------------------------------------------------------------------


class Stopped(BaseException):
    """What an interrupted training dies of."""


@pytest.mark.parametrize(
    ("actors", "owner", "method", "call"),
    [
        (PFSP, checkpoint, "write", 1),
        # A response that joins; the average's step.
        (PSRO, sync.Publisher, "publish", 1),
        (NFSP, learner.Learner, "_step", 2),
        (MIX, checkpoint, "write", 1),
    ],
)
def test_stopped_and_gone_on_with_it_is_the_same_bit_by_bit(
    model: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    actors: str,
    owner: Any,
    method: str,
    call: int,
) -> None:
    """It dies in the second update, after the so-manyth call of a method."""
    expected, what = whole(model, actors, tmp_path_factory), plan(model, actors)
    folder = tmp_path / "kuhn"
    what.write(folder)
    with monkeypatch.context() as patched, Trainer(folder, what) as trainer:
        trainer.update()
        _stop(patched, owner, method, call)
        with pytest.raises(Stopped):
            trainer.update()
    assert_same(trained(folder, what, 3), expected)


def test_a_killed_league_goes_on_to_the_same_bits(
    model: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three policies, of which an exploiter starts anew in the second update."""
    expected, what = whole(model, LEAGUE, tmp_path_factory), plan(model, LEAGUE)
    killed(trained, tmp_path / "kuhn", what, 3, at=moment(186, "league"))
    assert_same(trained(tmp_path / "kuhn", what, 3), expected)


def assert_same(found: Trained, expected: Trained) -> None:
    """To the bit."""
    assert found.notes == expected.notes
    for name, tensors in expected.tensors["policies"].items():
        for key, value in tensors.items():
            assert torch.equal(value, found.tensors["policies"][name][key]), (name, key)
    assert measured(found) == measured(expected)


def _stop(patched: pytest.MonkeyPatch, owner: Any, name: str, last: int) -> None:
    method = getattr(owner, name)
    calls = 0

    def stopping(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        result = None if owner is checkpoint else method(*args, **named)
        if calls == last:
            raise Stopped
        return result

    patched.setattr(owner, name, stopping)


def measured(one: Trained) -> list[Any]:
    project = Project(one.folder / "project.db")
    try:
        return list(project.measurements("kuhn"))
    finally:
        project.close()


# --- pools -----------------------------------------------------------------------------------------------------


def test_a_pool_counts_its_games_and_prefers_those_it_loses_to(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, PFSP, tmp_path_factory)
    assert [(one.label, one.added) for one in found.league.members] == [("kuhn@2", 1), ("kuhn@3", 2), ("kuhn@4", 3)]
    assert set(found.league.payoffs["kuhn"]) == {"kuhn@2", "kuhn@3"}, "the last has not played yet"
    assert found.league.rating("kuhn").sigma < 25 / 3
    about = {tuple(sorted(one.of.items())): one for _, one in measured(found) if one.metric == "league.win_rate"}
    one = about[("opponent", "kuhn@2"), ("player", "kuhn")]
    score = found.league.score("kuhn", "kuhn@2")
    assert (one.value, one.ci, one.n) == (score.win_rate, score.interval, round(score.n))


# --- leagues ---------------------------------------------------------------------------------------------------


def test_exploiters_train_against_mains_that_stand_still(model: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = whole(model, LEAGUE, tmp_path_factory)
    trainers: Counter[str] = Counter()
    for update in (1, 2, 3):
        for path in found.runs(update):
            with Run(path) as run:
                said = {call.policy: bool(call.completion.prompt_ids) for call in run.calls()}
            learning = {label.partition("@")[0] for label, recorded in said.items() if recorded}
            assert len(learning) == 1, "nobody learns from what another one earned"
            trainers.update(learning)
            if learning == {MAIN}:
                others = {label for label in said if not label.startswith(MAIN)}
                assert others == {f"kuhn@{update}"}, "the newest main version, which does not learn here"
    assert set(trainers) == {"kuhn", MAIN, LEAGUE_EXPLOITER}
    for name in trainers:
        first, joined = (saved_in(found.folder / "policies" / f"{name}@{version}").hash for version in (1, 3))
        assert first != joined, f"{name} has learnt"


def test_members_join_when_the_rule_says_and_main_exploiters_start_anew(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, LEAGUE, tmp_path_factory)
    members = {one.label: (one.kind, one.added) for one in found.league.members}
    assert members == {
        "kuhn@1": ("main", 0),
        "kuhn@3": ("main", 2),
        f"{MAIN}@3": ("main_exploiter", 2),
        f"{LEAGUE_EXPLOITER}@3": ("league_exploiter", 2),
    }
    folder = found.folder / "policies"
    again, first = saved_in(folder / f"{MAIN}@4"), saved_in(folder / f"{MAIN}@1")
    assert (again.hash, again.parent) == (first.hash, f"{MAIN}@1")
    exploiter = found.league.learner(MAIN)
    assert exploiter is not None
    assert (exploiter.since, exploiter.label) == (2, f"{MAIN}@5")
    assert all((folder / label).is_dir() for label in members), "members stay on disk"


# --- best responses --------------------------------------------------------------------------------------------


def test_best_responses_meet_the_mixture_and_join_with_a_whole_row_of_games(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, PSRO, tmp_path_factory)
    labels = [one.label for one in found.league.members]
    assert labels == ["kuhn@1", "kuhn@2", "kuhn@3", "kuhn@4"]
    for one in labels:
        for other in labels:
            if one != other:
                assert found.league.score(one, other, "first").n == 4, "as many games as the recipe asks for"
    with Run(found.runs(1)[0]) as run:
        assert {call.policy for call in run.calls()} == {"kuhn@1"}, "the first response is to the first version"
    numbers = {one.of["update"]: one.value for _, one in measured(found) if one.metric == "train.strategy_nash_conv"}
    best = {one.of["update"]: one.value for _, one in measured(found) if one.metric == "train.best_strategy_nash_conv"}
    assert [best[update] for update in (1, 2, 3)] == [min(numbers[u] for u in range(1, n + 1)) for n in (1, 2, 3)]
    kept = found.league.best["meta-strategy"]
    assert -kept.score == best[3]
    assert set(kept.mixture) == {"first", "second"}
    assert sum(kept.mixture["first"].values()) == pytest.approx(1)


def test_a_best_response_may_start_from_the_first_version(model: Path, tmp_path: Path) -> None:
    found = trained(tmp_path / "kuhn", plan(model, "actors={kind: psro, every: 2, games: 2, anew: true}"), 2)
    folder = found.folder / "policies"
    assert saved_in(folder / "kuhn@4").hash == saved_in(folder / "kuhn@1").hash
    assert saved_in(folder / "kuhn@3").hash != saved_in(folder / "kuhn@1").hash
    assert [one.label for one in found.league.members] == ["kuhn@1", "kuhn@3"]
    assert "kuhn" not in found.league.ratings, "whoever starts anew is a newcomer"


# --- fictitious play -------------------------------------------------------------------------------------------


def test_the_reservoir_takes_what_learners_did_in_the_order_of_the_episodes(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, NFSP, tmp_path_factory)
    seen: list[Row] = []
    for update in (1, 2, 3):
        for path in sorted(found.runs(update), key=lambda one: int(one.stem.rpartition("-")[2])):
            with Run(path) as run:
                recorded = {call.policy for call in run.calls() if call.completion.prompt_ids}
            seen += [row for row in rows_of(path, trained=recorded) if row.trained]
    name = "kuhn-average"
    again = Reservoir(capacity=20).added(seen, Streams(3).sub("averages", name))
    kept = Reservoir.from_json(found.notes["reservoirs"][name])
    assert kept.seen == len(seen) > 20
    assert len(kept.slots) == 20
    assert kept == again


def test_the_average_plays_and_moves_towards_what_its_best_response_did(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, NFSP, tmp_path_factory)
    met = set()
    for path in found.runs(2):
        with Run(path) as run:
            met |= {call.policy for call in run.calls()}
    assert met == {"kuhn@2", "kuhn-average@2"}
    folder = found.folder / "policies"
    assert saved_in(folder / "kuhn-average@4").hash != saved_in(folder / "kuhn-average@3").hash
    losses = [one.value for _, one in measured(found) if one.metric == "train.ce kuhn-average"]
    assert len(losses) == 3
    strategies = [one.value for _, one in measured(found) if one.metric == "train.strategy_nash_conv"]
    assert len(strategies) == 3


def test_an_average_of_nothing_waits(model: Path) -> None:
    averages = Averages(plan(model, NFSP).recipe, {"kuhn-average": "kuhn"}, Streams(0))
    lesson = averages.lesson("kuhn-average", [Row(episode="run:0", trained=False)], 0)
    assert lesson.rows == []
    assert averages.numbers() == {"reservoir kuhn-average": 0}


# --- mixes -----------------------------------------------------------------------------------------------------


def test_decisions_are_drawn_from_the_last_versions_and_say_whose_they_are(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = whole(model, MIX, tmp_path_factory)
    (path,) = found.runs(3)
    counts = Counter(row.policy for row in rows_of(path, trained={"kuhn@3"}) if row.trained)
    assert set(counts) == {"kuhn@2", "kuhn@3"}
    assert min(counts.values()) / sum(counts.values()) > 0.25


def test_a_mix_has_no_one_law_for_every_option(model: Path, tmp_path: Path) -> None:
    what = plan(model, MIX)
    recipe = load_recipe("neurd_fit_like", [*SMALL, MIX])
    with pytest.raises(TrainingError, match="the actors mix draw one for each decision"):
        Trainer(tmp_path, Plan(recipe=recipe, scenario=SCENARIO, sets=what.sets))


def test_a_mix_needs_versions() -> None:
    with pytest.raises(ValueError, match="nobody is there to answer"):
        Mixing(None, [])  # type: ignore[arg-type]


# --- what is shown ---------------------------------------------------------------------------------------------


def test_a_league_is_shown_to_people_and_machines(model: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = whole(model, PSRO, tmp_path_factory)
    shown = CliRunner().invoke(app, ["league", str(found.folder)]).output
    for label in ("kuhn@1", "kuhn@4"):
        low, high = found.league.score("kuhn@2", label).interval
        assert label in shown
        assert f"{found.league.score('kuhn@2', label).win_rate:.2f} [{low:.2f}, {high:.2f}]" in shown
    for head in ("ladder", "win rate of … against", "meta-strategy", "best so far"):
        assert head in shown
    told = json.loads(CliRunner().invoke(app, ["league", str(found.folder), "--json"]).output)
    ladder = {one["player"]: one for one in told["ladder"]}
    assert set(ladder) == {"kuhn", "kuhn@1", "kuhn@2", "kuhn@3", "kuhn@4"}
    assert [one["at_least"] for one in told["ladder"]] == sorted(one["at_least"] for one in told["ladder"])[::-1]
    one = found.league.rating("kuhn@3")
    low, high = ladder["kuhn@3"]["interval"]
    assert ((low + high) / 2, (high - low) / 2) == pytest.approx((one.mu, 1.96 * one.sigma), rel=1e-3)
    assert sum(told["meta_strategy"]["first"].values()) == pytest.approx(1)
    pairs = {(one["player"], one["opponent"]): one["games"] for one in told["payoffs"]}
    assert pairs["kuhn@1", "kuhn@2"] == 8
    project = [one for _, one in measured(found) if one.metric == "league.rating" and one.of["update"] == 3]
    assert {one.of["player"]: (one.value, list(one.ci or ())) for one in project} == {
        one["player"]: (one["mu"], one["interval"]) for one in told["ladder"] if one["player"] in found.league.ratings
    }


def test_a_folder_without_a_league_is_told(model: Path, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="holds no training"):
        standings(tmp_path, everything=False)
    plan(model, MIX).write(tmp_path / "kuhn")
    with pytest.raises(TrainingError, match="has no checkpoint yet"):
        standings(tmp_path / "kuhn", everything=False)
    checkpoint.write(tmp_path / "kuhn", 0, {}, {})
    with pytest.raises(TrainingError, match="the actors mix have no league"):
        standings(tmp_path / "kuhn", everything=False)
