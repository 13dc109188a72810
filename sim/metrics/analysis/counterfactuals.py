"""What would have come of a change, as a set that holds the truth as often as promised; from forks that say the truth.

A metric of several runs: `agora fork RUN --at TIME --edit … --replicates 20`, of one run of many tables or of many
runs, then `agora measure RUN… --across sim.metrics.analysis.counterfactuals:compared`. The fork with the run's own luck
is what would have happened, all noise as it was; those with other luck are what could be foretold without knowing the
noise. The set around these is made as wide as the first half of the cases asks for (the counterfactual form of
`conformal`). A case is a table of a run, its outcome what all earn there together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import fsum, inf, isclose
from typing import NamedTuple

from sim.metrics.analysis.conformal import covered, learn_then_test, nearest, needed, threshold
from sim.metrics.family import Relative
from sim.metrics.statistics.clusters import Estimate, independent_rate, mean
from sim.metrics.statistics.permutation import DRAWS
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, Measurement


class Case(NamedTuple):
    """What came of a change at one table, and what could have."""

    run: str
    truth: float
    """With the run's own luck."""
    candidates: Sequence[float]
    """With other luck, in the order of replicates."""

    @property
    def distance(self) -> float:
        """From the truth to the nearest candidate."""
        return nearest(self.truth, self.candidates, lambda one, other: abs(one - other))

    @property
    def needed(self) -> float:
        """How many candidates it takes until one is the truth; inf where none is."""
        return needed(self.truth, self.candidates, lambda one, other: isclose(one, other, abs_tol=1e-9))


def compared(runs: Sequence[Relative], alpha: float = 0.1, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """For each change that was tried the distance and the number of candidates that cover the truth, and how often."""
    found, left = cases(runs)
    for change in sorted({*found, *left}):
        excluded = {"forks without one of the run's own luck, or without others": left[change]} if left[change] else {}
        yield from measured(found[change], alpha, {"change": change}, excluded, n_perm)
    if not found and not left:
        yield from measured([], alpha, {}, {}, n_perm)


def cases(runs: Sequence[Relative]) -> tuple[dict[str, list[Case]], dict[str, int]]:
    """By change the cases, in the order of runs and tables; and how many groups of forks make none."""
    groups: dict[tuple[str, int | None, str], dict[int, Relative]] = defaultdict(dict)
    for one in runs:
        if one.parent and one.change:
            groups[one.parent, one.tick, one.change][one.replicate] = one
    found: dict[str, list[Case]] = defaultdict(list)
    left: dict[str, int] = defaultdict(int)
    for (parent, _, change), there in groups.items():
        truth, others = there.get(0), [there[number] for number in sorted(there) if number]
        if truth is None or not others:
            left[change] += 1
            continue
        for table in range(truth.record.tables):
            found[change].append(Case(parent, _earned(truth, table), [_earned(one, table) for one in others]))
    return found, left


def _earned(one: Relative, table: int) -> float:
    return fsum(one.record.rewards(table).values())


def measured(
    found: Sequence[Case], alpha: float, of: Mapping[str, JSON], excluded: Mapping[str, int], n_perm: int = DRAWS
) -> Iterator[Measurement]:
    """Of one change how wide a set around the candidates is that covers the truth as often as promised, by the first
    half of the cases; and how many candidates do. Runs hang together, or of a single run tables."""
    by_run: dict[str, list[Case]] = defaultdict(list)
    for one in found:
        by_run[one.run].append(one)
    groups = list(by_run.values()) if len(by_run) > 1 else [[one] for one in found]
    old, new = (list(chain(*part)) for part in (groups[: len(groups) // 2], groups[len(groups) // 2 :]))
    scores = [[one.distance for one in group] for group in groups]
    yield from covered(scores, alpha, excluded, {"scores": "counterfactuals", **of}, n_perm, "reward")
    limit = threshold([one.distance for one in old], alpha)
    widths = [_width(one.candidates, limit) for one in new] if old and limit < inf else []
    size = mean(widths)._replace(ci=None, method="", flags=())
    told = "cases of the other half"
    yield estimated("conformal.set_width", size, "reward", denominator=told, of=of)
    yield from _counted(old, new, alpha, of)


def _width(candidates: Sequence[float], limit: float) -> float:
    """Length of the union of intervals of this half-width around the candidates."""
    ordered = sorted(candidates)
    return 2 * limit + fsum(min(after - before, 2 * limit) for before, after in pairwise(ordered))


def _counted(old: Sequence[Case], new: Sequence[Case], alpha: float, of: Mapping[str, JSON]) -> Iterator[Measurement]:
    """The fewest candidates among which is the truth as often as promised, by tests from all of them downwards that
    stop at the first that fails (Angelopoulos et al. 2021); and how often it is among as many in the other half."""
    most = min((len(one.candidates) for one in (*old, *new)), default=0)
    numbers = range(most, 0, -1)
    misses = [sum(one.needed > number for one in old) for number in numbers]
    passed = learn_then_test(misses, len(old), alpha)
    enough = None if passed is None else numbers[passed]
    flags = () if enough else ("more candidates are needed, or more cases",)
    fewest = Estimate(None if enough is None else float(enough), len(old), len(old))
    yield estimated("conformal.candidates", fewest, "candidates", flags, denominator="cases of the first half", of=of)
    hits = Estimate(None) if enough is None else independent_rate(sum(one.needed <= enough for one in new), len(new))
    told = f"cases of the other half, promised {1 - alpha:.0%}"
    yield estimated("conformal.candidates_coverage", hits, "share", denominator=told, of=of)
