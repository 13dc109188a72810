"""What is evaluated: the versions in a training's folder, or those that a scenario's models speak with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import msgspec

from sim.library import PROJECT
from sim.policies import adapters
from sim.scenarios.located import nearest
from sim.scenarios.scenario import load
from sim.scenarios.scenario_schema import Scenario
from training import checkpoint
from training.evaluate import AveragePolicy
from training.matchup import Label, name_of
from training.plan import Plan, TrainingError
from training.rollout import seats
from training.standings import Role

EVALUATIONS = "evaluations"
"""Folder of a training in which what an evaluation plays is kept."""
Lineup: TypeAlias = Mapping[Role, Label]
"""By learner's entry of `models:`, the version that speaks with it."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Versions, and the scenario in which they are met."""

    name: str
    """What its measurements are filed under."""
    project: Path
    """The file that they go to."""
    runs: Path
    """Folder of the runs that are played."""
    scenario: Path
    sets: tuple[str, ...]
    entries: Mapping[Role, str]
    """By learner's entry of `models:`, its policy."""
    folders: Mapping[Label, Path]
    """Where the weights of every version lie, each policy's oldest first."""
    temperature: float | None
    """At which all of them are sampled; None: each at its own, as the scenario says, or without any luck."""
    plan: Plan | None = None
    """The training they came from, where there was one."""

    def load(self) -> Scenario:
        """The scenario. Raises ScenarioError."""
        return load(self.scenario, self.sets)

    @property
    def home(self) -> bool:
        """Whether this is the scenario in which the policies were trained."""
        return self.plan is not None and self.plan.scenario.resolve() == self.scenario.resolve()

    def versions(self, policy: str) -> list[Label]:
        """The versions of a policy, oldest first."""
        return [label for label in self.folders if name_of(label) == policy]

    def lineups(self, count: int) -> list[Lineup]:
        """The first versions, the newest, and between them as many as make `count` in all, evenly over the history."""
        most = max(len(self.versions(policy)) for policy in self.entries.values())
        count = min(count, most)
        shares = [place / (count - 1) if count > 1 else 1.0 for place in range(count)]
        return [
            {entry: (own := self.versions(name))[round(share * (len(own) - 1))] for entry, name in self.entries.items()}
            for share in shares
        ]

    def average(self) -> AveragePolicy | None:
        """The average of all versions, as the training kept it; None where it kept none."""
        found = checkpoint.read_notes(self.project.parent) if self.plan else None
        average = msgspec.convert(found[1]["evaluation"], AveragePolicy) if found else AveragePolicy()
        return average if average.weight else None


def label_of(lineup: Lineup) -> str:
    """What a line-up is called: its versions, each once."""
    return " ".join(dict.fromkeys(lineup.values()))


def of_folder(folder: Path) -> Subject:
    """The versions of a training. Raises TrainingError where there is none."""
    plan = Plan.read(folder)
    places = [path.resolve() for path in (folder / "policies").glob("[!.]*@*")]
    places.sort(key=lambda path: _age(path.name))
    subject = Subject(
        name=folder.resolve().name,
        project=folder / PROJECT,
        runs=folder / EVALUATIONS,
        scenario=plan.scenario,
        sets=plan.sets,
        entries=seats(load(plan.scenario, plan.sets)),
        folders={path.name: path for path in places},
        temperature=plan.recipe.rollout.temperature,
        plan=plan,
    )
    return _checked(subject, folder)


def of_scenario(file: Path, sets: Sequence[str], runs: Path) -> Subject:
    """The policies `name@v` of a scenario's models, with all the adapters that these have. Raises TrainingError."""
    scenario = load(file, sets)
    entries: dict[str, str] = {}
    folders: dict[str, Path] = {}
    for name, model in scenario.models.items():
        if "@" in model.policy:
            entries[name] = name_of(model.policy)
            folders |= {label: path.resolve() for label, path in adapters(model, scenario.base).items()}
    if not entries:
        raise TrainingError(f"{file}: nobody to evaluate: no entry of models: has a policy: name@v")
    spoken = [model.policy for model in scenario.models.values()]
    heat = {scenario.models[entry].temperature for entry in entries}
    for entry in entries:
        if scenario.models[entry].policy not in folders:
            raise scenario.error(("models", entry), "where its weights lie is not told; add adapters: {name@v: folder}")
    order = sorted(folders, key=lambda label: (label in spoken, _age(label)))
    return Subject(
        name=scenario.name,
        project=runs / PROJECT,
        runs=runs,
        scenario=file,
        sets=tuple(sets),
        entries=entries,
        folders={label: folders[label] for label in order},
        temperature=heat.pop() or None if len(heat) == 1 else None,
    )


def elsewhere(subject: Subject, file: Path, sets: Sequence[str]) -> Subject:
    """The same policies in another scenario, whose learners' entries name them. Raises TrainingError."""
    entries = seats(load(file, sets))
    if not entries:
        raise TrainingError(f"{file}: no entry of models: has a policy without a version to put these policies in")
    known = set(subject.entries.values())
    for entry, name in entries.items():
        if name not in known:
            raise TrainingError(f"{file}: models.{entry}.policy: {name} was not trained here; {nearest(name, known)}")
    return replace(subject, scenario=file, sets=tuple(sets), entries=entries)


def _age(label: Label) -> tuple[str, int, str]:
    """Sorts versions of a policy by age."""
    name, _, version = label.partition("@")
    return name, int(version) if version.isdecimal() else 0, label


def _checked(subject: Subject, folder: Path) -> Subject:
    for name in subject.entries.values():
        if not subject.versions(name):
            raise TrainingError(f"{folder} holds no version of {name} yet; train it first: agora train --out {folder}")
    return subject
