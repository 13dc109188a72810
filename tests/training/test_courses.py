"""Curricula in the loop: episodes that may grow longer, tasks that get harder, and both after a break."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from tests.training.test_loop import small
from training.loop import Trainer
from training.plan import Plan
from training.policy import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def planned(model: Path, curriculum: str, *sets: str) -> Plan:
    changes = ("structure.size=2", "rollout.episodes=4", "optimiser.epochs=1", f"curriculum=[{curriculum}]")
    plan = small(model, "grpo", *changes)
    return Plan(recipe=plan.recipe, scenario=plan.scenario, sets=(*plan.sets, *sets), seed=plan.seed)


def played(folder: Path, update: int) -> Run:
    return Run(folder / "rollouts" / f"update-{update:06d}-0.db")


def test_episodes_may_grow_longer_and_end_truncated(model: Path, tmp_path: Path) -> None:
    plan = planned(model, "{kind: horizon, stages: [[0, 2], [1, 5]]}", "world.hands=9")
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        trainer.update()
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        trainer.update()
    for update, most in ((1, 2), (2, 5)):
        with played(tmp_path / "kuhn", update) as run:
            for table in range(run.tables):
                assert len(list(run.decisions(table))) == most
                ((_, _, end),) = run.events("end", table)
                assert end["truncated"] == ["first", "second"]


def test_tasks_get_harder_with_success_also_after_a_break(model: Path, tmp_path: Path) -> None:
    pools = "pools: [[world.hands=1], [world.hands=2], [world.hands=3]]"
    plan = planned(model, f"{{kind: pools, {pools}, success: -99}}")
    for _ in range(3):
        with Trainer(tmp_path / "kuhn", plan) as trainer:
            trainer.update()
    hands = []
    for update in (1, 2, 3):
        with played(tmp_path / "kuhn", update) as run:
            hands.append(run.params["hands"])
    assert hands == [1, 2, 3]
    hopeless = planned(model, f"{{kind: pools, {pools}, success: 99}}")
    with Trainer(tmp_path / "low", hopeless) as trainer:
        trainer.run(updates=2)
    with played(tmp_path / "low", 2) as run:
        assert run.params["hands"] == 1
