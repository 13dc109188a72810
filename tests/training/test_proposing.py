"""Proposers and solvers: who is compared with whom, and what a proposal is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from tests.benchmarks.tiny import SCENARIOS
from tests.training.records import proposals
from tests.training.test_loop import SMALL, small, trained
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


def planned(model: Path) -> Plan:
    """Three proposals a start, four solvers each: a number from 0 to 9 plus another one, or divided by it."""
    speakers = (f"models.asking.model={model}", f"models.solving.model={model}")
    sets = (*speakers, "world.operations=[plus, divided by]", "world.most=9")
    pays = "{kind: proposal, success: 0.5, untried: -0.25}"
    size = ("structure.proposals=3", "structure.attempts=4", "rollout.episodes=6", "optimiser.epochs=1")
    terms = ("credit.0.rewards=[outcome]", "credit.1.rewards=[proposal]")
    recipe = load_recipe("hierarchical_grpo", [*SMALL, *size, f"reward=[{{kind: outcome}}, {pays}]", *terms])
    return Plan(recipe=recipe, scenario=SCENARIOS / "games" / "riddles_train.yaml", sets=sets, seed=2)


def test_a_proposal_is_worth_how_hard_it_was_or_how_much_there_is_to_learn() -> None:
    """Of problem 0 one of two solvers succeeds, of problem 1 both."""
    rows = proposals()
    hard = rewards([Proposal(kind="proposal", pays="difficulty")], rows, NO_EXTRAS).total()
    assert hard == [0.5, 0, 0, 0, 0, 0]
    learnable = rewards([Proposal(kind="proposal")], rows, NO_EXTRAS).total()
    assert learnable == [0.25, 0, 0, 0, 0, 0]
    all_fail = rewards([Proposal(kind="proposal", pays="difficulty", success=1.0)], rows, NO_EXTRAS).total()
    assert all_fail == [1, 0, 0, 1, 0, 0]
    for untried in (0.0, -0.5):
        assert rewards([Proposal(kind="proposal", untried=untried)], rows[:1], NO_EXTRAS).total() == [untried]


def test_solvers_are_a_group_at_their_task_and_proposers_at_their_source(model: Path, tmp_path: Path) -> None:
    """What has no answer is put to nobody, and worth what the recipe says."""
    plan = planned(model)
    with Trainer(tmp_path / "riddles", plan) as trainer:
        rows, _ = trainer._played()
        found = rewards(plan.recipe.reward, rows).streams["proposal"]
    with Run(tmp_path / "riddles" / "rollouts" / "update-000001-0.db") as run:
        gates = {item.table: item.fact.data["answerable"] for item in run.facts("proposal")}
        assert (len(gates), set(gates.values())) == (6, {True, False})
        for table, answerable in gates.items():
            mine = [i for i, row in enumerate(rows) if row.episode == f"update-000001-0:{table}"]
            solved = [rows[i].reward for i in mine if rows[i].role == "solver"]
            assert len(solved) == (4 if answerable else 0)
            p = sum(solved) / 4
            parts = [found[i] for i in mine if rows[i].role == "proposer"]
            assert parts == [0, 0, pytest.approx(p * (1 - p) if answerable else -0.25)]
            assert run.rewards(table)["proposer"] == pytest.approx(1 - p if answerable else -0.5)
            assert {(rows[i].task, rows[i].group) for i in mine} == {
                (f"update-000001-0/{table // 3}", f"update-000001-0:{table}")
            }
    assert sum(earned(rows).values()) == sum(row.reward for row in rows)


def test_proposals_train_and_go_on_after_a_break(model: Path, tmp_path: Path) -> None:
    plan = planned(model)
    whole = trained(tmp_path / "whole" / "riddles", plan, 2)
    trained(tmp_path / "riddles", plan, 1)
    after = trained(tmp_path / "riddles", plan, 2)
    assert all(
        (whole["policies"]["riddler"][key] == value).all() for key, value in after["policies"]["riddler"].items()
    )


def test_a_world_without_the_roles_is_told(model: Path, tmp_path: Path) -> None:
    plan = small(model, "hierarchical_grpo")
    with Trainer(tmp_path / "kuhn", plan) as trainer, pytest.raises(RolloutError, match="there are 0 and 0"):
        trainer.update()
