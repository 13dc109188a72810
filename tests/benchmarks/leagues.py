"""Ways to choose opponents, compared on Kuhn poker at the same number of games: NashConv, exact, of tabular policies.

Who meets whom, who joins and what a meta-solver makes of it is what `agora train` does (`training.opponents`,
`training.roster`, `training.league`, `training.nfsp`); only the policies are tables here, moved by sampled
NeuRD without anchors, and the average of fictitious play is a table of what its reservoir holds. Games between members,
by which best responses know their empirical game, count as games.

Run: `python -m tests.benchmarks leagues`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from sim.streams import Streams
from sim.types import Seat
from tests.benchmarks.tabular import NeuRD, Settings, spiel
from training import roster
from training.evaluate import AveragePolicy, nash_conv, uniform
from training.extensive import CHANCE, END, Tree, tree
from training.matchup import Matchup
from training.nfsp import Reservoir
from training.opponents import evaluations, matchups
from training.slots import NFSP, PSRO, Actors, League, Pool, Self
from training.standings import Game, Seated
from training.tabulate import Tabular
from training.trajectory import Row

ENTRIES = ("first", "second")
MAIN = "kuhn"
GAMES = 40_000
"""Of each training."""
SEEDS = 3


@dataclass(frozen=True)
class Way:
    """One way to choose opponents."""

    name: str
    actors: Actors
    settings: Settings
    average: str
    """What stands under average."""


PLAIN = Settings(updates=80, games=500, alpha=(0.5, 0.1), eta=0.0)
RESPONSE = Settings(updates=80, games=500, alpha=(4.0, 4.0), eta=0.0, c=4.0)
WAYS = (
    Way("mirror", Self(kind="self"), PLAIN, "mean of all updates"),
    Way("pfsp, hard", Pool(kind="pool", weight="pfsp_hard", add_every=5), PLAIN, "mean of all updates"),
    Way("pfsp, var", Pool(kind="pool", weight="pfsp_var", add_every=5), PLAIN, "mean of all updates"),
    Way("exploiters", League(kind="league", add_every=5, patience=10), PLAIN, "mean of all updates"),
    Way("nfsp", NFSP(kind="nfsp", eta=0.1), RESPONSE, "average policy"),
    Way(
        "psro",
        PSRO(kind="psro", every=4, games=100, anew=True),
        RESPONSE,
        "best meta-strategy so far; last is the last",
    ),
)


class Found(NamedTuple):
    """NashConv at the end of a training."""

    last: float
    average: float


Seen = dict[str, list[tuple[int, float]]]
"""By information state, the options taken (by index) and what was earned."""


class Training:
    """Tables that learn from each other; all luck is the seed's."""

    def __init__(self, game: Tree, way: Way, seed: int) -> None:
        self._game, self._actors, self._settings, self._seed = game, way.actors, way.settings, seed
        self._streams, self._luck = Streams(seed), random.Random(seed)
        league = roster.enrolled(way.actors, [MAIN])
        self._averages = [one.policy for one in league.learners if one.kind == "average"]
        beside = [one.policy for one in league.learners if one.kind != "average"]
        self._learners = {name: NeuRD(game, self._settings, seed) for name in [MAIN, *beside]}
        self._reservoir = Reservoir(capacity=100_000)
        self._tables: dict[str, Tabular] = {}
        self._labels: dict[str, str] = {}
        self._publish()
        self.league = roster.begun(way.actors, league, [MAIN], self._labels)
        self.done, self.games = 0, 0
        self.mean = AveragePolicy()
        """Of the main policy after every update, weighted with its number."""
        self._worth = nash_conv(game, uniform(game))
        """Of the last meta-strategy."""

    def update(self) -> None:
        """One update."""
        luck = self._streams.sub("update", self.done)
        met = matchups(self._actors, self._entries(), self.league, self._settings.games, self.done, luck)
        seen: dict[str, Seen] = {name: defaultdict(list) for name in self._learners}
        for name, learner in self._learners.items():
            self._tables[self._labels[name]] = self._named(learner.behaviour())
        self.league = self.league.finished(self._played(met, seen))
        for name, learner in self._learners.items():
            self._tables[self._labels[name]] = learner.table
            learner.learn(seen[name])
        if self._averages:
            self._reservoir = self._reservoir.added(_decisions(seen[MAIN]), self._streams.sub("reservoir"))
        self.done += 1
        self._publish()
        self._join()
        self.mean = self.mean.add(self._game, self._tables[self._labels[MAIN]], self.done)

    def found(self) -> Found:
        """How exploitable it is now."""
        if isinstance(self._actors, PSRO):
            best = self.league.best.get(roster.STRATEGY)
            return Found(self._worth, -best.score if best else self._worth)
        last = nash_conv(self._game, self._tables[self._labels[MAIN]])
        if isinstance(self._actors, NFSP):
            return Found(last, nash_conv(self._game, self._tables[self._labels[self._averages[0]]]))
        return Found(last, nash_conv(self._game, self.mean.table(self._game)))

    def _join(self) -> None:
        step = roster.joined(self._actors, self.league, [MAIN], self._labels, self.done, self._streams.sub("league"))
        self.league = step.league
        for name in step.anew:
            self._learners[name] = NeuRD(self._game, self._settings, self._seed)
            self._publish(name)
            self.league = self.league.reset(name, self._labels[name], self.done)
        if isinstance(self._actors, PSRO) and step.newcomers:
            missing = evaluations(self._entries(), self.league, self._actors.games)
            self.league = self.league.finished(self._played(missing, {}), fade=1.0)
            mixtures = roster.strategy(self._actors, self.league, self._entries())
            self._worth = nash_conv(self._game, self._mixed(mixtures["first"]))
            self.league = self.league.judged(roster.STRATEGY, str(self.done), -self._worth, self.done, mixtures)

    def _mixed(self, mixture: Mapping[str, float]) -> Tabular:
        """Of members that take both seats."""
        mean = AveragePolicy()
        for label, share in mixture.items():
            mean = mean.add(self._game, self._tables[label], share)
        return mean.table(self._game)

    def _played(self, met: Sequence[Matchup], seen: Mapping[str, Seen]) -> Iterator[Game]:
        """Games, one after the other; what learners did goes into `seen`."""
        for number, matchup in enumerate(met):
            tables = [self._tables[matchup.speakers[entry]] for entry in ENTRIES]
            for place in range(matchup.tables):
                decided, earned = self._hand(tables)
                for seat, key, option in decided:
                    if ENTRIES[seat] in matchup.learners:
                        seen[matchup.players[ENTRIES[seat]]][key].append((option, earned[seat]))
                self.games += 1
                seats = zip(ENTRIES, earned, strict=True)
                yield Game(
                    place=(number, place),
                    seats=tuple(Seated(player=matchup.players[one], role=one, earned=each) for one, each in seats),
                )

    def _hand(self, tables: Sequence[Tabular]) -> tuple[list[tuple[int, str, int]], tuple[float, ...]]:
        """One game: who did what where, and what each seat earned."""
        nodes, node, decided = self._game.nodes, self._game.nodes[0], []
        while node.seat != END:
            chances = node.chances if node.seat == CHANCE else tuple(tables[node.seat][node.key].values())
            (option,) = self._luck.choices(range(len(chances)), chances)
            if node.seat != CHANCE:
                decided.append((node.seat, node.key, option))
            node = nodes[node.children[option]]
        return decided, node.payoffs

    def _publish(self, *names: str) -> None:
        """The next versions of those named, or of all."""
        for name in names or [*self._learners, *self._averages]:
            _, _, version = self._labels.get(name, "").partition("@")
            self._labels[name] = f"{name}@{int(version or 0) + 1}"
            learner = self._learners.get(name)
            self._tables[self._labels[name]] = learner.table if learner else self._imitated()

    def _imitated(self) -> Tabular:
        """What the reservoir holds; uniform where it holds nothing."""
        found = uniform(self._game)
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row, count in self._reservoir.counts():
            counts[row.key][row.ids[0]] += count
        for key, each in counts.items():
            found[key] = {option: n / sum(each) for option, n in zip(self._game.options[key], each, strict=True)}
        return found

    def _named(self, shares: Mapping[str, Sequence[float]]) -> Tabular:
        return {key: dict(zip(self._game.options[key], each, strict=True)) for key, each in shares.items()}

    def _entries(self) -> dict[str, str]:
        return dict.fromkeys(ENTRIES, self._labels[MAIN])


def _decisions(seen: Seen) -> list[Row]:
    return [Row(episode="", key=key, ids=(option,)) for key, each in seen.items() for option, _ in each]


def measured(game: Tree, way: Way, seed: int, games: int) -> Found:
    """A training of so many games."""
    one = Training(game, way, seed)
    while one.games < games:
        one.update()
    return one.found()


def main(seeds: int = SEEDS, games: int = GAMES) -> list[str]:
    """One table; each number is the mean over the seeds, the worst of them behind it."""
    game = tree(spiel("kuhn_poker"), [Seat(agent="ann"), Seat(agent="bob")])
    lines = [
        f"Kuhn poker, tabular policies, NashConv after {games:,} games, mean (worst) of {seeds} seeds; "
        f"uniform play {nash_conv(game, uniform(game)):.3f}",
        f"{'opponents':<12}{'last':<16}{'average':<16}which is",
    ]
    for way in WAYS:
        numbers = zip(*(measured(game, way, seed, games) for seed in range(seeds)), strict=True)
        last, average = (f"{fmean(each):.3f} ({max(each):.3f})" for each in numbers)
        lines.append(f"{way.name:<12}{last:<16}{average:<16}{way.average}")
    return lines
