"""Tests that shuffle: exact ones where they can be counted, else with draws that are the same every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import exp, fsum, lgamma, log, log1p
from random import Random
from typing import Any, NamedTuple, TypeVar

from sim.metrics.statistics.given import alike, numbers, share, share_of, whole
from sim.types import JSON

T = TypeVar("T")
U = TypeVar("U")
DRAWS = 999
"""Shuffles of a test."""


class Test(NamedTuple):
    """A statistic, and how often chance gives as much."""

    stat: float
    p: float
    mean: float
    """Of the statistic under the null."""
    z: float | None
    """Distance from it in standard deviations; None where chance does not vary."""
    n_perm: int
    method: str = "permutation within strata"

    @property
    def null(self) -> dict[str, JSON]:
        """As a measurement says it."""
        return {"stat": self.stat, "p": self.p, "method": self.method, "n_perm": self.n_perm}


def p_value(observed: float, under_null: Sequence[float]) -> float:
    """(1 + how many are at least as large) / (1 + how many)."""
    return (1 + sum(each >= observed - 1e-12 * max(1, abs(observed)) for each in under_null)) / (1 + len(under_null))


def stratified(
    labels: Sequence[T],
    outcomes: Sequence[U],
    strata: Sequence[Any],
    stat: Callable[[Sequence[T], Sequence[U]], float],
    n_perm: int = DRAWS,
    seed: int = 0,
) -> Test:
    """One-sided test of a statistic of labels and outcomes: labels are shuffled within strata only."""
    alike(labels=labels, outcomes=outcomes, strata=strata)
    places: dict[Any, list[int]] = {}
    for place, stratum in enumerate(strata):
        places.setdefault(stratum, []).append(place)
    observed = stat(labels, outcomes)
    drawn = [stat(one, outcomes) for one in _shuffles(labels, list(places.values()), n_perm, seed)]
    mean = sum(drawn) / len(drawn)
    spread = (sum((each - mean) ** 2 for each in drawn) / len(drawn)) ** 0.5
    z = (observed - mean) / spread if spread > 1e-12 else None
    return Test(observed, p_value(observed, drawn), mean, z, n_perm)


def _shuffles(labels: Sequence[T], groups: Sequence[list[int]], n_perm: int, seed: int) -> Iterator[list[T]]:
    luck = Random(seed)
    shuffled = list(labels)
    for _ in range(n_perm):
        for places in groups:
            here = [labels[place] for place in places]
            luck.shuffle(here)
            for place, label in zip(places, here, strict=True):
                shuffled[place] = label
        yield shuffled


def exact_exposure(tables: Sequence[tuple[float, float, float, float]]) -> float:
    """One-sided exact p that exposure goes with the outcome, permuting within strata.

    Each stratum is (exposed with, exposed, others with, others); the statistic is how many exposed have the outcome,
    over all strata (Fisher 1935 for one; the convolution of hypergeometrics for more).
    """
    law, observed = {0: 1.0}, 0
    for table in tables:
        exposed_with, exposed, others_with, others = (whole("counts", count) for count in table)
        share_of(exposed_with, exposed)
        share_of(others_with, others)
        observed += exposed_with
        together: dict[int, float] = {}
        for k, p in law.items():
            for more, q in _hypergeometric(exposed, others, exposed_with + others_with):
                together[k + more] = together.get(k + more, 0.0) + p * q
        law = together
    return min(1.0, sum(p for k, p in law.items() if k >= observed))


def _hypergeometric(exposed: int, others: int, cases: int) -> list[tuple[int, float]]:
    """How many of the cases are exposed, with probabilities; those below 1e-18 are left out."""
    every = _log_comb(exposed + others, cases)
    counts = range(max(0, cases - others), min(exposed, cases) + 1)
    law = [(k, exp(_log_comb(exposed, k) + _log_comb(others, cases - k) - every)) for k in counts]
    return [(k, p) for k, p in law if p > 1e-18]


def _log_comb(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X ≤ k) of n trials with probability p. Raises ValueError unless 0 <= k <= n."""
    share_of(whole("k", k), whole("n", n))
    if share("p", p) in (0, 1):
        return 1.0 if p == 0 or k == n else 0.0
    law = (exp(_log_comb(n, i) + i * log(p) + (n - i) * log1p(-p)) for i in range(k + 1))
    return min(1.0, fsum(law))


def mcnemar(lost: int, won: int) -> float:
    """Two-sided exact p of discordant pairs (McNemar 1947): 2·P(Bin(n, ½) ≤ the fewer), at most 1."""
    return min(1.0, 2 * binomial_tail(min(lost, won), lost + won, 0.5))


def sign_flips(differences: Sequence[float], n_perm: int = DRAWS, seed: int = 0) -> float:
    """Two-sided p that paired differences are 0 on average: their signs are flipped, all ways where there are few."""
    differences = numbers("differences", differences)
    n = len(differences)
    observed = abs(sum(differences))
    luck = Random(seed)
    if 2**n <= n_perm + 1:
        ways = [set(flipped) for k in range(n + 1) for flipped in combinations(range(n), k)]
        sums = [abs(sum(-d if i in way else d for i, d in enumerate(differences))) for way in ways]
        return sum(each >= observed - 1e-12 * max(1, observed) for each in sums) / len(sums)
    return p_value(observed, [abs(sum(luck.choice((d, -d)) for d in differences)) for _ in range(n_perm)])
