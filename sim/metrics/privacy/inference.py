"""What an attacker learns from a slice of a run: membership, attributes, canaries."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from math import inf, log2
from statistics import fmean

from sim.metrics.statistics.given import alike, numbers, share, shares, whole


def auc(positives: Sequence[float], negatives: Sequence[float]) -> float | None:
    """Chance that a positive scores above a negative, ties ½ (Mann and Whitney 1947); None without both."""
    positives, negatives = _scores(positives, negatives)
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
    """Largest share of members at or above a threshold that at most a share `fpr` of the others reaches."""
    own, rest = map(sorted, _scores(members, others))
    fpr = share("fpr", fpr)
    if not own or not rest:
        return None
    reached = (
        len(own) - bisect_left(own, one) for one in own if (len(rest) - bisect_left(rest, one)) / len(rest) <= fpr
    )
    return max(reached, default=0) / len(own)


def advantage(accuracy: float, majority: float) -> float | None:
    """(accuracy − majority)/(1 − majority): what is gained on guessing the most frequent value."""
    accuracy, majority = share("accuracy", accuracy), share("majority", majority)
    return (accuracy - majority) / (1 - majority) if majority < 1 else None


def bits_gained(given: Sequence[float], prior: Sequence[float]) -> float | None:
    """Mean log₂ of the probability given to the truth over its prior; an attacker that excludes it has lost: None."""
    alike(given=given, prior=prior)
    given, prior = shares("given", given), shares("prior", prior)
    if not given or any(p <= 0 for p in (*given, *prior)):
        return None
    return fmean(log2(p / q) for p, q in zip(given, prior, strict=True))


def exposure(rank: int, candidates: int) -> float:
    """log₂ |R| − log₂ rank of a canary among |R| values by likelihood (Carlini et al. 2019). Raises ValueError."""
    rank, candidates = whole("rank", rank), whole("candidates", candidates)
    if not 1 <= rank <= candidates:
        raise ValueError(f"rank {rank} of {candidates} candidates is none")
    return log2(candidates) - log2(rank)


def rank_of(own: float, others: Sequence[float]) -> int:
    """Place of a score among others, 1 the highest; ties count against it."""
    (own,), others = _scores((own,), others)
    return 1 + sum(other >= own for other in others)


def _scores(own: Sequence[float], others: Sequence[float]) -> tuple[list[float], list[float]]:
    """Scores, infinite ones too: a logarithm of 0 is one."""
    return numbers("scores", own, -inf, inf), numbers("scores", others, -inf, inf)
