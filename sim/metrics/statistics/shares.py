"""Shares of rows of a frame as measurements: the tables of a run are the clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sim.metrics.statistics.clusters import Estimate, rate
from sim.types import JSON, Event, Measurement

EVIDENCE = 1_000
"""Most ids that stand behind one number."""


def share(
    metric: str,
    rows: pl.DataFrame,
    hit: pl.Expr,
    *,
    tables: int,
    denominator: str,
    excluded: Mapping[str, int] | None = None,
    events: str = "",
    decisions: str = "",
    flags: tuple[str, ...] = (),
    version: int = 1,
    of: Mapping[str, JSON] | None = None,
) -> Measurement:
    """Share of rows for which `hit` holds; those of a table, by the column `tbl`, are one cluster.

    `events` names the column with ids of facts, `decisions` that with places of decisions in the log.
    """
    marked = rows.with_columns(hit.fill_null(False).alias("_hit"))
    counted = marked.group_by("tbl").agg(pl.col("_hit").sum().alias("hits"), pl.len().alias("size")).sort("tbl")
    found = rate(counted["hits"].to_list(), counted["size"].to_list())
    hits = marked.filter("_hit")
    cut = (f"{EVIDENCE} of {len(hits)} events",) if len(hits) > EVIDENCE and (events or decisions) else ()
    return Measurement(
        metric=metric,
        value=found.value,
        unit="share",
        n=len(rows),
        n_clusters=found.clusters,
        ci=found.ci,
        ci_method=found.method,
        events=evidence(hits, events, tables),
        decisions=evidence(hits, decisions, tables),
        denominator=denominator,
        excluded={reason: count for reason, count in (excluded or {}).items() if count},
        flags=(*flags, *found.flags, *cut),
        version=version,
        of=of or {},
    )


def share_by(
    metric: str, rows: pl.DataFrame, hit: pl.Expr, column: str, *, tables: int, denominator: str, decisions: str
) -> Iterator[Measurement]:
    """The share of each value of a column, in one pass however many values there are; `decisions` as in `share`."""
    marked = rows.with_columns(hit.fill_null(False).alias("_hit"))
    counted = marked.group_by(column, "tbl").agg(pl.col("_hit").sum().alias("hits"), pl.len().alias("size"))
    hits = marked.filter("_hit").select(column, "tbl", decisions).sort("tbl", decisions)
    ids = {value: part for (value,), part in hits.partition_by(column, as_dict=True).items()}
    for value, *sums in counted.sort("tbl").group_by(column).agg("hits", "size").sort(column).iter_rows():
        found = rate(*sums)
        there = ids.get(value)
        yield estimated(
            metric,
            found,
            "share",
            denominator=denominator,
            decisions=() if there is None else evidence(there, decisions, tables),
            of={column: value},
        )


def evidence(rows: pl.DataFrame, column: str, tables: int) -> tuple[Event, ...]:
    """The first ids of a column that are there, with their tables where there are several; none for no column."""
    if not column:
        return ()
    found = rows.select("tbl", column).drop_nulls().unique().sort("tbl", column).head(EVIDENCE)
    return tuple(found[column].to_list()) if tables == 1 else tuple(found.rows())


def by(rows: pl.DataFrame, column: str) -> Iterator[tuple[Any, pl.DataFrame]]:
    """The rows of each value of a column, in order of the values."""
    for (value,), part in sorted(rows.partition_by(column, as_dict=True).items()):
        yield value, part


def estimated(metric: str, found: Estimate, unit: str = "", flags: tuple[str, ...] = (), **more: Any) -> Measurement:
    """An estimate as a measurement."""
    return Measurement(
        metric=metric,
        value=found.value,
        unit=unit,
        n=int(found.n),
        n_clusters=found.clusters,
        ci=found.ci,
        ci_method=found.method,
        flags=(*flags, *found.flags),
        **more,
    )
