"""Nash averaging: ratings by play against the hardest mixture of opponents, which copies of a weak one do not change.

Mean payoffs and Elo depend on whom one meets: many copies of one opponent count as many. Here the weights of opponents
are the equilibrium of a game in which each side picks a player (Balduzzi et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.metrics.statistics.given import alike, numbers


class Averaged(NamedTuple):
    """By player, in the order of the payoffs."""

    shares: list[float]
    """Of the equilibrium with the greatest entropy."""
    skills: list[float]
    """What a player earns against that mixture: 0 for those in it, less for others."""


def nash_average(payoffs: Sequence[Sequence[float]]) -> Averaged:
    """`payoffs[i][j]`: what i earns against j. The game is A = (P − Pᵀ)/2, in which neither side is ahead.

    Of its equilibria the one with the greatest entropy is taken: who can be in one is in it, and no order of players
    matters.
    """
    alike(players=payoffs, **{f"payoffs of {place}": row for place, row in enumerate(payoffs)})
    earned = np.array([numbers("payoffs", row) for row in payoffs]).reshape(len(payoffs), len(payoffs))
    if not len(earned):
        return Averaged([], [])
    game = (earned - earned.T) / 2
    scale = float(np.abs(game).max()) or 1.0
    support = [place for place in range(len(game)) if _most(game / scale, place) > 1e-7]
    shares = np.zeros(len(game))
    shares[support] = _widest(game[support] / scale, support)
    return Averaged(shares.tolist(), (game @ shares).tolist())


def _most(game: NDArray[np.float64], player: int) -> float:
    """The largest share of a player in any equilibrium: p ≥ 0, Σp = 1, pᵀA ≥ 0."""
    from scipy.optimize import linprog

    goal = -(np.arange(len(game)) == player).astype(float)
    ones = np.ones((1, len(game)))
    return float(-linprog(goal, A_ub=-game.T, b_ub=np.zeros(len(game)), A_eq=ones, b_eq=[1.0]).fun)


def _widest(rows: NDArray[np.float64], support: Sequence[int]) -> NDArray[np.float64]:
    """The equilibrium of greatest entropy among those who can be in one: p ∝ exp(Aλ), λ by the dual problem.

    No member earns anything against another of them, so that λ is free there; against others they may be ahead, λ ≥ 0.
    """
    from scipy.optimize import minimize

    def dual(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = rows @ weights
        top = float(logits.max())
        mass = np.exp(logits - top)
        return top + float(np.log(mass.sum())), (mass / mass.sum()) @ rows

    bounds = [(None, None) if place in support else (0, None) for place in range(rows.shape[1])]
    start = np.zeros(rows.shape[1])
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    logits = rows @ minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    mass = np.exp(logits - logits.max())
    shares: NDArray[np.float64] = mass / mass.sum()
    return shares
