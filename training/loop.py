"""The training loop: play, credit, learn, publish, measure, keep. One update after the other, each whole or not at all.

An update plays its episodes as stored runs, learns from their rows, publishes new versions, writes its numbers into
the project file beside the runs and leaves a checkpoint. Whatever stops the process, the next start repeats the
unfinished update from the last checkpoint; the episodes that it had played are kept as abandoned.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import torch
from msgspec import convert, to_builtins
from msgspec.structs import replace

from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import EngineFailure
from sim.voices import LateEngine, Pool
from training import checkpoint, ladder, roster
from training.alongside import measures
from training.averages import Averages
from training.beside import banded, beside
from training.constraint import Masks
from training.credit import START, Estimator
from training.critic import explained
from training.curriculum import next_pool
from training.curves import Curves
from training.ensemble import Ensemble
from training.entropies import History
from training.episodes import Episodes
from training.estimate import Estimate, estimate
from training.evaluation import Evaluator
from training.extras import Extras
from training.labels import lessons
from training.league import LeagueState
from training.plan import SAID, Plan, TrainingError, check, check_said, kept
from training.policy import Base, rewind
from training.readout import explored, read_options
from training.returns import Q
from training.reward import learnt_returns
from training.rollout import abandon, seats, with_setting
from training.rows import Sample
from training.schedule import at
from training.serving import room
from training.slots import PSRO
from training.starting import brought, check_start, first
from training.sync import Publisher
from training.teacher import Classroom, imitates, teacher
from training.trajectory import Row
from training.watching import Watching
from training.witness import Witness


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
    pool: int = 0
    """Number of the pool of tasks that the curriculum has come to."""
    entropies: History = field(default_factory=dict)


class Trainer:
    """One training in a folder. Use as a context: it holds the models in memory.

    The folder is written to once all is in order. `engines`, by their entries of `models:`, answer instead of those
    that the scenario names; they are left open, without the training's policies. Raises TrainingError, ScenarioError,
    EngineFailure and DeliveryError.
    """

    def __init__(self, folder: Path, plan: Plan, engines: Mapping[str, LateEngine] = MappingProxyType({})) -> None:
        self.folder, self.plan = folder, plan
        recipe = plan.recipe
        self._scenario = load(plan.scenario, plan.sets)
        self._entries = seats(self._scenario)
        if not self._entries:
            raise TrainingError(f"{plan.scenario}: nobody learns: give an entry of models: a policy without a version")
        check(recipe)
        check_said(recipe, {one: with_setting(self._scenario, self._entries, one) for one in SAID.values()})
        check_start(plan.start, self._entries.values())
        torch.set_num_threads(recipe.threads)
        model = self._one(lambda entry: self._scenario.models[entry].model, "models.*.model")
        exact = not torch.cuda.is_available()  # a CPU has time for it
        self._policies_folder = folder.resolve() / "policies"
        given = brought(plan.start, self._policies_folder)
        places = room(self._scenario, recipe, self._entries, exact=exact, brought=given)
        self._pool = Pool(self._scenario.base, engines, places)
        voices = self._pool.voices(self._scenario.models)
        self._engines = {name: cast("LateEngine", voice.engine) for name, voice in voices.items()}
        self._engine: Any = cast(Any, self._speaker().start())
        if not hasattr(self._engine, "mask"):
            raise TrainingError(
                f"{plan.scenario}: models.*.engine: {self._speaker().name} cannot be trained on; expected torch or vllm"
            )
        self._base = Base(model or "embedded")
        self._masks: Masks = self._engine.mask
        self._rollouts = folder / "rollouts"
        self._firsts = {first(name) for name in self._entries.values()}
        self._publisher = Publisher(self._engine, self._base, self._policies_folder, keep=kept(recipe))
        self._evaluator = Evaluator(self._scenario, recipe.rollout.temperature)
        self._state = _State(evaluation=self._evaluator.state())
        self._mains = list(dict.fromkeys(self._entries.values()))
        self._state.league = roster.enrolled(recipe.actors, self._mains)
        others = {one.policy: one for one in self._state.league.learners}
        self._averages = Averages(
            recipe,
            {name: one.of for name, one in others.items() if one.kind == "average"},
            Streams(self.plan.seed).sub("averages"),
        )
        self._team = Ensemble(
            plan,
            self._base,
            {*self._mains, *others},
            self._averages.reservoirs,
            self._policies_folder,
            self._masks,
            self._engine.banned,
        )
        anew = roster.restarting(recipe.actors, self._state.league, self._mains)
        self._firsts |= {first(name) for name in anew}
        self._publisher.named = set(self._firsts)
        self._teacher = teacher(recipe, self._classroom())
        self._witness = Witness(plan, self._scenario, voices, self._entries, self._base, self._masks, folder)
        self._episodes = Episodes(
            plan=plan,
            scenario=self._scenario,
            entries=self._entries,
            engines=self._engines,
            engine=self._engine,
            publisher=self._publisher,
            teacher=self._teacher,
            rollouts=self._rollouts,
            policies=self._policies_folder,
        )
        self._watching = Watching(recipe.monitor, self._team.policies)
        plan.write(folder)
        if recipe.policy.kind == "lora":
            self._publisher.prove(plan.seed, recipe.policy.targets)
        self._curves = Curves(folder)
        self._resume()
        gc.freeze()  # models and libraries stay, so no collection has to look at them again

    @property
    def done(self) -> int:
        """Updates done."""
        return self._state.update

    @property
    def stopped(self) -> str:
        """Why the training ended before its time; empty: it did not."""
        return self._watching.reason

    def go_on(self) -> None:
        """Train on, whatever has stopped it."""
        self._watching.go_on()
        self._curves.status(self._state.update, self.stopped)

    # --- one update -----------------------------------------------------------------------------------

    def run(self, report: Callable[[Done], None] = lambda _done: None, updates: int | None = None) -> None:
        """Go on up to so many updates in all (the recipe's, where not given)."""
        last = self.plan.recipe.updates if updates is None else updates
        while self._state.update < last and not self.stopped:
            began = time.monotonic()
            numbers = self.update()
            report(Done(update=self._state.update, of=last, numbers=numbers, seconds=time.monotonic() - began))

    def update(self) -> dict[str, float]:
        """One update; its numbers by metric name."""
        recipe, state = self.plan.recipe, self._state
        rows, league = self._played()
        if any(isinstance(term.returns, Q) for term in recipe.credit) or self._team.references:
            options = read_options(rows, {name: one.active for name, one in self._team.policies.items()}, self._masks)
            rows = explored(rows, options, at(recipe.actors.explore, state.update))
        extras = self._extras(rows)
        texts = self._engine.banned
        middles, entropies = banded(recipe, rows, self._team.learners, self._masks, texts, state.entropies)
        try:
            found = estimate(recipe, rows, extras, state.credit, state.update, self._team.versions)
        except ValueError as error:  # a slot reads what nobody works out here
            raise TrainingError(f"{recipe.name}: {error}") from error
        shown = self._witness.shown(rows, state.update)
        numbers = {**_counts(rows, found), **shown.numbers}
        for head, targets in found.targets.items():
            numbers[f"explained {head}"] = explained(extras.values[head], targets)
        for name, learner in self._team.learners.items():
            given, own = rows, _of_policy(found, rows, name)
            if name in self._averages:
                given, own = self._averages.lesson(name, rows, state.update)
            learnt = learner.learn(
                *(given, own, state.update),
                reference=self._base.plain,
                teacher=self._teacher.weights if self._teacher else None,
                lessons=self._lessons(name, given, own),
                states=extras.states if given is rows else (),
                centres=middles if given is rows else (),
                shown=shown.before if given is rows else (),
            )
            mine = [row for row in rows if row.policy.partition("@")[0] == name]
            weights = self._team.policies[name].active
            learnt |= self._watching.see(name, state.update, mine, len(own.kept.indices), learnt, weights)
            numbers |= {
                f"{key} {name}" if len(self._team.learners) > 1 else key: value for key, value in learnt.items()
            }
        self._team.renew(state.update + 1)
        for policy in self._team.policies.values():
            self._publisher.publish(policy)
        league, newcomers = self._joined(league, state.update + 1)
        numbers |= self._evaluator.after(state.update + 1, self._engine, self._masks, self._current())
        league, judged = self._judged(league, newcomers, numbers, state.update + 1)
        numbers |= judged | self._averages.numbers()
        self._publisher.named = self._firsts | roster.kept(league)
        self._state = _State(
            update=state.update + 1,
            credit=found.state,
            league=league,
            evaluation=self._evaluator.state(),
            pool=next_pool(recipe.curriculum, state.pool, learnt_returns(rows)),
            entropies=entropies,
        )
        further = measures(self._scenario, self._rollouts, self._state.update)
        if roster.meets(recipe.actors):
            further += ladder.measurements(league, self._state.update)
        self._curves.add(self._state.update, numbers, further)
        self._keep()
        self._curves.status(self._state.update, self.stopped)
        return numbers

    def _played(self) -> tuple[list[Row], LeagueState]:
        """The episodes of an update, and the league with their games."""
        state = self._state
        return self._episodes.play(self._current(), state.league, state.update, state.pool)

    # --- the league -----------------------------------------------------------------------------------

    def _joined(self, league: LeagueState, done: int) -> tuple[LeagueState, Sequence[str]]:
        """The league after an update, with those who have joined it; who starts anew does."""
        actors, luck = self.plan.recipe.actors, Streams(self.plan.seed).sub("league", done)
        step = roster.joined(actors, league, self._mains, self._team.labels, done, luck)
        league = step.league
        self._publisher.named |= set(step.newcomers)  # those who start anew are published before all are named again
        for name in step.anew:
            policy = self._team.start_anew(name)
            self._publisher.publish(policy)
            league = league.reset(name, policy.label, done)
        if isinstance(actors, PSRO) and step.newcomers:
            state = self._state
            league = self._episodes.rate(self._current(), league, state.update, state.pool, luck, actors.games)
        return league, step.newcomers

    def _judged(
        self, league: LeagueState, newcomers: Sequence[str], numbers: Mapping[str, float], done: int
    ) -> tuple[LeagueState, dict[str, float]]:
        """The league with the best versions and the best mixture so far, as far as the game can be solved."""
        found: dict[str, float] = {}
        if "nash_conv" in numbers:
            for name in self._mains:
                league = league.judged(name, self._team.policies[name].label, -numbers["nash_conv"], done)
            found["best_nash_conv"] = -max(league.best[name].score for name in self._mains)
        mixtures = roster.strategy(self.plan.recipe.actors, league, self._current())
        if mixtures and (newcomers or self._averages):
            worth = self._evaluator.mixed(self._engine, self._masks, mixtures, self._publisher.call_up)
            if worth is not None:
                league = league.judged(roster.STRATEGY, f"{roster.STRATEGY}@{done}", -worth, done, mixtures)
                found |= {"strategy_nash_conv": worth, "best_strategy_nash_conv": -league.best[roster.STRATEGY].score}
        return league, found

    def _extras(self, rows: Sequence[Row]) -> Extras:
        earlier = {name: one.active for name, one in self._team.references.items()}
        masks, texts = self._masks, self._engine.banned
        found = beside(
            self.plan.recipe, rows, self._team.learners, masks, texts, earlier=earlier, base=self._base.plain
        )
        return self._witness.extras(rows, found, self._team.learners, self._state.update)

    def _classroom(self) -> Classroom:
        return Classroom(
            file=self.plan.scenario,
            models=self._scenario.models,
            learning=self._entries,
            engines=self._engines,
            own=self._engine,
            base=self._base,
            policies=self._policies_folder,
        )

    def _lessons(self, name: str, rows: Sequence[Row], found: Estimate) -> dict[int, list[Sample]]:
        """What the teacher would say in the policy's seats, where the recipe imitates it."""
        if self._teacher is None or self._teacher.weights is None or not any(map(imitates, self.plan.recipe.extra)):
            return self._witness.lessons(rows, found.kept.indices, name, self._state.update)
        masks, texts = self._masks, self._engine.banned
        try:
            return lessons(rows, found.kept.indices, name, self._teacher.weights, masks, texts)
        except ValueError as error:
            raise TrainingError(f"{self.plan.recipe.name}: {error}") from error

    def _current(self) -> dict[str, str]:
        """The newest version of each learner's entry."""
        return {entry: self._team.policies[name].label for entry, name in self._entries.items()}

    # --- engines --------------------------------------------------------------------------------------

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

    def _keep(self) -> None:
        notes = {
            "versions": self._team.versions,
            "credit": to_builtins(self._state.credit),
            "entropies": to_builtins(self._state.entropies),
            "league": self._state.league.to_json(),
            "evaluation": self._state.evaluation,
            "watching": self._watching.state(),
            "pool": self._state.pool,
            "reservoirs": self._averages.to_json(),
        }
        checkpoint.write(self.folder, self._state.update, self._team.tensors(), notes)

    def _resume(self) -> None:
        """Take up the last checkpoint, or begin with a first version of every policy."""
        found = checkpoint.read(self.folder)
        versions = found[2]["versions"] if found else dict.fromkeys(self._team.policies, 0)
        abandon(self.folder, found[0] if found else 0)
        for name in self._team.policies:
            rewind(self._policies_folder, name, versions[name])
        if found is None:
            for policy in self._team.policies.values():
                self._publisher.publish(policy)
            league = roster.begun(self.plan.recipe.actors, self._state.league, self._mains, self._team.labels)
            self._state.league = league
            self._publisher.named = self._firsts | roster.kept(league)
            self._keep()
            return
        update, tensors, notes = found
        self._team.restore(tensors, versions)
        for policy in self._team.policies.values():
            self._publisher.deliver_again(policy)
        self._evaluator.restore(notes["evaluation"])
        self._watching.restore(notes["watching"])
        self._state = _State(
            update=update,
            credit=convert(notes["credit"], Estimator),
            league=LeagueState.from_json(notes["league"]),
            evaluation=notes["evaluation"],
            pool=notes["pool"],
            entropies=convert(notes["entropies"], dict[str, tuple[float, float]]),
        )
        self._averages.restore(notes["reservoirs"])
        self._publisher.named = self._firsts | roster.kept(self._state.league)

    def close(self) -> None:
        """Free the models and files."""
        gc.unfreeze()
        with suppress(EngineFailure):  # one that is dead forgets by itself
            self._publisher.withdraw()
            engine, taught = self._engine, self._teacher
            if taught is not None and taught.engine is self._engine:
                engine.remove_policy(taught.label)
        self._pool.close()
        self._curves.close()

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
    paid = learnt_returns(rows)
    return {
        "episodes": len({row.episode for row in rows}),
        "decisions": len({(row.episode, row.seat, row.turn) for row in rows if row.how}),
        "legal_rate": sum(row.valid for row in learners) / max(1, len(learners)),
        "prompt_tokens": sum(len(row.prompt) for row in learners),
        "sampled_tokens": sum(len(row.ids) for row in learners),
        "kept_rate": len(found.kept.indices) / max(1, len(rows)),
        "return": fsum(paid) / max(1, len(paid)),
    }
