"""Ratings from games: Elo, Glicko-2, Plackett–Luce, Bradley–Terry and α-rank.

Elo depends on the order of games; for a pool that does not change Bradley–Terry is to be preferred. Players of whom no
chain of games connects two have no common scale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from math import exp, log, pi, sqrt
from random import Random
from statistics import NormalDist, fmean, pstdev
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from sim.metrics.statistics.given import alike, number, numbers, share, whole

GLICKO = 173.7178
"""Points of Glicko's scale to one of Glicko-2's."""


def elo_expected(own: float, other: float) -> float:
    """1/(1 + 10^((other − own)/400)) (Elo 1978)."""
    own, other = numbers("ratings", (own, other))
    return 1 / (1 + float(10 ** min((other - own) / 400, 300.0)))


def elo_update(own: float, other: float, score: float, k: float = 32) -> float:
    """The rating after a game with score 1, ½ or 0."""
    return own + number("k", k, 0) * (share("score", score) - elo_expected(own, other))


class Level(NamedTuple):
    """A rating over orders of games."""

    mean: float
    sd: float
    """How much of it is the order."""


def elo_orders(
    games: Sequence[tuple[Hashable, Hashable, float]], start: float = 1500, k: float = 32, orders: int = 200
) -> dict[Hashable, Level]:
    """Elo ratings over random orders of games (a, b, score of a), which a single order leaves to chance."""
    luck, players = Random(0), list(dict.fromkeys(player for a, b, _ in games for player in (a, b)))
    drawn: dict[Hashable, list[float]] = {player: [] for player in players}
    for _ in range(whole("orders", orders, 1)):
        level = dict.fromkeys(players, number("start", start))
        for a, b, score in luck.sample(list(games), len(games)):
            level[a], level[b] = elo_update(level[a], level[b], score, k), elo_update(level[b], level[a], 1 - score, k)
        for player in players:
            drawn[player].append(level[player])
    return {player: Level(fmean(levels), pstdev(levels)) for player, levels in drawn.items()}


class Skill(NamedTuple):
    """A belief about a player's skill."""

    mu: float = 25.0
    sigma: float = 25 / 3

    @property
    def ordinal(self) -> float:
        """What the player can be relied on for: μ − 3σ."""
        return self.mu - 3 * self.sigma


def win_probability(one: Skill, other: Skill, beta: float = 25 / 6) -> float:
    """Φ((μ₁ − μ₂)/√(2β² + σ₁² + σ₂²)): that one beats the other, the performance of each with a spread of β."""
    spread = sqrt(2 * number("beta", beta, 0) ** 2 + sum(number("sigma", each.sigma, 0) ** 2 for each in (one, other)))
    gap = number("mu", one.mu) - number("mu", other.mu)
    return NormalDist().cdf(gap / spread) if spread else 0.5 + 0.5 * ((gap > 0) - (gap < 0))


def plackett_luce(
    players: Sequence[Skill], ranks: Sequence[int], beta: float = 25 / 6, tau: float = 0.0
) -> list[Skill]:
    """Skills after one game among players, the lowest rank the winner (Weng and Lin 2011, algorithm 4; γ = σ/c).

    `tau` is added to every variance before the game, so that skill can drift.
    """
    alike(players=players, ranks=ranks)
    places = numbers("ranks", ranks)
    skills = [(number("mu", mu), number("sigma", sigma, 0)) for mu, sigma in players]
    before = [Skill(mu, sqrt(sigma**2 + tau**2)) for mu, sigma in skills]
    c = sqrt(sum(one.sigma**2 + beta**2 for one in before))
    strength = [exp(one.mu / c) for one in before]
    after = []
    for i, one in enumerate(before):
        omega = delta = 0.0
        for q, rank in enumerate(places):
            if rank > places[i]:
                continue
            field = sum(strength[s] for s, other in enumerate(places) if other >= rank)
            tied = places.count(rank)
            share = strength[i] / field
            omega += ((q == i) - share) / tied
            delta += share * (1 - share) / tied
        gamma = one.sigma / c
        mu = one.mu + one.sigma**2 / c * omega
        after.append(Skill(mu, one.sigma * sqrt(max(1 - (one.sigma / c) ** 2 * gamma * delta, 1e-4))))
    return after


class Glicko(NamedTuple):
    """A rating with its deviation and volatility."""

    rating: float = 1500.0
    deviation: float = 350.0
    volatility: float = 0.06


