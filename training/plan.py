"""What is trained, as its folder keeps it: recipe, scenario, seed. Refuses what the loop cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sim.scenarios.yaml_text import read_yaml, write_yaml
from training import slots
from training.recipe import Recipe
from training.recipe import loads as read_recipe
from training.structures import start


class TrainingError(Exception):
    """The training cannot be started or gone on with; the text says what would be right."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, as a folder keeps it."""

    recipe: Recipe
    scenario: Path
    sets: tuple[str, ...] = ()
    seed: int = 0
    runs: tuple[Path, ...] = ()
    """Stored runs to learn from, for the structure `stored`."""

    def write(self, folder: Path) -> None:
        """Keep it. Raises TrainingError where the folder holds another training already."""
        text = write_yaml(
            {
                "recipe": self.recipe.resolved(),
                "scenario": str(self.scenario.resolve()),
                "sets": list(self.sets),
                "seed": self.seed,
                "runs": [str(path) for path in self.runs],
            }
        )
        place = folder / "train.yaml"
        if place.exists() and place.read_text(encoding="utf-8") != text:
            raise TrainingError(f"{place} is of another training; choose another folder, or leave out what differs")
        folder.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Plan:
        """As it was kept. Raises TrainingError where there is none."""
        place = folder / "train.yaml"
        if not place.is_file():
            raise TrainingError(f"{folder} holds no training: there is no train.yaml in it")
        found = read_yaml(place.read_text(encoding="utf-8"), str(place)).data
        recipe = read_recipe(write_yaml(found["recipe"]), str(place))
        return cls(
            recipe=recipe,
            scenario=Path(found["scenario"]),
            sets=tuple(found["sets"]),
            seed=found["seed"],
            runs=tuple(map(Path, found["runs"])),
        )


def check(recipe: Recipe) -> None:
    """Raises TrainingError for slots that the loop does not join yet."""
    if not isinstance(recipe.actors, slots.Self | slots.Fixed | slots.Lagged | slots.Pool):
        raise TrainingError(
            f"{recipe.name}: actors {recipe.actors.kind}: only self, fixed, lagged and pool play so far"
        )
    structure, whole = recipe.structure, start(recipe.structure).episodes
    if not isinstance(structure, slots.Stored) and recipe.rollout.episodes < whole:
        raise TrainingError(
            f"{recipe.name}: rollout.episodes {recipe.rollout.episodes} is less than one start of the structure "
            f"{structure.kind} takes; expected {whole} or more"
        )
    if isinstance(structure, slots.Tree | slots.Trial | slots.Propose) and isinstance(recipe.actors, slots.Pool):
        raise TrainingError(
            f"{recipe.name}: actors pool are rated by whole games, which the structure {structure.kind} has not; "
            "choose self, fixed or lagged"
        )
    if any(term.head for term in recipe.credit) or any(isinstance(extra, slots.Value) for extra in recipe.extra):
        raise TrainingError(f"{recipe.name}: it needs a critic, and there is none yet; choose another baseline")
    for extra in recipe.extra:
        if isinstance(extra, slots.RefKL) or (isinstance(extra, slots.CE) and extra.labels != "rows"):
            raise TrainingError(f"{recipe.name}: extra {extra.kind}: there are no teachers and reservoirs yet")
        if isinstance(extra, slots.EntropyBand):
            raise TrainingError(f"{recipe.name}: extra entropy_band: no history of entropies is kept yet")


def kept(recipe: Recipe) -> int:
    """Versions that must stay on disk and in the engine."""
    lagged = recipe.actors.last + 1 if isinstance(recipe.actors, slots.Lagged) else 0
    return max(recipe.policy.keep, lagged)
