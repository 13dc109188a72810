"""From what players earned against each other to whom to meet next: meta-solvers and weights of opponents.

A payoff matrix holds what the row player earns, m rows by n columns; the game is zero-sum. All of it is plain
arithmetic: the same matrix gives the same mixture on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, frexp, lcm, sqrt
from typing import NamedTuple, TypeAlias

Mixture: TypeAlias = tuple[float, ...]
"""Probabilities that add up to 1."""
Payoffs: TypeAlias = Sequence[Sequence[float | Fraction]]

BETA = 25 / 6
"""Spread of one game's performance on the scale of ratings (mu 25, sigma 25/3)."""


class Equilibrium(NamedTuple):
    """A pair of mixtures."""

    rows: Mixture
    columns: Mixture
    value: float
    """What the row player earns when both play them."""


def uniform(count: int) -> Mixture:
    """Equal probabilities."""
    return (1 / count,) * count


def rounded(payoffs: Sequence[Sequence[float]], digits: int = 16) -> list[list[float]]:
    """Payoffs to so many binary digits of the largest: sampled ones are known no better, and `nash` is much quicker."""
    most = max((abs(each) for row in payoffs for each in row), default=0.0)
    unit = 2.0 ** (frexp(most)[1] - digits)
    return [[round(each / unit) * unit for each in row] for row in payoffs]


def nash(payoffs: Payoffs) -> Equilibrium:
    """An equilibrium of a zero-sum matrix game, exact up to the last rounding. Raises ValueError for an empty matrix.

    The column player's linear programme (Dantzig 1951: maximise Σy where By ≤ 1, B the matrix made positive), by the
    simplex method on integers. The largest coefficient enters; where that takes long, Bland's rule, which cannot cycle.
    Of several equilibria it is always the same one.
    """
    m, n = _shape(payoffs)
    exact = [[Fraction(each) for each in row] for row in payoffs]
    unit = lcm(*(each.denominator for row in exact for each in row))
    lift = 1 - min(int(each * unit) for row in exact for each in row)
    # One row a constraint, then the objective; columns: y, slacks, right-hand side. Their denominator is `pivot`.
    table = [
        [*(int(each * unit) + lift for each in row), *(int(i == j) for j in range(m)), 1] for i, row in enumerate(exact)
    ]
    table.append([*[-1] * n, *[0] * m, 0])
    basis, pivot, pivots = list(range(n, n + m)), 1, 0
    while improving := [j for j in range(n + m) if table[m][j] < 0]:
        entering = improving[0] if pivots > 4 * (m + n) else min(improving, key=lambda j: table[m][j])
        candidates = [i for i in range(m) if table[i][entering] > 0]
        leaving = min(candidates, key=lambda i: (Fraction(table[i][-1], table[i][entering]), basis[i]))
        pivot = _pivoted(table, leaving, entering, pivot)
        basis[leaving] = entering
        pivots += 1
    total = table[m][-1]
    played = {index: table[i][-1] for i, index in enumerate(basis)}
    return Equilibrium(
        rows=tuple(table[m][n + i] / total for i in range(m)),
        columns=tuple(played.get(j, 0) / total for j in range(n)),
        value=float((Fraction(pivot, total) - lift) / unit),
    )


