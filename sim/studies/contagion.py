"""The forked experiment on contagion: a run is frozen where secrets are told, and goes on without their being told.

Each fork replaces many disclosures by messages that tell nothing, none of which had heard another of them, and has the
luck of the run, or with replicates other luck that an untouched fork has too. What came of it is
`sim.metrics.privacy.forked_contagion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from sim.record.reader import Run
from sim.studies.counterfactual import Instead, counterfactual
from sim.types import FactId, Measurement, Record


class Arms(NamedTuple):
    """A run or a fork of it with disclosures, and the fork of the same luck without."""

    told: Path
    replaced: Path
    replicate: int


def groups(record: Record, most: int = 1) -> list[list[Instead]]:
    """Disclosures of a run and what to say instead, in at most so many groups, one for each fork; the rest is left out.

    Nobody in a group had seen another disclosure of it, so that a replaced decision is never one that is compared.
    """
    from sim.metrics.privacy.neutral import disclosing  # brings polars, which runs that are not measured do without

    found: list[tuple[set[tuple[int, FactId]], list[Instead]]] = []
    for one in disclosing(record):
        heard = {(one.table, fact) for fact in one.heard}
        free = next((group for group in found if not group[0] & heard), None)
        if free is None and len(found) < most:
            found.append(free := (set(), []))
        if free is not None and one.answer is not None:
            free[0].add((one.table, one.fact))
            free[1].append(Instead(one.table, one.tick, one.agent, one.answer))
    return [instead for _, instead in found if instead]


def arms(path: Path, folder: Path, wanted: Sequence[Sequence[Instead]], replicates: int = 1) -> Iterator[Arms]:
    """For each group and number of luck the two runs to compare, made and not started, or as they are already."""
    for group in wanted:
        tick = min(one.tick for one in group)
        for number in range(replicates):
            told = counterfactual(path, folder, (), at=tick, replicate=number) if number else path
            yield Arms(told, counterfactual(path, folder, group, replicate=number), number)


def measured(found: Sequence[Arms], window: int = 1, reads: int | None = None) -> list[Measurement]:
    """What the disclosures did; the arms have been run."""
    from sim.metrics.privacy.forked_contagion import Contrast
    from sim.metrics.privacy.forked_contagion import all as measure

    with ExitStack() as open_runs:
        runs = {path: open_runs.enter_context(Run(path)) for one in found for path in one[:2]}
        pairs = [Contrast(runs[one.told], runs[one.replaced], one.replicate) for one in found]
        return list(measure(pairs, window, reads))
