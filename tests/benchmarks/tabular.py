"""Sampled NeuRD on tabular logits: what the recipes' estimator can do where the policy can hold any table.

An update plays games through the tree with exploration, anchors their rewards to a renewed reference (R-NaD) and moves
the centred logits of every state by α·Â, Â the mean over its visits of Q̂ − V; nothing moves beyond ±c. Q̂ corrects a
baseline of each option, a discounted mean of earlier updates, by importance weights (as VR-MCCFR does, Schmid et al.
2019). Kuhn and Leduc poker, the auction and rock-paper-scissors with a double stake; the numbers are exact.

Run: `python -m tests.benchmarks tabular`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

from sim.types import Seat, World
from training.evaluate import AveragePolicy, nash_conv, relative_nash_conv, total_variation
from training.extensive import CHANCE, END, Tree, tree
from training.option_baseline import Memory, corrected, means, remembered
from training.tabulate import Tabular
from worlds.games.matrix import Matrix
from worlds.games.openspiel import OpenSpielGame, OpenSpielParams
from worlds.games.settings import MatrixParams


@dataclass(frozen=True)
class Settings:
    """Of one training."""

    updates: int
    games: int = 512
    """Played for one update."""
    alpha: tuple[float, float] = (1.0, 0.1)
    """Step of the first and of the last update, linear in between."""
    c: float = 3.0
    """Threshold of the centred logits."""
    epsilon: float = 0.05
    """Share of uniform exploration."""
    eta: float = 0.2
    """Weight of the anchor."""
    renew: int = 10
    """Updates from one reference to the next."""
    keep: float = 0.9
    """What an update leaves of the weight of earlier returns in the baseline."""


class NeuRD:
    """Logits by information state, moved by what was played; all luck is the seed's."""

    def __init__(self, tree: Tree, settings: Settings, seed: int) -> None:
        self._tree, self._settings, self._luck = tree, settings, random.Random(seed)
        self._y = {key: [0.0] * len(options) for key, options in tree.options.items()}
        self._pi = {key: _softmax(y) for key, y in self._y.items()}
        self._reference = dict(self._pi)
        self._mu = dict(self._pi)
        self._own = {key: list(y) for key, y in self._y.items()}
        """Anchor of each option: −η·log(π/π_ref)."""
        self._memory: dict[str, Memory] = {key: {} for key in self._y}
        """Baselines of the options."""
        self._done = 0
        self.average = AveragePolicy()
        """Weighted with the number of the update."""

    @property
    def table(self) -> dict[str, dict[str, float]]:
        """The policy, exploration off."""
        return {key: dict(zip(options, self._pi[key], strict=True)) for key, options in self._tree.options.items()}

    def update(self) -> None:
        """One update of games against itself."""
        returns: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        behaviour = self.behaviour()
        for _ in range(self._settings.games):
            self._play(behaviour, returns)
        self.learn(returns)

    def behaviour(self) -> dict[str, list[float]]:
        """What it plays in an update, by state, with exploration."""
        given = self._settings
        if self._done % given.renew == 0:
            self._reference = dict(self._pi)
        for key, pi in self._pi.items():
            self._mu[key] = [(1 - given.epsilon) * p + given.epsilon / len(pi) for p in pi]
            self._own[key] = [-given.eta * log(p / ref) for p, ref in zip(pi, self._reference[key], strict=True)]
        return self._mu

    def learn(self, returns: Mapping[str, Sequence[tuple[int, float]]]) -> None:
        """Move by what it did (options by index) and earned afterwards, by state."""
        given = self._settings
        first, last = given.alpha
        step = first + (last - first) * self._done / max(1, given.updates - 1)
        for key, seen in returns.items():
            self._move(key, seen, step)
        self._done += 1
        self.average = self.average.add(self._tree, self.table, self._done)

    def _play(self, behaviour: Mapping[str, list[float]], returns: dict[str, list[tuple[int, float]]]) -> None:
        """One game; every decision's option and what came after it, anchors of both sides included but its own."""
        nodes, node = self._tree.nodes, self._tree.nodes[0]
        decisions = []
        while node.seat != END:
            chances = node.chances if node.seat == CHANCE else behaviour[node.key]
            (option,) = self._luck.choices(range(len(chances)), chances)
            if node.seat != CHANCE:
                decisions.append((node.seat, node.key, option))
            node = nodes[node.children[option]]
        gains = list(node.payoffs)
        for seat, key, option in reversed(decisions):
            returns[key].append((option, gains[seat]))
            anchor = self._own[key][option]
            gains = [
                gain + (anchor if other == seat else -anchor / (len(gains) - 1)) for other, gain in enumerate(gains)
            ]

    def _move(self, key: str, seen: Sequence[tuple[int, float]], step: float) -> None:
        """Move a state's logits by the returns of its visits."""
        mu, pi, own, options = self._mu[key], self._pi[key], self._own[key], self._tree.options[key]
        base = means(self._memory[key], options)
        visits = [corrected(own, base, option, gain, mu[option]) for option, gain in seen]
        q = [sum(each) / len(seen) for each in zip(*visits, strict=True)]
        value = sum(p * each for p, each in zip(pi, q, strict=True))
        middle = sum(self._y[key]) / len(pi)
        self._y[key] = [
            moved(y - middle, step * (each - value), self._settings.c) for y, each in zip(self._y[key], q, strict=True)
        ]
        self._pi[key] = _softmax(self._y[key])
        returns = [(options[option], gain) for option, gain in seen]
        self._memory[key] = remembered(self._memory[key], returns, self._settings.keep)


