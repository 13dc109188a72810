"""Agents that think before they answer: their thoughts are learnt with their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from tests.training.test_loop import small
from training.credit import credit
from training.loop import Trainer
from training.plan import Plan
from training.policy import tiny_model
from training.reward import rewards

THINKS = ("cast.first.with.think=8", "cast.second.with.think=8")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def thinking(model: Path, recipe: str, *changes: str) -> Plan:
    plan = small(model, recipe, "rollout.episodes=8", "optimiser.epochs=1", "filter=[]", *changes)
    return Plan(recipe=plan.recipe, scenario=plan.scenario, sets=(*plan.sets, *THINKS), seed=plan.seed)


def test_a_thought_is_a_row_with_the_advantage_of_its_decision(model: Path, tmp_path: Path) -> None:
    plan = thinking(model, "reinforce")
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        rows, _ = trainer._played()
        found = credit(rows, rewards(plan.recipe.reward, rows), plan.recipe.credit)
        numbers = trainer.update()
    assert numbers["gradient_norm"] > 0
    (path,) = (tmp_path / "kuhn" / "rollouts").glob("update-000001-0.db")
    with Run(path) as run:
        said = [call.completion.ids for call in run.calls() if call.purpose == "think"]
    thoughts = [row for row in rows if row.has("think")]
    assert sorted(row.ids for row in thoughts) == sorted(said)
    assert [row for row in rows if row not in thoughts] == [row for row in rows if row.has("action")]
    advantages = {}
    for row, each in zip(rows, found.tokens, strict=True):
        advantages.setdefault((row.episode, row.seat, row.turn), set()).update(each)
    assert len(thoughts) == len(rows) / 2 == len(advantages)
    assert all(len(each) == 1 for each in advantages.values())


def test_tags_learn_thoughts_alone(model: Path, tmp_path: Path) -> None:
    plan = thinking(model, "reinforce", "credit.0.span={kind: tag, tags: [think]}")
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        rows, _ = trainer._played()
        found = credit(rows, rewards(plan.recipe.reward, rows), plan.recipe.credit)
        assert trainer.update()["gradient_norm"] > 0
    for row, mask in zip(rows, found.mask, strict=True):
        assert set(mask) == {row.has("think")}


@pytest.mark.parametrize("recipe", ["grpo", "neurd_fit_like", "spiral", "gspo_like", "turn_ppo"])
def test_recipes_of_every_kind_learn_from_those_who_think(model: Path, tmp_path: Path, recipe: str) -> None:
    with Trainer(tmp_path / "kuhn", thinking(model, recipe)) as trainer:
        numbers = trainer.update()
    assert numbers["gradient_norm"] >= 0


def test_branches_learn_from_those_who_think(model: Path, tmp_path: Path) -> None:
    tree = ("structure.size=2", "structure.nodes=2", "structure.branches=1", "rollout.episodes=4", "extra=[]")
    with Trainer(tmp_path / "kuhn", thinking(model, "arpo_like", *tree)) as trainer:
        numbers = trainer.update()
    assert numbers["gradient_norm"] > 0
    assert numbers["rows"] > numbers["decisions"], "thoughts are learnt too"
