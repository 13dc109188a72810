"""What a judge's verdicts say about the truth, given how often the judge is right."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import exp, floor, fsum, log, sqrt
from statistics import fmean, variance
from typing import NamedTuple, TypeVar

from sim.intervals import Z, wilson
from sim.metrics.statistics.given import alike, numbers, shares, truths, whole

H = TypeVar("H", bound=Hashable)
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
    """Of weighted texts as many as they are worth."""
    negatives: int
    se_ci: tuple[float, float]
    sp_ci: tuple[float, float]


class Corrected(NamedTuple):
    """A rate freed of the judge's known errors; None where the judge says too little."""

    value: float | None
    ci: tuple[float, float] | None
    flags: tuple[str, ...] = ()


def accuracy(human: Sequence[bool], judge: Sequence[bool], weights: Sequence[float] = ()) -> Accuracy | None:
    """Sensitivity and specificity with Wilson's intervals; None where one of the two classes is missing.

    With weights, as of texts that were not drawn alike often, a class has its effective size (Kish 1965), rounded down.
    """
    weights = weights if len(weights) else [1.0] * len(human)
    alike(human=human, judge=judge, weights=weights)
    human, judge, weights = truths("human", human), truths("judge", judge), numbers("weights", weights, 0)
    rows = list(zip(human, judge, weights, strict=True))
    yes = _right([(j, w) for h, j, w in rows if h])
    no = _right([(not j, w) for h, j, w in rows if not h])
    if yes is None or no is None:
        return None
    (se, positives), (sp, negatives) = yes, no
    return Accuracy(
        se=se,
        sp=sp,
        positives=positives,
        negatives=negatives,
        se_ci=wilson(se * positives, positives),
        sp_ci=wilson(sp * negatives, negatives),
    )


def _right(rows: Sequence[tuple[bool, float]]) -> tuple[float, int] | None:
    """The weighted share of what is right, and of how many texts it is worth."""
    total, squares = fsum(w for _, w in rows), fsum(w * w for _, w in rows)
    if not total:
        return None
    return fsum(w for right, w in rows if right) / total, max(1, floor(total**2 / squares * (1 + ROUNDING)))


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
    return ppi_by_strata({0: judged}, {0: human}, {0: judge})


def ppi_by_strata(
    judged: Mapping[H, Sequence[float]], human: Mapping[H, Sequence[float]], judge: Mapping[H, Sequence[float]]
) -> Corrected:
    """The same where the calibration set was drawn stratum by stratum, as of what a rule finds and what it does not.

    Gaps of a stratum weigh as much as its share of all that was judged. None where one of these has no text that
    people know, no interval where one has a single one.
    """
    said = {stratum: numbers("judged", own) for stratum, own in judged.items() if len(own)}
    gaps = {stratum: _gaps(human.get(stratum, ()), judge.get(stratum, ())) for stratum in {*human, *judge}}
    every = [each for own in said.values() for each in own]
    if not every or not all(gaps.get(stratum) for stratum in said):
        return Corrected(None, None)
    weights = {stratum: len(own) / len(every) for stratum, own in said.items()}
    value = fmean(every) + fsum(weight * fmean(gaps[stratum]) for stratum, weight in weights.items())
    if min(len(every), *(len(gaps[stratum]) for stratum in said)) < 2:
        return Corrected(value, None)
    errors = [weight**2 * variance(gaps[stratum]) / len(gaps[stratum]) for stratum, weight in weights.items()]
    half = Z * sqrt(variance(every) / len(every) + fsum(errors))
    return Corrected(value, (value - half, value + half))


def _gaps(human: Sequence[float], judge: Sequence[float]) -> list[float]:
    alike(human=human, judge=judge)
    return [h - j for h, j in zip(numbers("human", human), numbers("judge", judge), strict=True)]
