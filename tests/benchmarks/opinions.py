"""Opinion dynamics and cascades at full length against theory: the worlds' own rules, with many agents.

Run: `python -m tests.benchmarks opinions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, sqrt
from random import Random
from statistics import fmean, stdev
from typing import NamedTuple

from worlds.opinions.herding_strategies import best, observed, posterior
from worlds.opinions.outcomes import large
from worlds.opinions.strategies import deffuant, hegselmann_krause

APART = 0.05
"""How far neighbouring opinions of two clusters are apart."""
STILL = 1e-4
"""Opinions that move less have settled."""


def clusters_of(opinions: Sequence[float]) -> int:
    """Clusters with more than 5% of all."""
    return large(opinions, APART)


def together(n: int, epsilon: float, luck: Random) -> int:
    """Clusters that Hegselmann and Krause's rule leaves of n opinions in [−1, 1]."""
    x = [luck.uniform(-1, 1) for _ in range(n)]
    while True:
        after = [hegselmann_krause(own, [*x[:place], *x[place + 1 :]], epsilon) for place, own in enumerate(x)]
        moved = max(abs(a - b) for a, b in zip(after, x, strict=True))
        x = after
        if moved < STILL:
            return clusters_of(x)


def meeting(n: int, epsilon: float, luck: Random, mu: float = 0.5) -> int:
    """Clusters that Deffuant's rule leaves of them when nothing has moved in two sweeps of meetings."""
    x = [luck.uniform(-1, 1) for _ in range(n)]
    quiet = 0
    while quiet < 2:
        moved = 0.0
        for _ in range(n // 2):
            i, j = luck.sample(range(n), 2)
            one, other = deffuant(x[i], x[j], epsilon, mu), deffuant(x[j], x[i], epsilon, mu)
            moved = max(moved, abs(one - x[i]))
            x[i], x[j] = one, other
        quiet = quiet + 1 if moved < STILL else 0
    return clusters_of(x)


class Fixed(NamedTuple):
    """How voters came to agree."""

    won: bool
    """On what `up` of them thought."""
    sweeps: float


def fixed(n: int, up: int, luck: Random) -> Fixed:
    """Voters who all hear each other, one at a time taking over what another thinks."""
    x, count, steps = [1] * up + [0] * (n - up), up, 0
    while 0 < count < n:
        me = int(luck.random() * n)
        other = (me + 1 + int(luck.random() * (n - 1))) % n
        count += x[other] - x[me]
        x[me] = x[other]
        steps += 1
    return Fixed(count == n, steps / n)


def until_fixed(n: int, up: int) -> float:
    """Sweeps until they agree, as of Moran's birth and death: (n − 1)/n·[Σ_{j≤i} (n − i)/(n − j) + Σ_{i<j<n} i/j].

    For many voters it is n·[−p·ln p − (1 − p)·ln(1 − p)], p the share of a side.
    """
    early = sum((n - up) / (n - j) for j in range(1, up + 1))
    return (n - 1) / n * (early + sum(up / j for j in range(up + 1, n)))


def rightly(accuracy: float, luck: Random) -> bool:
    """Whether a cascade of Bayesians, which comes at once or later, is a right one."""
    belief = [0.5, 0.5]
    while True:
        choices = [best(posterior(belief, signal, accuracy)) for signal in (0, 1)]
        if choices[0] == choices[1] and len(choices[0]) == 1:
            return choices[0] == [0]
        choice = luck.choice(choices[int(luck.random() >= accuracy)])
        belief = observed(belief, choice, accuracy)


def correct(accuracy: float) -> float:
    """q·(1 + q)/(2·(1 − q + q²)) (Bikhchandani, Hirshleifer and Welch 1992)."""
    return accuracy * (1 + accuracy) / (2 * (1 - accuracy + accuracy**2))


def main(seeds: int = 10, voters: int = 4_000, cascades: int = 40_000) -> Iterator[str]:
    """Lines of clusters, fixation and cascades, each beside what theory says."""
    for name, rule, wanted in (
        ("Hegselmann and Krause", together, {0.6: "1", 0.4: "1 or 2 (the brink of one)", 0.3: "2 or 3", 0.2: "3 to 5"}),
        ("Deffuant", meeting, {1.0: "1", 0.6: "1", 0.4: "2", 0.3: "3", 0.2: "4 or 5"}),
    ):
        for epsilon, theory in wanted.items():
            found = sorted(rule(1_000, epsilon, Random(seed)) for seed in range(seeds))
            yield f"{name}, 1,000 agents, epsilon {epsilon / 2:g} of [0, 1]: {theory} clusters; found {found}"
    runs = [fixed(50, 15, Random(seed)) for seed in range(voters)]
    won, sweeps = fmean(one.won for one in runs), [one.sweeps for one in runs]
    many = -50 * (0.7 * log(0.7) + 0.3 * log(0.3))
    yield (
        f"voters, 50, of these 15 of one side: it wins .3; {won:.4f} ± {sqrt(won * (1 - won) / voters):.4f}; "
        f"{until_fixed(50, 15):.1f} sweeps (of many voters {many:.1f}); "
        f"{fmean(sweeps):.1f} ± {stdev(sweeps) / sqrt(voters):.1f}"
    )
    for accuracy in (0.6, 2 / 3, 0.8):
        luck = Random(1)
        share = fmean(rightly(accuracy, luck) for _ in range(cascades))
        yield f"cascades of Bayesians, accuracy {accuracy:.3f}: right {correct(accuracy):.4f}; {share:.4f}"
