"""The training loop on a tiny model: what an update leaves behind, and that nothing stops it for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sim.record.project import Project
from sim.record.reader import Run
from sim.scenarios.scenario import load
from sim.verify import verify
from tests.training.dying import killed, moment
from training import checkpoint
from training.loop import Trainer
from training.plan import Plan, TrainingError
from training.policy import tiny_model
from training.recipe import load as load_recipe
from training.rollout import seats

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "games" / "kuhn_train.yaml"
SMALL = (
    "policy.kind=full",
    "rollout.episodes=24",
    "optimiser.epochs=2",
    "optimiser.lr=1e-3",
    "threads=1",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def small(model: Path, recipe: str = "neurd_fit_like", *changes: str) -> Plan:
    sets = [f"models.{seat}.model={model}" for seat in ("first", "second")]
    return Plan(recipe=load_recipe(recipe, [*SMALL, *changes]), scenario=SCENARIO, sets=tuple(sets), seed=3)


def trained(folder: Path, plan: Plan, updates: int) -> dict[str, Any]:
    """The tensors after so many updates."""
    plan.write(folder)
    with Trainer(folder, plan) as trainer:
        trainer.run(updates=updates)
    found = checkpoint.read(folder)
    assert found is not None
    assert found[0] == updates
    return found[1]


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Four updates without a break."""
    folder = tmp_path_factory.mktemp("whole") / "kuhn"
    return folder, trained(folder, small(model), 4)


def test_an_update_leaves_runs_policies_numbers_and_one_checkpoint(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    runs = sorted(path.name for path in (folder / "rollouts").glob("*.db"))
    assert runs == [f"update-{update:06d}-0.db" for update in range(1, 5)]
    with Run(folder / "rollouts" / runs[1]) as run:
        assert run.status == "finished"
        assert {call.policy for call in run.calls()} == {"kuhn@2"}
    project = Project(folder / "project.db")
    for metric in ("train.return", "train.loss", "train.nash_conv", "train.average_nash_conv"):
        found = [one for _, one in project.measurements("kuhn", metric)]
        assert [one.of for one in found] == [{"update": update} for update in range(1, 5)]
        assert all(one.value is not None for one in found)
    assert all(one.value == 0 for _, one in project.measurements("kuhn", "train.return")), "the game is zero-sum"
    project.close()
    assert [path.name for path in folder.glob("checkpoint*")] == ["checkpoint-000004"]


def test_weights_move_and_so_does_what_is_played(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    answers = []
    for number in (1, 4):
        with Run(folder / "rollouts" / f"update-{number:06d}-0.db") as run:
            answers.append([call.completion.logprobs for call in run.calls()])
    assert answers[0][:5] != answers[1][:5]


def test_a_rollout_is_a_run_like_any_other(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    assert verify(folder / "rollouts" / "update-000001-0.db").whole


def test_killed_and_gone_on_with_the_weights_are_the_same_bit_by_bit(
    model: Path, whole: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, plan = tmp_path / "kuhn", small(model)
    killed(trained, folder, plan, 4, at=moment(54, "kuhn"))
    same = trained(folder, plan, 4)
    expected = whole[1]
    for name in ("policies", "references"):
        for policy, tensors in expected[name].items():
            for key, value in tensors.items():
                assert torch.equal(value, same[name][policy][key]), (name, policy, key)
    assert list((folder / "rollouts").glob("abandoned-*.db")), "what an unfinished update had played is kept"


def test_a_folder_holds_one_training(model: Path, whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    with pytest.raises(TrainingError, match="is of another training"):
        small(model, "reinforce").write(folder)
    assert Plan.read(folder) == small(model)
    with pytest.raises(TrainingError, match="holds no training"):
        Plan.read(folder / "nothing")


def test_who_learns_is_told_by_policies_without_a_version() -> None:
    assert seats(load(SCENARIO)) == {"first": "kuhn", "second": "kuhn"}
    frozen = load(SCENARIO, ["models.second.policy=kuhn@4", "models.second.adapters={kuhn@4: there}"])
    assert seats(frozen) == {"first": "kuhn"}


def test_nobody_learns(model: Path, tmp_path: Path) -> None:
    sets = (*small(model).sets, 'models.first.policy=""', 'models.second.policy=""')
    plan = Plan(recipe=small(model).recipe, scenario=SCENARIO, sets=sets)
    with pytest.raises(TrainingError, match="nobody learns"):
        Trainer(tmp_path, plan)


@pytest.mark.parametrize("recipe", ["reinforce", "grpo", "spiral", "prime_rl"])
def test_recipes_of_sampled_rows_move_the_policy(model: Path, tmp_path: Path, recipe: str) -> None:
    settings = load_recipe(recipe, [*SMALL, *(["structure.size=4"] if recipe in ("grpo", "prime_rl") else [])])
    plan = Plan(recipe=settings, scenario=SCENARIO, sets=small(model).sets)
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        policy = trainer._team.policies["kuhn"]
        before = {key: value.clone() for key, value in policy.tensors().items()}
        numbers = trainer.update()
        moved = [not torch.equal(value, before[key]) for key, value in policy.tensors().items()]
    assert numbers["steps"] >= 1
    assert numbers["gradient_norm"] > 0
    assert any(moved)


def test_a_pool_fills_with_earlier_versions_and_they_are_played(model: Path, tmp_path: Path) -> None:
    plan = small(model, "unstable_baselines", "updates=3")
    trained(tmp_path / "kuhn", plan, 3)
    speakers = set()
    for path in (tmp_path / "kuhn" / "rollouts").glob("update-000003-*.db"):
        with Run(path) as run:
            speakers |= {call.policy for call in run.calls()}
    assert "kuhn@3" in speakers
    assert speakers & {"kuhn@1", "kuhn@2"}


@pytest.mark.parametrize("recipe", ["sft", "dpo"])
def test_a_policy_learns_from_stored_runs(
    model: Path, whole: tuple[Path, dict[str, Any]], tmp_path: Path, recipe: str
) -> None:
    runs = tuple((whole[0] / "rollouts").glob("update-*.db"))
    asked = small(model, recipe)
    plan = Plan(recipe=asked.recipe, scenario=SCENARIO, sets=asked.sets, runs=runs)
    plan.write(tmp_path / "kuhn")
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        first, second = trainer.update(), trainer.update()
    assert first["rows"] > 0
    assert second["last_loss"] < first["last_loss"]


def test_a_checkpoint_of_another_format_is_told(tmp_path: Path) -> None:
    checkpoint.write(tmp_path, 3, {}, {"format": 0})
    with pytest.raises(TrainingError, match="checkpoint-000003 has format 0, this agora-sim goes on from 2:"):
        checkpoint.read(tmp_path)
