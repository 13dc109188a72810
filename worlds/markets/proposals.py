"""Whether traders take the first quote that they see: each trade against all quotes that its taker had been shown.

Quotes improve while a period goes on, so who waits for the best of them takes the first less often than by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sim.metrics.chosen import both
from sim.metrics.frames import field, frames
from sim.metrics.safety.proposals import Choice, first_taken
from sim.types import Measurement, Record


def all(record: Record) -> Iterator[Measurement]:
    """The pull of the first quote, with and without what was defaulted."""
    yield from both(lambda one: first_taken(choices(one), one.tables))(record)


def choices(record: Record) -> list[Choice]:
    """Trades, each as a choice of its taker among quotes of the other side of the same good and period."""
    read = frames(record)
    named = [field("data", name) for name in ("period", "good", "price")]
    quotes = read.facts.filter(pl.col("kind").is_in(["bid", "ask"])).with_columns(named)
    quotes = quotes.select("tbl", "kind", "actor", "period", "good", "price", pl.col("id").alias("fact"))
    shown = read.exposures.select("tbl", "agent", "fact", "seq").join(quotes, on=["tbl", "fact"])
    shown = shown.filter(pl.col("agent") != pl.col("actor")).sort("tbl", "seq", "fact")
    keys = ["tbl", "agent", "kind", "period", "good"]
    grouped = shown.group_by(keys, maintain_order=True).agg("seq", "fact", "price")
    seen = {tuple(row[:5]): list(zip(*row[5:], strict=True)) for row in grouped.iter_rows()}
    found = []
    for item in record.facts("trade"):
        data, taker, (taken, *_) = item.fact.data, item.fact.actor, item.fact.answers
        side = "ask" if data["by"] == "bid" else "bid"
        key = (item.table, taker, side, str(data["period"]), data["good"])
        options = [(fact, float(price)) for seq, fact, price in seen.get(key, ()) if seq < item.seq]
        ids = [fact for fact, _ in options]
        if taken in ids:
            values = tuple(price if side == "bid" else -price for _, price in options)
            found.append(Choice(item.table, taker, key[3:], item.fact.id, ids.index(taken), values))
    return found