def _pivoted(table: list[list[int]], row: int, column: int, before: int) -> int:
    """Make a column basic in a row, in integers (Bareiss 1968: every division is exact); the new denominator."""
    pivot = table[row][column]
    for i, each in enumerate(table):
        if i != row:
            factor = each[column]
            table[i] = [(a * pivot - factor * b) // before for a, b in zip(each, table[row], strict=True)]
    return pivot


def replicator(payoffs: Payoffs, *, steps: int = 1000, step: float = 0.1, gamma: float = 0.01) -> Equilibrium:
    """Projected replicator dynamics from uniform mixtures; the mean over the later half of the way.

    x ← P(x + step·x·(u − ū)), u what each pure strategy earns and ū what the mixture does, in units of the largest
    absolute payoff; P projects on the mixtures that play each of k strategies at least γ/(k+1) of the time (Lanctot et
    al. 2017). Raises ValueError for an empty matrix.
    """
    m, n = _shape(payoffs)
    scale = max(abs(float(each)) for row in payoffs for each in row) or 1.0
    a = [[float(each) / scale for each in row] for row in payoffs]
    transposed = [[-a[i][j] for i in range(m)] for j in range(n)]
    x, y = list(uniform(m)), list(uniform(n))
    sums_x, sums_y = [0.0] * m, [0.0] * n
    for done in range(steps):
        x, y = _replicated(x, _earned(a, y), step, gamma), _replicated(y, _earned(transposed, x), step, gamma)
        if done >= steps // 2:
            sums_x = [total + each for total, each in zip(sums_x, x, strict=True)]
            sums_y = [total + each for total, each in zip(sums_y, y, strict=True)]
    rows, columns = _normalised(sums_x), _normalised(sums_y)
    value = scale * sum(p * each for p, each in zip(rows, _earned(a, columns), strict=True))
    return Equilibrium(rows, columns, value)


def pfsp_hard(win_rates: Sequence[float], power: float = 2.0) -> list[float]:
    """(1 − x)^power: opponents that are hard to beat (AlphaStar)."""
    return [float((1 - x) ** power) for x in win_rates]


def pfsp_var(win_rates: Sequence[float]) -> list[float]:
    """x(1 − x): opponents of one's own strength (AlphaStar)."""
    return [x * (1 - x) for x in win_rates]


def match_quality(mu: float, sigma: float, other_mu: float, other_sigma: float) -> float:
    """How close a game between two ratings is likely to be, 1 at best (TrueSkill's draw probability, relative).

    √(2β²/c²)·exp(−(μ₁ − μ₂)²/2c²), c² = 2β² + σ₁² + σ₂².
    """
    spread = 2 * BETA**2 + sigma**2 + other_sigma**2
    return sqrt(2 * BETA**2 / spread) * exp(-((mu - other_mu) ** 2) / (2 * spread))


def apportion(total: int, weights: Sequence[float], luck: float) -> list[int]:
    """Whole shares of a total by weight, their sum exactly the total; equal weights where all are 0.

    Each is its quota rounded up or down; with `luck` uniform in [0, 1) it is the quota on average (systematic sampling,
    Madow 1949). Raises ValueError for no or negative weights.
    """
    if not weights or min(weights) < 0:
        raise ValueError(f"shares need weights of 0 or more, not {list(weights)}")
    given = list(weights) if sum(weights) > 0 else [1.0] * len(weights)
    scale, passed, found, before = total / sum(given), 0.0, [], 0
    for weight in given[:-1]:
        passed += weight
        reached = min(max(int(passed * scale + luck), before), total)
        found.append(reached - before)
        before = reached
    return [*found, total - before]


def _shape(payoffs: Payoffs) -> tuple[int, int]:
    if not payoffs or not payoffs[0]:
        raise ValueError("a game needs at least one strategy on either side")
    return len(payoffs), len(payoffs[0])


def _earned(payoffs: Sequence[Sequence[float]], against: Sequence[float]) -> list[float]:
    return [sum(each * p for each, p in zip(row, against, strict=True)) for row in payoffs]


def _replicated(x: Sequence[float], earned: Sequence[float], step: float, gamma: float) -> list[float]:
    mean = sum(p * u for p, u in zip(x, earned, strict=True))
    return _projected([p + step * p * (u - mean) for p, u in zip(x, earned, strict=True)], gamma / (len(x) + 1))


def _projected(point: Sequence[float], least: float) -> list[float]:
    """The nearest mixture with all probabilities at least `least` (Held, Wolfe and Crowder 1974)."""
    free = 1 - least * len(point)
    above = [each - least for each in point]
    total, cut = 0.0, 0.0
    for count, each in enumerate(sorted(above, reverse=True), start=1):
        total += each
        if each > (level := (total - free) / count):
            cut = level
    return [max(each - cut, 0.0) + least for each in above]


def _normalised(weights: Sequence[float]) -> Mixture:
    total = sum(weights)
    return tuple(each / total for each in weights)
