"""An evaluation, step by step: each step plays or reads something, and gives measurements that are kept at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

from msgspec.structs import replace

from sim.library import measure
from sim.record.reader import Run
from sim.scenarios.scenario import loads
from sim.streams import Streams
from sim.types import JSON, Measurement
from training.contest import Contest
from training.evaluate import nash_conv, uniform, values
from training.evaluation import Evaluator
from training.extensive import Tree
from training.measures import mean_of, win_rate
from training.subject import Lineup, Subject, label_of
from training.tabulate import Tabular, TabulateError

HELD_OUT = "evaluation"
"""Path of the seeds of what is played here; those of training stand under `update`."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is played."""

    games: int = 64
    """Of each line-up."""
    versions: int = 4
    """Line-ups of the history, the first and the newest among them."""
    seed: int = 0
    """Another number, other episodes; none are those of training."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something to do, and what it is called."""

    name: str
    do: Callable[[], list[Measurement]]


class Evaluation:
    """The steps of one subject's evaluation."""

    def __init__(self, subject: Subject, contest: Contest, settings: Settings) -> None:
        self.subject, self.settings = subject, settings
        self.lineups = subject.lineups(settings.versions)
        self.left_out: list[str] = []
        """What could not be measured, and why."""
        self._contest = contest
        self.about: dict[str, JSON] = {"scenario": subject.scenario.stem, "seed": settings.seed}
        training = subject.plan.seed if subject.plan else subject.load().seed
        self.seed = Streams(training).seed(HELD_OUT, settings.seed)

    @property
    def ends(self) -> list[Lineup]:
        """The first line-up and the newest; one, where they are the same."""
        return self.lineups if len(self.lineups) < 2 else [self.lineups[0], self.lineups[-1]]

    def steps(self) -> Iterator[Step]:
        """Everything that can be measured of the subject."""
        yield Step(name="exploitability", do=self._exact)
        for lineup in self.ends:
            yield Step(name=f"outcomes of {label_of(lineup)}", do=partial(self._outcomes, lineup))
        if len(self.ends) == 2:
            yield Step(name="what training has gained", do=self._gained)
        if len(self.subject.entries) != 2:
            self.left_out.append(f"no cross-play: it is of two entries of models:, not {len(self.subject.entries)}")
            return
        for one in self.lineups:
            for other in self.lineups:
                pair = crossed(one, other)
                yield Step(name=" against ".join(pair.values()), do=partial(self._met, pair))
        if len(self.ends) == 2 and len(set(self.subject.entries.values())) == 1:
            yield Step(name="win rate", do=self._win_rate)

    def run(self, lineup: Lineup) -> Path:
        """The run of a line-up, played now unless it was."""
        return self._contest.run(lineup, self.settings.games, self.seed)

    # --- exactly ----------------------------------------------------------------------------------------

    def _exact(self) -> list[Measurement]:
        """NashConv of the line-ups and of the average policy, and what they earn against each other."""
        reader, temperature = self._contest.reader(), self.subject.temperature
        if reader is None or temperature is None:
            self.left_out.append("no exact numbers: they need one engine and one temperature for all who learn")
            return []
        evaluator = Evaluator(self.subject.load(), temperature)
        if evaluator.tree is None:
            self.left_out.append(f"no exact numbers: {evaluator.why}")
            return []
        tree, tables = evaluator.tree, []
        try:
            for lineup in self.lineups:
                self._contest.serve(lineup)
                tables.append(evaluator.table(*reader, lineup))
        except TabulateError as error:
            self.left_out.append(f"no exact numbers: {error}")
            return []
        if any(table.keys() != tree.options.keys() for table in tables):
            self.left_out.append("no exact numbers: not all seats are played by those who learn")
            return []
        about = {**self.about, "temperature": temperature, "explore": 0}
        named = {label_of(lineup): table for lineup, table in zip(self.lineups, tables, strict=True)}
        average = self.subject.average() if self.subject.home else None
        if average is not None:
            named["average"] = average.table(tree)
        found = []
        even = nash_conv(tree, uniform(tree))
        for name, table in named.items():
            of = {**about, "policy": name}
            conv = nash_conv(tree, table)
            share = conv / even if even else None  # uniform play can be an equilibrium
            found.append(Measurement(metric="eval.nash_conv", value=conv, unit="points", n=1, of=of))
            found.append(Measurement(metric="eval.relative_nash_conv", value=share, n=1, of=of))
        if len(self.subject.entries) == 2:
            found += self._exact_returns(tree, tables, about)
        return found

    def _exact_returns(self, tree: Tree, tables: Sequence[Tabular], about: Mapping[str, JSON]) -> list[Measurement]:
        """What the first entry earns in expectation, for every pair of versions, the mean over its agents."""
        speaks = [entry.model for _, entry in self.subject.load().entries for _ in entry.agents]
        mine = next(iter(self.subject.entries))
        seats = [seat for seat, model in enumerate(speaks) if model == mine]
        found = []
        for one, first in zip(self.lineups, tables, strict=True):
            for other, second in zip(self.lineups, tables, strict=True):
                joined = {key: (first if speaks[seat] == mine else second)[key] for key, seat in tree.owner.items()}
                worth = values(tree, joined)
                of = {**about, **_pair(crossed(one, other))}
                mean = fmean(worth[seat] for seat in seats)
                found.append(Measurement(metric="eval.exact_return", value=mean, unit="points", n=1, of=of))
        return found

    # --- played -----------------------------------------------------------------------------------------

    def _outcomes(self, lineup: Lineup) -> list[Measurement]:
        """The world's own metrics and the scenario's, and what each entry earns, when all are of one line-up."""
        path = self.run(lineup)
        of: dict[str, JSON] = {**self.about, "policy": label_of(lineup)}
        found = [
            replace(one, metric=f"eval.{one.metric}", of={**of, **one.of}, events=(), decisions=())
            for one in measure(path)
            if not one.metric.startswith("honesty.")
        ]
        for entry, totals in earned(path).items():
            found.append(replace(mean_of("eval.return", totals), of={**of, "entry": entry}))
        return found

    def _gained(self) -> list[Measurement]:
        """What the newest line-up earns more than the first, episode by episode under the same luck of the world."""
        first, newest = (earned(self.run(lineup)) for lineup in self.ends)
        of = {**self.about, "policy": label_of(self.ends[1]), "against": label_of(self.ends[0])}
        return [
            replace(
                mean_of("eval.return_gain", [b - a for a, b in zip(first[entry], newest[entry], strict=True)]),
                of={**of, "entry": entry},
            )
            for entry in first
        ]

    def _met(self, pair: Lineup) -> list[Measurement]:
        """Who wins where two versions meet, and what both earn."""
        path = self.run(pair)
        of = {**self.about, **_pair(pair)}
        first, second = (earned(path)[entry] for entry in pair)
        won = win_rate([a - b for a, b in zip(first, second, strict=True)])
        return [
            replace(won, metric="eval.cross_play", of={**of, **won.of}),
            replace(mean_of("eval.cross_return", first), of={**of, "entry": next(iter(pair))}),
            replace(mean_of("eval.cross_return", second), of={**of, "entry": list(pair)[1]}),
        ]

    def _win_rate(self) -> list[Measurement]:
        """Of the newest version against the first, in equally many games on either side."""
        start, newest = self.ends
        here, there = (earned(self.run(pair)) for pair in (crossed(newest, start), crossed(start, newest)))
        one, other = self.subject.entries
        margins = [a - b for a, b in zip(here[one], here[other], strict=True)]
        margins += [b - a for a, b in zip(there[one], there[other], strict=True)]
        found = win_rate(margins)
        of = {**self.about, "policy": label_of(newest), "against": label_of(start), **found.of}
        return [replace(found, metric="eval.win_rate", of=of)]


def crossed(one: Lineup, other: Lineup) -> Lineup:
    """The first entry's version of one line-up, the second's of another."""
    first, second = one
    return {first: one[first], second: other[second]}


def _pair(pair: Lineup) -> dict[str, JSON]:
    first, second = pair.values()
    return {"first": first, "second": second}


def earned(path: Path) -> dict[str, list[float]]:
    """What each entry of `models:` earned in a run, a game each, the mean over its agents; in the entries' order."""
    with Run(path) as run:
        manifest = run.manifest()
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        found: dict[str, list[float]] = {}
        for table in range(run.tables):
            rewards = run.rewards(table)
            members: dict[str, list[float]] = {}
            for member in run.cast(table):
                members.setdefault(member.model, []).append(rewards.get(member.seat.agent, 0.0))
            for entry in scenario.models:
                if entry in members:
                    found.setdefault(entry, []).append(fmean(members[entry]))
    return found
