"""What a best response would gain, and what was lost by not having played one.

Opponents are held as they were: against some that would have reacted this is not the regret of a policy. Extensive
games are for the worlds and the trainer that know their trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product
from math import log, prod
from typing import TypeAlias

from sim.metrics.statistics.given import alike, law, numbers

Acts: TypeAlias = Sequence[Hashable]
Mixture: TypeAlias = Mapping[Hashable, float]
"""Probabilities of actions."""
Payoff: TypeAlias = Callable[..., float]
"""What a player earns: of its own action and the other's."""
Payoffs: TypeAlias = Mapping[tuple[Hashable, ...], float]
"""What a player earns by joint action."""


def nash_conv(payoffs: Sequence[Payoffs], mixtures: Sequence[Mixture]) -> float:
    """Σ over players of (best response − own payoff) at given mixtures; 0 at an equilibrium, only there.

    `payoffs[i]` maps a joint action to what player i earns; best responses are among all of these actions, those that
    a mixture leaves out too.
    """
    alike(payoffs=payoffs, mixtures=mixtures)
    return sum(
        max(expected(own, [*mixtures[:i], {action: 1.0}, *mixtures[i + 1 :]]) for action in {joint[i] for joint in own})
        - expected(own, mixtures)
        for i, own in enumerate(payoffs)
    )


def expected(payoff: Payoffs, mixtures: Sequence[Mixture]) -> float:
    """Mean payoff of independent mixtures. Raises ValueError for a joint action without a payoff."""
    laws = [law("mixtures", mixture) for mixture in mixtures]
    if missing := [joint for joint in product(*laws) if joint not in payoff]:
        raise ValueError(f"payoffs: {missing[0]} has none")
    return sum(
        payoff[joint] * prod(mixture[action] for mixture, action in zip(laws, joint, strict=True))
        for joint in product(*laws)
    )


def external_regret(own: Acts, others: Acts, payoff: Payoff, actions: Acts) -> float:
    """What the best single action would have earned more, over all rounds. Raises ValueError without actions."""
    _played(own, others, actions)
    earned = sum(payoff(a, o) for a, o in zip(own, others, strict=True))
    return max(sum(payoff(action, o) for o in others) for action in actions) - earned


def swap_regret(own: Acts, others: Acts, payoff: Payoff, actions: Acts) -> float:
    """Σ over own actions of what the best replacement of it would have earned more (Blum and Mansour 2007)."""
    _played(own, others, actions)
    total = 0.0
    for played in dict.fromkeys(own):
        against = [o for a, o in zip(own, others, strict=True) if a == played]
        total += max(sum(payoff(b, o) - payoff(played, o) for o in against) for b in actions)
    return total


def regret_growth(regrets: Sequence[float]) -> float | None:
    """Slope of log R_T on log T over rounds with positive regret: below 1 it vanishes per round. None below two."""
    points = [(log(t), log(regret)) for t, regret in enumerate(numbers("regrets", regrets), 1) if regret > 0]
    if len(points) < 2:
        return None
    x, y = (sum(point[side] for point in points) / len(points) for side in (0, 1))
    spread = sum((a - x) ** 2 for a, _ in points)
    return sum((a - x) * (b - y) for a, b in points) / spread


def _played(own: Acts, others: Acts, actions: Acts) -> None:
    alike(own=own, others=others)
    if not len(actions):
        raise ValueError("actions: there are none")
