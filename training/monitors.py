"""Collapse monitors: what tells early that a policy stops answering to what it is asked, and when to stop training.

Readings are pure functions over rows and arrays given beside them. KL, clip fraction and effective sample size of an
update are in `training.diagnostics`, and here for stored rows. Stops say why; their state is JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, log
from statistics import fmean

from msgspec import Struct
from pydantic import Field, model_validator

from sim.scenarios.strict import Strict
from training.filtering import groups_of, spread
from training.keys import learnable
from training.slots import Count
from training.trajectory import Row

# --- readings ---------------------------------------------------------------------------------------


def readings(rows: Sequence[Row], ngram: int = 3) -> dict[str, float]:
    """Everything that rows alone tell, by name; a number that has no denominator is left out."""
    found = {
        "entropy": entropy(rows),
        "reward_std": reward_std(rows),
        "reward": reward(rows),
        "legal_rate": legal_rate(rows),
        "repetition": repetition(rows, ngram),
        "length": length(rows),
        "learnable": float(sum(map(learnable, rows))),
    }
    return {name: number for name, number in found.items() if number is not None}


def entropy(rows: Sequence[Row]) -> float | None:
    """Mean entropy of a decision in nats: exact over options that are known, else −log μ of what was sampled."""
    return _mean([_entropy(row) for row in rows if row.trained and (row.option_logprobs or row.logprobs)])


def _entropy(row: Row) -> float:
    if row.option_logprobs:
        return -fsum(exp(each) * each for each in row.option_logprobs if each > -inf)
    return -fsum(row.logprobs)


def reward(rows: Sequence[Row]) -> float | None:
    """Mean return of the learner's trajectories."""
    return _mean([total for units in groups_of(rows).values() for total in units.values()])


def reward_std(rows: Sequence[Row]) -> float | None:
    """Mean over groups of two or more of the standard deviation (n − 1) of returns within the group (RAGEN-2)."""
    groups = [list(units.values()) for units in groups_of(rows).values()]
    return _mean([spread(units, 1) for units in groups if len(units) > 1])


def legal_rate(rows: Sequence[Row]) -> float | None:
    """Share of the learner's decisions in which the first answer was legal."""
    return _mean([float(row.how == "chosen") for row in rows if row.trained])


def repetition(rows: Sequence[Row], ngram: int = 3) -> float | None:
    """Share of n-grams of sampled tokens that came before in the same answer; answers of fewer tokens have none."""
    shares = []
    for row in rows:
        grams = [row.ids[at : at + ngram] for at in range(len(row.ids) - ngram + 1)] if row.trained else []
        if grams:
            shares.append(1 - len(set(grams)) / len(grams))
    return _mean(shares)


def length(rows: Sequence[Row]) -> float | None:
    """Mean number of sampled tokens of a decision."""
    return _mean([float(len(row.ids)) for row in rows if row.trained and row.ids])


class OffPolicy(Struct, frozen=True, kw_only=True):
    """How far a policy is from the one that sampled; means over sampled tokens."""

    kl: float
    """Mean of ρ − 1 − log ρ, ρ = π/μ: an estimate of KL(μ‖π) that is never negative."""
    clip_fraction: float
    """Share of tokens with ρ outside [1 − lo, 1 + hi]."""
    ess: float
    """(Σρ)² / Σρ², as a share of the tokens."""


def off_policy(
    rows: Sequence[Row], logprobs: Sequence[Sequence[float]], lo: float = 0.2, hi: float = 0.2
) -> OffPolicy | None:
    """Of the learner's rows, given log π of every sampled token, one tuple a row; None where there is no token."""
    logs = [
        now - then
        for row, each in zip(rows, logprobs, strict=True)
        if learnable(row)
        for now, then in zip(each, row.logprobs, strict=True)
    ]
    if not logs:
        return None
    ratios = [exp(each) for each in logs]
    return OffPolicy(
        kl=fmean(ratio - 1 - each for ratio, each in zip(ratios, logs, strict=True)),
        clip_fraction=fmean(not 1 - lo <= ratio <= 1 + hi for ratio in ratios),
        ess=fsum(ratios) ** 2 / (len(ratios) * fsum(ratio * ratio for ratio in ratios)),
    )


