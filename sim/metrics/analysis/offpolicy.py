"""What another policy would have earned, from what a recorded one did: only the agents that change are weighed.

A weight is the ratio of both policies' probabilities of what was done, temperature and mask included. Others would have
reacted to another policy: where that matters, fork.

On records a trajectory is a table, with what those earned who asked a model. What another policy would have done is
known from a run of the same luck whose calls have the same prompts, the same sampled tokens, and their
log-probabilities under it, as `sim.studies.rescoring` makes one. Where it answered anything else, its log-probability
of what was done is not recorded, and the tables that are left would be chosen by what was done: there is no value.
Doubly robust values need predictions of rewards, which no record has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, inf, log, sqrt
from operator import itemgetter
from random import Random
from statistics import fmean, variance
from typing import NamedTuple

import orjson
import polars as pl

from sim.metrics.analysis.sampled import Sampled, sampled
from sim.metrics.frames import frames
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.given import alike, number, numbers, share
from sim.metrics.statistics.shares import estimated
from sim.metrics.twins import Relative, twins
from sim.types import JSON, Measurement, Record

LEAST_SIZE = 30.0
"""Effective sample size below which there is no value."""
LARGEST_SHARE = 0.2
"""Of all weight, that one trajectory may have."""
LARGEST_LOG = 300.0
"""Logarithm of a weight beyond which it counts as that: its square is still a number."""


class Value(NamedTuple):
    """An estimate; None where weights say too little."""

    value: float | None
    ci: tuple[float, float] | None
    size: float
    """Effective sample size."""
    flags: tuple[str, ...] = ()


def weight(target: Sequence[float], behaviour: Sequence[float]) -> float:
    """Of one trajectory, from log-probabilities of its decisions; −inf of what the target never does."""
    alike(target=target, behaviour=behaviour)
    target, behaviour = numbers("target", target, -inf, 0), numbers("behaviour", behaviour, most=0)
    return _of_log(fsum(target) - fsum(behaviour))


def _of_log(ratio: float) -> float:
    return exp(min(ratio, LARGEST_LOG))


def ips(weights: Sequence[float], rewards: Sequence[float]) -> float | None:
    """Mean of weight × reward: unbiased, and wild (Horvitz and Thompson 1952)."""
    pairs = _weighted(weights, rewards)
    return fsum(w * r for w, r in pairs) / len(pairs) if pairs else None


def clipped(weights: Sequence[float], level: float | None = None) -> list[float]:
    """No weight above the level, by default √n times their mean (Ionides 2008): less wild, and no longer unbiased."""
    known = numbers("weights", weights, 0)
    most = clip_level(known) if level is None else number("level", level, 0)
    return [min(each, most) for each in known]


def clip_level(weights: Sequence[float]) -> float:
    """√n times the mean weight; 0 without any."""
    known = numbers("weights", weights, 0)
    return fsum(known) / sqrt(len(known)) if known else 0.0


def empirical_bernstein(
    values: Sequence[float], low: float, high: float, confidence: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the mean of independent values from `low` to `high`, for any sample size (Maurer and Pontil 2009):
    ± √(2V·ln(4/δ)/n) + 7(high − low)·ln(4/δ)/(3(n − 1)), within both ends; None for fewer than two.

    The ends must be known beforehand, as of clipped weights times rewards that have a least and a most.
    """
    known, n = numbers("values", values, low, high), len(values)
    if n < 2:
        return None
    logs = log(4 / (1 - share("confidence", confidence)))
    half = sqrt(2 * variance(known) * logs / n) + 7 * (high - low) * logs / (3 * (n - 1))
    return max(low, fmean(known) - half), min(high, fmean(known) + half)


def snips(weights: Sequence[float], rewards: Sequence[float]) -> float | None:
    """Σ weight × reward over Σ weight (Swaminathan and Joachims 2015)."""
    return _self_normalised(_weighted(weights, rewards))


