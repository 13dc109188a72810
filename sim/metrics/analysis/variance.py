"""Where the variance of what tables earn comes from: conditions, seeds, runs, tables of one run.

Runs of the same seed share their luck, and so do forks at one tick of one replicate. What runs differ by beside
condition and seed is their own: the engine's answers, or what a condition does with one seed and not with another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

from sim.intervals import FEW
from sim.metrics.family import Relative, conditions
from sim.metrics.statistics.reml import CELL, DRAWS, WITHIN, reml
from sim.types import Measurement


def compared(runs: Sequence[Relative], draws: int = DRAWS) -> Iterator[Measurement]:
    """Variance components by restricted maximum likelihood, and how alike tables of a run are, condition aside."""
    earned = [[fsum(one.record.rewards(table).values()) for table in range(one.record.tables)] for one in runs]
    told = {one.id: condition for condition, members in conditions(runs).items() for one in members}
    lucks = [(one.scenario.get("seed"), one.replicate, one.tick if one.replicate else None) for one in runs]
    found = reml(earned, {"condition": [told[one.id] for one in runs], "seed": lucks}, draws)
    tables = sum(map(len, earned))
    several = tables > len(runs)
    names = {CELL: "run", WITHIN: "table" if several else "run"}
    more: dict[str, Any] = {"n": tables, "n_clusters": len(runs), "denominator": "what tables earn"}
    if found is None:
        reason = FEW if len(runs) < 2 else "nothing varies within runs" if several else "fewer than three runs"
        yield Measurement(metric="variance.component", value=None, flags=(reason,), **more)
        return
    for source, value in found.by.items():
        yield Measurement(
            metric="variance.component",
            value=value,
            ci=found.ci.get(source),
            ci_method="parametric bootstrap" if source in found.ci else "",
            flags=("negative component",) if source in found.bounded else (),
            of={"source": names.get(source, source)},
            **more,
        )
    own = {name: value for name, value in found.by.items() if name != "condition"}
    between = fsum(value for name, value in own.items() if name != WITHIN)
    total = fsum(own.values())
    icc = between / total if several and total else None
    yield Measurement(
        metric="variance.icc", value=icc, unit="share", flags=() if several else ("one table a run",), **more
    )
