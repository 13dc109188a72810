"""How far probabilities are from what comes of them: calibration errors, and the line that would mend them.

Of the errors, `ece` is the one that is usually told, and is never 0 by chance; `debiased` and `kernel` are about 0
where predictions are right, and can be negative.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from sim.metrics.statistics.discrimination import Scored, Sums, scored
from sim.metrics.statistics.given import alike, number, shares, truths, whole
from sim.metrics.statistics.glm import fit

BINS = 15
WIDTH = 0.4
"""Of the kernel, as in Kumar, Sarawagi and Jain (2018)."""


class Line(NamedTuple):
    """logit P(happened) = intercept + slope · logit(given): 0 and 1 where predictions are right."""

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    """Standard errors, robust to clusters."""


def equal_mass(given: Sequence[float], bins: int = BINS) -> list[int]:
    """The bin of each prediction, of equal mass: equal predictions stay together, in the bin of the first of them."""
    known, bins = np.array(shares("given", given)), whole("bins", bins, 1)
    places = np.searchsorted(np.sort(known), known)
    return [int(place) * bins // len(known) for place in places]


def binned(given: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> Scored:
    """Predictions in bins of equal mass."""
    alike(given=given, happened=happened)
    return scored(given, happened, equal_mass(given, bins))


def ece(given: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> float | None:
    """Σ of bins' shares × |mean prediction − share that happened|, bins of equal mass (Naeini et al. 2015).

    Always say how many bins.
    """
    return plain(binned(given, happened, bins).sums())


def plain(sums: Sums) -> float | None:
    """`ece` from the sums of bins."""
    return float(np.abs(sums.scores - sums.hits).sum() / sums.size.sum()) if sums.size.sum() else None


def debiased(given: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> float | None:
    """Σ of bins' shares × [(mean prediction − share ȳ that happened)² − ȳ(1 − ȳ)/(n − 1)] (Kumar, Liang and Ma 2019).

    The squared error of the bins without what chance adds to it; bins of one prediction are left out.
    """
    return unbiased(binned(given, happened, bins).sums())


def unbiased(sums: Sums) -> float | None:
    """`debiased` from the sums of bins."""
    size, p, y = (each[sums.size > 1] for each in sums)
    if not size.sum():
        return None
    share = y / size
    return float((size * ((p / size - share) ** 2 - share * (1 - share) / (size - 1))).sum() / size.sum())


def kernel(given: Sequence[float], happened: Sequence[bool], width: float = WIDTH) -> float | None:
    """Mean over pairs of (y − p)(y' − p')·exp(−|p − p'|/width): the unbiased squared kernel calibration error (Widmann,
    Lindsten and Zachariah 2019) of the side that is named; without bins, in time and space of the pairs."""
    alike(given=given, happened=happened)
    p, y = np.array(shares("given", given)), np.array(truths("happened", happened), float)
    if not number("width", width, 0):
        raise ValueError("width: 0 compares no two predictions")
    n, gap = len(p), y - p
    if n < 2:
        return None
    all_pairs = gap @ np.exp(-np.abs(p[:, None] - p) / width) @ gap
    return float((all_pairs - gap @ gap) / (n * (n - 1)))


def recalibration(given: Sequence[float], happened: Sequence[bool], clusters: Sequence[Hashable] = ()) -> Line | None:
    """Slope and intercept of what happened on what was given, by a logistic regression on logits (Cox 1958).

    None where a prediction is 0 or 1, which no line can mend, where all predictions or outcomes are the same, and where
    they are told apart without fault.
    """
    alike(given=given, happened=happened)
    known, told = shares("given", given), truths("happened", happened)
    if len(set(known)) < 2 or not 0 < min(known) <= max(known) < 1:
        return None
    rows = [(1.0, log(p / (1 - p))) for p in known]
    found = fit(rows, [float(one) for one in told], "logit", [clusters] if len(clusters) else ())
    return None if found is None else Line(*found.coefficients, *found.errors)
