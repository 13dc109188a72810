"""Who could know what, from whom, since when: the information-flow graph of a record.

An agent could know a fact from the tick at which a view first showed it. What a decision could use is what its view
showed and what its memory recalled; what comes of a decision are the facts of its agent in the same step. So facts
have sources, and a message has the recipients that really saw it, whoever it was addressed to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from sim.metrics.frames import Frames, frames
from sim.metrics.statistics.clusters import ratio
from sim.metrics.statistics.shares import by, estimated
from sim.types import FactId, Measurement, Record


def made(read: Frames) -> pl.DataFrame:
    """tbl, seq (of the decision), agent, tick, fact: the facts that came of each decision."""
    own = read.facts.filter(pl.col("actor") != "").select(
        "tbl", "tick", "round", pl.col("actor").alias("agent"), pl.col("id").alias("fact"), pl.col("seq").alias("at")
    )
    decided = read.decisions.select("tbl", "tick", "round", "agent", "seq")
    after = own.join(decided, on=["tbl", "tick", "round", "agent"]).filter(pl.col("at") > pl.col("seq"))
    return after.select("tbl", "seq", "agent", "tick", "fact").sort("tbl", "fact")


def sources(read: Frames) -> pl.DataFrame:
    """tbl, fact, source: for each fact that came of a decision, what that decision's view showed or memory recalled."""
    used = pl.concat([read.shows, read.recalls]).unique().rename({"fact": "source"})
    found = made(read).select("tbl", "seq", "fact").join(used, on=["tbl", "seq"])
    return found.select("tbl", "fact", "source").sort("tbl", "fact", "source")


def known(read: Frames) -> pl.DataFrame:
    """tbl, agent, fact, source (whose fact), since: each fact that an agent could know, its own left out."""
    told = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("actor").alias("source"))
    shown = read.exposures.join(told, on=["tbl", "fact"]).filter(pl.col("agent") != pl.col("source"))
    return shown.select("tbl", "agent", "fact", "source", pl.col("seen").alias("since")).sort(
        "tbl", "since", "agent", "fact"
    )


def flows(read: Frames, *, delivered: bool = False) -> pl.DataFrame:
    """tbl, fact, sender, recipient, since, seq (of the recipient's decision), kind, audience, data.

    A row for each agent that really saw somebody else's fact, when it saw it first. With `delivered` also for agents
    named in its audience whose turn never came again, with the fact's own tick and place.
    """
    told = read.facts.filter(pl.col("actor") != "").select(
        *("tbl", "kind", "audience", "data"), pl.col("id").alias("fact"), pl.col("actor").alias("sender")
    )
    seen = read.exposures.rename({"agent": "recipient", "seen": "since"}).drop("tick")
    if delivered:
        seen = pl.concat([seen, _unseen(read)], how="diagonal")
    found = seen.join(told, on=["tbl", "fact"]).filter(pl.col("sender") != pl.col("recipient"))
    order = ("tbl", "fact", "sender", "recipient", "since", "seq", "kind", "audience", "data")
    return found.select(order).sort("tbl", "since", "seq", "fact", "recipient")


def _unseen(read: Frames) -> pl.DataFrame:
    """Agents named in an audience who were never shown the fact."""
    named = read.facts.filter(pl.col("audience").str.starts_with("[")).select(
        "tbl",
        pl.col("id").alias("fact"),
        "seq",
        pl.col("audience").str.json_decode(pl.List(pl.String)).alias("recipient"),
        pl.col("tick").alias("since"),
    )
    shown = read.exposures.rename({"agent": "recipient"})
    return named.explode("recipient").join(shown, on=["tbl", "recipient", "fact"], how="anti")


def ancestors(read: Frames, table: int, fact: FactId) -> frozenset[FactId]:
    """All facts that a fact could depend on, through any number of decisions."""
    before = _sources_of(read, table)
    found: set[FactId] = set()
    waiting = [fact]
    while waiting:
        new = before.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return frozenset(found - {fact})


