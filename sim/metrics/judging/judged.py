"""What a judge's verdicts say about the truth, given how often the judge is right."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import NamedTuple

from sim.intervals import Z, wilson
from sim.metrics.statistics.given import alike, numbers, shares, truths, whole

LEAST = 0.3
"""Of Se + Sp − 1, below which a judge says too little to be corrected."""
ROUNDING = 1e-12
"""By which a sum may miss `LEAST` and still be it: .7 + .6 − 1 does."""


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
    alike(human=human, judge=judge)
    human, judge = truths("human", human), truths("judge", judge)
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

    With the sizes of the sample and of the calibration classes there is an interval, in which the errors of Se and Sp
    count. Refused where Se + Sp − 1 is below `LEAST`.
    """
    rate, se, sp = shares("rate, Se and Sp", (rate, se, sp))
    n, positives, negatives = (whole("sizes", size) for size in (n, positives, negatives))
    informed = se + sp - 1
    if informed < LEAST - ROUNDING:
        return Corrected(None, None, ("judge too weak",))
    raw = (rate + sp - 1) / informed
    value = min(1.0, max(0.0, raw))
    flags = () if value == raw else ("clipped",)
    if not (n and positives and negatives):
        return Corrected(value, None, flags)
    ends = _lang_reiczigel(_moved(rate, n, Z**2), _moved(se, positives, 2), _moved(sp, negatives, 2))
    if ends is None:
        return Corrected(value, None, (*flags, "too few to calibrate"))
    low, high = (min(1.0, max(0.0, end)) for end in ends)
    return Corrected(value, (min(low, value), max(high, value)), flags)


class _Share(NamedTuple):
    """A share, moved towards a half, and the variance of its estimate."""

    value: float
    variance: float


def _moved(share: float, n: int, more: float) -> _Share:
    """With so many trials more, of which one half are hits (Agresti and Coull 1998)."""
    value = (share * n + more / 2) / (n + more)
    return _Share(value, value * (1 - value) / (n + more))


def _lang_reiczigel(rate: _Share, se: _Share, sp: _Share) -> tuple[float, float] | None:
    """The interval of Lang and Reiczigel (2014): that of the delta method, of shares moved towards a half.

    Where positives are rare, or the judge is hardly ever wrong, the delta method by itself holds the truth too seldom.
    None where the moved Se + Sp − 1 is below `LEAST`.
    """
    informed = se.value + sp.value - 1
    if informed < LEAST - ROUNDING:
        return None
    value = (rate.value + sp.value - 1) / informed
    middle = value + 2 * Z**2 * (value * se.variance - (1 - value) * sp.variance)
    half = Z * sqrt(rate.variance + value**2 * se.variance + (1 - value) ** 2 * sp.variance) / informed
    return middle - half, middle + half


def corrected_ratio(exposed: Corrected, others: Corrected) -> Corrected:
    """A risk ratio of two corrected rates, each freed of the errors that the judge makes in its own arm.

    Errors that both arms have in common draw a ratio towards 1. The interval is that of two independent rates on logs,
    from the larger part of each interval; none where one has none or reaches 0. None where a rate is not known, or the
    others' is 0.
    """
    flags = tuple(dict.fromkeys((*exposed.flags, *others.flags)))
    if exposed.value is None or not others.value:
        return Corrected(None, None, flags)
    ratio = exposed.value / others.value
    ends = [one.ci for one in (exposed, others)]
    if not exposed.value or any(ci is None or ci[0] <= 0 for ci in ends):
        return Corrected(ratio, None, flags)
    (low, high), (less, more) = (ci for ci in ends if ci is not None)
    up = sqrt(log(high / exposed.value) ** 2 + log(others.value / less) ** 2)
    down = sqrt(log(exposed.value / low) ** 2 + log(more / others.value) ** 2)
    return Corrected(ratio, (ratio * exp(-down), ratio * exp(up)), flags)


def ppi_mean(judged: Sequence[float], human: Sequence[float], judge: Sequence[float]) -> Corrected:
    """Judge's mean over all, plus the mean of human − judge on the calibration set (Angelopoulos et al. 2023)."""
    alike(human=human, judge=judge)
    judged, human, judge = numbers("judged", judged), numbers("human", human), numbers("judge", judge)
    if not judged or not human:
        return Corrected(None, None)
    gaps = [h - j for h, j in zip(human, judge, strict=True)]
    value = fmean(judged) + fmean(gaps)
    if min(len(judged), len(gaps)) < 2:
        return Corrected(value, None)
    half = Z * sqrt(variance(judged) / len(judged) + variance(gaps) / len(gaps))
    return Corrected(value, (value - half, value + half))
