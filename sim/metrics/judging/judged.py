"""What a judge's verdicts say about the truth, given how often the judge is right."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance
from typing import NamedTuple

from sim.intervals import Z, wilson

LEAST = 0.3
"""Of Se + Sp − 1, below which a judge says too little to be corrected."""


class Accuracy(NamedTuple):
    """A judge against people, on a calibration set."""

    se: float
    """Sensitivity: share of what people call positive that the judge does too."""
    sp: float
    """Specificity: share of the rest that it leaves alone."""
    positives: int
    negatives: int
    se_ci: tuple[float, float]
    sp_ci: tuple[float, float]


class Corrected(NamedTuple):
    """A rate freed of the judge's known errors; None where the judge says too little."""

    value: float | None
    ci: tuple[float, float] | None
    flags: tuple[str, ...] = ()


def accuracy(human: Sequence[bool], judge: Sequence[bool]) -> Accuracy | None:
    """Sensitivity and specificity with Wilson's intervals; None where one of the two classes is missing."""
    pairs = list(zip(human, judge, strict=True))
    positives = sum(human)
    negatives = len(pairs) - positives
    if not positives or not negatives:
        return None
    hits, rightly = sum(h and j for h, j in pairs), sum(not h and not j for h, j in pairs)
    return Accuracy(
        se=hits / positives,
        sp=rightly / negatives,
        positives=positives,
        negatives=negatives,
        se_ci=wilson(hits, positives),
        sp_ci=wilson(rightly, negatives),
    )


def rogan_gladen(rate: float, se: float, sp: float, n: int = 0, positives: int = 0, negatives: int = 0) -> Corrected:
    """(rate + Sp − 1)/(Se + Sp − 1), clipped to [0, 1] (Rogan and Gladen 1978).

    With the sizes of the sample and of the calibration classes the interval is by the delta method, errors of Se and
    Sp included. Refused where Se + Sp − 1 is below `LEAST`.
    """
    informed = se + sp - 1
    if informed < LEAST:
        return Corrected(None, None, ("judge too weak",))
    raw = (rate + sp - 1) / informed
    value = min(1.0, max(0.0, raw))
    flags = () if value == raw else ("clipped",)
    if not (n and positives and negatives):
        return Corrected(value, None, flags)
    spread = rate * (1 - rate) / n + raw**2 * se * (1 - se) / positives + (1 - raw) ** 2 * sp * (1 - sp) / negatives
    half = Z * sqrt(spread) / informed
    low, high = (min(1.0, max(0.0, end)) for end in (raw - half, raw + half))
    return Corrected(value, (low, high), flags)


def ppi_mean(judged: Sequence[float], human: Sequence[float], judge: Sequence[float]) -> Corrected:
    """Judge's mean over all, plus the mean of human − judge on the calibration set (Angelopoulos et al. 2023)."""
    if not judged or not human:
        return Corrected(None, None)
    gaps = [h - j for h, j in zip(human, judge, strict=True)]
    value = fmean(judged) + fmean(gaps)
    if min(len(judged), len(gaps)) < 2:
        return Corrected(value, None)
    half = Z * sqrt(variance(judged) / len(judged) + variance(gaps) / len(gaps))
    return Corrected(value, (value - half, value + half))