def _self_normalised(pairs: Sequence[tuple[float, float]]) -> float | None:
    total = fsum(w for w, _ in pairs)
    return fsum(w * r for w, r in pairs) / total if total else None


def _weighted(weights: Sequence[float], rewards: Sequence[float]) -> list[tuple[float, float]]:
    alike(weights=weights, rewards=rewards)
    return list(zip(numbers("weights", weights, 0), numbers("rewards", rewards), strict=True))


def per_decision(trajectories: Sequence[Sequence[tuple[float, float]]], discount: float = 1.0) -> float | None:
    """Mean of Σ γ^t·ρ_{1:t}·r_t from each decision's ratio and reward (Precup et al. 2000)."""
    if not trajectories:
        return None
    total, discount = 0.0, share("discount", discount)
    for steps in trajectories:
        product = 1.0
        for time, (ratio, reward) in enumerate(steps):
            product *= number("ratio", ratio, 0)
            total += discount**time * product * number("reward", reward)
    return total / len(trajectories)


def doubly_robust(
    weights: Sequence[float], rewards: Sequence[float], predicted: Sequence[float], baseline: Sequence[float]
) -> float | None:
    """Mean of V̂ + w(r − q̂): right if either weights or predictions are (Dudík et al. 2011)."""
    alike(weights=weights, predicted=predicted, baseline=baseline)
    predicted, baseline = numbers("predicted", predicted), numbers("baseline", baseline)
    parts = zip(_weighted(weights, rewards), predicted, baseline, strict=True)
    return fsum(v + w * (r - q) for (w, r), q, v in parts) / len(predicted) if predicted else None


def effective_size(weights: Sequence[float]) -> float:
    """(Σ w)²/Σ w² (Kish 1965)."""
    weights = numbers("weights", weights, 0)
    squares = fsum(w * w for w in weights)
    return fsum(weights) ** 2 / squares if squares else 0.0


def evaluate(weights: Sequence[float], rewards: Sequence[float], draws: int = 999, seed: int = 0) -> Value:
    """SNIPS with a percentile bootstrap over trajectories; refused where few of them have all the weight."""
    size, total = effective_size(weights), fsum(weights)
    flags = []
    if size < LEAST_SIZE:
        flags.append(f"effective sample size below {LEAST_SIZE:.0f}")
    if (largest_share(weights) or 0.0) > LARGEST_SHARE:
        flags.append(f"one weight above {LARGEST_SHARE:.0%}")
    if flags or not total:
        return Value(None, None, size, tuple(flags))
    luck, pairs = Random(seed), _weighted(weights, rewards)
    drawn = []
    for _ in range(draws):
        found = _self_normalised(luck.choices(pairs, k=len(pairs)))
        drawn += [] if found is None else [found]
    drawn.sort()
    ci = (drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))])
    return Value(snips(weights, rewards), ci, size)


def largest_share(weights: Sequence[float]) -> float | None:
    """Of all weight, what the heaviest trajectory has."""
    weights = numbers("weights", weights, 0)
    total = fsum(weights)
    return max(weights) / total if total else None


class Table(NamedTuple):
    """What was done and earned at one table by those who asked a model."""

    ratios: tuple[tuple[int, float], ...]
    """Of each call the tick of its turn, and the log-probability of its answer by the target less the behaviour's."""
    rewards: tuple[tuple[int, float], ...]
    """Ticks and sums."""

    @property
    def weight(self) -> float:
        """Of the whole trajectory."""
        return _of_log(fsum(ratio for _, ratio in self.ratios))

    @property
    def earned(self) -> float:
        """All rewards."""
        return fsum(reward for _, reward in self.rewards)

    @property
    def steps(self) -> list[tuple[float, float]]:
        """Ratios and rewards in the order of time: a reward comes after all that was seen by its tick."""
        steps = [(tick, 0, _of_log(ratio), 0.0) for tick, ratio in self.ratios]
        steps += [(tick, 1, 1.0, reward) for tick, reward in self.rewards]
        return [(ratio, reward) for _, _, ratio, reward in sorted(steps, key=itemgetter(0, 1))]


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """Of a run and its rescorings, and of any two runs of the same luck, what the second's policies would have earned
    in the first."""
    pairs = [(one, scored) for one in runs for scored in one.rescorings] + twins(runs)
    for one, other in pairs:
        yield from valued(one.record, other.record, {"behaviour": one.id, "target": other.id})
    if not pairs:
        yield from _measured([], {}, ("only the behaviour's log-probabilities are recorded",), {})


