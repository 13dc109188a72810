"""What another policy would have earned, from what a recorded one did: only the agents that change are weighed.

A weight is the ratio of both policies' probabilities of what was done, temperature and mask included. Others would have
reacted to another policy: where that matters, fork.

On records a trajectory is a table, with what those earned who asked a model. What another policy would have done is
known from a run of the same luck whose calls have the same prompts, the same sampled tokens, and their
log-probabilities under it, as a run has that only scored them. Where it answered anything else, its log-probability of
what was done is not recorded, and the tables that are left would be chosen by what was done: there is no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum
from random import Random
from typing import NamedTuple

from sim.metrics.analysis.sampled import Sampled, sampled
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.shares import estimated
from sim.metrics.twins import Relative, twins
from sim.types import JSON, Measurement, Record

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


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """Of any two runs of the same luck what the policies of the second would have earned in the first."""
    pairs = twins(runs)
    for one, other in pairs:
        yield from valued(one.record, other.record, {"behaviour": one.id, "target": other.id})
    if not pairs:
        yield from _measured([], [], {}, ("only the behaviour's log-probabilities are recorded",), {})


def valued(behaviour: Record, target: Record, of: Mapping[str, JSON]) -> Iterator[Measurement]:
    """The value by SNIPS, the effective sample size, and what the behaviour earned."""
    theirs = {one.key: one for one in sampled(target)}
    tables: dict[int, list[Sampled]] = {table: [] for table in range(behaviour.tables)}
    for one in sampled(behaviour):
        tables[one.key.table].append(one)
    weights, rewards = [], []
    left: Counter[str] = Counter()
    for table, calls in tables.items():
        reasons = [why for one in calls if (why := _unknown(one, theirs.get(one.key)))]
        if reasons or not calls:
            left[reasons[0] if reasons else "no model was asked"] += 1
            continue
        then = [theirs[one.key].logprob or 0.0 for one in calls]
        weights.append(weight(then, [one.logprob or 0.0 for one in calls]))
        earned, asked = behaviour.rewards(table), {one.key.agent for one in calls}
        rewards.append(fsum(earned.get(agent, 0.0) for agent in asked))
    flags = ("the target's log-probabilities of what was done are not all recorded",) if left else ()
    yield from _measured(weights, rewards, dict(left), flags, of)


def _unknown(own: Sampled, other: Sampled | None) -> str:
    """Why the weight of a call is not known; empty: it is."""
    if other is None:
        return "the target was not asked"
    if own.messages != other.messages:
        return "the target was asked something else"
    if own.ids != other.ids:
        return "the target answered something else"
    if own.logprob is None or other.logprob is None:
        return "no log-probabilities"
    return "" if own.processed and other.processed else "log-probabilities of another distribution than was sampled"


def _measured(
    weights: Sequence[float],
    rewards: Sequence[float],
    excluded: Mapping[str, int],
    flags: tuple[str, ...],
    of: Mapping[str, JSON],
) -> Iterator[Measurement]:
    """A value only where no table is left out."""
    n = len(weights)
    found = Value(None, None, effective_size(weights), flags) if flags else evaluate(weights, rewards)
    method = "bootstrap over tables" if found.ci else ""
    value = Estimate(found.value, n, n, ci=found.ci, method=method, flags=found.flags)
    size = Estimate(found.size if n else None, n, n)
    for name, each, unit in (
        ("value", value, ""),
        ("effective_size", size, "tables"),
        ("behaviour", mean(rewards), ""),
    ):
        told = "tables, weighed" if name == "value" else "tables"
        yield estimated(f"offpolicy.{name}", each, unit, denominator=told, excluded=excluded, of=of)
