"""The training loop: play, credit, learn, publish, measure, keep. One update after the other, each whole or not at all.

An update plays its episodes as stored runs, learns from their rows, publishes new versions, writes its numbers into
the project file beside the runs and leaves a checkpoint. Whatever stops the process, the next start repeats the
unfinished update from the last checkpoint; the episodes that it had played are kept as abandoned.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import torch
from msgspec.structs import replace

from sim.record.project import Project
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import Engine, EngineFailure, Measurement
from sim.voices import LateEngine, Pool
from training import checkpoint, slots
from training.acting import Exploring
from training.constraint import Masks
from training.credit import START, Estimator
from training.curriculum import learning
from training.estimate import Estimate, estimate
from training.evaluation import Evaluator
from training.extras import Extras
from training.league import LeagueState
from training.learner import Learner
from training.matchup import games
from training.opponents import Matchup, matchups
from training.plan import Plan, TrainingError, check, kept
from training.policy import Base, Policy, rewind
from training.readout import explored, read_options
from training.returns import Q
from training.reward import Anchored
from training.rollout import play, seats, stored
from training.schedule import at
from training.serving import room
from training.slots import Group, Stored
from training.standings import Game
from training.sync import Publisher
from training.trajectory import Row

REFERENCE = "reference"
"""What is added to a policy's name for the earlier self that its rewards are anchored to."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """What one update came to."""

    update: int
    """Updates done, this one included."""
    of: int
    numbers: Mapping[str, float]
    """By metric name."""
    seconds: float


@dataclass
class _State:
    """What goes from one update to the next beside weights."""

    update: int = 0
    credit: Estimator = START
    league: LeagueState = field(default_factory=LeagueState)
    evaluation: Any = None


