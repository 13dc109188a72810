"""A record as polars frames, one a table of the run file. Frames of one record are read once and shared by all metrics.

Columns have the names of `sim.record.schema`; lists of fact ids are decoded, JSON stays text until a metric asks for
a part of it. What is written to a run after a frame was read is seen by a record opened anew; of a run that goes on,
its frames can be those of the record before with the rows since (`grown`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary, proxy

import orjson
import polars as pl
from sqlalchemy import Float, Integer, LargeBinary

from sim.blobs import decode_ids
from sim.record.prefix import Prefix
from sim.record.schema import TABLES
from sim.types import Record

_KEPT = {
    "facts": ("tbl", "seq", "tick", "round", "id", "kind", "actor", "audience", "data"),
    "decisions": (
        *("tbl", "seq", "tick", "round", "agent", "seen", "nth", "answer", "how", "reason", "status", "why"),
        *("key", "calls"),
    ),
    "events": ("tbl", "seq", "tick", "round", "kind", "agent", "data"),
    "calls": (
        *("tbl", "agent", "tick", "nth", "call", "purpose", "model", "messages", "format", "sampling", "text"),
        *("finish", "error", "ids", "logprobs", "distribution"),
        *("prompt_tokens", "cached_tokens", "completion_tokens", "latency", "answered_by", "source", "digest"),
    ),
}
"""Columns of a frame that are taken as they are stored."""
_CODED = {"facts": ("answers",), "decisions": ("shows", "recalls"), "events": (), "calls": ()}
"""Columns of coded ids, each of which has a frame of its own."""
_IDS = {"tbl": pl.Int64, "seq": pl.Int64, "fact": pl.Int64}


class Frames:
    """The frames of one record, each read when first asked for, but for those that are known."""

    def __init__(self, record: Record, known: Mapping[str, Sequence[pl.DataFrame]] | None = None) -> None:
        self._record = record
        self.read: dict[str, Sequence[pl.DataFrame]] = dict(known or {})
        """By table of the run file: its rows, then a frame for each of its columns of coded ids."""

    @property
    def facts(self) -> pl.DataFrame:
        """tbl, seq, tick, round, id, kind, actor, audience (JSON), data (JSON)."""
        return self._table("facts")[0]

    @property
    def decisions(self) -> pl.DataFrame:
        """tbl, seq, tick (due), round, agent, seen, nth, answer (JSON), how, reason, status, why, key, calls."""
        return self._table("decisions")[0]

    @property
    def events(self) -> pl.DataFrame:
        """tbl, seq, tick, round, kind, agent, data (JSON)."""
        return self._table("events")[0]

    @property
    def calls(self) -> pl.DataFrame:
        """A row for each model call: its key, what was asked (hashes of texts, JSON), what came of it, as stored."""
        return self._table("calls")[0]

    @cached_property
    def cast(self) -> pl.DataFrame:
        """tbl, place, agent, role, model."""
        rows = [
            (table, place, member.seat.agent, member.seat.role, member.model)
            for table in range(self._record.tables)
            for place, member in enumerate(self._record.cast(table))
        ]
        kinds = {"tbl": pl.Int64, "place": pl.Int64, "agent": pl.String, "role": pl.String, "model": pl.String}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    @property
    def shows(self) -> pl.DataFrame:
        """tbl, seq (of the decision), fact: each fact that the view of each decision displayed."""
        return self._table("decisions")[1]

    @property
    def recalls(self) -> pl.DataFrame:
        """tbl, seq (of the decision), fact: each fact behind what an agent remembered when it decided."""
        return self._table("decisions")[2]

    @property
    def answers(self) -> pl.DataFrame:
        """tbl, seq (of a fact), fact: each fact that it answers."""
        return self._table("facts")[1]

    @cached_property
    def exposures(self) -> pl.DataFrame:
        """tbl, agent, fact, seq, seen, tick: the decision whose view first showed a fact to an agent, and when."""
        shown = self.shows.join(self.decisions.select("tbl", "seq", "agent", "seen", "tick"), on=["tbl", "seq"])
        first = shown.sort("tbl", "agent", "fact", "seen", "seq").unique(["tbl", "agent", "fact"], keep="first")
        return first.select("tbl", "agent", "fact", "seq", "seen", "tick").sort("tbl", "seen", "seq", "agent", "fact")

    def _table(self, name: str) -> Sequence[pl.DataFrame]:
        if name not in self.read:
            self.read[name] = _framed(name, self._record.pages(name))
        return self.read[name]


def _framed(name: str, pages: Iterable[Sequence[tuple[Any, ...]]]) -> list[pl.DataFrame]:
    """Rows of one table, and a frame for each of its columns of coded ids, in one pass."""
    names = TABLES[name].columns.keys()
    places = [names.index(each) for each in _KEPT[name]]
    schema = {each: _kind(TABLES[name].columns[each].type) for each in _KEPT[name]}
    parts = [[pl.DataFrame(schema=schema)], *([pl.DataFrame(schema=_IDS)] for _ in _CODED[name])]
    for page in filter(None, pages):
        columns = list(zip(*page, strict=True))
        parts[0].append(pl.DataFrame([list(columns[place]) for place in places], schema=schema, orient="col"))
        for part, blob in zip(parts[1:], _CODED[name], strict=True):
            part.append(_exploded(columns[0], columns[1], columns[names.index(blob)]))
    return [pl.concat(part) for part in parts]


def _exploded(tables: Sequence[int], seqs: Sequence[int], coded: Sequence[bytes]) -> pl.DataFrame:
    """A row for each id of each row's list."""
    ids = [decode_ids(blob) if blob else () for blob in coded]
    counts = pl.Series(list(map(len, ids)), dtype=pl.UInt32)
    rows = pl.DataFrame({"tbl": list(tables), "seq": list(seqs)}, schema={"tbl": pl.Int64, "seq": pl.Int64})
    repeated = rows.select(pl.all().repeat_by(counts).list.explode(empty_as_null=False))
    return repeated.with_columns(pl.Series("fact", list(chain.from_iterable(ids)), dtype=pl.Int64))


