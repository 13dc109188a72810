"""Line-ups of stored versions play a scenario: each is one stored run, which is gone on with where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import orjson

from agents.engines.weights import adapter_config, is_adapter
from sim.policies import policy_rows
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import dump, load
from sim.scenarios.scenario_schema import Scenario
from sim.types import JSON
from sim.voices import LateEngine, Pool
from training.constraint import Masks
from training.matchup import Label
from training.rollout import RolloutError
from training.subject import Lineup, Subject
from training.sync import CANARY_RANK


class Contest:
    """The engines of a subject's scenario, and what is played on them. A context: it holds the models in memory.

    Raises ScenarioError, EngineFailure, and WeightsError for a version that does not fit the scenario's model.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        scenario = load(subject.scenario, [*subject.sets, *_bare(subject.entries)])
        self._pool = Pool(scenario.base, offered=_room(subject))
        voices = self._pool.voices(scenario.models)
        self._engines = {name: cast("LateEngine", voice.engine) for name, voice in voices.items()}
        self._served: dict[int, set[Label]] = {}

    def run(self, lineup: Lineup, games: int, seed: int) -> Path:
        """The run of a line-up over so many tables, played now unless it was. Raises RolloutError."""
        scenario = load(self.subject.scenario, [*self.subject.sets, *self._overrides(lineup, games, seed)])
        path = self.subject.runs / f"{_name(scenario, lineup)}.db"
        if not path.exists():
            create(scenario, path.parent, path.stem)
        with Run(path) as run:
            if run.status == "finished":
                return path
        self.serve(lineup)
        session = go(path, engines=dict(self._engines))
        if session.status != "finished":
            raise RolloutError(f"{path}: {session.status}: {session.cause}")
        return path

    def serve(self, lineup: Lineup) -> None:
        """Have the engines serve the versions of a line-up, and no others that they were given."""
        wanted: dict[int, set[Label]] = {}
        for entry, label in lineup.items():
            wanted.setdefault(id(self._engines[entry]), set()).add(label)
        for entry in lineup:
            engine = self._engines[entry]
            serving: Any = engine.start()
            served = self._served.setdefault(id(engine), set())
            for label in sorted(served - wanted[id(engine)]):
                serving.remove_policy(label)
            for label in sorted(wanted[id(engine)] - served):
                serving.add_policy(label, self.subject.folders[label])
            self._served[id(engine)] = wanted[id(engine)]

    def reader(self) -> tuple[Any, Masks] | None:
        """The one engine of all learners and its masks; None where there are several, or masks are not to be had."""
        engines = {id(self._engines[entry]): self._engines[entry] for entry in self.subject.entries}
        if len(engines) > 1:
            return None
        engine: Any = next(iter(engines.values())).start()
        return (engine, engine.mask) if hasattr(engine, "mask") else None

    def _overrides(self, lineup: Lineup, games: int, seed: int) -> list[str]:
        found = [f"seed={seed}", f"tables={games}", "group=1"]
        for entry, label in lineup.items():
            folder = {label: str(self.subject.folders[label])}
            found += [f"models.{entry}.policy={label}", f"models.{entry}.adapters={orjson.dumps(folder).decode()}"]
            if plan := self.subject.plan:
                sampling = plan.recipe.rollout
                found += [
                    f"models.{entry}.{key}={value}"
                    for key, value in (("temperature", sampling.temperature), ("top_p", sampling.top_p))
                ]
                found.append(f"models.{entry}.max_tokens={sampling.max_tokens}")
        return found

    def close(self) -> None:
        """Free the models."""
        self._pool.close()

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bare(entries: Mapping[str, str]) -> list[str]:
    """Settings with which engines start without versions."""
    return [
        each
        for entry, name in entries.items()
        for each in (f"models.{entry}.policy={name}", f"models.{entry}.adapters={{}}")
    ]


def _room(subject: Subject) -> dict[str, JSON]:
    """Settings for engines that have places for adapters: one for each entry, large enough for all versions."""
    configs = [adapter_config(folder) for folder in subject.folders.values() if is_adapter(folder)]
    changed = [config.target_modules for config in configs]
    named = [one for one in changed if not isinstance(one, str | None)]  # a text is a pattern, or all there are
    return {
        "max_adapters": len(subject.entries),
        "max_lora_rank": max([CANARY_RANK, *(config.r for config in configs)]),
        "lora_modules": sorted({module for one in named for module in one}) if len(named) == len(changed) else None,
    }


def _name(scenario: Scenario, lineup: Lineup) -> str:
    """The run's id: who plays, and a hash of everything that the run depends on."""
    content = dump(scenario) + "".join(row[2] for row in policy_rows(scenario))
    labels = "-".join(label.replace("@", ".") for label in dict.fromkeys(lineup.values()))
    return f"{labels}-{blake2b(content.encode(), digest_size=5).hexdigest()}"
