"""Collapse monitors: what tells early that a policy stops answering to what it is asked.

Readings are pure functions over rows and arrays given beside them. KL, clip fraction and effective sample size of an
update are in `training.diagnostics`, and here for stored rows. When to stop training for them: `training.stops`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, fsum, inf, log, nan
from statistics import fmean

from msgspec import Struct

from training.filtering import groups_of, spread
from training.keys import learnable
from training.paths import answering
from training.trajectory import Row

# --- readings ---------------------------------------------------------------------------------------


def readings(rows: Sequence[Row], ngram: int = 3) -> dict[str, float]:
    """Everything that rows alone tell, by name; a number that has no denominator is left out."""
    found = {
        "decision_entropy": entropy(rows),
        "reward_std": reward_std(rows),
        "reward": reward(rows),
        "success": success(rows),
        "first_legal_rate": legal_rate(rows),
        "repetition": repetition(rows, ngram),
        "length": length(rows),
        "learnable": float(sum(map(learnable, rows))),
    }
    return {name: number for name, number in found.items() if number is not None}


def entropy(rows: Sequence[Row]) -> float | None:
    """Mean entropy of a decision in nats: exact over options that are known, else −log μ of what was sampled."""
    return _mean([_entropy(row) for row in rows if row.trained and (row.option_logprobs or row.logprobs)])


def _entropy(row: Row) -> float:
    known = [each for each in row.option_logprobs if each is not None]
    if known and len(known) == len(row.option_logprobs):
        return -fsum(exp(each) * each for each in known if each > -inf)
    return -fsum(row.logprobs)


def reward(rows: Sequence[Row]) -> float | None:
    """Mean return of the learner's trajectories."""
    return _mean([total for units in groups_of(rows).values() for total in units.values()])


def success(rows: Sequence[Row]) -> float | None:
    """Share of the learner's trajectories whose return is above 0."""
    return _mean([float(total > 0) for units in groups_of(rows).values() for total in units.values()])


def reward_std(rows: Sequence[Row]) -> float | None:
    """Mean over groups of two or more of the standard deviation (n − 1) of returns within the group (RAGEN-2)."""
    groups = [list(units.values()) for units in groups_of(rows).values()]
    return _mean([spread(units, 1) for units in groups if len(units) > 1])


def legal_rate(rows: Sequence[Row]) -> float | None:
    """Share of the learner's decisions in which the first answer was legal."""
    learnt = [row for row in rows if row.trained]
    return _mean([float(learnt[index].how == "chosen") for index in answering(learnt)])


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
    chance: float
    """1/N."""


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
        chance=1 / n,
        retrieval={k: fmean(_retrieved(row, i, k) for i, row in enumerate(cross)) for k in at if k <= n},
    )


def _retrieved(row: Sequence[float], own: int, k: int) -> float:
    """Probability that the own prompt is among the first k, ties broken at random."""
    better = sum(each > row[own] for each in row)
    ties = sum(each == row[own] for each in row)
    return min(1.0, max(0.0, (k - better) / ties)) if ties else nan  # the model says no numbers


def _logsumexp(row: Sequence[float]) -> float:
    peak = max(row)
    return peak if peak == -inf else peak + log(fsum(exp(each - peak) for each in row))


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None
