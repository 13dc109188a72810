"""How near the tiny Llama comes to the equilibria of small games, trained from scratch in shipped scenarios.

Fitted NeuRD moves the logits of every information state as a table would (`python -m tests.benchmarks tabular` says how
far a table comes), and Gauss-Newton fits the step. Numbers are exact, exploration off, of the average policy and of the
last one; what is wanted is of the average in the zero-sum games and the auction, of the last elsewhere.

Run: `python -m tests.benchmarks equilibria`, or one game of it: `python -m tests.benchmarks.equilibria kuhn`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from tests.benchmarks.tiny import llama, planned, train
from training.contest import Contest
from training.evaluate import nash_conv, option_rate, relative_nash_conv, total_variation
from training.evaluation import Evaluator
from training.extensive import Tree
from training.subject import of_folder
from training.tabulate import Tabular
from worlds.negotiation.strategies import proposer_share

BIASED = {"rock": 0.25, "paper": 0.5, "scissors": 0.25}
"""The equilibrium where rock against scissors counts twice."""


@dataclass(frozen=True)
class Game:
    """One training and what it is measured by."""

    scenario: str
    measure: Callable[[Tree, Tabular], float]
    wanted: str
    good: Callable[[float], bool]
    updates: int
    changes: tuple[str, ...]
    """Of the recipe."""
    sets: tuple[str, ...] = ()
    """Of the scenario."""
    last: bool = False
    """Whether what is wanted is of the last policy, not of the average."""


def variation(_tree: Tree, table: Tabular) -> float:
    """Of the seat that is further from the equilibrium of the biased game."""
    return max(total_variation(row, BIASED) for row in table.values())


def last_defection(tree: Tree, table: Tabular) -> float:
    """How often the last round is defected in."""
    return option_rate(tree, table, "defect")[-1]


def kept(tree: Tree, table: Tabular) -> float:
    """What the first offer keeps on average, less the equilibrium's, as a share of the pie; without a sign."""
    (first,) = (key for key, before in tree.before.items() if before is None and len(table[key]) > 2)
    mean = sum(int(option) * share for option, share in table[first].items()) / 100
    return abs(mean - proposer_share(0.35, 0.35, 2))


GAMES = {
    "kuhn": Game(
        "games/kuhn_train.yaml",
        nash_conv,
        "average NashConv at most 0.10",
        lambda found: found <= 0.10,
        24,
        (
            "rollout.episodes=1024",
            "optimiser.epochs=8",
            "reward=[{kind: anchored, eta: 0.3, renew: 5}]",
            "trust={kind: neurd_fit, alpha: {points: [[0, 2], [45, 0.1]]}, c: 3}",
        ),
        ("world.rules=false",),
    ),
    "rps": Game(
        "games/rps_train.yaml",
        variation,
        "total variation at most 0.1",
        lambda found: found <= 0.1,
        30,
        (
            "rollout.episodes=512",
            "optimiser.epochs=6",
            "reward=[{kind: anchored, eta: 0.2, renew: 10}]",
            "trust={kind: neurd_fit, alpha: {points: [[0, 1], [50, 0.1]]}, c: 3}",
        ),
    ),
    "auction": Game(
        "games/auction_train.yaml",
        relative_nash_conv,
        "NashConv at most 0.1 of uniform bids'",
        lambda found: found <= 0.1,
        30,
        (
            "rollout.episodes=512",
            "optimiser.epochs=6",
            "reward=[{kind: anchored, eta: 0.05, renew: 10}]",
            "trust={kind: neurd_fit, alpha: {points: [[0, 2], [60, 0.1]]}, c: 4}",
        ),
    ),
    "dilemma": Game(
        "games/pd_train.yaml",
        last_defection,
        "defection in the last round at least 0.9",
        lambda found: found >= 0.9,
        8,
        (
            "rollout.episodes=256",
            "optimiser.epochs=9",
            "reward=[{kind: step}]",
            "actors.explore=0.2",
            "credit.0.baseline.keep=0.5",
            "trust={kind: neurd_fit, alpha: 4, c: 3}",
        ),
        last=True,
    ),
    "bargaining": Game(
        "negotiation/bargaining_train.yaml",
        kept,
        "first offer within 0.1 of equilibrium",
        lambda found: found <= 0.1,
        25,
        (
            "rollout.episodes=512",
            "optimiser.epochs=6",
            "reward=[{kind: step}]",
            "trust={kind: neurd_fit, alpha: {points: [[0, 4], [25, 1]]}, c: 3}",
        ),
        last=True,
    ),
    "leduc": Game(
        "games/leduc_train.yaml",
        nash_conv,
        "average NashConv at most 1.5",
        lambda found: found <= 1.5,
        30,
        (
            "rollout.episodes=2048",
            "optimiser={kind: adamw, lr: 3e-3, epochs: 20}",
            "trust={kind: neurd_fit, alpha: {points: [[0, 0.3], [30, 0.1]]}, c: 3}",
        ),
    ),
}
"""By name on the command line."""


@dataclass(frozen=True)
class Found:
    """What a training came to."""

    average: float
    last: float
    seconds: float
    """Of CPU time, on one thread."""


def trained(name: str, folder: Path, seed: int = 0) -> Found:
    """Train for one game in a folder and measure it."""
    game = GAMES[name]
    began = process_time()
    plan = planned(game.scenario, llama(folder / "model"), game.changes, seed=seed, sets=game.sets)
    train(plan, folder / name, game.updates)
    seconds = process_time() - began
    subject = of_folder(folder / name)
    average = subject.average()
    assert average is not None
    evaluator = Evaluator(subject.load(), temperature=1.0)
    tree, (newest,) = evaluator.tree, subject.lineups(1)
    assert tree is not None
    with Contest(subject) as contest:
        reader = contest.reader()
        assert reader is not None
        contest.serve(newest)
        last = evaluator.table(*reader, newest)
    return Found(game.measure(tree, average.table(tree)), game.measure(tree, last), seconds)


def told(name: str, found: Found) -> str:
    """One game's line."""
    game = GAMES[name]
    reached = game.good(found.last if game.last else found.average)
    return (
        f"{name}: wanted {game.wanted}{'' if reached else ', NOT reached'}: average {found.average:.3f}, last "
        f"{found.last:.3f} after {game.updates} updates of the tiny Llama, {found.seconds:.0f} s of CPU time"
    )


def main(*names: str) -> list[str]:
    """A line for each game, all of them where none is named."""
    lines = []
    for name in names or GAMES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(told(name, trained(name, Path(folder))))
    return lines


if __name__ == "__main__":
    for name in sys.argv[1:] or GAMES:
        print(*main(name), flush=True)
