"""Room for the learners' versions: how many places there must be, and that no training ever needs more."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from peft import LoraConfig

from agents.engines.torch import TorchEngine
from agents.engines.weights import ADAPTER, WeightsError
from sim.record.reader import Run
from sim.scenarios.located import ScenarioError
from sim.scenarios.scenario import load
from training.loop import Trainer
from training.plan import Plan
from training.recipe import Recipe
from training.recipe import load as load_recipe
from training.rollout import seats
from training.serving import places, room
from training.starting import brought

SCENARIO = Path(__file__).parents[2] / "scenarios" / "games" / "kuhn_train.yaml"
SMALL = ("rollout.episodes=8", "optimiser.lr=1e-2", "threads=1", "policy.rank=4")


def recipe(name: str = "reinforce", *changes: str) -> Recipe:
    return load_recipe(name, [*SMALL, *changes])


@pytest.mark.parametrize(
    ("entries", "name", "changes", "expected"),
    [
        (["kuhn"], "reinforce", [], 1 * (2 + 1) + 1),
        (["kuhn", "kuhn"], "reinforce", [], 1 * (2 + 1) + 1),
        (["one", "two"], "reinforce", ["policy.keep=3"], 2 * (3 + 1) + 1),
        (["one", "two"], "reinforce", ["actors={kind: lagged, last: 4}"], 2 * (6 + 1) + 1),
        (["one", "one", "one"], "unstable_baselines", [], 1 * (2 + 1) + 2),
        (["kuhn", "kuhn"], "reinforce", ["actors={kind: league, main_exploiters: 2}"], (1 + 2 + 1) * (3 + 1) + 1),
        (["kuhn", "kuhn"], "reinforce", ["actors={kind: psro}"], 1 * (3 + 1) + 2),
        (["one", "two"], "nfsp_like", [], 4 * (2 + 1) + 1),
        (["kuhn", "kuhn"], "reinforce", ["actors={kind: mix, last: 3}"], 1 * (4 + 1) + 1),
    ],
)
def test_places_are_for_versions_kept_a_new_one_and_a_guest_on_every_other_seat(
    entries: Sequence[str], name: str, changes: Sequence[str], expected: int
) -> None:
    assert places(recipe(name, *changes), {f"seat-{i}": policy for i, policy in enumerate(entries)}) == expected


def asked(*sets: str) -> tuple[Any, dict[str, str]]:
    scenario = load(SCENARIO, [*(f"models.{seat}.engine=vllm" for seat in ("first", "second")), *sets])
    return scenario, seats(scenario)


def test_an_engine_with_places_is_offered_enough_of_them() -> None:
    """Ranks are at least the canary's."""
    found = {"max_adapters": 4, "max_lora_rank": 8, "lora_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}
    scenario, entries = asked()
    assert room(scenario, recipe(), entries, exact=False) == found
    assert room(scenario, recipe(), entries, exact=True) == found | {"dtype": "float32"}
    scenario, entries = asked("models.first.max_adapters=6", "models.first.lora_modules=[q_proj, up_proj, o_proj]")
    found = room(
        scenario, recipe("reinforce", "policy.rank=16", "policy.targets=[o_proj, q_proj]"), entries, exact=False
    )
    assert found == {"max_adapters": 4, "max_lora_rank": 16, "lora_modules": ["o_proj", "q_proj"]}


def test_adapters_that_are_brought_keep_their_rank_and_layers(tmp_path: Path) -> None:
    LoraConfig(r=32, target_modules=["up_proj", "q_proj"]).save_pretrained(tmp_path / "given")
    (tmp_path / "given" / ADAPTER).touch()
    scenario, entries = asked()
    given = brought({"kuhn": tmp_path / "given"}, tmp_path / "policies")
    found = room(scenario, recipe(), entries, exact=False, brought=given)
    assert found["max_lora_rank"] == 32
    assert found["lora_modules"] == ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj"]
    scenario, entries = asked("models.first.max_lora_rank=16")
    with pytest.raises(ScenarioError, match="max_lora_rank: 16 is too little for reinforce; expected 32 or more"):
        room(scenario, recipe(), entries, exact=False, brought=given)
    shutil.move(tmp_path / "given", tmp_path / "policies" / "kuhn@1")
    assert brought({"kuhn": tmp_path / "given"}, tmp_path / "policies") == given, "from its version 1 once it has begun"


@pytest.mark.parametrize(
    ("sets", "changes", "message"),
    [
        (["models.second.max_adapters=3"], [], r"models.second.max_adapters: 3 is too little.*expected 4 or more"),
        (["models.first.max_lora_rank=8"], ["policy.rank=9"], r"models.first.max_lora_rank: 8 .*expected 9 or more"),
        (
            ["models.first.lora_modules=[q_proj, k_proj]"],
            [],
            r"models.first.lora_modules: .*expected \['q_proj', .* more",
        ),
        ([], ["policy.kind=full"], r"models.first.engine: vllm serves adapters only.*expected torch"),
    ],
)
def test_what_leaves_too_little_room_is_told_before_a_model_starts(
    sets: Sequence[str], changes: Sequence[str], message: str
) -> None:
    scenario, entries = asked(*sets)
    with pytest.raises(ScenarioError, match=message) as caught:
        room(scenario, recipe("reinforce", *changes), entries, exact=False)
    assert "\n" not in str(caught.value)


class Crowded(TorchEngine):
    """An engine with so many places and no more."""

    def __init__(
        self, model: str, *, max_model_len: int, max_adapters: int, adapters: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(model, max_model_len=max_model_len, threads=1, adapters=adapters)
        self.places = max_adapters

    def add_policy(self, name: str, folder: str | Path) -> None:
        if len(self.served) >= self.places:
            raise WeightsError(f"no place for {name} beside {self.served}")
        super().add_policy(name, folder)

    @property
    def served(self) -> list[str]:
        return self._names()


def test_a_training_never_needs_more_places(tiny_folder: Path, tmp_path: Path, one_thread: None) -> None:
    """With a pool of all earlier versions, which are called up from disk, and after a restart too."""
    sets = [f"models.{seat}.{key}" for seat in ("first", "second") for key in (
        f"model={tiny_folder}", "engine=tests.training.test_serving:Crowded")]  # fmt: skip
    plan = Plan(recipe=recipe("unstable_baselines"), scenario=SCENARIO, sets=tuple(sets), seed=3)
    folder = tmp_path / "kuhn"
    plan.write(folder)
    with Trainer(folder, plan) as trainer:
        trainer.run(updates=4)
        engine: Any = trainer._engine
        assert engine.places == 4
    with Trainer(folder, plan) as trainer:
        assert trainer._engine.served == ["kuhn@4", "kuhn@5"]
        trainer.run(updates=5)
        assert {"kuhn@5", "kuhn@6"} <= set(trainer._engine.served)
    kept = sorted(path.name for path in (folder / "policies").iterdir())
    assert kept == [f"kuhn@{version}" for version in range(1, 7)], "the first and the pool's members stay on disk"
    old = set()
    for path in (folder / "rollouts").glob("*.db"):
        newest = int(path.name.split("-")[1])
        with Run(path) as run:
            old |= {call.policy for call in run.calls() if int(call.policy.rpartition("@")[2]) < newest - 1}
    assert old, "versions that the engine had dropped are played again"