_READ: WeakKeyDictionary[Record, Frames] = WeakKeyDictionary()


def frames(record: Record) -> Frames:
    """The frames of a record, those already read as they are."""
    if record not in _READ:
        _READ[record] = Frames(proxy(record))  # frames that held their record would keep it for ever
    return _READ[record]


def grown(record: Prefix, before: Prefix) -> Frames:
    """The frames of a run that goes on: those read of it at an earlier mark, with only the rows since read now."""
    known = {
        name: [
            _joined(name, earlier, later)
            for earlier, later in zip(parts, _framed(name, record.since(name, before.mark)), strict=True)
        ]
        for name, parts in frames(before).read.items()
    }
    _READ[record] = Frames(proxy(record), known)
    return _READ[record]


def _joined(name: str, earlier: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    """Rows in key order, ids of one row in theirs."""
    if later.is_empty():
        return earlier
    key = [column.name for column in TABLES[name].primary_key.columns]
    return pl.concat([earlier, later], rechunk=True).sort(key, maintain_order=True)


def field(column: str, name: str) -> pl.Expr:
    """One field of a JSON column, as text; null where it is not there."""
    return pl.col(column).str.json_path_match(f"$.{name}").alias(name)


def texts(data: str) -> str:
    """All texts in a fact's JSON data, a line each, in the order of their keys."""
    return "\n".join(_strings(orjson.loads(data)))


def _strings(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [one for key in sorted(value) for one in _strings(value[key])]
    return [one for each in value for one in _strings(each)] if isinstance(value, list) else []


def _kind(type_: Any) -> Any:
    if isinstance(type_, LargeBinary):
        return pl.Binary
    return pl.Int64 if isinstance(type_, Integer) else pl.Float64 if isinstance(type_, Float) else pl.String
