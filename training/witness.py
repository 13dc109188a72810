"""What slots ask of episodes that are over: other courses, truths, whole states, a judge's view, a script's answers,
what teachers are shown.

It joins a recipe to `hindsight`, `judging`, `showing` and `skills`. What it needs of the scenario is looked for before
anything is played.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from agents.engines.encoding import Encoder
from sim.calls import Voice
from sim.scenarios.located import nearest
from sim.scenarios.resolve import ResolveError, resolve
from sim.scenarios.scenario_schema import Scenario
from sim.streams import Streams
from sim.types import JSON, Agent, EngineFailure, Member, Message
from training.constraint import Masks
from training.critic import Valuer, read_states
from training.extras import Extras
from training.hindsight import Truth, counterfactual, demonstrations, known, states
from training.judging import Bench
from training.labels import demonstrated
from training.learner import Learner
from training.plan import Plan, TrainingError, scripted, shows
from training.policy import Base
from training.recipe import heads_of
from training.retold import Past
from training.reward import InfoGain, Judge, Regret
from training.rows import Sample
from training.showing import Shown, example, exemplary, shown
from training.skills import Finder
from training.slots import RefKL
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
        labels, self._pull = scripted(plan.recipe), shows(plan.recipe)
        self._script = self._minds("extra ce: teacher", labels.teacher, labels.settings) if labels else None
        if self._pull:
            self._encoder = Encoder(base.tokenizer, base.name, base.longest)
            self._texts = self._shows(self._pull, scenario, voices, learning, folder / "skills")

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
        if self._script is None:
            return {}
        try:
            answers = demonstrations(rows, Past(self._runs), self._script, self._luck.sub("script", update))
            return demonstrated(rows, kept, name, answers, self._masks)
        except ValueError as error:
            raise TrainingError(f"{self._recipe.name}: {error}") from error

    def shown(self, rows: Sequence[Row], update: int) -> Shown:
        """What a teacher that is shown something reads before each row's prompt. Raises TrainingError."""
        if self._pull is None:
            return Shown((), {})
        try:
            texts = self._texts(rows, update)
        except ValueError as error:
            raise TrainingError(f"{self._recipe.name}: {error}") from error
        return shown(rows, texts, self._encoder, self._pull.tokens, self._base.longest)

    def _shows(
        self,
        pull: RefKL,
        scenario: Scenario,
        voices: Mapping[str, Voice],
        learning: Collection[str],
        folder: Path,
    ) -> Callable[[Sequence[Row], int], Mapping[int, str]]:
        """What gives the texts of an update's rows. Raises TrainingError."""
        try:
            self._encoder.turn(Message(role="system", text="?"))
        except EngineFailure as error:
            raise TrainingError(f"{self._recipe.name}: extra ref_kl: shown: {error}") from error
        if pull.shown == "skills":
            if pull.skills:
                text = self._read(pull)
                return lambda rows, _update: dict.fromkeys(range(len(rows)), text)
            entry = next(iter(learning))
            found = Finder(
                *(voices[entry], self._encoder, folder, self._luck),
                context=scenario.models[entry].context,
                most=pull.tokens,
            )
            return lambda rows, update: found.texts(rows, Past(self._runs), update)
        if not pull.script:
            return lambda rows, _update: exemplary(rows)
        mind = self._minds("extra ref_kl: script", pull.script, pull.settings)

        def demonstrate(rows: Sequence[Row], update: int) -> dict[int, str]:
            said = demonstrations(rows, Past(self._runs), mind, self._luck.sub("shown", update))
            return {index: example(answer) for index, answer in said.items()}

        return demonstrate

    def _read(self, pull: RefKL) -> str:
        """The skills of a file. Raises TrainingError."""
        file, where = self._where / pull.skills, f"{self._recipe.name}: extra ref_kl: skills"
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TrainingError(
                f"{where}: {file} cannot be read as a UTF-8 text beside the scenario: {error}"
            ) from None
        if not text:
            raise TrainingError(f"{where}: {file} is empty; expected skills in words")
        takes = len(self._encoder.turn(Message(role="system", text=text)))
        if takes > pull.tokens:
            raise TrainingError(f"{where}: {file} takes {takes} tokens; expected {pull.tokens}, or set tokens: {takes}")
        return text

    def _minds(self, key: str, path: str, settings: Mapping[str, JSON]) -> Callable[[Member], Agent]:
        """What makes a scripted agent; it raises ValueError where that does not take its settings."""
        script: Any = self._named(key, path)

        def mind(member: Member) -> Agent:
            try:
                agent: Agent = script(member, **settings)
            except TypeError as error:
                raise ValueError(f"{path} does not take its settings: {error}") from error
            return agent

        return mind

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
