"""The teacher that a recipe names: whose answers a learner is drawn to, or who answers in its place.

It is an entry of the scenario's `models:`, or a version `name@v` whose folder an entry's `adapters` or the training's
own policies hold. To be read (`ref_kl`, labels) it must run on weights that are here, with the learners' vocabulary.
A scripted agent, which answers views and not prompts, can label (`labels.demonstrated`), or demonstrate to the learner,
who is then its own teacher (`showing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agents.engines.weights import WeightsError
from sim.policies import adapters
from sim.scenarios.scenario_schema import ModelSettings
from sim.types import Engine
from training import slots
from training.forward import Weights
from training.plan import TrainingError
from training.policy import Base
from training.recipe import Recipe


class Teacher(Struct, frozen=True, kw_only=True):
    """Who teaches."""

    label: str
    """What calls and rows say of it: `name@v`, or the name of its entry."""
    engine: Engine | None
    """Answers for it, under the policy `label` where that is a version; None where it does not act."""
    weights: Weights | None
    """Of its model; None where the recipe only lets it act."""


class Classroom(Struct, frozen=True, kw_only=True):
    """Where a teacher is looked for."""

    file: Path
    """The scenario, for messages."""
    models: Mapping[str, ModelSettings]
    """The scenario's."""
    learning: Collection[str]
    """Entries of `models` that learn."""
    engines: Mapping[str, Engine]
    """By entry."""
    own: Any
    """The learners', which takes policies while it runs."""
    base: Base
    """The learners'."""
    policies: Path
    """Folder of the learners' versions."""


def named(recipe: Recipe) -> str:
    """The teacher's name in a recipe; empty: none."""
    if isinstance(recipe.actors, slots.Teacher):
        return recipe.actors.policy
    return next((extra.teacher for extra in recipe.extra if isinstance(extra, slots.RefKL)), "")


def is_read(recipe: Recipe) -> bool:
    """Whether the loss looks at what the teacher would say."""
    return any(imitates(extra) or (isinstance(extra, slots.RefKL) and extra.teacher != "") for extra in recipe.extra)


def imitates(extra: slots.Extra) -> bool:
    """Whether the term is a cross entropy on the answers of a teacher with weights."""
    return isinstance(extra, slots.CE) and extra.labels == "teacher" and not extra.teacher


def teacher(recipe: Recipe, room: Classroom) -> Teacher | None:
    """The recipe's teacher; None where it names none. Raises TrainingError where there is no such one."""
    name = named(recipe)
    if not name:
        return None
    label = room.models[name].policy if name in room.models else name
    learning = {room.models[entry].policy for entry in room.learning}
    if isinstance(recipe.actors, slots.Teacher) and "@" in label and label.partition("@")[0] in learning:
        raise TrainingError(
            f"{room.file}: the teacher {label} would act under a learner's name; give its folder another one, as in "
            "adapters: {good@1: its folder}"
        )
    if name in room.models:
        return _of_entry(recipe, room, name)
    if "@" in name and (folder := _folder(room, name)):
        weights = _loaded(room.base, name, folder) if is_read(recipe) else None
        if not isinstance(recipe.actors, slots.Teacher):
            return Teacher(label=name, engine=None, weights=weights)
        room.own.add_policy(name, folder)
        return Teacher(label=name, engine=room.own, weights=weights)
    label = name if "@" in name else "good@1"
    place = name if "@" not in name else "teacher"
    raise TrainingError(
        f"{room.file}: the recipe {recipe.name} needs the teacher {name}, which models: does not have; add --set "
        f"'models.{place}={{engine: torch, model: embedded, policy: {label}, adapters: {{{label}: its folder}}}}'"
    )


def _of_entry(recipe: Recipe, room: Classroom, name: str) -> Teacher:
    settings, where = room.models[name], f"{room.file}: models.{name}"
    if name in room.learning:
        raise TrainingError(f"{where}: it learns itself, so it is no teacher; give its policy a version")
    weights = None
    if is_read(recipe):
        if not settings.needs_adapters:
            raise TrainingError(
                f"{where}.engine: the weights of {settings.engine} cannot be read; expected torch or vllm"
            )
        base = room.base
        if settings.model not in {room.models[entry].model for entry in room.learning}:
            base = Base(settings.model or "embedded")
            if base.tokenizer.get_vocab() != room.base.tokenizer.get_vocab():
                raise TrainingError(f"{where}.model: it has another vocabulary than the learners' model")
        folder = _folder(room, settings.policy)
        weights = _loaded(base, settings.policy, folder) if folder else base.plain
    acts = isinstance(recipe.actors, slots.Teacher)
    return Teacher(label=settings.policy or name, engine=room.engines[name] if acts else None, weights=weights)


def _folder(room: Classroom, label: str) -> Path | None:
    """Where a version's weights are."""
    for settings in room.models.values():
        if folder := adapters(settings, room.file.parent).get(label):
            return folder
    return room.policies / label if label and (room.policies / label).is_dir() else None


def _loaded(base: Base, label: str, folder: Path) -> Weights:
    """A frozen policy with a folder's weights."""
    try:
        policy = base.load(f"teacher-{label.replace('@', '-')}", folder)
    except (WeightsError, OSError) as error:
        raise TrainingError(f"the teacher {label}: {error}") from error
    policy.train(False)
    return policy.active
