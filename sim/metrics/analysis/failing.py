"""Which decisions are about to fail, foretold by what was learnt at other tables.

Learnt are two things: how much uncertainty each kind of edge passes on (in time, from an agent's decision before; in
meaning, from what it was shown or recalls), and a logistic head on features of a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.metrics.analysis.goals import nearness
from sim.metrics.analysis.improvement import looping
from sim.metrics.analysis.uncertainty import Place, alone, failures, rounds, separations, sources, through
from sim.metrics.frames import frames
from sim.metrics.statistics.centred import DRAWS
from sim.metrics.statistics.discrimination import scored
from sim.metrics.statistics.given import alike, number, numbers, truths
from sim.types import Measurement, Record

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of an edge, among which the best at other tables is chosen."""
PENALTY = 1.0
STEPS = 30
Vector: TypeAlias = NDArray[np.float64]
Edges: TypeAlias = Mapping[Place, Sequence[Place]]


def logistic(
    rows: Sequence[Sequence[float]], outcomes: Sequence[bool], penalty: float = PENALTY
) -> Callable[[Sequence[float]], float]:
    """Probability of an outcome by a row of features: logistic regression whose squared coefficients, of features in
    standard deviations, are penalised (le Cessie and van Houwelingen 1992), so that it has an answer always.

    Raises ValueError without rows or without a penalty, for rows of unequal length and for what is no number.
    """
    alike(rows=rows, outcomes=outcomes)
    if not len(rows) or not number("penalty", penalty, 0):
        raise ValueError(
            "rows: none" if not len(rows) else "penalty: 0 has no finite answer where outcomes are told apart"
        )
    alike(**{f"features of row {place}": row for place, row in enumerate(rows)})
    x, y = np.array([numbers("rows", row) for row in rows]), np.array(truths("outcomes", outcomes), float)
    middle, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread < 1e-12] = 1.0
    z = np.column_stack([np.ones(len(x)), (x - middle) / spread])
    ridge = np.diag([1e-6, *[penalty] * x.shape[1]])  # a constant alone is told apart too
    beta = np.zeros(z.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        step = np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + ridge, z.T @ (y - p) - ridge @ beta)
        beta = beta + step / max(1.0, float(np.abs(step).max()))
        if float(np.abs(step).max()) < 1e-9:
            break

    def probability(row: Sequence[float]) -> float:
        alike(features=row, learnt=middle)
        score = beta[0] + (np.array(numbers("row", row)) - middle) / spread @ beta[1:]
        return float(1 / (1 + np.exp(-np.clip(score, -30, 30))))

    return probability


def foretold(record: Record, draws: int = DRAWS) -> Iterator[Measurement]:
    """How well failures are told by uncertainty passed on with learnt weights, and by a logistic head: as
    `sim.metrics.analysis.uncertainty:separations`, each decision by what was learnt at other tables.

    Features of a decision are its uncertainty alone and passed on, the share of the agent's decisions so far that only
    repeat an answer at an information state, the share of those before it that failed, and how near to the agent's
    goals it is (`goals`): where there is nothing to be near to it is as near as others are, and said to have no goal.
    A single table foretells nothing.
    """
    own, failed = alone(record), failures(record)
    told = rounds(record)
    known = {place: failed[place] for place in own}
    weighed = _learnt(own, known, _edges(record, own))
    head = _headed(_features(record, weighed, own, failed), known)
    for name, found, version in (("learned", weighed, 1), ("head", head, 2)):
        of_found = {place: known[place] for place in found}
        yield from separations(f"failing.{name}", found, of_found, told, {}, draws, version)


def _edges(record: Record, own: Mapping[Place, float]) -> tuple[Edges, Edges]:
    """Of each decision those before it, in time and in meaning."""
    last: dict[tuple[int, str], Place] = {}
    time: dict[Place, list[Place]] = {}
    for table, seq, agent in frames(record).decisions.sort("tbl", "seq").select("tbl", "seq", "agent").iter_rows():
        if (table, seq) in own:
            if (table, agent) in last:
                time[table, seq] = [last[table, agent]]
            last[table, agent] = (table, seq)
    return time, {place: sorted(before) for place, before in sources(record).items()}


def _learnt(own: Mapping[Place, float], failed: Mapping[Place, bool], edges: tuple[Edges, Edges]) -> dict[Place, float]:
    """Uncertainty passed on by the weights that tell failures best at the other tables; the smallest of equals."""
    passed = {}
    for weights in product(WEIGHTS, repeat=2):
        joined = {
            place: [(one, weight) for kind, weight in zip(edges, weights, strict=True) for one in kind.get(place, ())]
            for place in own
        }
        passed[weights] = through(own, joined)
    places, bad = list(own), [failed[place] for place in own]
    told = {weights: scored([each[place] for place in places], bad) for weights, each in passed.items()}
    at = np.array([table for table, _ in places])
    found: dict[Place, float] = {}
    for table in _several(own):
        others = (at != table).astype(float)
        areas = {weights: units.sums(others).auroc() or 0.0 for weights, units in told.items()}
        best = max(areas, key=areas.__getitem__)
        found |= {place: passed[best][place] for place in places if place[0] == table}
    return found


def _several(places: Iterable[Place]) -> list[int]:
    """The tables, where there are two or more."""
    tables = sorted({table for table, _ in places})
    return tables if len(tables) > 1 else []


def _features(
    record: Record, passed: Mapping[Place, float], own: Mapping[Place, float], failed: Mapping[Place, bool]
) -> dict[Place, tuple[list[float], float | None]]:
    """Of each decision what it has, and how near to a goal it is, if to any."""
    looped = {(table, seq): again for table, seq, again in looping(record).select("tbl", "seq", "again").iter_rows()}
    near = nearness(record)
    repeats, wrong, before = Counter[tuple[int, str]](), Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    found = {}
    for table, seq, agent in frames(record).decisions.sort("tbl", "seq").select("tbl", "seq", "agent").iter_rows():
        who, place = (table, agent), (table, seq)
        repeats[who] += looped.get(place, False)
        if place in passed:
            errors = wrong[who] / before[who] if before[who] else 0.0
            row = [own[place], passed[place], repeats[who] / (before[who] + 1), errors]
            found[place] = row, near.get(place)
        before[who] += 1
        wrong[who] += failed[place]
    return found


def _headed(
    features: Mapping[Place, tuple[list[float], float | None]], failed: Mapping[Place, bool]
) -> dict[Place, float]:
    found: dict[Place, float] = {}
    for table in _several(features):
        others = [place for place in features if place[0] != table]
        known = [near for place in others if (near := features[place][1]) is not None]
        usual = fmean(known) if known else 0.0
        rows = {
            place: [*row, usual if near is None else near, float(near is not None)]
            for place, (row, near) in features.items()
        }
        head = logistic([rows[place] for place in others], [failed[place] for place in others])
        found |= {place: head(row) for place, row in rows.items() if place[0] == table}
    return found
