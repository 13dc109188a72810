"""Which decisions are about to fail, foretold by what was learnt at other tables.

Learnt are two things: how much uncertainty each kind of edge passes on (in time, from an agent's decision before; in
meaning, from what it was shown or recalls), and a logistic head on features of a decision. Left out is how near an
answer is to the goal (`goal_similarity`), as records have no goals in common: subgoals are an agent's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.metrics.analysis.uncertainty import Place, alone, failures, rounds, separations, sources, through
from sim.metrics.frames import frames
from sim.metrics.repetition import tokens
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


def goal_similarity(goal: str, text: str) -> float | None:
    """Shared words over all words of both (Jaccard 1912), whatever their case; None without words."""
    one, other = (set(tokens(each.casefold())) for each in (goal, text))
    return len(one & other) / len(one | other) if one | other else None


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

    Features of a decision are its uncertainty alone and passed on, the share of the agent's decisions so far that
    repeat an answer at an information state, and the share of those before it that failed. A single table foretells
    nothing.
    """
    own, failed = alone(record), failures(record)
    told = rounds(record)
    known = {place: failed[place] for place in own}
    weighed = _learnt(own, known, _edges(record, own))
    head = _headed(_features(record, weighed, own, failed), known)
    for name, found in (("learned", weighed), ("head", head)):
        of_found = {place: known[place] for place in found}
        yield from separations(f"failing.{name}", found, of_found, told, {}, draws)


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
) -> dict[Place, list[float]]:
    seen: set[tuple[Hashable, ...]] = set()
    repeats, wrong, before = Counter[tuple[int, str]](), Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    found = {}
    rows = frames(record).decisions.sort("tbl", "seq").select("tbl", "seq", "agent", "key", "answer")
    for table, seq, agent, key, answer in rows.iter_rows():
        who, step = (table, agent), (table, agent, key, answer)
        repeats[who] += key is not None and step in seen
        seen.add(step)
        if (table, seq) in passed:
            errors = wrong[who] / before[who] if before[who] else 0.0
            found[table, seq] = [own[table, seq], passed[table, seq], repeats[who] / (before[who] + 1), errors]
        before[who] += 1
        wrong[who] += failed[table, seq]
    return found


def _headed(features: Mapping[Place, Sequence[float]], failed: Mapping[Place, bool]) -> dict[Place, float]:
    found: dict[Place, float] = {}
    for table in _several(features):
        others = [place for place in features if place[0] != table]
        head = logistic([features[place] for place in others], [failed[place] for place in others])
        found |= {place: head(row) for place, row in features.items() if place[0] == table}
    return found
