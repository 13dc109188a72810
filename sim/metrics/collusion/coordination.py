"""Coordination beyond independent play, and beyond what a public signal allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from scipy.optimize import linprog

from sim.metrics.statistics.distances import entropy
from sim.metrics.statistics.given import alike, law, numbers, share
from sim.metrics.statistics.permutation import DRAWS, Test, stratified

Game: TypeAlias = Mapping[tuple[Hashable, ...], Sequence[float]]
"""Payoffs of all players by joint action; every combination is there."""


def excess_match(rate: float, marginals: Sequence[Mapping[Hashable, float]]) -> float:
    """P(match) − Σ_a Π_i p_i(a): how much more often all do the same than independent players would."""
    rate, laws = share("rate", rate), [law("marginals", own) for own in marginals]
    if len(laws) < 2:
        raise ValueError("marginals: to match takes two players or more")
    return rate - sum(prod(own.get(act, 0.0) for own in laws) for act in laws[0])


def total_correlation(plays: Sequence[Sequence[Hashable]]) -> float | None:
    """Σ H(A_i) − H(A) in bits, from joint actions, one a run; 0 for independent players."""
    if not plays:
        return None
    alike(**{f"acts in play {place}": acts for place, acts in enumerate(plays)})
    alone = sum(entropy(list(Counter(acts).values())) for acts in zip(*plays, strict=True))
    return max(0.0, alone - entropy(list(Counter(map(tuple, plays)).values())))


def coordination_test(plays: Sequence[tuple[Hashable, Hashable]], n_perm: int = DRAWS, seed: int = 0) -> Test:
    """One-sided test of two players' matches: acts are shuffled across runs, which keeps what each does by itself."""
    if not plays:
        raise ValueError("plays: there are none")

    def matches(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
        return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)

    return stratified([a for a, _ in plays], [b for _, b in plays], [0] * len(plays), matches, n_perm, seed)


def best_correlated_welfare(game: Game) -> float:
    """Largest sum of payoffs of a correlated equilibrium (Aumann 1974): a linear programme over joint actions."""
    _complete(game)
    joints = list(game)
    gain = [[-row.get(joint, 0.0) for joint in joints] for row in obedience(game)]
    found = linprog(
        [-sum(game[joint]) for joint in joints],
        A_ub=gain or None,
        b_ub=[0.0] * len(gain) if gain else None,
        A_eq=[[1.0] * len(joints)],
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    return -float(found.fun)


def obedience_violation(game: Game, play: Mapping[tuple[Hashable, ...], float]) -> float:
    """Most that some player would gain by not doing what it does: above 0 no public signal explains the play."""
    _complete(game)
    play = law("play", play)
    return max([0.0, *(-sum(play.get(joint, 0.0) * value for joint, value in row.items()) for row in obedience(game))])


def obedience(game: Game) -> list[dict[tuple[Hashable, ...], float]]:
    """For each player and pair of own actions, what obeying gains over the other, by joint action."""
    rows = []
    actions = [list(dict.fromkeys(acts)) for acts in zip(*game, strict=True)]
    for player, own in enumerate(actions):
        for told, other in product(own, own):
            if told != other:
                rows.append({joint: _gain(game, player, joint, other) for joint in game if joint[player] == told})
    return rows


def _complete(game: Game) -> None:
    """Raises ValueError where a combination of actions has no payoffs, or not one for each player."""
    actions = [list(dict.fromkeys(acts)) for acts in zip(*game, strict=True)]
    if not game or set(product(*actions)) != set(game):
        raise ValueError("game: not every combination of actions has payoffs")
    for joint, payoffs in game.items():
        alike(players=joint, payoffs=numbers("payoffs", payoffs))


def _gain(game: Game, player: int, joint: tuple[Hashable, ...], other: Hashable) -> float:
    deviation = (*joint[:player], other, *joint[player + 1 :])
    return game[joint][player] - game[deviation][player]
