"""What repeated trials say: of one task, of one question asked again, of paraphrases, of seeds and scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import comb, fsum
from statistics import fmean, stdev
from typing import NamedTuple

from sim.metrics.statistics.given import number, numbers, share_of, varies, whole


class Components(NamedTuple):
    """Where the variance of a number comes from, by a one-way layout with random effects."""

    between: float
    """Variance of the groups' own means; 0 where the estimate is negative."""
    within: float
    """Variance of repeats of one group."""
    icc: float | None
    """Share of the variance that is between groups; None where nothing varies."""
    flags: tuple[str, ...] = ()


def pass_all(trials: Sequence[tuple[int, int]], k: int) -> float | None:
    """pass^k: mean over tasks of C(c, k)/C(n, k), c of n trials solved; None where a task has fewer than k trials."""
    kept, k = _counts(trials), whole("k", k, 1)
    if not kept or any(n < k for n, _ in kept):
        return None
    return fmean(comb(c, k) / comb(n, k) for n, c in kept)


def pass_any(trials: Sequence[tuple[int, int]], k: int) -> float | None:
    """pass@k: mean over tasks of 1 − C(n − c, k)/C(n, k) (Chen et al. 2021); None where a task has too few trials."""
    kept, k = _counts(trials), whole("k", k, 1)
    if not kept or any(n < k for n, _ in kept):
        return None
    return fmean(1 - comb(n - c, k) / comb(n, k) for n, c in kept)


def _counts(trials: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Trials of each task and how many were solved, which are no more."""
    kept = [(whole("trials", n), whole("solved", c)) for n, c in trials]
    for n, c in kept:
        share_of(c, n)
    return kept


def variance_component(ms_between: float, ms_within: float, repeats: float) -> Components:
    """From mean squares: σ²_between = (MS_b − MS_w)/repeats, and the intraclass correlation."""
    ms_between, ms_within = numbers("mean squares", (ms_between, ms_within), 0)
    if not number("repeats", repeats, 0):
        raise ValueError("repeats: none, so that nothing is known of the variance between")
    raw = (ms_between - ms_within) / repeats
    between = max(0.0, raw)
    total = between + ms_within
    return Components(between, ms_within, between / total if total else None, ("negative component",) * (raw < 0))


def variance_components(groups: Sequence[Sequence[float]]) -> Components | None:
    """One-way analysis of variance; unequal groups by n₀ = (N − Σn²/N)/(g − 1) (Searle 1971). None for one group.

    `sim.metrics.statistics.reml` has unequal groups by likelihood, and more factors than one.
    """
    kept = [numbers("groups", group) for group in groups if len(group)]
    g, total = len(kept), sum(map(len, kept))
    if g < 2 or total == g:
        return None
    if not varies([value for group in kept for value in group]):
        return Components(0.0, 0.0, None)
    grand = fsum(fsum(group) for group in kept) / total
    between = fsum(len(group) * (fmean(group) - grand) ** 2 for group in kept) / (g - 1)
    within = fsum((each - fmean(group)) ** 2 for group in kept for each in group) / (total - g)
    return variance_component(between, within, (total - sum(len(group) ** 2 for group in kept) / total) / (g - 1))


def pairwise_agreement(answers: Sequence[Hashable]) -> float | None:
    """Share of pairs of answers to one question that are alike: Σ C(count, 2)/C(n, 2)."""
    n = len(answers)
    return sum(comb(count, 2) for count in Counter(answers).values()) / comb(n, 2) if n > 1 else None


def modal_share(answers: Sequence[Hashable]) -> float | None:
    """Share of the most frequent answer."""
    return max(Counter(answers).values()) / len(answers) if len(answers) else None


def paraphrase_drop(original: float, paraphrases: Sequence[float]) -> float | None:
    """(original − mean of paraphrases)/original, of scores from 0 on; None where there is nothing to lose."""
    original, paraphrases = number("original", original, 0), numbers("paraphrases", paraphrases, 0)
    return (original - fmean(paraphrases)) / original if original and paraphrases else None


def paraphrase_spread(paraphrases: Sequence[float]) -> float | None:
    """Sample standard deviation of a score over paraphrases; None for fewer than two."""
    scores = numbers("paraphrases", paraphrases)
    return stdev(scores) if len(scores) > 1 else None


def worst_case_drop(original: float, paraphrases: Sequence[float]) -> float | None:
    """(original − worst paraphrase)/original."""
    original, paraphrases = number("original", original, 0), numbers("paraphrases", paraphrases, 0)
    return (original - min(paraphrases)) / original if original and paraphrases else None
