"""Proposers and solvers: who is compared with whom, and what a proposal is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from sim.scenarios.yaml_text import write_yaml
from tests.training.records import proposals
from tests.training.test_loop import SMALL, trained
from training.extras import NO_EXTRAS
from training.loop import Trainer
from training.plan import Plan
from training.policy import tiny_model
from training.recipe import load as load_recipe
from training.reward import Proposal, rewards
from training.rollout import RolloutError
from training.trajectory import earned


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def planned(model: Path, folder: Path, role: str = "proposer", **proposal: object) -> Plan:
    speaker = {"engine": "torch", "model": str(model), "policy": "poser", "context": 512}
    mind = {"agent": "agents.llm:LLMAgent", "with": {"memory_tokens": 0}, "think": "1s"}
    scenario = folder / "riddles.yaml"
    scenario.write_text(
        write_yaml(
            {
                "name": "riddles",
                "clock": {"until": None},
                "world": {"use": "tests.training.riddles:Riddles"},
                "models": {"asking": speaker, "solving": speaker},
                "cast": [
                    {"name": "asker", "role": role, "model": "asking", **mind},
                    {"name": "solver", "role": "solver", "model": "solving", **mind},
                ],
            }
        )
    )
    pays = "{kind: proposal, pays: learnability, success: 0.5}"
    changes = ("structure.proposals=3", "structure.attempts=4", "rollout.episodes=6", "optimiser.epochs=1")
    terms = ("credit.0.rewards=[outcome]", "credit.1.rewards=[proposal]")
    recipe = load_recipe("hierarchical_grpo", [*SMALL, *changes, f"reward=[{{kind: outcome}}, {pays}]", *terms])
    return Plan(recipe=recipe, scenario=scenario, seed=5)


def test_a_proposal_is_worth_how_hard_it_was_or_how_much_there_is_to_learn() -> None:
    """Of problem 0 one of two solvers succeeds, of problem 1 both."""
    rows = proposals()
    hard = rewards([Proposal(kind="proposal", pays="difficulty")], rows, NO_EXTRAS).total()
    assert hard == [0.5, 0, 0, 0, 0, 0]
    learnable = rewards([Proposal(kind="proposal")], rows, NO_EXTRAS).total()
    assert learnable == [0.25, 0, 0, 0, 0, 0]
    all_fail = rewards([Proposal(kind="proposal", pays="difficulty", success=1.0)], rows, NO_EXTRAS).total()
    assert all_fail == [1, 0, 0, 1, 0, 0]
    with pytest.raises(ValueError, match="nobody of the role solver"):
        rewards([Proposal(kind="proposal")], rows[:1], NO_EXTRAS)


def test_solvers_are_a_group_at_their_task_and_proposers_at_their_source(model: Path, tmp_path: Path) -> None:
    plan = planned(model, tmp_path)
    with Trainer(tmp_path / "riddles", plan) as trainer:
        rows, _ = trainer._played()
        found = rewards(plan.recipe.reward, rows).streams["proposal"]
    with Run(tmp_path / "riddles" / "rollouts" / "update-000001-0.db") as run:
        assert run.tables == 6
        for table in range(6):
            earned_there = run.rewards(table)
            p = sum(earned_there.values()) / 4
            mine = [i for i, row in enumerate(rows) if row.episode == f"update-000001-0:{table}"]
            assert sorted(rows[i].role for i in mine) == ["proposer", *["solver"] * 4]
            (proposer,) = [i for i in mine if rows[i].role == "proposer"]
            assert found[proposer] == pytest.approx(p * (1 - p))
            assert {(rows[i].task, rows[i].group) for i in mine} == {
                (f"update-000001-0/{table // 3}", f"update-000001-0:{table}")
            }
    assert sum(earned(rows).values()) == sum(row.reward for row in rows)


def test_proposals_train_and_go_on_after_a_break(model: Path, tmp_path: Path) -> None:
    plan = planned(model, tmp_path)
    whole = trained(tmp_path / "whole" / "riddles", plan, 2)
    trained(tmp_path / "riddles", plan, 1)
    after = trained(tmp_path / "riddles", plan, 2)
    assert all((whole["policies"]["poser"][key] == value).all() for key, value in after["policies"]["poser"].items())


def test_a_world_without_the_roles_is_told(model: Path, tmp_path: Path) -> None:
    plan = planned(model, tmp_path, role="judge")
    with Trainer(tmp_path / "riddles", plan) as trainer, pytest.raises(RolloutError, match="there are 0 and 1"):
        trainer.update()
