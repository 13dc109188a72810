"""Whether a record is sound: what it names is there, nothing is seen before it happens, and its hashes hold."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any

import orjson
import polars as pl

from sim.metrics.frames import Frames
from sim.record.schema import LOG
from sim.types import Record


def faults(record: Record, read: Frames) -> Mapping[str, int]:
    """How often each thing is wrong that never should be; those that are not are 0."""
    return {
        "absent facts shown": _absent(read, read.shows),
        "absent facts recalled": _absent(read, read.recalls),
        "absent facts answered": _absent(read, read.answers),
        "facts seen before they happened": _foreseen(read),
        "calls missing": _missing_calls(read),
        "gaps in the log": _gaps(read),
        "hashes broken": _hash_breaks(record),
    }


def _absent(read: Frames, named: pl.DataFrame) -> int:
    there = read.facts.select("tbl", pl.col("id").alias("fact"))
    return len(named.join(there, on=["tbl", "fact"], how="anti"))


def _foreseen(read: Frames) -> int:
    happened = read.facts.select("tbl", pl.col("id").alias("fact"), pl.col("tick").alias("happened"))
    seen = read.shows.join(read.decisions.select("tbl", "seq", "seen"), on=["tbl", "seq"])
    return len(seen.join(happened, on=["tbl", "fact"]).filter(pl.col("happened") > pl.col("seen")))


def _missing_calls(read: Frames) -> int:
    key = ["tbl", "agent", "tick", "nth"]
    there = read.calls.group_by(key).agg(pl.len().alias("there"))
    asked = read.decisions.filter(pl.col("calls") > 0).select(
        "tbl", "agent", pl.col("seen").alias("tick"), "nth", "calls"
    )
    found = asked.join(there, on=key, how="left").with_columns(pl.col("there").fill_null(0))
    return int((found["calls"] - found["there"]).clip(lower_bound=0).sum())


def _gaps(read: Frames) -> int:
    places = pl.concat([frame.select("tbl", "seq") for frame in (read.events, read.decisions, read.facts)])
    by_table = places.group_by("tbl").agg(pl.col("seq").max().alias("last"), pl.len().alias("count"))
    return int((by_table["last"] + 1 - by_table["count"]).sum())


def _hash_breaks(record: Record) -> int:
    """Ticks whose stored hash is not that of the log before them; a table's first break is its last that counts."""
    breaks, table, running = 0, None, blake2b(digest_size=16)
    broken = False
    for (at, _), name, row in heapq.merge(*map(partial(_rows, record), LOG), key=lambda item: item[0]):
        if at != table:
            table, running, broken = at, blake2b(digest_size=16), False
        if name == "events" and row[4] == "tick" and not broken:
            broken = orjson.loads(row[6]) != running.hexdigest()
            breaks += broken
        running.update(orjson.dumps(row, default=bytes.hex))
    return breaks


def _rows(record: Record, name: str) -> Iterator[tuple[tuple[int, int], str, tuple[Any, ...]]]:
    """A table's rows in the order of the log."""
    for page in record.pages(name):
        for row in page:
            yield (row[0], row[1]), name, row
