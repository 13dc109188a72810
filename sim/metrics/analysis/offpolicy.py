"""What another policy would have earned, from what a recorded one did: only the agents that change are weighed.

A weight is the ratio of both policies' probabilities of what was done, temperature and mask included. Others would have
reacted to another policy: where that matters, fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum
from random import Random
from typing import NamedTuple

LEAST_SIZE = 30.0
"""Effective sample size below which there is no value."""
LARGEST_SHARE = 0.2
"""Of all weight, that one trajectory may have."""


class Value(NamedTuple):
    """An estimate; None where weights say too little."""

    value: float | None
    ci: tuple[float, float] | None
    size: float
    """Effective sample size."""
    flags: tuple[str, ...] = ()


def weight(target: Sequence[float], behaviour: Sequence[float]) -> float:
    """Of one trajectory, from log-probabilities of its decisions."""
    return exp(fsum(target) - fsum(behaviour))


def ips(weights: Sequence[float], rewards: Sequence[float]) -> float | None:
    """Mean of weight × reward: unbiased, and wild (Horvitz and Thompson 1952)."""
    return fsum(w * r for w, r in zip(weights, rewards, strict=True)) / len(weights) if weights else None


def snips(weights: Sequence[float], rewards: Sequence[float]) -> float | None:
    """Σ weight × reward over Σ weight (Swaminathan and Joachims 2015)."""
    total = fsum(weights)
    return fsum(w * r for w, r in zip(weights, rewards, strict=True)) / total if total else None


def per_decision(trajectories: Sequence[Sequence[tuple[float, float]]], discount: float = 1.0) -> float | None:
    """Mean of Σ γ^t·ρ_{1:t}·r_t from each decision's ratio and reward (Precup et al. 2000)."""
    if not trajectories:
        return None
    total = 0.0
    for steps in trajectories:
        product = 1.0
        for time, (ratio, reward) in enumerate(steps):
            product *= ratio
            total += discount**time * product * reward
    return total / len(trajectories)


def doubly_robust(
    weights: Sequence[float], rewards: Sequence[float], predicted: Sequence[float], baseline: Sequence[float]
) -> float | None:
    """Mean of V̂ + w(r − q̂): right if either weights or predictions are (Dudík et al. 2011)."""
    parts = zip(weights, rewards, predicted, baseline, strict=True)
    return fsum(v + w * (r - q) for w, r, q, v in parts) / len(weights) if weights else None


def effective_size(weights: Sequence[float]) -> float:
    """(Σ w)²/Σ w² (Kish 1965)."""
    squares = fsum(w * w for w in weights)
    return fsum(weights) ** 2 / squares if squares else 0.0


def evaluate(weights: Sequence[float], rewards: Sequence[float], draws: int = 999, seed: int = 0) -> Value:
    """SNIPS with a percentile bootstrap over trajectories; refused where few of them have all the weight."""
    size, total = effective_size(weights), fsum(weights)
    flags = []
    if size < LEAST_SIZE:
        flags.append(f"effective sample size below {LEAST_SIZE:.0f}")
    if total and max(weights) / total > LARGEST_SHARE:
        flags.append(f"one weight above {LARGEST_SHARE:.0%}")
    if flags or not total:
        return Value(None, None, size, tuple(flags))
    luck, pairs = Random(seed), list(zip(weights, rewards, strict=True))
    drawn = []
    for _ in range(draws):
        sample = luck.choices(pairs, k=len(pairs))
        found = snips([w for w, _ in sample], [r for _, r in sample])
        drawn += [] if found is None else [found]
    drawn.sort()
    ci = (drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))])
    return Value(snips(weights, rewards), ci, size)
