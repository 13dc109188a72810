"""Sets that cover the truth as often as promised, wherever calibration cases are exchangeable with those to come.

On a record the first half of its tables calibrates and the other is covered. Scores are −log probability: of the option
that was chosen, among those that were legal, where a model call recorded it; and of what came to pass, where agents
stated probabilities (see `calibration`). A test deals the halves anew, table by table: where it rejects, later cases
are not like earlier ones, and the promise is flagged as not kept. Roles have thresholds of their own beside that of all
(Mondrian), so that each is covered by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import ceil, fsum, inf, log
from statistics import fmean
from typing import NamedTuple, TypeVar

from sim.metrics.analysis.calibration import stated
from sim.metrics.analysis.sampled import sampled
from sim.metrics.frames import frames
from sim.metrics.statistics.clusters import Estimate, independent_rate, rate
from sim.metrics.statistics.given import ROUNDED, alike, number, numbers, share
from sim.metrics.statistics.permutation import DRAWS, binomial_tail, stratified
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, Measurement, Record

T = TypeVar("T")
LEVEL = 0.05
SHIFTED = "later cases are not like earlier ones"
"""Flag of a coverage whose test rejects: what is promised holds of exchangeable cases; see `weighted_threshold`."""


def rank(n: int, alpha: float) -> int:
    """Place of the threshold among n sorted scores: ⌈(n + 1)(1 − α)⌉, reckoned without rounding, 0 < α < 1."""
    if not 0 < number("alpha", alpha) < 1:
        raise ValueError(f"alpha is {alpha}; it lies between 0 and 1")
    return ceil((n + 1) * (1 - Fraction(str(alpha))))


def threshold(scores: Sequence[float], alpha: float) -> float:
    """Split-conformal threshold (Vovk et al. 2005): cover scores up to it; inf where there are too few."""
    scores, place = numbers("scores", scores, -inf, inf), rank(len(scores), alpha)
    return sorted(scores)[place - 1] if place <= len(scores) else inf


def fewest(alpha: float) -> int:
    """Smallest number of calibration cases with a finite threshold."""
    n = 1
    while rank(n, alpha) > n:
        n += 1
    return n


def coverage(scores: Sequence[float], limit: float) -> float | None:
    """Share of new cases that a threshold covers."""
    scores, limit = numbers("scores", scores, -inf, inf), number("limit", limit, -inf, inf)
    return sum(score <= limit for score in scores) / len(scores) if scores else None


def by_group(scores: Mapping[Hashable, Sequence[float]], alpha: float) -> dict[Hashable, float]:
    """A threshold for each group, so that each is covered by itself (Mondrian)."""
    return {group: threshold(each, alpha) for group, each in scores.items()}


def group_coverage(
    scores: Mapping[Hashable, Sequence[float]], limits: Mapping[Hashable, float]
) -> dict[Hashable, Estimate]:
    """Share of each group's new cases that its own threshold covers, with Wilson's interval: cases are independent.

    Raises ValueError for a group without a threshold.
    """
    if missing := scores.keys() - limits.keys():
        raise ValueError(f"no threshold of group {min(map(repr, missing))}")
    known = {group: numbers("scores", each, -inf, inf) for group, each in scores.items()}
    upto = {group: number("limit", limit, -inf, inf) for group, limit in limits.items()}
    return {
        group: independent_rate(sum(score <= upto[group] for score in each), len(each)) for group, each in known.items()
    }


def weighted_threshold(scores: Sequence[float], weights: Sequence[float], own: float, alpha: float) -> float:
    """Threshold where cases to come are drawn otherwise than those of calibration: weights are ratios of densities, of
    each score and of the `own` new case (Tibshirani et al. 2019); equal ones give `threshold`.
    inf for too little weight.

    A shift of which the ratio is only guessed breaks the promise: say so beside the coverage.
    """
    alike(scores=scores, weights=weights)
    rank(len(scores), alpha)
    told = sorted(zip(numbers("scores", scores, -inf, inf), numbers("weights", weights, 0), strict=True))
    total = fsum(weight for _, weight in told) + number("own", own, 0)
    if not total:
        return inf
    need, so_far = float(1 - Fraction(str(alpha))) * total, 0.0
    for score, weight in told:
        so_far += weight
        if so_far >= need * (1 - ROUNDED):
            return score
    return inf


def nearest(truth: T, candidates: Sequence[T], distance: Callable[[T, T], float]) -> float:
    """Score of a set of generated outcomes: how far the truth is from the nearest of them, inf without any."""
    return min((number("distance", distance(truth, one), 0, inf) for one in candidates), default=inf)


def needed(truth: T, candidates: Sequence[T], like: Callable[[T, T], bool]) -> float:
    """Score of a set of generated outcomes: how many had to be drawn until one was like the truth, inf if none was."""
    return next((float(place) for place, one in enumerate(candidates, 1) if like(truth, one)), inf)


def risk_p(misses: int, n: int, alpha: float) -> float:
    """P(Bin(n, α) ≤ misses): p of "this setting misses more than α" (Angelopoulos et al. 2021)."""
    return binomial_tail(misses, n, alpha)


def learn_then_test(misses: Sequence[int], n: int, alpha: float, level: float = 0.05) -> int | None:
    """Place of the last setting that passes before the first that fails, from the safest on; None if the first fails.

    A fixed sequence keeps the chance of any false pass below `level`.
    """
    passed, level = None, share("level", level)
    for place, missed in enumerate(misses):
        if risk_p(missed, n, alpha) > level:
            break
        passed = place
    return passed


def all(record: Record, alpha: float = 0.1) -> Iterator[Measurement]:
    """How often a threshold from one half of the tables covers the other half: choices, and stated probabilities."""
    yield from choices(record, alpha)
    yield from forecasts(record, alpha)


def choices(record: Record, alpha: float = 0.1) -> Iterator[Measurement]:
    """The same of options that models chose."""
    chosen: list[Case] = []
    options: dict[int, list[Sequence[float]]] = {}
    left = 0
    for one in sampled(record):
        if one.kind == "choice" and one.whole and one.logprob is not None and one.processed:
            chosen.append(Case(one.key.table, one.key.agent, -one.logprob))
            known = [-each for each in one.options if each is not None]
            options.setdefault(one.key.table, []).append(known if len(known) == len(one.options) else ())
        else:
            left += one.kind == "choice"
    excluded = {"choices without a log-probability of what was sampled": left} if left else {}
    yield from _covered(record, chosen, alpha, excluded, "choices")
    yield _size(_tables(chosen), list(options.values()), alpha, "options", {"scores": "choices"})


def forecasts(record: Record, alpha: float = 0.1) -> Iterator[Measurement]:
    """The same of stated probabilities, and how many of the two outcomes are within the threshold."""
    said: list[Case] = []
    both: dict[int, list[Sequence[float]]] = {}
    for one in stated(record)[0]:
        yes, no = _surprise(one.given), _surprise(1 - one.given)
        said.append(Case(one.table, one.agent, yes if one.happened else no))
        both.setdefault(one.table, []).append((yes, no))
    yield from _covered(record, said, alpha, {}, "stated")
    yield _size(_tables(said), list(both.values()), alpha, "outcomes", {"scores": "stated"})


class Case(NamedTuple):
    """One score on a record, and whose."""

    table: int
    agent: AgentId
    score: float


def _tables(cases: Iterable[Case]) -> list[list[float]]:
    """Scores by table, tables as they come."""
    found: dict[int, list[float]] = {}
    for one in cases:
        found.setdefault(one.table, []).append(one.score)
    return list(found.values())


def _covered(
    record: Record, cases: Sequence[Case], alpha: float, excluded: Mapping[str, int], scores: str
) -> Iterator[Measurement]:
    """Of all, and of each role by itself where there are several."""
    yield from covered(_tables(cases), alpha, excluded, {"scores": scores})
    roles = {(table, agent): role for table, _, agent, role, _ in frames(record).cast.iter_rows()}
    by_role: dict[str, list[Case]] = {}
    for one in cases:
        by_role.setdefault(roles.get((one.table, one.agent), ""), []).append(one)
    for role, own in sorted(by_role.items()) if len(by_role) > 1 else ():
        yield from covered(_tables(own), alpha, {}, {"scores": scores, "role": role})


def covered(
    tables: Sequence[Sequence[float]],
    alpha: float,
    excluded: Mapping[str, int],
    of: Mapping[str, JSON],
    n_perm: int = DRAWS,
    unit: str = "nats",
) -> Iterator[Measurement]:
    """Threshold and coverage, from the scores of each table; the test asks whether fewer are covered than by chance."""
    half = len(tables) // 2
    limit = _limit(tables, alpha)
    new = tables[half:] if half else []
    found = rate([sum(score <= limit for score in each) for each in new], list(map(len, new)))
    finite = limit < inf
    enough = () if finite else (f"fewer than {fewest(alpha)} scores to calibrate on, or some of them infinite",)
    cases = Estimate(limit if finite else None, sum(map(len, tables[:half])), half)
    yield estimated("conformal.threshold", cases, unit, enough, denominator="scores of the first half", of=of)
    null: dict[str, JSON] = {}
    if finite and len(tables) > 3:
        sides = [place >= half for place in range(len(tables))]
        null = stratified(sides, tables, [0] * len(tables), lambda who, what: _missed(who, what, alpha), n_perm).null
    kept = found if finite else Estimate(None, found.n, found.clusters)
    shifted = (SHIFTED,) if null and null["p"] <= LEVEL else ()
    told = f"scores of the other half, promised {1 - alpha:.0%}"
    yield estimated(
        "conformal.coverage",
        kept,
        "share",
        (*enough, *shifted),
        denominator=told,
        null=null,
        excluded=dict(excluded),
        of=of,
    )


def _missed(new: Sequence[bool], tables: Sequence[Sequence[float]], alpha: float) -> float:
    """Share that is not covered of the new tables by a threshold from the others."""
    old, later = ([each for each, is_new in zip(tables, new, strict=True) if is_new is side] for side in (False, True))
    return 1 - (coverage(list(chain(*later)), threshold(list(chain(*old)), alpha)) or 0.0)


def _limit(tables: Sequence[Sequence[float]], alpha: float) -> float:
    return threshold(list(chain(*tables[: len(tables) // 2])), alpha)


def _size(
    tables: Sequence[Sequence[float]],
    scores: Sequence[Sequence[Sequence[float]]],
    alpha: float,
    unit: str,
    of: Mapping[str, JSON],
) -> Measurement:
    """How many of a case's outcomes are within the threshold, from the scores of all of them, which are none where some
    are not known: few say something, none and all nothing."""
    limit = _limit(tables, alpha)
    new = scores[len(tables) // 2 :] if limit < inf else []
    sizes = [float(sum(each <= limit for each in case)) for own in new for case in own if case]
    found = Estimate(fmean(sizes) if sizes else None, len(sizes), sum(any(own) for own in new))
    left = sum(not case for own in new for case in own)
    excluded = {"some outcome has no probability": left} if left else {}
    return estimated("conformal.set_size", found, unit, denominator="cases of the other half", excluded=excluded, of=of)


def _surprise(probability: float) -> float:
    return -log(probability) if probability > 0 else inf
