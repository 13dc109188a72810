"""Flows that the norms of secrets forbid: those that happened, and how many could have.

There can be very many that could have: they are made a few secrets at a time, and only counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson
import polars as pl

from sim.metrics.frames import Frames
from sim.metrics.privacy.canaries import Canary
from sim.metrics.provenance import flows
from sim.types import AgentId, Record

BATCH = 1_000_000
"""Flows that are looked at together; all those of one secret are."""
_TOLD = {
    "tbl": pl.Int64,
    "fact": pl.Int64,
    "sender": pl.String,
    "recipient": pl.String,
    "canary": pl.Int64,
    "seq": pl.Int64,
}
_CHANCES = {"tbl": pl.Int64, "chances": pl.UInt32}


class Forbidden(NamedTuple):
    """Flows of secrets to agents who must not and could not yet know them."""

    told: pl.DataFrame
    """tbl, fact, sender, recipient, canary, seq: those that happened."""
    chances: pl.DataFrame
    """tbl, chances: how many were possible, those that happened included."""
    repeated: int
    """How many more told nothing new."""


class Norms:
    """Whether a secret's norms forbid that somebody learns it by a message to some audience."""

    def __init__(self, record: Record, wanted: Sequence[Canary]) -> None:
        self._wanted = wanted
        self._roles: Mapping[tuple[int, AgentId], str] = {
            (table, member.seat.agent): member.seat.role
            for table in range(record.tables)
            for member in record.cast(table)
        }

    def forbids(self, table: int, recipient: AgentId, number: int, audience: str) -> bool:
        """Neither holder nor subject, and not allowed by name, role or channel."""
        secret = self._wanted[number].secret
        if recipient in (secret.holder, secret.subject):
            return False
        channel = orjson.loads(audience)
        allowed = {norm["to"] for norm in secret.norms}
        met = {recipient, self._roles.get((table, recipient), "")} - {""}
        return not (met & allowed or "all" in allowed or (isinstance(channel, str) and channel in allowed))

    def bars(self, table: int, number: int, audience: str) -> bool:
        """Whether an audience is one that the secret is not for: a channel, everybody, or agents with one barred."""
        to = orjson.loads(audience)
        if isinstance(to, str):
            return not {norm["to"] for norm in self._wanted[number].secret.norms} & {to, "all"}
        return any(self.forbids(table, agent, number, audience) for agent in to)


def said(read: Frames, norms: Norms, hits: pl.DataFrame) -> pl.DataFrame:
    """tbl, fact: messages with a secret that norms do not allow before their audience, seen or not, new or not."""
    to = read.facts.select("tbl", pl.col("id").alias("fact"), "audience")
    sure = hits.filter("sure").join(to, on=["tbl", "fact"])
    barred = [norms.bars(*row) for row in sure.select("tbl", "canary", "audience").iter_rows()]
    return sure.filter(pl.Series(barred, dtype=pl.Boolean)).select("tbl", "fact").unique().sort("tbl", "fact")


def forbidden(read: Frames, norms: Norms, hits: pl.DataFrame, held: pl.DataFrame) -> Forbidden:
    """All of a record, from what its texts hold and who could know what since when."""
    told, chances, repeated = [pl.DataFrame(schema=_TOLD)], [pl.DataFrame(schema=_CHANCES)], 0
    for rows, again in batches(read, norms, hits, held):
        told.append(rows.filter("told").select(*_TOLD))
        chances.append(rows.group_by("tbl").agg(pl.len().alias("chances")))
        repeated += again
    counted = pl.concat(chances).group_by("tbl").agg(pl.col("chances").sum()).sort("tbl")
    return Forbidden(pl.concat(told).sort("tbl", "fact", "recipient", "canary"), counted, repeated)


def batches(read: Frames, norms: Norms, hits: pl.DataFrame, held: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, int]]:
    """tbl, fact, sender, recipient, canary, seq, told: possible flows, some secrets at a time; and how many repeat."""
    made = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("seq").alias("at"))
    sent = flows(read, delivered=True).select("tbl", "fact", "sender", "recipient", "seq", "audience")
    sent = sent.join(made, on=["tbl", "fact"])
    sender = held.rename({"agent": "sender", "since": "sender_since"})
    sure = hits.filter("sure").select("tbl", "fact", "canary", pl.lit(True).alias("told"))
    load = sent.group_by("tbl", "sender").agg(pl.len().cast(pl.Int64).alias("load")).join(sender, on=["tbl", "sender"])
    sizes = load.group_by("canary").agg(pl.col("load").sum()).sort("canary")
    groups = sizes.with_columns((pl.col("load").cum_sum() // BATCH).alias("batch")).partition_by("batch")
    for group in groups:
        some = held.join(group, on="canary", how="semi")
        rows = _batch(sent, some, sure)
        pairs = rows.select("tbl", "recipient", "canary", "audience").unique()
        barred = pl.Series("barred", [norms.forbids(*pair) for pair in pairs.iter_rows()], dtype=pl.Boolean)
        rows = rows.join(pairs.with_columns(barred), on=pairs.columns).filter("barred")
        new = pl.col("known_since").is_null() | (pl.col("known_since") >= pl.col("seq"))
        yield rows.filter(new).select(*_TOLD, "told"), len(rows.filter(~new & pl.col("told")))


def _batch(sent: pl.DataFrame, held: pl.DataFrame, sure: pl.DataFrame) -> pl.DataFrame:
    """Flows of those who could know some secrets, with whether they told one and since when it was known."""
    sender = held.rename({"agent": "sender", "since": "sender_since"})
    recipient = held.rename({"agent": "recipient", "since": "known_since"})
    rows = sent.join(sender, on=["tbl", "sender"]).filter(pl.col("sender_since") < pl.col("at"))
    rows = rows.join(recipient, on=["tbl", "recipient", "canary"], how="left")
    rows = rows.join(sure, on=["tbl", "fact", "canary"], how="left")
    return rows.with_columns(pl.col("told").fill_null(False))
