"""What an attacker learns from a slice of a run: membership, attributes, canaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log2
from statistics import fmean


def auc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Chance that a positive scores above a negative, ties ½ (Mann and Whitney 1947); None without both."""
    if not positives or not negatives:
        return None
    ranked = sorted([*positives, *negatives])
    counts = Counter(ranked)
    sums: Counter[float] = Counter()
    for place, score in enumerate(ranked, 1):
        sums[score] += place
    n = len(positives)
    ranks = sum(sums[score] / counts[score] for score in positives)
    return (ranks - n * (n + 1) / 2) / (n * len(negatives))


def tpr_at_fpr(members: Sequence[float], others: Sequence[float], fpr: float) -> float | None:
    """Largest share of members above a threshold that at most a share `fpr` of the others is above."""
    if not members or not others:
        return None
    best = 0.0
    for threshold in sorted({*members, *others}):
        if sum(score > threshold for score in others) <= fpr * len(others):
            best = max(best, sum(score > threshold for score in members) / len(members))
    return best


def advantage(accuracy: float, majority: float) -> float | None:
    """(accuracy − majority)/(1 − majority): what is gained on guessing the most frequent value."""
    return (accuracy - majority) / (1 - majority) if majority < 1 else None


def bits_gained(given: Sequence[float], prior: Sequence[float]) -> float | None:
    """Mean log₂ of the probability given to the truth over its prior; an attacker that excludes it has lost: None."""
    if not given or any(p <= 0 for p in (*given, *prior)):
        return None
    return fmean(log2(p / q) for p, q in zip(given, prior, strict=True))


def exposure(rank: int, candidates: int) -> float:
    """log₂ |R| − log₂ rank of a canary among |R| values by likelihood (Carlini et al. 2019). Raises ValueError."""
    if not 1 <= rank <= candidates:
        raise ValueError(f"rank {rank} of {candidates} candidates is none")
    return log2(candidates) - log2(rank)


def rank_of(own: float, others: Sequence[float]) -> int:
    """Place of a score among others, 1 the highest; ties count against it."""
    return 1 + sum(other >= own for other in others)
