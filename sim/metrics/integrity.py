"""Whether a record is sound: what it names is there, nothing is seen before it happens, and its hashes hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from typing import Literal

import orjson
import polars as pl

from sim.log import Row, coded
from sim.metrics.frames import Frames
from sim.record.schema import LOG
from sim.types import Record


def faults(record: Record, read: Frames) -> Mapping[str, int]:
    """How often each thing is wrong that never should be; those that are not are 0."""
    return {
        "absent facts shown": _absent(read, read.shows),
        "absent facts recalled": _absent(read, read.recalls),
        "absent facts answered": _absent(read, read.answers),
        "facts seen before they happened": _foreseen(read, read.shows),
        "facts recalled before they happened": _foreseen(read, read.recalls),
        "facts answered before they happened": _answered_before(read),
        "calls missing": _missing_calls(read),
        "calls beyond those of their decision": _calls_too_many(read),
        "calls of nobody": len(read.calls.join(read.cast, on=["tbl", "agent"], how="anti")),
        "gaps in the log": _gaps(read),
        "hashes broken": _hash_breaks(record),
    }


def _absent(read: Frames, named: pl.DataFrame) -> int:
    there = read.facts.select("tbl", pl.col("id").alias("fact"))
    return len(named.join(there, on=["tbl", "fact"], how="anti"))


def _foreseen(read: Frames, named: pl.DataFrame) -> int:
    happened = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("tick").alias("happened"))
    seen = named.join(read.decisions.select("tbl", "seq", "seen"), on=["tbl", "seq"])
    return len(seen.join(happened, on=["tbl", "fact"]).filter(pl.col("happened") > pl.col("seen")))


def _answered_before(read: Frames) -> int:
    happened = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("tick").alias("happened"))
    answering = read.answers.join(read.facts.select("tbl", "seq", "tick"), on=["tbl", "seq"])
    return len(answering.join(happened, on=["tbl", "fact"]).filter(pl.col("happened") > pl.col("tick")))


def _missing_calls(read: Frames) -> int:
    found = _asked(read, "left").with_columns(pl.col("there").fill_null(0))
    return int((found["calls"] - found["there"]).clip(lower_bound=0).sum())


def _calls_too_many(read: Frames) -> int:
    found = _asked(read, "inner")
    return int((found["there"] - found["calls"]).clip(lower_bound=0).sum())


def _asked(read: Frames, how: Literal["left", "inner"]) -> pl.DataFrame:
    """Decisions with the calls that they made, and how many are there."""
    key = ["tbl", "agent", "tick", "nth"]
    there = read.calls.group_by(key).agg(pl.len().cast(pl.Int64).alias("there"))
    asked = read.decisions.select("tbl", "agent", pl.col("seen").alias("tick"), "nth", "calls")
    return asked.join(there, on=key, how=how)


def _gaps(read: Frames) -> int:
    places = pl.concat([frame.select("tbl", "seq") for frame in (read.events, read.decisions, read.facts)])
    by_table = places.group_by("tbl").agg(pl.col("seq").max().alias("last"), pl.len().alias("count"))
    return int((by_table["last"] + 1 - by_table["count"]).sum())


def _hash_breaks(record: Record) -> int:
    """Tables in which the stored hash of some tick is not that of the log before it."""
    breaks, table, running = 0, -1, blake2b(digest_size=16)
    broken = False
    for kind, row in _log(record):
        if row[0] != table:
            table, running, broken = row[0], blake2b(digest_size=16), False
        if kind != "events" or row[4] != "tick":
            running.update(coded([(kind, row)]))
        elif not broken:
            broken = orjson.loads(row[6]) != running.hexdigest()
            breaks += broken
    return breaks


def _log(record: Record) -> Iterator[tuple[str, Row]]:
    """All rows of the log in order, each after the name of its table."""
    rows = [chain.from_iterable(record.pages(name)) for name in LOG]
    heads = [next(each, None) for each in rows]
    while places := [place for place, head in enumerate(heads) if head is not None]:
        first = min(places, key=lambda place: heads[place][:2])  # type: ignore[index]
        head = heads[first]
        assert head is not None
        yield LOG[first], head
        heads[first] = next(rows[first], None)
