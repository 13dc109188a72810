"""What a best response would gain, and what was lost by not having played one.

Opponents are held as they were: against some that would have reacted this is not the regret of a policy. Extensive
games are for the worlds and the trainer that know their trees.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product
from math import log, prod, sqrt
from random import Random
from statistics import fmean, variance
from typing import TypeAlias

from sim.intervals import t_quantile
from sim.metrics.statistics.bootstrap import DRAWS, middle
from sim.metrics.statistics.clusters import Estimate
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


def exploitability(payoffs: Sequence[Payoffs], mixtures: Sequence[Mixture]) -> float | None:
    """NashConv over the number of players (Lanctot et al. 2019); None for nobody."""
    alike(payoffs=payoffs, mixtures=mixtures)
    return nash_conv(payoffs, mixtures) / len(payoffs) if len(payoffs) else None


def sampled_exploitability(
    payoffs: Sequence[Payoffs], counts: Sequence[Mapping[Hashable, int]], draws: int = DRAWS, seed: int = 0
) -> Estimate:
    """Exploitability of policies that are known by counts of their actions: at the shares, with a credible interval.

    Policies are drawn from Dirichlet(count + ½), each action of the game among them (Jeffreys' prior). The shares of
    few samples lie off an equilibrium by chance, so value and interval are too large rather than too small. None where
    somebody never acted.
    """
    alike(payoffs=payoffs, counts=counts)
    for mine, own in zip(counts, payoffs, strict=True):
        numbers("counts", mine.values(), 0)
        expected(own, [dict.fromkeys(every, 1 / len(every)) for every in _actions(own)])
    if not counts or not all(sum(own.values()) for own in counts):
        return Estimate(None)
    luck, known = Random(seed), [_actions(own)[place] for place, own in enumerate(payoffs)]

    def policy(own: Mapping[Hashable, int], every: Sequence[Hashable]) -> Mixture:
        parts = {act: luck.gammavariate(own.get(act, 0) + 0.5, 1) for act in every}
        return {act: part / sum(parts.values()) for act, part in parts.items()}

    shares = [{act: count / sum(own.values()) for act, count in own.items()} for own in counts]
    drawn = (exploitability(payoffs, list(map(policy, counts, known))) for _ in range(draws))
    n = sum(sum(own.values()) for own in counts)
    ci = middle(each for each in drawn if each is not None)
    return Estimate(exploitability(payoffs, shares), n, len(counts), ci=ci, method="credible, Dirichlet")


def response_bound(own: Sequence[float], tried: Mapping[Hashable, Sequence[float]]) -> Estimate:
    """What the best of some tried responses earns more an episode: no more than a best response, so a lower bound.

    The best is chosen by every other episode of each and valued by the rest, so that luck does not make a gain; its
    interval is Welch's with the fewer degrees of freedom. None without two episodes of a response and one's own.
    """
    own = numbers("own", own)
    kept = {name: each for name, got in tried.items() if len(each := numbers("tried", got)) > 1}
    if not own or not kept:
        return Estimate(None)
    best = max(kept.values(), key=lambda got: fmean(got[::2]))[1::2]
    gain, n = fmean(best) - fmean(own), min(len(best), len(own))
    if n < 2:
        return Estimate(gain, len(best), 1)
    se = sqrt(variance(best) / len(best) + variance(own) / len(own))
    half = t_quantile(0.95, n - 1) * se
    return Estimate(gain, len(best), len(best), se, (gain - half, gain + half), "Welch")


def _actions(payoff: Payoffs) -> list[list[Hashable]]:
    """Of each player, in the order in which the joint actions name them."""
    return [list(dict.fromkeys(own)) for own in zip(*payoff, strict=True)]


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


def cumulative_regret(own: Acts, others: Acts, payoff: Payoff, actions: Acts) -> list[float]:
    """External regret up to each round, whose growth says whether it vanishes (`regret_growth`)."""
    _played(own, others, actions)
    fixed, earned, found = dict.fromkeys(actions, 0.0), 0.0, []
    for act, other in zip(own, others, strict=True):
        for action in fixed:
            fixed[action] += payoff(action, other)
        earned += payoff(act, other)
        found.append(max(fixed.values()) - earned)
    return found


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
