"""What an attacker learns from a slice of a run: membership, attributes, canaries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from math import inf, log2, nextafter, sqrt
from statistics import fmean, variance

from sim.intervals import Z
from sim.metrics.statistics.given import ROUNDED, alike, numbers, share, shares, whole


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


def auc_interval(positives: Sequence[float], negatives: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the AUC by the variances of its placements (DeLong, DeLong and Clarke-Pearson 1988), in [0, 1].

    Scores are taken for independent. None with fewer than two on a side, or where both sides' placements are all alike.
    """
    positives, negatives = _scores(positives, negatives)
    area = auc(positives, negatives)
    if area is None or len(positives) < 2 or len(negatives) < 2:
        return None
    below, above = sorted(negatives), sorted(positives)
    of_own = [(bisect_left(below, x) + bisect_right(below, x)) / (2 * len(below)) for x in positives]
    of_others = [1 - (bisect_left(above, x) + bisect_right(above, x)) / (2 * len(above)) for x in negatives]
    error = sqrt(variance(of_own) / len(positives) + variance(of_others) / len(negatives))
    return (max(0.0, area - Z * error), min(1.0, area + Z * error)) if error else None


def balanced_accuracy(truth: Sequence[Hashable], said: Sequence[Hashable]) -> float | None:
    """Mean over true values of the share of each that is said: one over their number for whoever says one value."""
    alike(truth=truth, said=said)
    right: dict[Hashable, list[bool]] = {}
    for true, guess in zip(truth, said, strict=True):
        right.setdefault(true, []).append(true == guess)
    return fmean(fmean(each) for each in right.values()) if right else None


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


def threshold(decoys: Sequence[float], fpr: float = 0.01) -> float | None:
    """Least score that at most a share `fpr` of decoys reaches, where it is one just above some decoy's; −inf for all.

    None without decoys.
    """
    ordered, fpr = sorted(numbers("decoys", decoys, -inf, inf), reverse=True), share("fpr", fpr)
    allowed = int(fpr * len(ordered) + ROUNDED)
    if not ordered:
        return None
    return nextafter(ordered[allowed], inf) if allowed < len(ordered) else -inf


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
