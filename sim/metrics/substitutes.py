"""Decisions put in the place of a model's: when they came, and whether those who had more of them earned otherwise.

A round is the n-th decision of an agent at its table, as worlds count rounds in ways of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import fmean, pstdev
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sim.metrics.frames import Frames, frames
from sim.metrics.statistics.given import ROUNDED, alike, numbers
from sim.metrics.statistics.permutation import DRAWS, Test, p_value
from sim.metrics.statistics.shares import share_by
from sim.types import Measurement, Record

Matrix: TypeAlias = NDArray[np.float64]
SUBSTITUTED = ~pl.col("how").is_in(["chosen", "retried"])
"""Whether a decision was defaulted or faulted."""
MOST_BINS = 10
"""Numbers that a run has by round, however long it is."""


def asked(read: Frames) -> pl.DataFrame:
    """Decisions of agents that a model speaks for, but those that an intervention forced."""
    spoken = read.cast.filter(pl.col("model") != "").select("tbl", "agent")
    return read.decisions.filter(pl.col("how") != "forced").join(spoken, on=["tbl", "agent"])


def default_by_round(record: Record) -> Iterator[Measurement]:
    """Decisions that were not the model's over decisions of agents with a model, by round: the n-th decision of each
    agent at its table, several rounds together where there are more than ten."""
    place, width = pl.col("place"), pl.col("place").max() // MOST_BINS + 1
    first, last = place // width * width + 1, (place // width + 1) * width
    name = pl.when(first == last).then(pl.format("{}", first)).otherwise(pl.format("{} to {}", first, last))
    rows = asked(frames(record)).sort("tbl", "seq")
    rows = rows.with_columns(pl.int_range(pl.len()).over("tbl", "agent").alias("place")).with_columns(
        name.alias("round")
    )
    found = share_by(
        *("honesty.default_by_round", rows, SUBSTITUTED, "round"),
        tables=record.tables,
        denominator="decisions of agents with a model in these rounds",
        decisions="seq",
    )
    yield from sorted(found, key=lambda one: int(str(one.of["round"]).split()[0]))


def default_outcome(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Correlation of the share of an agent's decisions at a table that were not its model's with what it earned there,
    both as distances from the agent's mean over tables. The test shuffles which table's shares go with which table's
    rewards, for all agents alike; it is two-sided. Agents who are not at all tables are left out."""
    shares = asked(frames(record)).group_by("tbl", "agent").agg(SUBSTITUTED.mean().alias("share"))
    whole = shares.group_by("agent").agg(pl.len().alias("tables")).filter(pl.col("tables") == record.tables)
    kept = shares.join(whole, on="agent", how="semi").sort("agent", "tbl")
    agents = kept["agent"].unique(maintain_order=True).to_list()
    given = kept["share"].to_numpy().reshape(len(agents), record.tables)
    found = None
    if record.tables > 1 and given.any():
        earned = [record.rewards(table) for table in range(record.tables)]
        found = associated(given, np.array([[each.get(agent, 0.0) for each in earned] for agent in agents]), n_perm)
    left_out = shares["agent"].n_unique() - len(agents)
    yield Measurement(
        metric="honesty.default_outcome",
        value=found.stat if found else None,
        unit="correlation",
        n=len(kept),
        n_clusters=record.tables,
        denominator="agents with a model, at each table",
        excluded={"agents not at all tables": left_out} if left_out else {},
        flags=() if found else ("one table" if record.tables < 2 else "the same defaults, or rewards, at all tables",),
        null=found.null if found else {},
    )


def associated(given: Matrix, earned: Matrix, n_perm: int = DRAWS) -> Test | None:
    """Correlation of two numbers of each agent (row) at each table (column), less the agent's means, and its test; None
    where one of them does not vary. Raises ValueError for what is no number and for rows of unequal length."""
    alike(given=given, earned=earned)
    alike(**{f"row {place}": row for place, row in enumerate((*given, *earned))})
    given, earned = (np.array([numbers("rows", row) for row in rows]) for rows in (given, earned))
    if not all(np.ptp(each, axis=1).any() for each in (given, earned)):
        return None
    x, y = (each - each.mean(1, keepdims=True) for each in (given, earned))
    size, luck, tables = float(np.sqrt((x * x).sum() * (y * y).sum())), Random(0), range(x.shape[1])
    stat = float((x * y).sum()) / size
    drawn = [float((x[:, luck.sample(tables, len(tables))] * y).sum()) / size for _ in range(n_perm)]
    p, mean = p_value(abs(stat), list(map(abs, drawn))), fmean(drawn)
    spread = pstdev(drawn, mean)
    z = (stat - mean) / spread if spread > ROUNDED else None
    return Test(stat, p, mean, z, n_perm, "tables shuffled")
