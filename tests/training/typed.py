"""Small trainings, as one types them."""

from __future__ import annotations

from pathlib import Path

KUHN = Path(__file__).parents[2] / "scenarios" / "games" / "kuhn_train.yaml"


def typed(scenario: Path | str, *changes: str, recipe: str = "reinforce", out: str) -> list[object]:
    """The words of a training of adapters; `changes` are of the recipe."""
    settings = ("rollout.episodes=12", "optimiser.lr=1e-2", "policy.rank=4", "threads=1", *changes)
    told = [part for one in settings for part in ("--recipe-set", one)]
    return ["train", recipe, "--scenario", scenario, "--out", out, "--seed", 3, "-q", *told]


def asked(model: Path, *changes: str, recipe: str = "reinforce", out: str = "kuhn") -> list[object]:
    """The words of one at Kuhn poker, on a model."""
    sets = [f"models.{seat}.model={model}" for seat in ("first", "second")]
    return [*typed(KUHN, *changes, recipe=recipe, out=out), *(part for one in sets for part in ("--set", one))]
