"""Room for the learners' versions in the engine that serves them: how many adapters, how large, on which layers.

The engine holds the last versions of every policy, the one that is being published, and either the canary or the
earlier versions that one matchup is played against; what else is kept lies on disk until a matchup needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peft import LoraConfig

from sim.scenarios.resolve import keywords
from sim.scenarios.scenario_schema import Scenario
from sim.types import JSON
from training import roster
from training.plan import kept
from training.recipe import Recipe
from training.slots import PSRO, Teacher
from training.sync import CANARY_RANK


def places(recipe: Recipe, entries: Mapping[str, str]) -> int:
    """Adapters that are served at once, at most; `entries`: the learners' entries of `models:` and their policies."""
    mains = list(dict.fromkeys(entries.values()))
    policies = len(mains) + len(roster.enrolled(recipe.actors, mains).learners)
    # One seat of a matchup is a newest version's, but where members meet to be rated.
    guests = len(entries) if isinstance(recipe.actors, PSRO) else max(1, len(entries) - 1)
    guests += isinstance(recipe.actors, Teacher) and "@" in recipe.actors.policy
    return policies * (kept(recipe) + 1) + guests


def room(
    scenario: Scenario, recipe: Recipe, entries: Mapping[str, str], *, exact: bool, brought: Sequence[LoraConfig] = ()
) -> dict[str, JSON]:
    """Settings for engines that have places for adapters: enough of them, and no larger than what is trained.

    `exact`: float32 too, as the trainer computes; what bfloat16 rounds away is larger than most updates. `brought`: the
    adapters that learners start from, which keep their rank and layers.

    Raises ScenarioError where a learner's entry sets too little, or its engine cannot serve what the recipe trains.
    """
    found: dict[str, JSON] = {
        "max_adapters": places(recipe, entries),
        "max_lora_rank": max(recipe.policy.rank, CANARY_RANK, *(adapter.r for adapter in brought)),
        "lora_modules": list(dict.fromkeys([*recipe.policy.targets, *_layers(brought)])),
    }
    for name in entries:
        model = scenario.models[name]
        if "max_adapters" not in (keywords(model.engine_path, scenario.base) or ()):
            continue
        if recipe.policy.kind == "full":
            message = f"{model.engine} serves adapters only, and {recipe.name} trains whole models"
            raise scenario.error(("models", name, "engine"), f"{message}; expected torch, or a recipe of kind lora")
        for key, needed in found.items():
            if key in model.settings and not _enough(model.settings[key], needed):
                more = " and more" if isinstance(needed, list) else " or more"
                message = f"{model.settings[key]} is too little for {recipe.name}; expected {needed}{more}, or nothing"
                raise scenario.error(("models", name, key), message)
    return found | {"dtype": "float32"} if exact else found


def _layers(brought: Sequence[LoraConfig]) -> list[str]:
    """The layers that adapters name one by one; a pattern is the engine's to read."""
    named = (adapter.target_modules for adapter in brought)
    return [layer for layers in named if layers and not isinstance(layers, str) for layer in sorted(layers)]


def _enough(given: JSON, needed: JSON) -> bool:
    """Whether a number is as large, or a list has all that is needed; null leaves it to the engine."""
    if isinstance(needed, list):
        return given is None or (isinstance(given, list) and set(needed) <= set(given))
    return isinstance(given, int) and given >= needed
