"""Whether answers to the same probes drift over the rounds of a run, as memory, tools or weights evolve.

A probe is an `item` that one agent is given in several rounds; read are facts with an `item` and a `success`, true or
false. Probes differ in how hard they are, so each has an intercept of its own in a logistic model (`statistics.glmm`),
whose slope is what a round does to the odds of the same probe. Rounds are those of `trends`; so that probes do not
teach, they are asked on forks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson
import polars as pl

from sim.intervals import FEW
from sim.metrics.chosen import both
from sim.metrics.frames import frames
from sim.metrics.safety.trends import drifts, rounds
from sim.metrics.statistics.glmm import effect
from sim.types import AgentId, Measurement, Record


class Probed(NamedTuple):
    """One answer to a probe."""

    table: int
    agent: AgentId
    item: str
    at: int
    """Its round."""
    success: bool


def all(record: Record) -> Iterator[Measurement]:
    """Drift of what probes come to, with and without what was defaulted."""
    yield from both(lambda one: measured(probed(one)))(record)


def probed(record: Record) -> list[Probed]:
    """All answers to items that were right or wrong, in the order of the log."""
    facts = frames(record).facts.with_columns(rounds().alias("at")).sort("tbl", "seq")
    tried = facts.filter((pl.col("actor") != "") & pl.col("data").str.contains('"success":', literal=True))
    found = []
    for table, agent, at, data in tried.select("tbl", "actor", "at", "data").iter_rows():
        held = orjson.loads(data)
        if "item" in held and isinstance(held.get("success"), bool):
            found.append(Probed(table, agent, str(held["item"]), at, held["success"]))
    return found


def measured(found: Sequence[Probed]) -> Iterator[Measurement]:
    """What a round does to the odds of success at a probe; its slope, trend and break as a share."""
    several: dict[tuple[int, AgentId, str], set[int]] = {}
    for one in found:
        several.setdefault(one[:3], set()).add(one.at)
    kept = [one for one in found if len(several[one[:3]]) > 1]
    told = effect([float(one.at) for one in kept], [one.success for one in kept], [one[:3] for one in kept])
    tables = len({one.table for one in kept})
    once = len(found) - len(kept)
    yield Measurement(
        metric="drift.probe_odds",
        value=told.ratio.value,
        unit="ratio",
        n=len(kept),
        n_clusters=tables,
        ci=told.ratio.ci,
        ci_method="normal on logs, an intercept a probe" if told.ratio.ci else "",
        denominator="odds of success at the same probe a round before",
        excluded={"probes of a single round": once} if once else {},
        flags=(*(told.ratio.flags if kept else ("nothing was probed twice",)), *((FEW,) if tables < 2 else ())),
        null={} if told.p is None else {"stat": told.ratio.value, "p": told.p, "method": "likelihood ratio"},
    )
    yield from drifts("probe_success", [(one.table, one.at, float(one.success)) for one in kept], "share")
