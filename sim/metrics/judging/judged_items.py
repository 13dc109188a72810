"""What a judge is shown of a record: messages, and messages beside a secret that their sender could know.

Items name the fact, hold texts by field, and say what a rule finds where one can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import orjson
import polars as pl

from sim.metrics.frames import frames, texts
from sim.metrics.privacy.disclosures import disclosures
from sim.types import FactId, Record


class Shown(NamedTuple):
    """One thing to judge."""

    table: int
    fact: FactId
    shows: dict[str, str]
    rule: bool | None = None
    """Whether a rule calls it positive; None where none can tell."""


def messages(record: Record) -> Iterator[Shown]:
    """Every message of an agent."""
    said = frames(record).facts.filter((pl.col("actor") != "") & pl.col("data").str.contains('"text":', literal=True))
    for table, fact, data in said.select("tbl", "id", "data").iter_rows():
        yield Shown(table, fact, {"message": _message(data)})


def secrets(record: Record) -> Iterator[Shown]:
    """Every message beside each secret that its sender could know; the rule is `sim.metrics.privacy.canaries`."""
    found, read = disclosures(record), frames(record)
    sure = set(found.hits.filter("sure").select("tbl", "fact", "canary").iter_rows())
    at = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("seq").alias("at"), "data")
    knew = found.held.rename({"agent": "sender"})
    rows = (
        found.messages.join(at, on=["tbl", "fact"])
        .join(knew, on=["tbl", "sender"])
        .filter(pl.col("since") < pl.col("at"))
    )
    for table, fact, canary, data in (
        rows.sort("tbl", "fact", "canary").select("tbl", "fact", "canary", "data").iter_rows()
    ):
        one = found.canaries[canary].secret
        secret = f"the {one.attribute} of {one.subject} is {one.value}"
        yield Shown(table, fact, {"message": _message(data), "secret": secret}, (table, fact, canary) in sure)


def _message(data: str) -> str:
    """What was said: the fact's `text`, or all texts in it."""
    said = orjson.loads(data).get("text")
    return said if isinstance(said, str) else texts(data)