def latest_parents(read: Frames, carriers: pl.DataFrame) -> pl.DataFrame:
    """tbl, fact, agent, tick, parent: of each carrier (tbl, fact) the one its agent saw last before it decided.

    A parent is another agent's carrier; it is null for one that saw none: a root. Of carriers seen at one decision the
    latest made is the parent.
    """
    one = tied_parents(read, carriers).sort("parent").unique(["tbl", "fact"], keep="last")
    return one.select("tbl", "fact", "agent", "tick", "parent").sort("tbl", "fact")


def tied_parents(read: Frames, carriers: pl.DataFrame) -> pl.DataFrame:
    """As `latest_parents`, with `part`: carriers made in one tick and seen at one decision share what comes of them."""
    wanted = carriers.select("tbl", "fact").unique()
    own = made(read).join(wanted, on=["tbl", "fact"])
    told = read.facts.join(wanted, left_on=["tbl", "id"], right_on=["tbl", "fact"])
    told = told.select("tbl", pl.col("id").alias("parent"), pl.col("tick").alias("told"))
    seen = known(read).rename({"fact": "parent"}).join(told, on=["tbl", "parent"])
    decided = read.decisions.select("tbl", "seq", pl.col("seen").alias("looked"))
    pairs = own.join(decided, on=["tbl", "seq"]).join(seen.drop("source"), on=["tbl", "agent"])
    tied = pairs.filter(pl.col("since") <= pl.col("looked")).select("tbl", "fact", "parent", "since", "told")
    for when in ("since", "told"):
        tied = tied.filter(pl.col(when) == pl.col(when).max().over("tbl", "fact"))
    shared = tied.with_columns((1 / pl.len().over("tbl", "fact")).alias("part"))
    joined = own.join(shared.drop("since", "told"), on=["tbl", "fact"], how="left").with_columns(
        pl.col("part").fill_null(1.0)
    )
    return joined.select("tbl", "fact", "agent", "tick", "parent", "part").sort("tbl", "fact", "parent")


def own_doing(read: Frames, seen: pl.DataFrame) -> pl.DataFrame:
    """Of rows (tbl, agent, seq, fact) whose fact depends on what the agent made at its decision `seq` or later."""
    told = read.facts.select("tbl", pl.col("id").alias("source"), "actor", pl.col("seq").alias("at"))
    behind = sources(read).join(told, on=["tbl", "source"])
    start = seen.unique(("tbl", "agent", "seq", "fact")).with_row_index("row")
    waiting, reached, own = start, start.select("row", "fact"), start.clear().select("row")
    while len(waiting):
        further = waiting.join(behind, on=["tbl", "fact"]).filter(pl.col("at") > pl.col("seq"))
        own = pl.concat([own, further.filter(pl.col("actor") == pl.col("agent")).select("row")])
        further = further.join(own, on="row", how="anti").select("row", "tbl", "agent", "seq", fact="source").unique()
        waiting = further.join(reached, on=["row", "fact"], how="anti")
        reached = pl.concat([reached, waiting.select("row", "fact")])
    return start.join(own, on="row", how="semi").drop("row").sort("tbl", "seq", "agent", "fact")


def reach(record: Record) -> Iterator[Measurement]:
    """How many agents saw a fact of somebody else's, on average over all that agents made; overall and by kind."""
    read = frames(record)
    told = read.facts.filter(pl.col("actor") != "").select("tbl", "kind", pl.col("id").alias("fact"))
    seen = flows(read).group_by("tbl", "fact").agg(pl.len().alias("reached"))
    counted = told.join(seen, on=["tbl", "fact"], how="left").with_columns(pl.col("reached").fill_null(0))
    yield _reach(counted, {})
    for kind, rows in by(counted, "kind"):
        yield _reach(rows, {"kind": kind})


def _reach(rows: pl.DataFrame, of: Mapping[str, str]) -> Measurement:
    sums = rows.group_by("tbl").agg(pl.col("reached").sum(), pl.len().alias("facts")).sort("tbl")
    found = ratio(sums["reached"].to_list(), sums["facts"].to_list())
    return estimated("provenance.reach", found, "agents", denominator="facts that agents made", of=of)


def _sources_of(read: Frames, table: int) -> dict[FactId, frozenset[FactId]]:
    grouped = sources(read).filter(pl.col("tbl") == table).group_by("fact").agg("source")
    return {fact: frozenset(before) for fact, before in grouped.iter_rows()}
