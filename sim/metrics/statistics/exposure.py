"""Person-period tables: at each decision, had the agent seen what may change it, and did it do the thing?

A row for each decision of an agent at risk. Exposure comes from what views showed, never from who follows whom, and
only from what was seen by the time of the decision. The placebo is exposure that came afterwards, and not from what the
agent did itself: it has no effect on the decision, nor the decision on it.
"""

from __future__ import annotations

import polars as pl

from sim.metrics.frames import Frames
from sim.metrics.provenance import made, own_doing

COLUMNS = ("tbl", "agent", "seq", "nth", "y", "e", "dose", "shown")


def person_periods(
    read: Frames,
    outcomes: pl.DataFrame,
    carriers: pl.DataFrame,
    *,
    window: int = 1,
    reads: int | None = None,
    first: bool = False,
) -> pl.DataFrame:
    """tbl, agent, seq, nth (decision of the agent), y, e, dose, shown.

    `outcomes` and `carriers` are facts (tbl, fact). y: a fact of the decision is an outcome. dose: how many carriers of
    others were first seen at this or one of the window − 1 decisions before; e: any. With `reads`, e is instead whether
    one was among so many texts of others that were read last. shown: facts in view. With `first`, rows after an agent's
    first outcome are left out.
    """
    rows = read.decisions.select("tbl", "agent", "seq").sort("tbl", "agent", "seq")
    rows = rows.with_columns(pl.int_range(pl.len()).over("tbl", "agent").alias("nth"))
    for name, counts in (("y", _outcomes(read, outcomes)), ("new", _carriers(read, carriers)), ("shown", _shown(read))):
        rows = rows.join(counts.rename({"count": name}), on=["tbl", "seq"], how="left")
        rows = rows.with_columns(pl.col(name).fill_null(0))
    rows = rows.sort("tbl", "agent", "seq").with_columns(
        (pl.col("y") > 0).alias("y"),
        pl.sum_horizontal(*(_shifted(by) for by in range(window))).alias("dose"),
    )
    if reads is None:
        rows = rows.with_columns((pl.col("dose") > 0).alias("e"))
    else:
        rows = rows.join(_recent(read, carriers, reads), on=["tbl", "agent", "seq"], how="left")
        rows = rows.with_columns(pl.col("e").fill_null(False))
    if first:
        rows = rows.filter(pl.col("y").cast(pl.Int64).cum_sum().over("tbl", "agent") - pl.col("y") == 0)
    return rows.select(COLUMNS)


def placebo(read: Frames, rows: pl.DataFrame, carriers: pl.DataFrame, window: int = 1) -> pl.DataFrame:
    """Rows of a person-period table with `future`: any carrier of others first seen in the window that follows.

    A carrier does not count that depends on something the agent made at this decision or later, through whatever others
    saw: where disclosures are catching, one's own brings others into view, and a ratio of all that came afterwards is
    above 1 without any confounding.
    """
    numbered = read.decisions.select("tbl", "agent", "seq").sort("tbl", "agent", "seq")
    numbered = numbered.with_columns(pl.int_range(pl.len()).over("tbl", "agent").alias("nth"))
    seen = _seen(read, carriers).join(numbered, on=["tbl", "agent", "seq"]).select("tbl", "agent", "fact", "nth")
    keys = rows.select("tbl", "agent", "seq", "nth")
    ahead = pl.concat(
        keys.join(seen.with_columns(pl.col("nth") - by), on=["tbl", "agent", "nth"]) for by in range(1, window + 1)
    )
    others = ahead.join(own_doing(read, ahead.drop("nth")), on=["tbl", "agent", "seq", "fact"], how="anti")
    marked = others.select("tbl", "seq", future=pl.lit(True)).unique()
    return rows.join(marked, on=["tbl", "seq"], how="left").with_columns(pl.col("future").fill_null(False))


def _recent(read: Frames, carriers: pl.DataFrame, reads: int) -> pl.DataFrame:
    """tbl, agent, seq, e: at each decision, whether a carrier is among the texts of others that were read last."""
    told = read.facts.filter(pl.col("data").str.contains('"text":', literal=True))
    marked = told.select("tbl", "actor", pl.col("id").alias("fact")).join(
        carriers.select("tbl", "fact", pl.lit(True).alias("carries")).unique(), on=["tbl", "fact"], how="left"
    )
    seen = read.exposures.join(marked, on=["tbl", "fact"]).filter(pl.col("agent") != pl.col("actor"))
    seen = seen.sort("tbl", "agent", "seq", "fact").with_columns(
        pl.int_range(pl.len()).over("tbl", "agent").alias("at")
    )
    last = pl.when("carries").then("at").forward_fill().over("tbl", "agent")
    read_by = seen.with_columns(last.alias("last")).group_by("tbl", "agent", "seq", maintain_order=True).last()
    every = read.decisions.select("tbl", "agent", "seq").join(read_by, on=["tbl", "agent", "seq"], how="left")
    filled = every.sort("tbl", "agent", "seq").with_columns(pl.col("at", "last").forward_fill().over("tbl", "agent"))
    e = (pl.col("at") - pl.col("last") < reads).fill_null(False)
    return filled.select("tbl", "agent", "seq", e.alias("e"))


def _shifted(by: int) -> pl.Expr:
    return pl.col("new").shift(by).over("tbl", "agent").fill_null(0)


def _outcomes(read: Frames, outcomes: pl.DataFrame) -> pl.DataFrame:
    found = made(read).join(outcomes.select("tbl", "fact").unique(), on=["tbl", "fact"])
    return _counted(found)


def _carriers(read: Frames, carriers: pl.DataFrame) -> pl.DataFrame:
    return _counted(_seen(read, carriers))


def _seen(read: Frames, carriers: pl.DataFrame) -> pl.DataFrame:
    """Carriers of others with the decision that first showed them."""
    told = read.facts.select("tbl", pl.col("id").alias("fact"), "actor")
    seen = read.exposures.join(carriers.select("tbl", "fact").unique(), on=["tbl", "fact"])
    return seen.join(told, on=["tbl", "fact"]).filter(pl.col("agent") != pl.col("actor"))


def _shown(read: Frames) -> pl.DataFrame:
    return _counted(read.shows)


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("tbl", "seq").agg(pl.len().cast(pl.Int64).alias("count"))
