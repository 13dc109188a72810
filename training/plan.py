"""What is trained, as its folder keeps it: recipe, scenario, seed. Refuses what the loop cannot do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from sim.scenarios.yaml_text import read_yaml, text_of, write_yaml
from training import roster, slots
from training.credit import Tag
from training.recipe import Recipe, heads_of
from training.recipe import loads as read_recipe
from training.reward import InfoGain, Judge, Keep, Regret
from training.rollout import writes
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
    start: Mapping[str, Path] = field(default_factory=dict)
    """By learner, the folder of the weights that it starts from: a version of ours, or a foreign adapter."""
    inputs: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of one that is kept: by file that it reads, the SHA-256 of what that said when it began."""

    def write(self, folder: Path) -> None:
        """Keep it; how it is watched may change.

        Raises TrainingError where the folder holds another training, or a file that this one reads has changed since.
        """
        place, inputs = folder / "train.yaml", self._read()
        if place.exists():
            begun = Plan.read(folder)
            if not self.continues(begun):
                raise TrainingError(f"{place} is of another training; choose another folder, or leave out what differs")
            if changed := [file for file, said in inputs.items() if begun.inputs.get(file) != said]:
                raise TrainingError(
                    f"{changed[0]} has changed since the training in {folder} began; put back what it said, or choose "
                    "another folder"
                )
        folder.mkdir(parents=True, exist_ok=True)
        new = place.with_name("train.yaml.new")
        new.write_text(write_yaml({**self._document(), "inputs": inputs}), encoding="utf-8")
        new.replace(place)

    def _read(self) -> dict[str, str]:
        """By file, the hash of what it says: the scenario, and skills in words."""
        pull = shows(self.recipe)
        files = [self.scenario, *([self.scenario.parent / pull.skills] if pull and pull.skills else [])]
        return {str(file.resolve()): sha256(file.read_bytes()).hexdigest() for file in files}

    def continues(self, other: Plan) -> bool:
        """Whether both are one training, watched in one way or another."""
        kept, wanted = self._document(), other._document()
        del kept["recipe"]["monitor"], wanted["recipe"]["monitor"]
        return bool(kept == wanted)

    def _document(self) -> Any:
        return {
            "recipe": self.recipe.resolved(),
            "scenario": str(self.scenario.resolve()),
            "sets": list(self.sets),
            "seed": self.seed,
            "runs": [str(path) for path in self.runs],
            "start": {name: str(path.resolve()) for name, path in self.start.items()},
        }

    @classmethod
    def read(cls, folder: Path) -> Plan:
        """As it was kept. Raises TrainingError where there is none."""
        place = folder / "train.yaml"
        if not place.is_file():
            raise TrainingError(f"{folder} holds no training: there is no train.yaml in it")
        found = read_yaml(text_of(place), str(place)).data
        keys = ("recipe", "scenario", "sets", "seed", "runs", "start", "inputs")
        lacking = [key for key in keys if not isinstance(found, dict) or key not in found]
        if lacking:
            raise TrainingError(f"{place} has no {lacking[0]}: it is damaged, or of another version")
        return cls(
            recipe=read_recipe(write_yaml(found["recipe"]), str(place)),
            scenario=Path(found["scenario"]),
            sets=tuple(found["sets"]),
            seed=found["seed"],
            runs=tuple(map(Path, found["runs"])),
            start={name: Path(path) for name, path in found["start"].items()},
            inputs=found["inputs"],
        )


def check(recipe: Recipe) -> None:
    """Raises TrainingError for slots that the loop does not join yet."""
    if isinstance(recipe.actors, slots.Population):
        raise TrainingError(f"{recipe.name}: actors population: nothing learns; training.population plays it")
    if isinstance(recipe.actors, slots.Mix) and any(term.returns.kind == "q" for term in recipe.credit):
        raise TrainingError(
            f"{recipe.name}: credit.returns: q reads every option under one version, and the actors mix draw one for "
            "each decision; choose the actors self, or other returns"
        )
    structure, whole = recipe.structure, start(recipe.structure).episodes
    if not isinstance(structure, slots.Stored) and recipe.rollout.episodes < whole:
        raise TrainingError(
            f"{recipe.name}: rollout.episodes {recipe.rollout.episodes} is less than one start of the structure "
            f"{structure.kind} takes; expected {whole} or more"
        )
    if isinstance(structure, slots.Tree | slots.Trial | slots.Propose) and roster.meets(recipe.actors):
        raise TrainingError(
            f"{recipe.name}: actors {recipe.actors.kind} are rated by whole games, which the structure "
            f"{structure.kind} has not; choose self, fixed or lagged"
        )
    if any(term.head for term in recipe.credit) and (isinstance(structure, slots.Tree) or writes(recipe)):
        raise TrainingError(
            f"{recipe.name}: credit: a critic has one value for each decision, and trees and memories that are learnt "
            "have rows that are none or share theirs; choose returns and a baseline without a critic"
        )
    _check_teachers(recipe)
    _check_readings(recipe)


