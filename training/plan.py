"""What is trained, as its folder keeps it: recipe, scenario, seed. Refuses what the loop cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sim.scenarios.yaml_text import read_yaml, write_yaml
from training import slots
from training.curriculum import Phase
from training.recipe import Recipe
from training.recipe import loads as read_recipe


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
    if isinstance(recipe.actors, slots.Teacher):
        raise TrainingError(f"{recipe.name}: actors teacher: there are no teachers yet")
    if isinstance(recipe.actors, slots.Population):
        raise TrainingError(f"{recipe.name}: actors population: nothing learns; training.population plays it")
    if isinstance(recipe.actors, slots.Mix) and any(term.returns.kind == "q" for term in recipe.credit):
        raise TrainingError(
            f"{recipe.name}: credit.returns: q reads every option under one version, and the actors mix draw one for "
            "each decision; choose the actors self, or other returns"
        )
    if any(term.head for term in recipe.credit) or any(isinstance(extra, slots.Value) for extra in recipe.extra):
        raise TrainingError(f"{recipe.name}: it needs a critic, and there is none yet; choose another baseline")
    for extra in recipe.extra:
        if isinstance(extra, slots.RefKL) or (isinstance(extra, slots.CE) and extra.labels == "teacher"):
            raise TrainingError(f"{recipe.name}: extra {extra.kind}: there are no teachers yet")
        if isinstance(extra, slots.EntropyBand):
            raise TrainingError(f"{recipe.name}: extra entropy_band: no history of entropies is kept yet")
    if other := [one.kind for one in recipe.curriculum if not isinstance(one, Phase)]:
        raise TrainingError(f"{recipe.name}: curriculum {other[0]}: only phase is followed so far")


def kept(recipe: Recipe) -> int:
    """Versions that must stay on disk and in the engine."""
    actors = recipe.actors
    lagged = actors.last + 1 if isinstance(actors, slots.Lagged | slots.Mix) else 0
    # Who starts anew is published twice in an update, and a resumed one goes on from the version before both.
    twice = 3 if isinstance(actors, slots.League | slots.PSRO) else 0
    return max(recipe.policy.keep, lagged, twice)
