"""A tiny Llama from scratch trained in a scenario, as `agora train` does it; shared by the benchmarks of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sim.scenarios.scenario import load
from training.loop import Done, Trainer
from training.plan import Plan
from training.policy import tiny_model
from training.recipe import load as load_recipe
from training.rollout import seats

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SPREAD = 32**-0.5
"""Of the first weights: layers of width 32 then pass on what they read."""


def llama(folder: Path) -> Path:
    """Two layers of width 32 with random weights."""
    return tiny_model(folder, seed=1, width=32, spread=SPREAD)


def planned(
    scenario: str,
    model: Path,
    changes: Sequence[str],
    *,
    seed: int,
    sets: Sequence[str] = (),
    recipe: str = "neurd_fit_like",
) -> Plan:
    """A training of the model in a shipped scenario; `changes` are of the recipe, `sets` of the scenario."""
    file = SCENARIOS / scenario
    return Plan(
        recipe=load_recipe(recipe, ["policy.kind=full", "threads=1", *changes]),
        scenario=file,
        sets=(*sets, *(f"models.{entry}.model={model}" for entry in seats(load(file)))),
        seed=seed,
    )


def train(plan: Plan, folder: Path, updates: int, report: Callable[[Done], None] = lambda _done: None) -> None:
    """So many updates, whole and stored in the folder."""
    with Trainer(folder, plan) as trainer:
        trainer.run(report, updates)
