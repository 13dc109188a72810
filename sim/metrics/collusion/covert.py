"""Covert channels: what a public act tells of a private type beyond what an honest strategy would.

Information is taken given everything that an honest strategy may use. Both ways to err are there: a masked channel has
none without the condition, and a strategy alone looks like one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from math import log
from typing import NamedTuple, TypeAlias

from sim.metrics.statistics.distances import entropy
from sim.metrics.statistics.given import alike, numbers
from sim.metrics.statistics.permutation import DRAWS, Test, stratified

Table: TypeAlias = Sequence[Sequence[float]]
"""Counts of a type (rows) with an act (columns)."""
FEWEST = 5
"""Observations of a stratum with fewer than which it is left out."""


class Leak(NamedTuple):
    """Bits of a channel, what chance gives of them, and how sure it is."""

    bits: float
    excess: float
    """Above the mean of shuffled types."""
    test: Test
    left_out: int
    """Observations in strata too small."""


def mutual_information(table: Table) -> float | None:
    """I(T; A) = H(T) + H(A) − H(T, A) of observed shares, in bits: too large in small samples. None for no counts."""
    rows, columns, cells = _margins(table)
    return max(0.0, entropy(rows) + entropy(columns) - entropy(cells)) if any(cells) else None


def miller_madow(table: Table) -> float | None:
    """Mutual information corrected by (m_T + m_A − m_TA − 1)/(2n ln 2), m the occupied cells (Miller 1955)."""
    (rows, columns, cells), plain = _margins(table), mutual_information(table)
    if plain is None:
        return None
    occupied = [sum(count > 0 for count in counts) for counts in (rows, columns, cells)]
    return plain + (occupied[0] + occupied[1] - occupied[2] - 1) / (2 * sum(cells) * log(2))


def conditional_information(tables: Sequence[Table], *, corrected: bool = False) -> float | None:
    """I(T; A | S): the mean over strata of their information, by size; None without observations."""
    sizes = [sum(_margins(table)[0]) for table in tables]
    measure = miller_madow if corrected else mutual_information
    total = sum(sizes)
    return sum(n * (measure(table) or 0.0) for n, table in zip(sizes, tables, strict=True)) / total if total else None


def leak(
    types: Sequence[Hashable], acts: Sequence[Hashable], strata: Sequence[Hashable], n_perm: int = DRAWS, seed: int = 0
) -> Leak | None:
    """I(T; A | S) with a test that shuffles types within strata; None where each stratum has one type.

    Strata with fewer than `FEWEST` observations are left out and counted.
    """
    alike(types=types, acts=acts, strata=strata)
    counts = Counter(strata)
    kept = [place for place, stratum in enumerate(strata) if counts[stratum] >= FEWEST]
    t, a, s = ([sample[place] for place in kept] for sample in (types, acts, strata))
    kinds = defaultdict(set)
    for kind, stratum in zip(t, s, strict=True):
        kinds[stratum].add(kind)
    if not kept or all(len(each) == 1 for each in kinds.values()):
        return None

    def bits(labels: Sequence[Hashable], outcomes: Sequence[Hashable]) -> float:
        return conditional_information(_tables(labels, outcomes, s)) or 0.0

    test = stratified(t, a, s, bits, n_perm, seed)
    return Leak(test.stat, test.stat - test.mean, test, len(strata) - len(kept))


def _margins(table: Table) -> tuple[list[float], list[float], list[float]]:
    """Sums of rows and of columns, and all cells. Raises ValueError for rows of unequal lengths."""
    alike(**{f"in row {place}": row for place, row in enumerate(table)})
    counts = [numbers("counts", row, 0) for row in table]
    return list(map(sum, counts)), list(map(sum, zip(*counts, strict=True))), [cell for row in counts for cell in row]


def _tables(types: Sequence[Hashable], acts: Sequence[Hashable], strata: Sequence[Hashable]) -> list[list[list[int]]]:
    joint = Counter(zip(strata, types, acts, strict=True))
    rows, columns = list(dict.fromkeys(types)), list(dict.fromkeys(acts))
    return [[[joint[s, t, a] for a in columns] for t in rows] for s in dict.fromkeys(strata)]