def moved(y: float, by: float, c: float) -> float:
    """A centred logit after a step that ends at ±c; one beyond it is not pulled back.

    Clipping centred logits instead makes all good options equal: the fall of the bad ones lifts them to c each time.
    """
    return min(y + by, max(y, c)) if by > 0 else max(y + by, min(y, -c))


def _softmax(y: list[float]) -> list[float]:
    weights = [exp(each) for each in y]
    total = sum(weights)
    return [each / total for each in weights]


# --- what is measured -----------------------------------------------------------------------------------


def spiel(game: str) -> World:
    """A game of OpenSpiel."""
    return OpenSpielGame(OpenSpielParams(game=game))


STAKES = {
    "rock,rock": (0, 0), "rock,paper": (-1, 1), "rock,scissors": (2, -2),
    "paper,rock": (1, -1), "paper,paper": (0, 0), "paper,scissors": (-1, 1),
    "scissors,rock": (-2, 2), "scissors,paper": (1, -1), "scissors,scissors": (0, 0),
}  # fmt: skip
BIASED = {"rock": 0.25, "paper": 0.5, "scissors": 0.25}
"""The equilibrium where rock against scissors counts twice."""


def variation(tree: Tree, table: Tabular) -> float:
    """The seat that is further from the equilibrium of the biased game."""
    return max(total_variation(row, BIASED) for row in table.values())


@dataclass(frozen=True)
class Experiment:
    """One game."""

    name: str
    world: Callable[[], World]
    measure: Callable[[Tree, Tabular], float]
    wanted: str
    marks: tuple[int, ...]
    """Updates after which it is measured."""
    settings: Settings


EXPERIMENTS = (
    Experiment(
        "Kuhn poker, NashConv",
        lambda: spiel("kuhn_poker"),
        nash_conv,
        "at most 0.10",
        (10, 20, 30, 40),
        Settings(updates=45, games=1024, alpha=(2.0, 0.1), eta=0.3, renew=5),
    ),
    Experiment(
        "Leduc poker, NashConv",
        lambda: spiel("leduc_poker"),
        nash_conv,
        "at most 1.5",
        (10, 20, 30),
        Settings(updates=30, games=2048, alpha=(0.3, 0.1)),
    ),
    Experiment(
        "rock-paper-scissors with a double stake, total variation to the equilibrium",
        lambda: Matrix(MatrixParams(actions=(tuple(BIASED),) * 2, payoffs=STAKES)),
        variation,
        "at most 0.10",
        (10, 20, 30),
        Settings(updates=50),
    ),
    Experiment(
        "first-price auction of values to 4, NashConv relative to uniform bids",
        lambda: spiel("first_sealed_auction(players=2,max_value=4)"),
        relative_nash_conv,
        "at most 0.10",
        (10, 20, 30),
        Settings(updates=60, alpha=(2.0, 0.1), eta=0.05, c=4.0),
    ),
)


def measured(experiment: Experiment, seeds: int) -> list[str]:
    """A line for each mark: mean and worst over the seeds, of the average and of the last policy."""
    game = tree(experiment.world(), [Seat(agent="ann"), Seat(agent="bob")])
    found: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for seed in range(seeds):
        one = NeuRD(game, experiment.settings, seed)
        for update in range(1, max(experiment.marks) + 1):
            one.update()
            if update in experiment.marks:
                both = (one.average.table(game), one.table)
                average, last = (experiment.measure(game, table) for table in both)
                found[update].append((average, last))
    lines = []
    for update, numbers in found.items():
        said = [f"{fmean(each):.3f} (worst {max(each):.3f})" for each in zip(*numbers, strict=True)]
        lines.append(f"  after {update} updates: average {said[0]}, last {said[1]}")
    return lines


def main(seeds: int = 5, most: int | None = None) -> list[str]:
    """All games, `seeds` of each; `most` bounds games and updates, for a quick look."""
    lines = []
    for experiment in EXPERIMENTS:
        if most is not None:
            settings = replace(experiment.settings, games=min(most, experiment.settings.games))
            experiment = replace(experiment, settings=settings, marks=(min(most, experiment.marks[0]),))
        lines.append(
            f"tabular NeuRD, {experiment.name}, {experiment.settings.games} games an update, {seeds} seeds "
            f"(wanted of the average: {experiment.wanted})"
        )
        lines += measured(experiment, seeds)
    return lines
