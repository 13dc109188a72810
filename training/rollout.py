"""Rollouts: a scenario played with given policies, each matchup one stored run like any other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from msgspec.structs import replace

from sim.record.reader import Run
from sim.runs import Session, create, go
from sim.scenarios.scenario import load
from sim.scenarios.scenario_schema import CastEntry, Scenario
from sim.types import Engine
from training.credit import Tag
from training.matchup import Matchup, last_versions
from training.recipe import Recipe
from training.slots import Chop, Mix, Trial
from training.trajectory import Row, rows


class RolloutError(Exception):
    """The episodes of an update could not be played; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What the episodes of one matchup are played with."""

    file: Path
    """The scenario."""
    sets: Sequence[str]
    recipe: Recipe
    matchup: Matchup
    seed: int
    folder: Path
    """Where the runs go."""
    run: str
    """Id of the first run; what further ones are called begins with it."""
    policies: Path
    """Holds the folder of each version."""
    engines: Mapping[str, Engine]
    family: str = ""
    """Of the rows, where it is not the scenario's name."""

    def scenario(self, tables: int, group: int, sets: Sequence[str] = ()) -> Scenario:
        """The scenario with so many tables, so many of which start alike, and further settings."""
        own = overrides(self.recipe, self.matchup, self.policies)
        alike = [f"seed={self.seed}", f"tables={tables}", f"group={group}"]
        return load(self.file, [*self.sets, *alike, *own, *sets])


def seats(scenario: Scenario) -> dict[str, str]:
    """The learners' entries of `models:`, and the policy of each: those whose `policy` is a bare name."""
    return {name: one.policy for name, one in scenario.models.items() if one.policy and "@" not in one.policy}


def overrides(recipe: Recipe, matchup: Matchup, policies: Path) -> list[str]:
    """What a matchup sets in the scenario, whatever is played; `policies` holds the folder of each version."""
    rollout = recipe.rollout
    found: list[str] = []
    learnt = {matchup.speakers[entry] for entry in matchup.learners}
    for entry, label in matchup.speakers.items():
        found += [f"models.{entry}.policy={label}", f"models.{entry}.temperature={rollout.temperature}"]
        versions = [label]
        if isinstance(recipe.actors, Mix) and entry in matchup.learners:
            versions = last_versions(label, recipe.actors.last)
        folders = {version: str(policies / version) for version in versions}
        found.append(f"models.{entry}.adapters={orjson.dumps(folders).decode()}")
        found += [f"models.{entry}.top_p={rollout.top_p}", f"models.{entry}.max_tokens={rollout.max_tokens}"]
        found += [f"models.{entry}.record_tokens={str(label in learnt).lower()}"]
    if any(name in ("state", "anchor") for term in recipe.credit for name in term.key):
        found.append("record.states=true")
    return found


def learners(scenario: Scenario, stage: Stage) -> list[CastEntry]:
    """The entries of the cast whose answers, or memories, are by a policy that is trained in some update."""
    speaking = stage.matchup.speakers
    entries = [entry for _, entry in scenario.entries]
    return [one for one in entries if one.model in speaking or one.settings.get("writer") in speaking]


def with_setting(scenario: Scenario, models: Collection[str], setting: str) -> list[str]:
    """The entries of the cast that speak with one of these models and have this setting, in tokens."""
    return [one.name for _, one in scenario.entries if one.model in models and one.settings.get(setting)]


def writes(recipe: Recipe) -> bool:
    """Whether what agents write into their memories is learnt from too."""
    structure = recipe.structure
    if isinstance(structure, Chop) or (isinstance(structure, Trial) and structure.reflect):
        return True
    return any(isinstance(term.span, Tag) and "summary" in term.span.tags for term in recipe.credit)


def play(stage: Stage, tables: int, group: int = 1, sets: Sequence[str] = ()) -> list[Row]:
    """Play a matchup in one run and read its rows, those of seats that do not learn marked so. Raises RolloutError."""
    path = create(stage.scenario(tables, group, sets), stage.folder, stage.run)
    finished(path, stage)
    return read(path, stage)


def finished(path: Path, stage: Stage) -> Session:
    """Play a run to its end. Raises RolloutError where it does not come there."""
    session = go(path, engines=stage.engines)
    if session.status != "finished":
        raise RolloutError(f"{path}: {session.status}: {session.cause}")
    return session


def read(path: Path, stage: Stage) -> list[Row]:
    """The rows of a run that was played on this stage."""
    matchup = stage.matchup
    labels = {matchup.speakers[entry] for entry in matchup.learners}
    return rows(path, family=stage.family, trained=labels, entries=matchup.learners, writing=writes(stage.recipe))


def stored(paths: Sequence[Path], entries: Mapping[str, str]) -> list[Row]:
    """The rows of stored runs in which the learners' entries of `models:` spoke, as rows of their policies.

    Raises RolloutError where there are none.
    """
    found: list[Row] = []
    for path in paths:
        with Run(path) as run:
            models = {member.seat.agent: member.model for table in range(run.tables) for member in run.cast(table)}
        for row in rows(path):
            name = entries.get(models[row.seat], "")
            found.append(replace(row, trained=bool(name), policy=name or row.policy))
    if not any(row.trained and row.prompt for row in found):
        raise RolloutError("none of the runs holds answers of the learners' models with their tokens (record_tokens)")
    return found


def abandon(folder: Path, done: int) -> None:
    """Put the episodes of the update after so many, which was never finished, out of the way."""
    for path in sorted((folder / "rollouts").glob(f"update-{done + 1:06d}-*.db")):
        number = 1
        while (there := path.with_name(f"abandoned-{number}-{path.name}")).exists():
            number += 1
        path.rename(there)
