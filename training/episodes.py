"""What one update plays: who meets whom, each matchup as a stored run, and the rows and games that come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sim.scenarios.scenario_schema import Scenario
from sim.streams import Streams
from sim.types import Engine
from sim.voices import LateEngine
from training import roster
from training.acting import speaker
from training.curriculum import learning, settings
from training.league import LeagueState
from training.matchup import games
from training.opponents import Matchup, evaluations, matchups
from training.plan import Plan, TrainingError
from training.rollout import Stage, stored
from training.slots import Stored
from training.standings import Game
from training.structures import rollout, start
from training.sync import Publisher
from training.teacher import Teacher
from training.trajectory import Row


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """Plays episodes of one training. Raises TrainingError where the scenario does not fit who is to meet whom."""

    plan: Plan
    scenario: Scenario
    entries: Mapping[str, str]
    """The learners' entries of `models:` and their policies."""
    engines: Mapping[str, LateEngine]
    """By entry of `models:`."""
    engine: Any
    """Of those who learn."""
    publisher: Publisher
    teacher: Teacher | None
    rollouts: Path
    """Folder of the runs."""
    policies: Path
    """Folder of the versions."""

    def play(
        self, current: Mapping[str, str], league: LeagueState, update: int, pool: int
    ) -> tuple[list[Row], LeagueState]:
        """The rows of an update, and the league with the games that were played in it.

        `current`: the newest version of each learner's entry. `pool`: the tasks that the curriculum has come to.
        """
        recipe = self.plan.recipe
        if isinstance(recipe.structure, Stored):
            return stored(self.plan.runs, self.entries), league
        luck = Streams(self.plan.seed).sub("update", update)
        each = start(recipe.structure)
        starts = recipe.rollout.episodes // each.episodes
        try:
            met = matchups(recipe.actors, current, league, starts, update, luck, self._learning(update))
        except ValueError as error:  # the scenario's entries do not fit who is to meet whom
            raise TrainingError(f"{self.plan.scenario}: {error}") from error
        met = [replace(matchup, tables=matchup.tables * each.tables) for matchup in met]
        rows, finished = self._played(met, luck, league, update, pool, "")
        return rows, league.finished(finished) if roster.meets(recipe.actors) else league

    def rate(
        self, current: Mapping[str, str], league: LeagueState, update: int, pool: int, luck: Streams, tables: int
    ) -> LeagueState:
        """The league with games between those whose payoffs are not known yet."""
        luck = luck.sub("evaluation")
        met = evaluations(current, league, tables)
        return league.finished(self._played(met, luck, league, update, pool, "evaluation-")[1], fade=1.0)

    def _played(
        self, met: Sequence[Matchup], luck: Streams, league: LeagueState, update: int, pool: int, why: str
    ) -> tuple[list[Row], list[Game]]:
        """Rows and games of matchups, each played as a run."""
        entry_of = {agent: entry.model for _, entry in self.scenario.entries for agent in entry.agents}
        found: list[Row] = []
        finished: list[Game] = []
        for number, matchup in enumerate(met):
            self.publisher.call_up(matchup.speakers.values())
            stage = Stage(
                file=self.plan.scenario,
                sets=(*self.plan.sets, *self._course(update, pool)),
                recipe=self.plan.recipe,
                matchup=matchup,
                seed=luck.seed("matchup", number),
                folder=self.rollouts,
                run=f"update-{update + 1:06d}-{why}{number}",
                policies=self.policies,
                engines=self._speaking(matchup, update),
                family=roster.family(self.scenario.name, league, matchup),
            )
            rows = rollout(stage)
            if roster.meets(self.plan.recipe.actors):
                finished += games(number, matchup, rows, entry_of)
            found += rows
        return found, finished

    def _speaking(self, matchup: Matchup, update: int) -> dict[str, Engine]:
        actors, teacher = self.plan.recipe.actors, self.teacher
        taught = (teacher.label, teacher.engine) if teacher and teacher.engine else None
        learners = {
            entry: speaker(self.engine, actors, matchup.speakers[entry], update, taught) for entry in matchup.learners
        }
        return {**self.engines, **learners}

    def _learning(self, update: int) -> set[str] | None:
        """Entries that learn in this update; None: all."""
        roles = learning(self.plan.recipe.curriculum, update)
        if roles is None:
            return None
        return {entry.model for _, entry in self.scenario.entries if entry.role in roles} & self.entries.keys()

    def _course(self, update: int, pool: int) -> list[str]:
        """What the curriculum sets in the scenario of this update."""
        after = self.scenario.stop.after if self.scenario.stop else ()
        stops = (after,) if isinstance(after, str) else after
        return settings(self.plan.recipe.curriculum, update, pool, stops)