def valued(behaviour: Record, target: Record, of: Mapping[str, JSON]) -> Iterator[Measurement]:
    """The value by five estimators, how much the weights leave of the sample, and what the behaviour earned."""
    theirs = {one.key: one for one in sampled(target)}
    calls: dict[int, list[Sampled]] = {table: [] for table in range(behaviour.tables)}
    for one in sampled(behaviour):
        calls[one.key.table].append(one)
    rewards = _rewards(behaviour)
    tables = []
    left: Counter[str] = Counter()
    for table, own in calls.items():
        reasons = [why for one in own if (why := unknown(one, theirs.get(one.key)))]
        if reasons or not own:
            left[reasons[0] if reasons else "no model was asked"] += 1
            continue
        asked = {one.key.agent for one in own}
        earned = [(tick, fsum(each.get(agent, 0.0) for agent in asked)) for tick, each in rewards.get(table, ())]
        ratios = [(one.key.tick, (theirs[one.key].logprob or 0.0) - (one.logprob or 0.0)) for one in own]
        tables.append(Table(tuple(ratios), tuple(earned)))
    flags = ("the target's log-probabilities of what was done are not all recorded",) if left else ()
    yield from _measured(tables, dict(left), flags, of)


def _rewards(record: Record) -> Mapping[int, list[tuple[int, Mapping[str, float]]]]:
    """By table, what agents earned at which ticks."""
    found: dict[int, list[tuple[int, Mapping[str, float]]]] = {}
    rows = frames(record).events.filter(pl.col("kind") == "rewards").sort("tbl", "seq")
    for table, tick, data in rows.select("tbl", "tick", "data").iter_rows():
        found.setdefault(table, []).append((tick, orjson.loads(data)))
    return found


def unknown(own: Sampled, other: Sampled | None) -> str:
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
    tables: Sequence[Table], excluded: Mapping[str, int], flags: tuple[str, ...], of: Mapping[str, JSON]
) -> Iterator[Measurement]:
    """A value only where no table is left out."""
    weights, rewards, n = [one.weight for one in tables], [one.earned for one in tables], len(tables)
    found = Value(None, None, effective_size(weights), flags) if flags else evaluate(weights, rewards)
    known, lost = found.value is not None, Estimate(None, n, n, flags=found.flags)
    method = "bootstrap over tables" if found.ci else ""
    numbers = (
        ("value", Estimate(found.value, n, n, ci=found.ci, method=method, flags=found.flags), ""),
        ("ips", Estimate(ips(weights, rewards) if known else None, n, n, flags=found.flags), ""),
        (
            "per_decision",
            Estimate(per_decision([one.steps for one in tables]) if known else None, n, n, flags=found.flags),
            "",
        ),
        ("clipped", mean([w * r for w, r in zip(clipped(weights), rewards, strict=True)]) if known else lost, ""),
        ("clip_level", Estimate(clip_level(weights) if known else None, n, n, flags=found.flags), "weight"),
        ("effective_size", Estimate(found.size if n else None, n, n), "tables"),
        ("largest_weight", Estimate(largest_share(weights), n, n), "share"),
        ("behaviour", mean(rewards), ""),
    )
    for name, each, unit in numbers:
        told = "tables, weighed" if name == "value" else "tables"
        yield estimated(f"offpolicy.{name}", each, unit, denominator=told, excluded=excluded, of=of)