class MutualInformation(Struct, frozen=True, kw_only=True):
    """How much answers depend on what was asked (RAGEN-2)."""

    value: float
    """mean_i [ℓ_i(z_i) − log mean_j exp ℓ_j(z_i)] in nats, at most log N; 0 where answers ignore their prompts."""
    per_token: float
    """The same, each term over the length of its answer."""
    retrieval: Mapping[int, float]
    """By k, share of answers whose own prompt is among the k most likely ones; chance is k/N."""


def mutual_information(
    cross: Sequence[Sequence[float]], lengths: Sequence[int] = (), at: Sequence[int] = (1, 2, 4, 8)
) -> MutualInformation:
    """Of a cross matrix: `cross[i][j]` is ℓ_j(z_i), the log-probability of answer i after prompt j, [N, N].

    `lengths` are tokens of the answers (1 where not given). Ties are broken at random, so that answers that fit all
    prompts alike retrieve no better than chance. Raises ValueError unless it is square.
    """
    n = len(cross)
    if not n or any(len(row) != n for row in cross):
        raise ValueError(f"the cross matrix is square and not empty, not {n} by {sorted({len(row) for row in cross})}")
    gaps = [row[i] - (_logsumexp(row) - log(n)) for i, row in enumerate(cross)]
    sizes = list(lengths) or [1] * n
    return MutualInformation(
        value=fmean(gaps),
        per_token=fmean(gap / max(1, size) for gap, size in zip(gaps, sizes, strict=True)),
        retrieval={k: fmean(_retrieved(row, i, k) for i, row in enumerate(cross)) for k in at if k <= n},
    )


def _retrieved(row: Sequence[float], own: int, k: int) -> float:
    """Probability that the own prompt is among the first k, ties broken at random."""
    better = sum(each > row[own] for each in row)
    ties = sum(each == row[own] for each in row)
    return min(1.0, max(0.0, (k - better) / ties))


def _logsumexp(row: Sequence[float]) -> float:
    peak = max(row)
    return peak if peak == -inf else peak + log(fsum(exp(each - peak) for each in row))


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None


# --- stops --------------------------------------------------------------------------------------------


class Stop(Strict):
    """End training once a reading has been out of bounds so many times in a row."""

    reading: str
    """Its name; updates that don't have it don't count."""
    below: float | None = None
    above: float | None = None
    first: int = Field(default=0, ge=0)
    """The bounds are multiples of the mean of the first so many readings, which are let pass; 0: they are absolute."""
    patience: Count = 1

    @model_validator(mode="after")
    def _bounded(self) -> Stop:
        if self.below is None and self.above is None:
            raise ValueError("give below, above or both")
        return self


RAGEN2: tuple[Stop, ...] = (
    Stop(reading="reward_std", below=0.1, first=10, patience=10),
    Stop(reading="success", below=0.01, patience=5),
    Stop(reading="kept", below=1, patience=5),
)
"""RAGEN-2's: rewards within groups no longer differ; validations without success; updates that keep no row (`kept`)."""


class Watch(Struct, frozen=True, kw_only=True):
    """What stops remember from one update to the next; a checkpoint holds it."""

    seen: Mapping[str, int] = {}
    """Readings so far, by the place of the stop."""
    first: Mapping[str, float] = {}
    """Sum of the first ones."""
    streak: Mapping[str, int] = {}
    """Times in a row that it was out of bounds."""


def watch(stops: Sequence[Stop], found: Mapping[str, float], state: Watch) -> tuple[Watch, str]:
    """The state after one update's readings, and why to stop; empty: go on."""
    seen, first, streak = dict(state.seen), dict(state.first), dict(state.streak)
    reasons = []
    for place, stop in enumerate(stops):
        if stop.reading not in found:
            continue
        name, number = str(place), found[stop.reading]
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= stop.first:
            first[name] = first.get(name, 0.0) + number
            continue
        scale = first[name] / stop.first if stop.first else 1.0
        low = -inf if stop.below is None else stop.below * scale
        high = inf if stop.above is None else stop.above * scale
        streak[name] = 0 if low <= number <= high else streak.get(name, 0) + 1
        if streak[name] >= stop.patience:
            bounds = " or ".join(
                [f"below {low:.4g}"] * (stop.below is not None) + [f"above {high:.4g}"] * (stop.above is not None)
            )
            times = f"{streak[name]} times in a row" if streak[name] > 1 else "once"
            reasons.append(f"{stop.reading} was {bounds} {times}, last {number:.4g}")
    return Watch(seen=seen, first=first, streak=streak), "; ".join(reasons)
