"""A population in a folder: each update plays every member of a generation, and the fittest have children.

A member is a few settings of the scenario: personas, instructions, how an emotion moves, a temperature. Nothing is
trained, so any engine will do. All members of a generation meet the same luck; a member's fitness is what the agents
that its settings are about earn, by the recipe's rewards. Whatever stops the process, the unfinished generation is
played again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import fsum, sqrt
from pathlib import Path
from statistics import fmean, variance

import orjson

from sim.intervals import Z
from sim.record.project import Project
from sim.scenarios.scenario import load
from sim.scenarios.yaml_text import write_yaml
from sim.streams import Streams
from sim.types import AgentId, Measurement
from sim.voices import Pool
from training import checkpoint
from training.genetic import Genome, Search, search
from training.loop import Done
from training.matchup import Matchup
from training.plan import UNWATCHED, Plan, TrainingError
from training.reward import Anchored, LogRatio, rewards
from training.rollout import Stage, abandon
from training.slots import Group, Independent, Population, Propose
from training.structures import rollout, start
from training.trajectory import Row

BEST = "best.yaml"
"""The file of the folder that holds the fittest member so far."""
SAMPLING = ("temperature", "top_p", "max_tokens")
"""What a gene may set of an entry of `models:`; anything else would make another engine."""


def check_bred(plan: Plan) -> None:
    """Raises TrainingError for slots that have no meaning where nothing learns."""
    recipe = plan.recipe
    if not isinstance(recipe.structure, Independent | Group | Propose):
        raise TrainingError(
            f"{recipe.name}: structure {recipe.structure.kind}: a population plays independent, group or propose"
        )
    for source in recipe.reward:
        if isinstance(source, (*UNWATCHED, Anchored, LogRatio)):
            raise TrainingError(f"{recipe.name}: reward {source.kind}: nobody works it out for a population")
    if plan.start or plan.runs:
        raise TrainingError(f"{recipe.name}: a population takes no weights and no stored runs; leave them out")


class Breeding:
    """One search in a folder. Use as a context. Raises TrainingError, RolloutError and ScenarioError."""

    stopped = ""
    """Why it ended before its time: never."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        assert isinstance(plan.recipe.actors, Population)
        self.folder, self.plan, self._actors = folder, plan, plan.recipe.actors
        self._scenario = load(plan.scenario, plan.sets)
        self._about = self._agents()
        one = start(plan.recipe.structure)
        starts = plan.recipe.rollout.episodes // self._actors.size // one.episodes
        self._alike, self._tables = one.tables, starts * one.tables
        if not starts:
            raise TrainingError(
                f"{plan.recipe.name}: rollout.episodes: {plan.recipe.rollout.episodes} are too few for "
                f"{self._actors.size} members; expected at least {self._actors.size * one.episodes}"
            )
        check_bred(plan)
        if plan.recipe.curriculum:
            raise TrainingError(f"{plan.recipe.name}: curriculum: a population has none; leave it out")
        self._luck = Streams(plan.seed).sub("population")
        self._pool = Pool(self._scenario.base)
        self._engines = {name: voice.engine for name, voice in self._pool.voices(self._scenario.models).items()}
        self._project = Project(folder / "project.db")
        found = checkpoint.read_notes(folder)
        self._search = Search.from_json(found[1]["search"]) if found else search(self._actors, self._luck)
        plan.write(folder)
        abandon(folder, self.done)

    @property
    def done(self) -> int:
        """Generations done."""
        return self._search.generation

    def run(self, report: Callable[[Done], None] = lambda _done: None, updates: int | None = None) -> None:
        """Go on up to so many generations in all (the recipe's updates, where not given)."""
        last = self.plan.recipe.updates if updates is None else updates
        while self.done < last:
            began = time.monotonic()
            numbers = self.update()
            report(Done(update=self.done, of=last, numbers=numbers, seconds=time.monotonic() - began))

    def update(self) -> dict[str, float]:
        """One generation; its numbers by metric name."""
        played = [self._played(place, member) for place, member in enumerate(self._search.members)]
        earned = [self._earned(rows) for rows in played]
        fitness = [fmean(each) for each in earned]
        self._search = self._search.evolved(fitness, self._actors, self._luck)
        best = self._search.best
        assert best is not None
        numbers = {
            "fitness": fmean(fitness),
            "fittest": max(fitness),
            "best_fitness": best.fitness,
            "episodes": float(sum(map(len, earned))),
            "decisions": float(sum(map(len, played))),
        }
        self._measure(numbers, earned)
        said = {"fitness": best.fitness, "generation": best.generation, "sets": settings(best.genome)}
        new = self.folder / f"{BEST}.new"
        new.write_text(write_yaml(said), encoding="utf-8")
        new.replace(self.folder / BEST)
        checkpoint.write(self.folder, self.done, {}, {"search": self._search.to_json()})
        return numbers

    def _played(self, place: int, member: Genome) -> list[Row]:
        """The rows of one member's episodes."""
        return rollout(
            Stage(
                file=self.plan.scenario,
                sets=(*self.plan.sets, *settings(member)),
                recipe=self.plan.recipe,
                matchup=Matchup(speakers={}, players={}, learners=frozenset(), tables=self._tables),
                seed=self._luck.seed("generation", self.done),
                folder=self.folder / "rollouts",
                policies=self.folder / "policies",
                run=f"update-{self.done + 1:06d}-{place}",
                engines=self._engines,
            )
        )

    def _earned(self, rows: Sequence[Row]) -> list[float]:
        """By episode, what the agents that the search is about earned in the mean."""
        recipe = self.plan.recipe
        try:
            paid = rewards(recipe.reward, rows, update=self.done).total() if recipe.reward else [r.reward for r in rows]
        except ValueError as error:  # a source reads what nobody works out here
            raise TrainingError(f"{recipe.name}: {error}") from error
        # A decision counts once, in however many rows it stands.
        found: dict[str, dict[tuple[AgentId, int], float]] = {row.episode: {} for row in rows}
        for row, reward in zip(rows, paid, strict=True):
            if row.seat in self._about:
                found[row.episode][row.seat, row.turn] = reward
        return [fsum(each.values()) / len(self._about) for each in found.values()]

    def _agents(self) -> frozenset[AgentId]:
        """Those whom the genes are about. Raises TrainingError for a gene that is about nobody."""
        about: set[AgentId] = set()
        if not self._actors.space:
            raise TrainingError(
                f"{self.plan.recipe.name}: actors.space is empty; name what may be chosen, like "
                "--recipe-set 'actors.space={cast.buyer.with.instructions: {kind: options, values: [Be firm, Bluff]}}'"
            )
        for key in self._actors.space:
            kind, _, rest = key.partition(".")
            name, _, setting = rest.partition(".")
            found = {
                agent
                for _, entry in self._scenario.entries
                for agent in entry.agents
                if setting and name == (entry.name if kind == "cast" else entry.model)
            }
            if kind not in ("cast", "models") or not found or (kind == "models" and setting not in SAMPLING):
                raise TrainingError(
                    f"{self.plan.recipe.name}: actors.space: {key} is about nobody who speaks; expected cast.NAME.KEY, "
                    f"or models.NAME. and one of {', '.join(SAMPLING)}"
                )
            about |= found
        return frozenset(about)

    def _measure(self, numbers: Mapping[str, float], earned: Sequence[Sequence[float]]) -> None:
        about = {"update": self.done}
        found = [Measurement(metric=f"train.{name}", value=value, of=about, n=1) for name, value in numbers.items()]
        for place, each in enumerate(earned):
            mean = fmean(each)
            half = Z * sqrt(variance(each) / len(each)) if len(each) > 1 else None
            found.append(
                Measurement(
                    metric="population.fitness",
                    value=mean,
                    n=len(each),
                    n_clusters=max(1, len(each) // self._alike),
                    ci=None if half is None else (mean - half, mean + half),
                    ci_method="" if half is None else "normal",
                    of={**about, "member": place},
                )
            )
        self._project.measure(self.folder.name, found)

    def close(self) -> None:
        """Free the engines and files."""
        self._pool.close()
        self._project.close()

    def __enter__(self) -> Breeding:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settings(genome: Genome) -> list[str]:
    """A member as `--set` writes it."""
    return [f"{key}={orjson.dumps(value).decode()}" for key, value in genome.items()]
