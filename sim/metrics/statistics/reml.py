"""Where the variance of a number comes from, by restricted maximum likelihood, also where groups are of unequal size.

A value is a common mean, an effect of each factor's level, an effect of its cell, and what is its own; all effects are
random. With one value a cell the last two are one. In balanced layouts it agrees with the analysis of variance
(`sim.metrics.statistics.repeats`), wherever that is not negative.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, inf
from random import Random
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sim.metrics.statistics.given import alike, numbers

Vector = NDArray[np.float64]
CELL, WITHIN = "cell", "within"
"""Names of the variance between cells that no factor accounts for, and of that between values of one cell."""
STARTS = (0.1, 3.0)
"""Ratios of each variance to that within cells from which the search begins."""
LARGEST = 1e8
"""Ratio to the variance within cells beyond which that is taken for none."""
DRAWS = 199


class Variances(NamedTuple):
    """Variances by what they come from."""

    by: Mapping[str, float]
    ci: Mapping[str, tuple[float, float]]
    """At 95%, by a parametric bootstrap."""
    bounded: tuple[str, ...] = ()
    """Those that are 0 because they would be negative."""


def reml(
    cells: Sequence[Sequence[float]], factors: Mapping[str, Sequence[Hashable]], draws: int = DRAWS, seed: int = 0
) -> Variances | None:
    """Variances of values in cells, whose labels by each factor may be crossed or nested (Patterson and Thompson 1971).

    A factor that has one level, or another one in every cell, tells nothing and is left out. None where there are fewer
    than two cells, fewer than three values, or where nothing varies within cells that have several.
    """
    alike(cells=cells, **{str(name): own for name, own in factors.items()})
    cells = [numbers("cells", cell) for cell in cells]
    kept = [place for place, cell in enumerate(cells) if cell]
    sizes = np.array([len(cells[place]) for place in kept], float)
    labels = {name: [each[place] for place in kept] for name, each in factors.items()}
    means = np.array([fmean(cells[place]) for place in kept])
    spread = fsum((value - mean) ** 2 for place, mean in zip(kept, means, strict=True) for value in cells[place])
    total = int(sizes.sum())
    if len(kept) < 2 or total < 3 or (spread == 0 and (total > len(kept) or not np.ptp(means))):
        return None
    sources = {name: _alike(own) for name, own in labels.items() if 1 < len(set(own)) < len(kept)}
    if total > len(kept):
        sources[CELL] = np.eye(len(kept))
    model = _Model(sizes, list(sources.values()), total)
    fitted = model.fit(means, spread)
    luck, drawn = Random(seed), []
    for _ in range(draws):
        drawn.append(model.fit(*model.draw(fitted, luck), starts=(1.0,)))
    names = [*sources, WITHIN]
    ends = np.quantile(drawn, (0.025, 0.975), axis=0) if draws else np.empty((2, 0))
    return Variances(
        dict(zip(names, fitted.tolist(), strict=True)),
        {name: (float(low), float(high)) for name, low, high in zip(names, *ends, strict=bool(draws))},
        tuple(name for name, value in zip(names, fitted, strict=True) if value == 0),
    )


def _alike(labels: Sequence[Hashable]) -> Vector:
    """Which cells have the same level."""
    return np.array([[float(one == other) for other in labels] for one in labels])


class _Model:
    """Means of cells of given sizes, whose effects share levels; the variance within cells is profiled out."""

    def __init__(self, sizes: Vector, sources: Sequence[Vector], total: int) -> None:
        self._sizes, self._sources, self._total = sizes, sources, total

    def fit(self, means: Vector, spread: float, starts: Sequence[float] = STARTS) -> Vector:
        """Variances of the sources and, at last, within cells; `spread`: squares around the means of cells."""
        if not self._sources:
            return np.array([(spread + self._parts(means, np.zeros(0))[0]) / (self._total - 1)])
        best, least = np.zeros(len(self._sources)), inf
        for start in starts:
            found = minimize(
                self._loss,
                np.full(len(self._sources), start),
                args=(means, spread),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, LARGEST)] * len(self._sources),
                options={"ftol": 1e-12, "gtol": 1e-7},
            )
            if found.fun < least - 1e-9:
                best, least = found.x, found.fun
        within = (spread + self._parts(means, best)[0]) / (self._total - 1)
        return np.array([*(best * within), within])

    def draw(self, variances: Vector, luck: Random) -> tuple[Vector, float]:
        """Means and squares of another sample."""
        *own, within = variances
        covariance = np.diag(within / self._sizes)
        for value, shared in zip(own, self._sources, strict=True):
            covariance = covariance + value * shared
        inside = self._total - len(self._sizes)
        spread = within * luck.gammavariate(inside / 2, 2.0) if inside else 0.0  # chi-squared
        values, vectors = np.linalg.eigh(covariance)
        normal = np.array([luck.gauss() for _ in self._sizes])
        return vectors @ (np.sqrt(values.clip(0)) * normal), spread

    def _loss(self, ratios: Vector, means: Vector, spread: float) -> tuple[float, Vector]:
        """−2 log of the restricted likelihood but for a constant, and its slope in each ratio."""
        square, residual, projection, logs = self._parts(means, ratios)
        inside = spread + square
        left = self._total - 1
        slopes = [
            float((projection * shared).sum()) - left * float(residual @ shared @ residual) / inside
            for shared in self._sources
        ]
        return left * float(np.log(inside)) + logs, np.array(slopes)

    def _parts(self, means: Vector, ratios: Vector) -> tuple[float, Vector, Vector, float]:
        """y'Py, Py, P and log |V| + log 1'V⁻¹1, with V the covariance of the means over the variance within cells."""
        covariance = np.diag(1 / self._sizes)
        for ratio, shared in zip(ratios, self._sources, strict=True):
            covariance = covariance + ratio * shared
        inverse = np.linalg.inv(covariance)
        ones = inverse.sum(1)
        weight = float(ones.sum())
        projection = inverse - np.outer(ones, ones) / weight
        residual = projection @ means
        return float(means @ residual), residual, projection, float(np.linalg.slogdet(covariance)[1] + np.log(weight))