def _check_teachers(recipe: Recipe) -> None:
    """Raises TrainingError where nobody, or more than one, would teach."""
    names = _check_pulls(recipe)
    acting = isinstance(recipe.actors, slots.Teacher)
    if isinstance(recipe.actors, slots.Teacher):
        names.add(recipe.actors.policy)
        if recipe.actors.over == "turn" and not isinstance(recipe.structure, slots.Independent | slots.Group):
            raise TrainingError(
                f"{recipe.name}: actors.over: turn counts the decisions of one run, and the structure "
                f"{recipe.structure.kind} plays several; expected update, or independent or group"
            )
    if len(names) > 1:
        raise TrainingError(f"{recipe.name}: one teacher at a time, not {' and '.join(sorted(names))}")
    asked = [extra for extra in recipe.extra if isinstance(extra, slots.CE) and extra.labels == "teacher"]
    if any(not extra.teacher for extra in asked) and not acting:
        raise TrainingError(
            f"{recipe.name}: extra ce: labels teacher are those of the actors teacher, or of a scripted agent; choose "
            "them, or name the agent under extra.….teacher"
        )
    if any(extra.teacher for extra in asked) and (acting or len(asked) > 1):
        raise TrainingError(f"{recipe.name}: extra ce: one teacher at a time; a scripted agent labels and does not act")


def _check_pulls(recipe: Recipe) -> set[str]:
    """The names of teachers that pull. Raises TrainingError where one has nothing to say that the learner has not."""
    pulls = [extra for extra in recipe.extra if isinstance(extra, slots.RefKL)]
    where = f"{recipe.name}: extra ref_kl"
    if len(pulls) > 1:
        raise TrainingError(f"{where}: one teacher at a time; leave out all terms but one")
    for pull in pulls:
        if not (pull.teacher or pull.shown):
            raise TrainingError(f"{where}: the learner alone teaches itself nothing; name a teacher, or what is shown")
        alike = isinstance(recipe.structure, slots.Group | slots.Trial | slots.Chop)
        if pull.shown == "demonstration" and not pull.script and not alike:
            raise TrainingError(
                f"{where}: the structure {recipe.structure.kind} has no better episode that started alike to show; "
                "name a scripted agent under script, as module:Name, or choose group, trial or chop"
            )
    return {pull.teacher for pull in pulls} - {""}


UNWATCHED = (InfoGain, Judge, Regret)
"""Reward sources that have whole episodes told again."""


def retells(recipe: Recipe) -> list[str]:
    """The slots for which episodes are told again."""
    found = [f"reward {source.kind}" for source in recipe.reward if isinstance(source, UNWATCHED)]
    found += ["extra value: sees state"] * bool(heads_of(recipe, "state"))
    found += ["extra ce: a scripted teacher"] * (scripted(recipe) is not None)
    pull = shows(recipe)
    read = pull is not None and not pull.skills and (pull.script != "" or pull.shown == "skills")
    return found + ["extra ref_kl: what is shown"] * read


def shows(recipe: Recipe) -> slots.RefKL | None:
    """The term whose teacher is shown something."""
    return next((extra for extra in recipe.extra if isinstance(extra, slots.RefKL) and extra.shown), None)


def scripted(recipe: Recipe) -> slots.CE | None:
    """The term whose labels are a scripted agent's."""
    return next((extra for extra in recipe.extra if isinstance(extra, slots.CE) and extra.teacher), None)


def _check_readings(recipe: Recipe) -> None:
    """Raises TrainingError where a slot reads what no record holds."""
    told = retells(recipe)
    if told and isinstance(recipe.structure, slots.Tree | slots.Stored):
        raise TrainingError(
            f"{recipe.name}: {told[0]} needs whole episodes, which the structure {recipe.structure.kind} has not; "
            "choose independent, group, trial, chop or propose"
        )


def tags_of(recipe: Recipe) -> set[str]:
    """The spans that credit is given to by name."""
    return {tag for term in recipe.credit if isinstance(term.span, Tag) for tag in term.span.tags}


SAID = {"think": "think", "subgoal": "subgoals", "switch": "subgoals"}
"""By span, the setting of an agent that says such things before it answers."""


def check_said(recipe: Recipe, saying: Mapping[str, Sequence[str]]) -> None:
    """Raises TrainingError where what learners say before they answer is read and not there.

    `saying`: by setting of `SAID`, the learners' entries of the cast that have it.
    """
    read = dict.fromkeys(sorted(tags_of(recipe) & SAID.keys()), "credit.span")
    if any(isinstance(source, Keep) for source in recipe.reward):
        read.setdefault("switch", "reward keep")
    for tag, where in read.items():
        if not saying[SAID[tag]]:
            raise TrainingError(
                f"{recipe.name}: {where}: no learner says what is tagged {tag}; set cast.NAME.with.{SAID[tag]} to some "
                "tokens"
            )


def kept(recipe: Recipe) -> int:
    """Versions that must stay on disk and in the engine.

    One more than are played: a repeated update goes on from the version before the one that it had published already.
    """
    actors, earlier = recipe.actors, 0
    if isinstance(actors, slots.Lagged):
        earlier = actors.last
    elif isinstance(actors, slots.Mix):
        earlier = actors.last - 1  # the newest is one of those mixed
    # Who starts anew is published twice in an update, and a resumed one goes on from the version before both.
    twice = 3 if isinstance(actors, slots.League | slots.PSRO) else 0
    return max(recipe.policy.keep, earlier + 2, twice)
