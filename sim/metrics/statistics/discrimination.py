"""How well scores tell what happened from what did not, from sums over levels of the score.

The area under precision and recall is the step-wise one, not the trapezoid, which is too large (Davis and Goadrich
2006); that under risk and coverage is a mean over coverages 1/n, 2/n, …, 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.metrics.statistics.given import alike, numbers, truths

Vector = NDArray[np.float64]


class Sums(NamedTuple):
    """Of each level of a score, the lowest first, how many there are, their sum, and how many happened."""

    size: Vector
    scores: Vector
    hits: Vector

    def auroc(self) -> float | None:
        """As the function."""
        misses = self.size - self.hits
        both = self.hits.sum() * misses.sum()
        return float((self.hits * (misses.cumsum() - misses / 2)).sum() / both) if both else None

    def average_precision(self) -> float | None:
        """As the function."""
        hits, size = self.hits[::-1], self.size[::-1]
        if not 0 < hits.sum() < size.sum():
            return None
        precision = hits.cumsum() / np.maximum(size.cumsum(), 1)
        return float((hits * precision).sum() / hits.sum())

    def risk_coverage(self) -> float | None:
        """As the function."""
        size = self.size.astype(int)
        if not size.sum():
            return None
        each = np.repeat(self.hits / np.maximum(size, 1), size)
        return float((each.cumsum() / np.arange(1, len(each) + 1)).mean())


class Scored(NamedTuple):
    """Units with their scores, what happened to them, and the level of each."""

    levels: NDArray[np.intp]
    scores: Vector
    happened: Vector

    def sums(self, weights: Vector | None = None) -> Sums:
        """By level; a weight says, in whole numbers, how many alike a unit stands for."""
        w = np.ones(len(self.scores)) if weights is None else weights
        many = int(self.levels.max(initial=-1)) + 1
        size, scores, hits = (
            np.bincount(self.levels, w * each, many).astype(float)
            for each in (np.ones(len(w)), self.scores, self.happened)
        )
        return Sums(size, scores, hits)

    def drawn(self, value: Callable[[Sums], float | None]) -> Callable[[Vector], float | None]:
        """A number of the sums, as one of weights."""
        return lambda weights: value(self.sums(weights))


def scored(scores: Sequence[float], happened: Sequence[bool], levels: Sequence[int] | None = None) -> Scored:
    """The units; each score is its own level where none are given."""
    alike(scores=scores, happened=happened, levels=scores if levels is None else levels)
    known, told = np.array(numbers("scores", scores)), np.array(truths("happened", happened), float)
    places = np.unique(known, return_inverse=True)[1] if levels is None else np.array(levels, np.intp)
    return Scored(places, known, told)


def auroc(scores: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Chance that what happened scores above what did not, ties ½ (Mann and Whitney 1947); None without both."""
    return scored(scores, happened).sums().auroc()


def average_precision(scores: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Σ (R_k − R_{k−1})·P_k over levels of the score, the highest first; None where nothing happened, or all did.

    Chance has the share that happened.
    """
    return scored(scores, happened).sums().average_precision()


def risk_coverage(scores: Sequence[float], failed: Sequence[bool]) -> float | None:
    """Area under risk and coverage (Geifman and El-Yaniv 2017): of units kept from the lowest score on, the mean over
    how many are kept of the share that failed, ties in random order; None without units.

    Chance has the share that failed.
    """
    return scored(scores, failed).sums().risk_coverage()
