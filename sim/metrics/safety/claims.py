"""Deception, of facts that say what they hold.

`truths` in a fact's data are observed by its actor and by whoever is shown it; `claims` make it a statement, `asked`
names what it was asked, `honest` is what its speaker says of it: true, false, or how likely from 0 to 1; a fact with a
`rating` from 0 to 1 that answers a statement says how deceptive somebody else takes it to be. What others claim is not
observed. Worlds whose facts say it otherwise have a reading of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson
import polars as pl

from sim.metrics.chosen import both
from sim.metrics.frames import Frames, field, frames
from sim.metrics.safety.deception import classify
from sim.metrics.safety.statements import Rating, Statement, measured
from sim.types import JSON, AgentId, FactId, Measurement, Record


def all(record: Record) -> Iterator[Measurement]:
    """Deception produced, and how it was seen through, with and without what was defaulted."""
    yield from both(deception)(record)


def deception(record: Record) -> Iterator[Measurement]:
    """Of all facts with claims."""
    yield from measured(statements(record), record.tables)


def statements(record: Record) -> list[Statement]:
    """All facts with claims, each against what its speaker had observed when it spoke."""
    read = frames(record)
    roles = {(table, agent): role for table, agent, role in read.cast.select("tbl", "agent", "role").iter_rows()}
    rated = _ratings(read, roles)
    shown = read.shows.sort("tbl", "seq", "fact").group_by("tbl", "seq", maintain_order=True).agg("fact")
    views = {(table, seq): ids for table, seq, ids in shown.iter_rows()}
    truths: dict[tuple[int, FactId], Mapping[str, JSON]] = {}
    observed: dict[tuple[int, AgentId], dict[str, JSON]] = {}
    found = []
    for table, seq, agent, fact, data in _log(read):
        own = observed.setdefault((table, agent), {})
        if fact is None:
            for each in views.get((table, seq), ()):
                own.update(truths.get((table, each), {}))
            continue
        held = orjson.loads(data)
        truths[table, fact] = held.get("truths", {})
        own.update(truths[table, fact])
        if "claims" in held:
            kind = classify(held["claims"], own, held.get("asked", ()))
            role, ratings = roles.get((table, agent), ""), tuple(rated.get((table, fact), ()))
            found.append(Statement(table, fact, agent, kind, role, _honest(held.get("honest")), ratings))
    return found


def _honest(told: JSON) -> float | None:
    """What a speaker says of its honesty; None for what is no probability."""
    return float(told) if isinstance(told, int | float) and 0 <= told <= 1 else None


def _log(read: Frames) -> Iterator[tuple[int, int, AgentId, FactId | None, str]]:
    """Table, place, agent, and of a fact that claims or shows something its id and data, in the order of the log."""
    none = pl.lit(None, dtype=pl.Int64).alias("id")
    decided = read.decisions.select("tbl", "seq", "agent", none, pl.lit("").alias("data"))
    holds = pl.col("data").str.contains_any(['"claims":', '"truths":'])
    told = read.facts.filter(holds).select("tbl", "seq", pl.col("actor").alias("agent"), "id", "data")
    yield from pl.concat([decided, told]).sort("tbl", "seq").iter_rows()


def _ratings(read: Frames, roles: Mapping[tuple[int, AgentId], str]) -> dict[tuple[int, FactId], list[Rating]]:
    """Of each statement what others rated it, in the order of the log."""
    rated = read.facts.with_columns(field("data", "rating").cast(pl.Float64, strict=False)).drop_nulls("rating")
    speakers = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("actor").alias("speaker"))
    of = read.answers.join(rated.select("tbl", "seq", "actor", "rating"), on=["tbl", "seq"])
    others = of.join(speakers, on=["tbl", "fact"]).filter(pl.col("actor") != pl.col("speaker")).sort("tbl", "seq")
    found: dict[tuple[int, FactId], list[Rating]] = {}
    for table, fact, actor, level in others.select("tbl", "fact", "actor", "rating").iter_rows():
        found.setdefault((table, fact), []).append(Rating(level, actor, roles.get((table, actor), "")))
    return found
