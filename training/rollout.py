"""Rollouts: a scenario played with given policies, each matchup one stored run like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from msgspec.structs import replace

from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.scenarios.scenario_schema import Scenario
from sim.types import Engine
from training.opponents import Matchup
from training.recipe import Recipe
from training.slots import Group, Independent
from training.trajectory import Row, rows


class RolloutError(Exception):
    """The episodes of an update could not be played; the text says why."""


def seats(scenario: Scenario) -> dict[str, str]:
    """The learners' entries of `models:`, and the policy of each: those whose `policy` is a bare name."""
    return {name: one.policy for name, one in scenario.models.items() if one.policy and "@" not in one.policy}


def run_name(update: int, matchup: int | str = "*") -> str:
    """Name of the run of an update's matchup, updates counted from 1; by default a pattern for all of them."""
    return f"update-{update:06d}-{matchup}"


def overrides(recipe: Recipe, matchup: Matchup, seed: int, policies: Path) -> list[str]:
    """What a matchup sets in the scenario; `policies` holds the folder of each version.

    Raises RolloutError for a structure that a scenario cannot play.
    """
    if not isinstance(recipe.structure, Independent | Group):
        raise RolloutError(f"structure {recipe.structure.kind}: only independent and group episodes are played so far")
    size = recipe.structure.size if isinstance(recipe.structure, Group) else 1
    rollout = recipe.rollout
    found = [f"seed={seed}", f"tables={matchup.tables}", f"group={size}"]
    learnt = {matchup.speakers[entry] for entry in matchup.learners}
    for entry, label in matchup.speakers.items():
        found += [f"models.{entry}.policy={label}", f"models.{entry}.temperature={rollout.temperature}"]
        found.append(f"models.{entry}.adapters={{{label}: {orjson.dumps(str(policies / label)).decode()}}}")
        found += [f"models.{entry}.top_p={rollout.top_p}", f"models.{entry}.max_tokens={rollout.max_tokens}"]
        found += [f"models.{entry}.record_tokens={str(label in learnt).lower()}"]
    if any(name in ("state", "anchor") for term in recipe.credit for name in term.key):
        found.append("record.states=true")
    return found


def play(
    file: Path,
    sets: Sequence[str],
    recipe: Recipe,
    matchup: Matchup,
    *,
    seed: int,
    folder: Path,
    policies: Path,
    run: str,
    engines: Mapping[str, Engine],
) -> list[Row]:
    """Play one matchup as run `run` of the folder, and read its rows.

    Rows of seats that do not learn here are marked so. Raises RolloutError where the run does not come to its end.
    """
    scenario = load(file, [*sets, *overrides(recipe, matchup, seed, policies)])
    path = create(scenario, folder, run)
    session = go(path, engines=engines)
    if session.status != "finished":
        raise RolloutError(f"{path}: {session.status}: {session.cause}")
    labels = {matchup.speakers[entry] for entry in matchup.learners}
    models = {member: entry.model for _, entry in scenario.entries for member in entry.agents}
    found = rows(path, family=scenario.name, trained=labels)
    return [row if models[row.seat] in matchup.learners else replace(row, trained=False) for row in found]


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