def glicko2(player: Glicko, games: Sequence[tuple[Glicko, float]], tau: float = 0.5) -> Glicko:
    """The rating after a period's games with their scores (Glickman 2013, "Example of the Glicko-2 system")."""
    for one in (player, *(other for other, _ in games)):
        number("rating", one.rating)
        numbers("deviation and volatility", one[1:], 0)
    mu, phi = (player.rating - 1500) / GLICKO, player.deviation / GLICKO
    if not games:
        return player._replace(deviation=GLICKO * sqrt(phi**2 + player.volatility**2))
    information = gain = 0.0
    for other, score in games:
        g = 1 / sqrt(1 + 3 * (other.deviation / GLICKO) ** 2 / pi**2)
        expected = 1 / (1 + exp(-g * (mu - (other.rating - 1500) / GLICKO)))
        information += g**2 * expected * (1 - expected)
        gain += g * (share("score", score) - expected)
    sigma = _volatility(phi, 1 / information, gain / information, player.volatility, tau)
    deviation = 1 / sqrt(1 / (phi**2 + sigma**2) + information)
    return Glicko(1500 + GLICKO * (mu + deviation**2 * gain), GLICKO * deviation, sigma)


def _volatility(phi: float, v: float, delta: float, sigma: float, tau: float) -> float:
    """Step 5 of the paper: the root of f by the Illinois algorithm."""
    a = log(sigma**2)

    def f(x: float) -> float:
        e = exp(x)
        return e * (delta**2 - phi**2 - v - e) / (2 * (phi**2 + v + e) ** 2) - (x - a) / tau**2

    low, step = a, 1
    if delta**2 > phi**2 + v:
        high = log(delta**2 - phi**2 - v)
    else:
        while f(a - step * tau) < 0:
            step += 1
        high = a - step * tau
    f_low, f_high = f(low), f(high)
    while abs(high - low) > 1e-9:
        middle = low + (low - high) * f_low / (f_high - f_low)
        f_middle = f(middle)
        if f_middle * f_high <= 0:
            low, f_low = high, f_high
        else:
            f_low /= 2
        high, f_high = middle, f_middle
    return exp(low / 2)


def bradley_terry(
    games: Sequence[tuple[Hashable, Hashable, float]], prior: float = 0.5, steps: int = 10_000
) -> dict[Hashable, float] | None:
    """Log strengths that sum to 0, by maximum likelihood (Hunter 2004's MM algorithm), from (a, b, score of a).

    Each pair that met is given `prior` wins on either side, without which an undefeated player has none. None where
    not all players are connected by games, or, without a `prior`, some have never been beaten by one of the others
    (Ford 1957).
    """
    wins: defaultdict[Hashable, float] = defaultdict(float)
    met: defaultdict[tuple[Hashable, Hashable], float] = defaultdict(float)
    beaten = nx.DiGraph()
    for a, b, score in games:
        if a == b:
            raise ValueError(f"{a!r} cannot play against itself")
        wins[a] += share("score", score)
        wins[b] += 1 - score
        met[a, b] += 1
        met[b, a] += 1
        beaten.add_edges_from([(a, b)] * (score > 0 or prior > 0) + [(b, a)] * (score < 1 or prior > 0))
    for a, b in list(met):
        met[a, b] += 2 * prior
        wins[a] += prior
    if not len(beaten) or not nx.is_strongly_connected(beaten):
        return None
    strength = dict.fromkeys(wins, 1.0)
    for _ in range(steps):
        new = {
            i: wins[i] / sum(n / (strength[i] + strength[b]) for (a, b), n in met.items() if a == i) for i in strength
        }
        scale = exp(sum(map(log, new.values())) / len(new))
        new = {i: each / scale for i, each in new.items()}
        if max(abs(log(new[i] / strength[i])) for i in new) < 1e-10:
            break
        strength = new
    return {i: log(each) for i, each in new.items()}


def alpha_rank(payoffs: Sequence[Sequence[float]], population: int = 50, alpha: float = 100.0) -> list[float]:
    """Shares of time that a population, which imitates what does better, spends with each strategy (α-rank).

    `payoffs[i][j]`: what i earns against j. A mutant takes over with probability (1 − e^−u)/(1 − e^−mu), u = α(what it
    earns against the others − what they earn against it), m the population (Omidshafiei et al. 2019, one population,
    local selection). In a cycle, where ratings have no order, its members share.
    """
    alike(strategies=payoffs, **{f"payoffs of {place}": row for place, row in enumerate(payoffs)})
    earned = np.array([numbers("payoffs", row) for row in payoffs])
    size = len(earned)
    if size < 2:
        return [1.0] * size
    takes_over = _fixation(alpha * (earned.T - earned), population) / (size - 1)
    np.fill_diagonal(takes_over, 0.0)
    moves = takes_over + np.diag(1 - takes_over.sum(1))
    system = np.vstack([moves.T - np.eye(size), np.ones(size)])
    shares = np.linalg.lstsq(system, np.array([0.0] * size + [1.0]), rcond=None)[0]
    return [max(0.0, float(share)) for share in shares]


def _fixation(gains: NDArray[np.float64], population: int) -> NDArray[np.float64]:
    """Chance that one mutant takes over, by its gain over a resident; 1/m where there is none."""
    safe = np.where(gains == 0, 1.0, gains)
    ahead = np.expm1(-np.abs(safe)) / np.expm1(-population * np.abs(safe))
    behind = ahead * np.exp((population - 1) * np.minimum(safe, 0.0))
    found: NDArray[np.float64] = np.where(gains == 0, 1 / population, behind)
    return found
