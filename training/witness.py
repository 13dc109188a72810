"""What slots ask of episodes that are over: other courses, truths, whole states, a judge's view, a script's answers.

It joins a recipe to `hindsight` and `judging`. What it needs of the scenario is looked for before anything is played.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from sim.calls import Voice
from sim.scenarios.located import nearest
from sim.scenarios.resolve import ResolveError, resolve
from sim.scenarios.scenario_schema import Scenario
from sim.streams import Streams
from sim.types import Agent, Member
from training.constraint import Masks
from training.critic import Valuer, read_states
from training.extras import Extras
from training.hindsight import Truth, counterfactual, demonstrations, known, states
from training.judging import Bench
from training.labels import demonstrated
from training.learner import Learner
from training.plan import Plan, TrainingError, scripted
from training.policy import Base
from training.recipe import heads_of
from training.retold import Past
from training.reward import InfoGain, Judge, Regret
from training.rows import Sample
from training.trajectory import Row


class Witness:
    """Asks the episodes of one training in a folder. Raises TrainingError where what a slot names is not there.

    `learning`: the entries of `models:` that learn.
    """

    def __init__(
        self,
        plan: Plan,
        scenario: Scenario,
        voices: Mapping[str, Voice],
        learning: Collection[str],
        base: Base,
        masks: Masks,
        folder: Path,
    ) -> None:
        self._plan, self._recipe, self._where = plan, plan.recipe, scenario.base
        self._base, self._masks, self._runs = base, masks, folder / "rollouts"
        self._luck = Streams(plan.seed).sub("witness")
        self._heads = heads_of(plan.recipe, "state")
        self._benches, self._truths = [], {}
        for source in plan.recipe.reward:
            if isinstance(source, Judge):
                voice = self._voice(source, voices, learning)
                self._benches.append(Bench(source, voice, folder / "judgements", self._luck))
            if isinstance(source, InfoGain):
                self._truths[source.truth] = cast("Truth", self._named("reward info_gain: truth", source.truth))
        self._term = scripted(plan.recipe)
        self._script: Any = self._named("extra ce: teacher", self._term.teacher) if self._term else None

    def extras(self, rows: Sequence[Row], found: Extras, learners: Mapping[str, Learner], update: int) -> Extras:
        """The extras with what the rows' episodes say of them. Raises TrainingError where they do not say it."""
        past = Past(self._runs)
        weights = {name: one.policy.active for name, one in learners.items()}
        try:
            for source in self._recipe.reward:
                if isinstance(source, Regret):
                    found = replace(found, counterfactual=counterfactual(rows, past))
                if isinstance(source, InfoGain):
                    truth = self._truths[source.truth]
                    before, after = known(rows, past, truth, source.lead, self._encode, weights, self._masks)
                    found = replace(found, truth_before=before, truth_after=after)
            for bench in self._benches:
                found = replace(found, judge=bench.scores(rows, past, update))
            if self._heads:
                valuers = {name: Valuer(one.policy.active, one.critic) for name, one in learners.items() if one.critic}
                now, then = states(rows, past, self._encode, self._base.longest)
                values = read_states(rows, now, then, valuers, self._heads)
                found = replace(found, values={**found.values, **values}, states=now)
        except ValueError as error:
            raise TrainingError(f"{self._recipe.name}: {error}") from error
        return found

    def lessons(self, rows: Sequence[Row], kept: Sequence[int], name: str, update: int) -> dict[int, list[Sample]]:
        """What the scripted teacher would say in the policy's seats; none without one. Raises TrainingError."""
        if self._term is None:
            return {}
        try:
            answers = demonstrations(rows, Past(self._runs), self._mind, self._luck.sub("script", update))
            return demonstrated(rows, kept, name, answers, self._masks)
        except ValueError as error:
            raise TrainingError(f"{self._recipe.name}: {error}") from error

    def _mind(self, member: Member) -> Agent:
        assert self._term is not None
        try:
            agent: Agent = self._script(member, **self._term.settings)
        except TypeError as error:
            raise ValueError(f"{self._term.teacher} does not take its settings: {error}") from error
        return agent

    def _encode(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._base.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _voice(self, judge: Judge, voices: Mapping[str, Voice], learning: Collection[str]) -> Voice:
        name, where = judge.model, f"{self._plan.scenario}: models.{judge.model}"
        if name in learning:
            raise TrainingError(f"{where}: it learns itself, so it is no judge; name another one under reward")
        if name not in voices:
            raise TrainingError(
                f"{where}: {self._recipe.name} needs this judge, which is not there; {nearest(name, voices)}, or add "
                f"--set 'models.{name}={{engine: torch, model: embedded}}'"
            )
        return voices[name]

    def _named(self, key: str, path: str) -> object:
        try:
            return resolve(path, self._where)
        except ResolveError as error:
            raise TrainingError(f"{self._recipe.name}: {key}: {error}") from error
