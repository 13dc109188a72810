"""Generalised linear models for rates and hazards, fitted by iterated least squares, with errors robust to clusters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.intervals import Z
from sim.metrics.statistics.given import alike, numbers, shares
from sim.metrics.statistics.ratios import Ratio

Link: TypeAlias = Literal["cloglog", "logit", "poisson"]
"""Exponentials of coefficients are hazard ratios, odds ratios, risk ratios."""
STEPS = 50
PER_COEFFICIENT = 10
"""Outcomes that a model of hazards needs for each of its coefficients."""
LARGEST = 12.0
"""Coefficient beyond which an outcome counts as separated: it has no finite estimate."""
Vector: TypeAlias = NDArray[np.float64]


class Fit(NamedTuple):
    """Coefficients with their standard errors."""

    coefficients: tuple[float, ...]
    errors: tuple[float, ...]

    def ratio(self, place: int) -> tuple[float, tuple[float, float]]:
        """exp of a coefficient with its interval at 95%."""
        middle, half = self.coefficients[place], Z * self.errors[place]
        low, value, high = np.exp([middle - half, middle, middle + half])
        return float(value), (float(low), float(high))


def fit(
    rows: Sequence[Sequence[float]],
    outcomes: Sequence[float],
    link: Link,
    clusters: Sequence[Sequence[Hashable]] = (),
    weights: Sequence[float] = (),
) -> Fit | None:
    """Fit outcomes of 0 and 1 to rows, which hold their own constant; None where it has no finite answer.

    `clusters`: a label a row for each way of clustering; one way or two (Cameron, Gelbach and Miller 2011), none:
    each row by itself (White 1980). `weights`: how many alike rows each one stands for. Errors are of the sandwich of
    the observed information (White 1982), which holds for a wrong link too, as statsmodels has it; R's package
    `sandwich` takes the expected one, which differs where a link is not canonical (cloglog) and cells are not all
    told apart. Clusters count g/(g − 1) for the smallness of their number, and nothing else does.
    """
    alike(rows=rows, outcomes=outcomes, weights=weights if len(weights) else outcomes)
    x, y = np.asarray(rows, float), np.array(shares("outcomes", outcomes))
    w = np.array(numbers("weights", weights, 0)) if len(weights) else np.ones(len(y))
    if not np.isfinite(x).all():
        raise ValueError("rows: not all are finite numbers")
    if not len(y) or not 0 < float((w * y).sum()) < float(w.sum()):
        return None
    beta = _solved(x, y, w, link)
    if beta is None or bool(np.abs(beta).max() > LARGEST):
        return None
    mean, slope, variance = _parts(x @ beta, link)
    bread = np.linalg.pinv((x * (w * _information(x @ beta, y, link))[:, None]).T @ x)
    scores = x * (slope * (y - mean) / variance)[:, None]
    meat = _meat(scores, w, clusters)
    errors = np.sqrt(np.clip(np.diag(bread @ meat @ bread), 0, None))
    return Fit(tuple(map(float, beta)), tuple(map(float, errors)))


def hazard_ratios(
    covariates: Mapping[str, Sequence[float]], outcomes: Sequence[float], clusters: Sequence[Sequence[Hashable]]
) -> dict[str, Ratio]:
    """Of each covariate the factor by which one more of it changes a hazard in discrete time (cloglog), others equal.

    A row is a period at risk. None, with a flag that says why, for covariates that do not vary, for fewer than ten
    outcomes a coefficient, and where there is no finite answer.
    """
    told = {name: each for name, each in covariates.items() if len(set(each)) > 1}
    few = sum(outcomes) < PER_COEFFICIENT * (len(told) + 1)
    rows = [(1.0, *each) for each in zip(*told.values(), strict=True)]
    fitted = None if few or not told else fit(rows, outcomes, "cloglog", clusters)
    why = f"fewer than {PER_COEFFICIENT} outcomes a coefficient" if few else "separated"
    found = dict.fromkeys(covariates, Ratio(None, None, ("does not vary",)))
    for place, name in enumerate(told, 1):
        found[name] = Ratio(None, None, (why,)) if fitted is None else Ratio(*fitted.ratio(place))
    return found


def _solved(x: Vector, y: Vector, w: Vector, link: Link) -> Vector | None:
    share = float((w * y).sum() / w.sum())
    beta = np.linalg.pinv(x) @ np.full(len(y), _at(share, link))
    for _ in range(STEPS):
        eta = np.clip(x @ beta, -30, 30 if link != "cloglog" else 3.5)
        mean, slope, variance = _parts(eta, link)
        weight = w * slope**2 / variance
        target = eta + (y - mean) / slope
        new: Vector = np.linalg.pinv((x * weight[:, None]).T @ x) @ (x.T @ (weight * target))
        if float(np.abs(new - beta).max()) < 1e-10:
            return new
        beta = new
    return None


def _at(share: float, link: Link) -> float:
    """The linear predictor of a probability."""
    if link == "poisson":
        return float(np.log(share))
    return float(np.log(share / (1 - share)) if link == "logit" else np.log(-np.log1p(-share)))


def _parts(eta: Vector, link: Link) -> tuple[Vector, Vector, Vector]:
    """Mean, its slope in the predictor, and variance."""
    if link == "poisson":
        mean = np.exp(eta)
        return mean, mean, mean
    if link == "logit":
        mean = 1 / (1 + np.exp(-eta))
        return mean, mean * (1 - mean), mean * (1 - mean)
    hazard = np.exp(eta)
    mean = np.clip(-np.expm1(-hazard), 1e-12, 1 - 1e-12)
    return mean, hazard * (1 - mean), mean * (1 - mean)


def _information(eta: Vector, y: Vector, link: Link) -> Vector:
    """Of each row, −the second derivative of its log-likelihood in the predictor: observed, not expected."""
    mean, slope, variance = _parts(eta, link)
    expected: Vector = slope**2 / variance
    if link != "cloglog":
        return expected
    score = np.exp(eta) / mean  # of what is left of a row, as a multiple of it
    return expected - (y - mean) * score * (1 - score * (1 - mean))


def _meat(scores: Vector, w: Vector, clusters: Sequence[Sequence[Hashable]]) -> Vector:
    if not clusters:
        return (scores * w[:, None]).T @ scores
    weighted = scores * w[:, None]
    both = _summed(weighted, list(zip(*clusters, strict=True))) if len(clusters) > 1 else 0.0
    one_way: Vector = sum((_summed(weighted, labels) for labels in clusters), np.zeros((scores.shape[1],) * 2))
    return one_way - both


def _summed(scores: Vector, labels: Sequence[Hashable]) -> Vector:
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    sums = np.zeros((len(places), scores.shape[1]))
    np.add.at(sums, [places[label] for label in labels], scores)
    g = len(places)
    result: Vector = sums.T @ sums * (g / (g - 1) if g > 1 else 1.0)
    return result
