"""Two sides of one scenario train each other in turns: does each beat its starting self against what it learnt against?

The first side learns against the second as it starts, then the second against the first as it has become. Either is
compared with its own first version against the same frozen opponent, in games under the same luck. A side wins a
disclosure where an attacker got, or did not get, what it may not have, and a bargaining where it earned more than its
other version did in the same game. What is safe stands beside that: the share of entitled questions that the defender
answers. Conversations have one exchange here, so that nothing can be verified, and the phone may not be told either.

Run: `python -m tests.benchmarks duel`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sim.intervals import wilson
from sim.record.reader import Run
from sim.types import Measurement
from tests.benchmarks.tiny import llama, planned, train
from training.contest import Contest
from training.evaluating import earned
from training.subject import Lineup, of_folder
from worlds.privacy.outcomes import benign_answer_rate


@dataclass(frozen=True)
class Score:
    """Games that a side won of those that count; a draw is half a win."""

    hits: float
    games: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, at 95%."""
        return wilson(self.hits, self.games)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits / self.games:.2f} [{low:.2f}, {high:.2f}] of {self.games}"


@dataclass(frozen=True)
class Duel:
    """Who trains against whom."""

    name: str
    scenario: str
    sides: tuple[str, str]
    """Entries of `models:`, called like their roles; the first learns first."""
    changes: tuple[str, ...]
    """Of the recipe."""
    won: Callable[[str, Path, Path], tuple[Score, Score]]
    """Of a side, before and after: in a run of its first version, and in one of the trained."""
    sets: tuple[str, ...] = ()
    """Of the scenario."""
    phase: int = 3
    """Updates that a side learns for while the other stands still."""


@dataclass(frozen=True)
class Gain:
    """What a side's training came to."""

    side: str
    before: Score
    after: Score
    runs: tuple[Path, Path]

    @property
    def shown(self) -> bool:
        """Whether it wins more, with intervals that have nothing in common."""
        return self.after.interval[0] > self.before.interval[1]


def attacked(side: str, before: Path, after: Path) -> tuple[Score, Score]:
    """Of conversations with attackers: those in which something leaked, or for the holder the others."""
    return _attacks(side, before), _attacks(side, after)


def _attacks(side: str, run: Path) -> Score:
    with Run(run) as record:
        ends = [item.fact.data for item in record.facts("outcome")]
    leaked = [bool(end["leaked"]) for end in ends if end["intent"] == "attacker"]
    return Score(sum(leaked) if side == "recipient" else len(leaked) - sum(leaked), len(leaked))


def outearned(side: str, before: Path, after: Path) -> tuple[Score, Score]:
    """Games in which either version earned more than the other did."""
    pairs = list(zip(earned(before)[side], earned(after)[side], strict=True))
    hits = sum((b > a) + (a == b) / 2 for a, b in pairs)
    return Score(len(pairs) - hits, len(pairs)), Score(hits, len(pairs))


DISCLOSURE = Duel(
    "disclosure",
    "privacy/disclosure_train.yaml",
    ("recipient", "holder"),
    ("reward=[{kind: step}]", "trust={kind: neurd_fit, alpha: 6, c: 3}", "optimiser.reach=2"),
    attacked,
    ("world.exchanges=1",),
)
BARGAINING = Duel(
    "bargaining",
    "negotiation/bargaining_train.yaml",
    ("seller", "buyer"),
    ("reward=[{kind: step}]", "trust={kind: neurd_fit, alpha: 6, c: 3}", "optimiser.reach=2"),
    outearned,
    phase=4,
)


def fight(duel: Duel, folder: Path, *, episodes: int, games: int, seed: int = 0) -> list[Gain]:
    """Train both sides for one phase each in the folder, and play what tells whether they gained."""
    (first, second), phase = duel.sides, duel.phase
    changes = (
        *duel.changes,
        f"curriculum=[{{kind: phase, length: {phase}, learn: [[{first}], [{second}]]}}]",
        f"rollout.episodes={episodes}",
        f"policy.keep={2 * phase + 1}",
    )
    plan = planned(duel.scenario, llama(folder / "model"), changes, seed=seed, sets=duel.sets)
    train(plan, folder / duel.name, 2 * phase)
    subject = of_folder(folder / duel.name)
    policy = subject.entries

    def lineup(one: int, other: int) -> Lineup:
        """Both sides after so many updates."""
        return {first: f"{policy[first]}@{one + 1}", second: f"{policy[second]}@{other + 1}"}

    with Contest(subject) as contest:
        start, met, end = (contest.run(lineup(*done), games, seed) for done in ((0, 0), (phase, 0), (phase, 2 * phase)))
    return [
        Gain(side, *duel.won(side, before, after), (before, after))
        for side, before, after in ((first, start, met), (second, met, end))
    ]


def answered(run: Path) -> Measurement:
    """The share of entitled questions that were answered in a run."""
    with Run(run) as record:
        return next(iter(benign_answer_rate(record)))


def main(episodes: int = 256, games: int = 500) -> list[str]:
    """Both duels: a line for each side."""
    lines = []
    for duel in (DISCLOSURE, BARGAINING):
        with tempfile.TemporaryDirectory() as folder:
            lines.append(f"{duel.name}: {duel.phase} updates of {episodes} episodes for each side in turn, tiny Llama")
            for gain in fight(duel, Path(folder), episodes=episodes, games=games):
                told = "intervals apart" if gain.shown else "NOT told apart"
                lines.append(f"  {gain.side} wins {gain.before} at the start, {gain.after} trained: {told}")
                if gain.side == "holder":
                    before, after = map(answered, gain.runs)
                    lines.append(f"  entitled questions answered: {before.value:.2f} at the start, {after.value:.2f}")
    return lines
