"""A logistic model of outcomes in groups, each with an intercept of its own, drawn from a normal law.

The likelihood integrates these out by adaptive Gauss–Hermite quadrature (Pinheiro and Bates 1995): nodes around the
mode of each group, as far apart as its curvature says; a single node is Laplace's approximation. Errors are of the
observed information, the test of an effect is by the ratio of likelihoods.

Left out: several random effects, and slopes that vary between groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from math import erfc, exp, pi, sqrt
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite import hermgauss
from scipy.optimize import minimize
from scipy.special import expit

from sim.intervals import Z
from sim.metrics.statistics.given import alike, numbers, truths, whole
from sim.metrics.statistics.glm import LARGEST, Vector
from sim.metrics.statistics.ratios import Ratio

NODES = 11
NEWTON = 60
"""Most steps to the mode of a group."""
CLOSE = 1e-5
"""Slope of the log-likelihood at which the most likely model is found."""
STEP = 1e-4
"""By which parameters are moved to see how that slope changes."""


class Fit(NamedTuple):
    """The most likely model."""

    coefficients: tuple[float, ...]
    errors: tuple[float, ...]
    """Of the coefficients, from the observed information."""
    spread: float
    """Standard deviation of the groups' intercepts, on the scale of log odds."""
    log_likelihood: float


class Effect(NamedTuple):
    """What one more of a covariate does to the odds within a group."""

    ratio: Ratio
    p: float | None
    """That it does nothing."""
    spread: float | None = None
    """As of `Fit`."""


class Model:
    """Rows of covariates (a column of ones among them for an overall intercept) with their outcomes, in groups.

    Groups with the same rows and outcomes are counted, not repeated, and their order does not matter.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        outcomes: Sequence[bool],
        groups: Sequence[Hashable],
        nodes: int = NODES,
    ) -> None:
        alike(rows=rows, outcomes=outcomes, groups=groups)
        told, known = [tuple(numbers("rows", row)) for row in rows], truths("outcomes", outcomes)
        if len({len(row) for row in told}) > 1:
            raise ValueError("rows: not all have as many covariates")
        own: dict[Hashable, list[tuple[tuple[float, ...], bool]]] = {}
        for row, outcome, group in zip(told, known, groups, strict=True):
            own.setdefault(group, []).append((row, outcome))
        patterns = sorted(Counter(tuple(sorted(each)) for each in own.values()).items())
        flat = [each for pattern, _ in patterns for each in pattern]
        self.x: Vector = np.array([row for row, _ in flat], float).reshape(len(flat), -1)
        self.y: Vector = np.array([outcome for _, outcome in flat], float)
        self._many: Vector = np.array([many for _, many in patterns], float)
        sizes = [len(pattern) for pattern, _ in patterns]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._group = np.repeat(np.arange(len(sizes)), sizes)
        self._nodes, weights = hermgauss(whole("nodes", nodes, 1))
        self._logs: Vector = np.log(weights) + self._nodes**2

    def loss(self, parameters: Vector) -> tuple[float, Vector]:
        """−log-likelihood of coefficients and, at last, the spread, with its slope in these; a spread has no sign."""
        spread = parameters[-1]
        eta = self.x @ parameters[:-1]
        mode, width = self._modes(eta, spread)
        u = mode[:, None] + sqrt(2) * width[:, None] * self._nodes
        at = eta[:, None] + spread * u[self._group]
        logs = np.add.reduceat(self.y[:, None] * at - np.logaddexp(0, at), self._starts) - u**2 / 2 + self._logs
        top = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - top)
        sums = parts.sum(axis=1)
        likelihood = np.log(sums) + top[:, 0] + np.log(width / sqrt(pi))
        share = parts / sums[:, None] * self._many[:, None]
        error = (self.y[:, None] - expit(at)) * share[self._group]
        slope = np.append(self.x.T @ error.sum(axis=1), (error * u[self._group]).sum())
        return -float(self._many @ likelihood), -slope

    def best(self) -> Fit | None:
        """The most likely model; None without a finite one."""
        start = np.append(np.zeros(self.x.shape[1]), 1.0)
        found = minimize(self.loss, start, jac=True, method="BFGS", options={"gtol": CLOSE})
        if bool(np.abs(found.x).max() > LARGEST):
            return None
        information = [
            (self.loss(found.x + step)[1] - self.loss(found.x - step)[1]) / (2 * STEP)
            for step in STEP * np.eye(len(found.x))
        ]
        errors = np.sqrt(np.clip(np.diag(np.linalg.pinv(np.array(information))), 0, None))[:-1]
        *coefficients, spread = found.x.tolist()
        return Fit(tuple(coefficients), tuple(errors.tolist()), abs(spread), -float(found.fun))

    def _modes(self, eta: Vector, spread: float) -> tuple[Vector, Vector]:
        """Of each group's standardised intercept the most likely value, and its width there, by Newton's steps."""
        mode = np.zeros(len(self._many))
        curve = np.ones(len(self._many))
        for _ in range(NEWTON):
            mean = expit(eta + spread * mode[self._group])
            slope = spread * np.add.reduceat(self.y - mean, self._starts) - mode
            curve = 1 + spread**2 * np.add.reduceat(mean * (1 - mean), self._starts)
            step = np.clip(slope / curve, -2, 2)
            mode = mode + step
            if float(np.abs(step).max()) < 1e-10:
                break
        return mode, 1 / np.sqrt(curve)


def fit(
    rows: Sequence[Sequence[float]], outcomes: Sequence[bool], groups: Sequence[Hashable], nodes: int = NODES
) -> Fit | None:
    """The most likely model; None without two kinds of outcome, or where nothing finite is the most likely."""
    if not 0 < sum(truths("outcomes", outcomes)) < len(outcomes):
        return None
    return Model(rows, outcomes, groups, nodes).best()


def effect(covariate: Sequence[float], outcomes: Sequence[bool], groups: Sequence[Hashable]) -> Effect:
    """Odds ratio of one more of a covariate within a group, with its interval and a test.

    None, with a flag that says why, where the covariate or the outcome does not vary, or nothing finite is the most
    likely.
    """
    alike(covariate=covariate, outcomes=outcomes, groups=groups)
    covariate = numbers("covariate", covariate)
    if len(set(covariate)) < 2 or len(set(truths("outcomes", outcomes))) < 2:
        return Effect(Ratio(None, None, ("does not vary",)), None)
    middle, unit = fmean(covariate), pstdev(covariate)
    found = Model([(1.0, (each - middle) / unit) for each in covariate], outcomes, groups).best()
    none = Model([(1.0,)] * len(covariate), outcomes, groups).best()
    if found is None or none is None:
        return Effect(Ratio(None, None, ("separated",)), None)
    slope, half = found.coefficients[1] / unit, Z * found.errors[1] / unit
    p = erfc(sqrt(max(0.0, found.log_likelihood - none.log_likelihood)))
    return Effect(Ratio(exp(slope), (exp(slope - half), exp(slope + half))), p, found.spread)