class Trainer:
    """One training in a folder. Use as a context: it holds the models in memory.

    `engines`, by their entries of `models:`, answer instead of those that the scenario names; they are left open,
    without the training's policies. Raises TrainingError, ScenarioError, EngineFailure and DeliveryError.
    """

    def __init__(self, folder: Path, plan: Plan, engines: Mapping[str, LateEngine] = MappingProxyType({})) -> None:
        self.folder, self.plan = folder, plan
        recipe = plan.recipe
        self._scenario = load(plan.scenario, plan.sets)
        self._entries = seats(self._scenario)
        if not self._entries:
            raise TrainingError(f"{plan.scenario}: nobody learns: give an entry of models: a policy without a version")
        check(recipe)
        torch.set_num_threads(recipe.threads)
        model = self._one(lambda entry: self._scenario.models[entry].model, "models.*.model")
        exact = not torch.cuda.is_available()  # a CPU has time for it
        self._pool = Pool(self._scenario.base, engines, room(self._scenario, recipe, self._entries, exact=exact))
        voices = self._pool.voices(self._scenario.models)
        self._engines = {name: cast("LateEngine", voice.engine) for name, voice in voices.items()}
        self._engine: Any = cast(Any, self._speaker().start())
        self._base = Base(model or "embedded")
        self._masks: Masks = self._engine.mask
        self._policies_folder = folder.resolve() / "policies"
        self._publisher = Publisher(self._engine, self._base, self._policies_folder, keep=kept(recipe))
        if recipe.policy.kind == "lora":
            self._publisher.prove(plan.seed, recipe.policy.targets)
        self._evaluator = Evaluator(self._scenario, recipe.rollout.temperature)
        self._state = _State(evaluation=self._evaluator.state())
        self._policies = {name: self._policy(name) for name in sorted(set(self._entries.values()))}
        self._references = self._new_references()
        self._learners = {name: Learner(one, recipe, self._masks) for name, one in self._policies.items()}
        self._project = Project(folder / "project.db")
        self._resume()

    @property
    def done(self) -> int:
        """Updates done."""
        return self._state.update

    # --- one update -----------------------------------------------------------------------------------

    def run(self, report: Callable[[Done], None] = lambda _done: None, updates: int | None = None) -> None:
        """Go on up to so many updates in all (the recipe's, where not given)."""
        last = self.plan.recipe.updates if updates is None else updates
        while self._state.update < last:
            began = time.monotonic()
            numbers = self.update()
            report(Done(update=self._state.update, of=last, numbers=numbers, seconds=time.monotonic() - began))

    def update(self) -> dict[str, float]:
        """One update; its numbers by metric name."""
        recipe, state = self.plan.recipe, self._state
        rows, league = self._played()
        if any(isinstance(term.returns, Q) for term in recipe.credit) or self._references:
            options = read_options(rows, {name: one.active for name, one in self._policies.items()}, self._masks)
            rows = explored(rows, options, at(recipe.actors.explore, state.update))
        try:
            found = estimate(recipe, rows, self._extras(rows), state.credit, state.update, self._versions())
        except ValueError as error:  # a slot reads what nobody works out here: a judge, a true answer
            raise TrainingError(f"{recipe.name}: {error}") from error
        numbers = {**_counts(rows, found)}
        for name, learner in self._learners.items():
            own = _of_policy(found, rows, name)
            learnt = learner.learn(rows, own, state.update, reference=self._base.plain)
            numbers |= {f"{key} {name}" if len(self._learners) > 1 else key: value for key, value in learnt.items()}
        self._renew()
        for policy in self._policies.values():
            self._publisher.publish(policy)
        league = self._joined(league, state.update + 1)
        numbers |= self._evaluator.after(state.update + 1, self._engine, self._masks, self._current())
        self._state = _State(
            update=state.update + 1, credit=found.state, league=league, evaluation=self._evaluator.state()
        )
        self._measure(numbers)
        self._keep()
        return numbers

    def _played(self) -> tuple[list[Row], LeagueState]:
        """The episodes of an update, matchup by matchup, and the league that they were played in."""
        recipe, state = self.plan.recipe, self._state
        if isinstance(recipe.structure, Stored):
            return stored(self.plan.runs, self._entries), state.league
        luck = Streams(self.plan.seed).sub("update", state.update)
        size = recipe.structure.size if isinstance(recipe.structure, Group) else 1
        episodes = recipe.rollout.episodes // size
        entry_of = {agent: entry.model for _, entry in self._scenario.entries for agent in entry.agents}
        found: list[Row] = []
        finished: list[Game] = []
        met = matchups(recipe.actors, self._current(), state.league, episodes, state.update, luck, self._learning())
        for number, matchup in enumerate(met):
            matchup = replace(matchup, tables=matchup.tables * size)
            self._publisher.call_up(matchup.speakers.values())
            rows = play(
                self.plan.scenario,
                self.plan.sets,
                recipe,
                matchup,
                seed=luck.seed("matchup", number),
                folder=self.folder / "rollouts",
                policies=self._policies_folder,
                run=f"update-{state.update + 1:06d}-{number}",
                engines=self._speaking(matchup),
            )
            finished += games(number, matchup, rows, entry_of)
            found += rows
        return found, state.league.finished(finished) if isinstance(recipe.actors, slots.Pool) else state.league

    def _joined(self, league: LeagueState, done: int) -> LeagueState:
        """The league with the newest versions as members, where it is time for them to join."""
        actors = self.plan.recipe.actors
        if not isinstance(actors, slots.Pool) or done % actors.add_every:
            return league
        for name, policy in self._policies.items():
            league = league.added(policy.label, name, done)
            self._publisher.named.add(policy.label)
        return league

    def _speaking(self, matchup: Matchup) -> dict[str, Engine]:
        epsilon = at(self.plan.recipe.actors.explore, self._state.update)
        if not epsilon:
            return dict(self._engines)
        exploring = Exploring(self._engine, epsilon)
        return {name: exploring if name in matchup.learners else one for name, one in self._engines.items()}

    def _extras(self, rows: Sequence[Row]) -> Extras:
        if not self._references:
            return Extras()
        earlier = {name: one.active for name, one in self._references.items()}
        return Extras(reference_options=tuple(read_options(rows, earlier, self._masks)))

    def _current(self) -> dict[str, str]:
        """The newest version of each learner's entry."""
        return {entry: self._policies[name].label for entry, name in self._entries.items()}

    def _learning(self) -> set[str] | None:
        """Entries that learn in this update; None: all."""
        roles = learning(self.plan.recipe.curriculum, self._state.update)
        if roles is None:
            return None
        return {entry.model for _, entry in self._scenario.entries if entry.role in roles} & self._entries.keys()

    def _versions(self) -> dict[str, int]:
        return {name: one.version for name, one in self._policies.items()}

    # --- weights --------------------------------------------------------------------------------------

    def _policy(self, name: str) -> Policy:
        settings = self.plan.recipe.policy
        if settings.kind == "full":
            return self._base.create_full(name)
        return self._base.create(
            name,
            rank=settings.rank,
            alpha=settings.alpha,
            targets=settings.targets,
            layers=settings.layers,
            seed=self.plan.seed,
        )

    def _new_references(self) -> dict[str, Policy]:
        """A frozen earlier self of each policy, where rewards are anchored to one."""
        if not any(isinstance(source, Anchored) for source in self.plan.recipe.reward):
            return {}
        found = {}
        for name, policy in self._policies.items():
            found[name] = self._policy(f"{name}-{REFERENCE}")
            found[name].restore(policy.tensors())
            found[name].train(False)
        return found

    def _renew(self) -> None:
        for source in self.plan.recipe.reward:
            if isinstance(source, Anchored) and (self._state.update + 1) % source.renew == 0:
                for name, reference in self._references.items():
                    reference.restore(self._policies[name].tensors())

    def _speaker(self) -> LateEngine:
        """The engine of those who learn."""
        found = {id(engine): engine for name, engine in self._engines.items() if name in self._entries}
        if len(found) > 1:
            raise TrainingError(f"{self.plan.scenario}: those who learn need one engine with the same settings")
        return next(iter(found.values()))

    def _one(self, of: Callable[[str], str], key: str) -> str:
        found = {of(entry) for entry in self._entries}
        if len(found) > 1:
            raise TrainingError(f"{self.plan.scenario}: {key} differs among those who learn: {sorted(found)}")
        return found.pop()

    # --- what is kept -----------------------------------------------------------------------------------

    def _measure(self, numbers: Mapping[str, float]) -> None:
        about = {"update": self._state.update}
        self._project.measure(
            self.folder.name,
            [
                Measurement(metric=f"train.{name}", value=value if math.isfinite(value) else None, of=about, n=1)
                for name, value in numbers.items()
            ],
        )

    def _keep(self) -> None:
        tensors = {
            "policies": {name: one.tensors() for name, one in self._policies.items()},
            "references": {name: one.tensors() for name, one in self._references.items()},
            "optimisers": {name: one.optimiser.state_dict() for name, one in self._learners.items()},
        }
        notes = {
            "versions": self._versions(),
            "credit": dict(self._state.credit.ema),
            "league": self._state.league.to_json(),
            "evaluation": self._state.evaluation,
        }
        checkpoint.write(self.folder, self._state.update, tensors, notes)

    def _resume(self) -> None:
        """Take up the last checkpoint, or begin with a first version of every policy."""
        found = checkpoint.read(self.folder)
        versions = found[2]["versions"] if found else dict.fromkeys(self._policies, 0)
        self._abandon(found[0] if found else 0)
        for name in self._policies:
            rewind(self._policies_folder, name, versions[name])
        if found is None:
            for policy in self._policies.values():
                self._publisher.publish(policy)
            self._keep()
            return
        update, tensors, notes = found
        for name, policy in self._policies.items():
            policy.restore(tensors["policies"][name])
            policy.version = versions[name]
            self._learners[name].optimiser.load_state_dict(tensors["optimisers"][name])
            self._publisher.deliver_again(policy)
        for name, reference in self._references.items():
            reference.restore(tensors["references"][name])
        self._evaluator.restore(notes["evaluation"])
        self._state = _State(
            update=update,
            credit=Estimator(ema=notes["credit"]),
            league=LeagueState.from_json(notes["league"]),
            evaluation=notes["evaluation"],
        )
        self._publisher.named |= {member.label for member in self._state.league.members}

    def _abandon(self, done: int) -> None:
        """Put the episodes of an unfinished update out of the way."""
        for path in sorted((self.folder / "rollouts").glob(f"update-{done + 1:06d}-*.db")):
            number = 1
            while (there := path.with_name(f"abandoned-{number}-{path.name}")).exists():
                number += 1
            path.rename(there)

    def close(self) -> None:
        """Free the models and files."""
        with suppress(EngineFailure):  # one that is dead forgets by itself
            self._publisher.withdraw()
        self._pool.close()
        self._project.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _of_policy(found: Estimate, rows: Sequence[Row], name: str) -> Estimate:
    """The estimate with the rows of one policy only."""
    own = tuple(i for i in found.kept.indices if rows[i].trained and rows[i].policy.partition("@")[0] == name)
    return replace(found, kept=replace(found.kept, indices=own))


def _counts(rows: Sequence[Row], found: Estimate) -> dict[str, float]:
    """What was played."""
    learners = [row for row in rows if row.trained]
    earned: dict[tuple[str, str], float] = {}
    for row in learners:
        earned[row.episode, row.seat] = earned.get((row.episode, row.seat), 0.0) + row.reward
    return {
        "episodes": len({row.episode for row in rows}),
        "decisions": len(rows),
        "legal_rate": sum(row.valid for row in learners) / max(1, len(learners)),
        "prompt_tokens": sum(len(row.prompt) for row in learners),
        "sampled_tokens": sum(len(row.ids) for row in learners),
        "kept_rate": len(found.kept.indices) / max(1, len(rows)),
        "return": sum(earned.values()) / max(1, len(earned)),
    }
