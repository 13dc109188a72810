"""A run as Parquet files, one per table, for any other tool; and any rows as one.

Coded columns are written out: ids and tokens as lists, log-probabilities as lists of floats, hashes in hex.
`exposures.parquet` has a row for each fact that each decision's view showed. JSON stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import Column, Float, Integer, LargeBinary

from sim.blobs import decode_ids, decode_logprobs, decode_options, decode_tokens
from sim.record.committed import Row
from sim.record.reader import Run
from sim.record.schema import RUN_FILE

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as missing:
    raise ImportError("exporting to Parquet needs pyarrow: pip install -e '.[ui]'") from missing

GROUP = 20_000
"""Least rows of a row group but the last."""

ORDER = ("run", "cast", "policies", "events", "decisions", "facts", "calls", "texts")
"""What a row refers to comes after it, so that it is there also where the run is still being written."""

KINDS: dict[str, Any] = {
    "text": pa.string(),
    "yes or no": pa.bool_(),
    "whole": pa.int64(),
    "number": pa.float64(),
    "texts": pa.list_(pa.string()),
    "tokens": pa.list_(pa.int32()),
    "numbers": pa.list_(pa.float64()),
}
"""What a column may hold, for `write_parquet`."""

Codec: TypeAlias = tuple[Any, Callable[[Any], Any] | None]

_CODED: dict[str, Codec] = {
    "shows": (pa.list_(pa.int64()), decode_ids),
    "recalls": (pa.list_(pa.int64()), decode_ids),
    "answers": (pa.list_(pa.int64()), decode_ids),
    "ids": (pa.list_(pa.int32()), decode_tokens),
    "prompt_ids": (pa.list_(pa.int32()), decode_tokens),
    "logprobs": (pa.list_(pa.float32()), decode_logprobs),
    "option_logprobs": (pa.list_(pa.float32()), decode_options),
}
_EXPOSURES = {"tbl": pa.int64(), "seq": pa.int64(), "agent": pa.string(), "tick": pa.int64(), "fact": pa.int64()}


def export_parquet(run: Run, folder: Path) -> list[Path]:
    """Write every table of a run into a folder; returns the files. Files of the same names are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "exposures.parquet", _EXPOSURES, _exposures(run))
    for name in ORDER:
        table = RUN_FILE.tables[name]
        codecs = [_codec(column) for column in table.columns]
        pages = ([_plain(row, codecs) for row in page] for page in run.pages(name))
        _write(folder / f"{name}.parquet", {c.name: kind for c, (kind, _) in zip(table.c, codecs, strict=True)}, pages)
    return [folder / f"{name}.parquet" for name in ("exposures", *ORDER)]


def write_parquet(path: Path, columns: Mapping[str, str], pages: Iterable[list[Row]]) -> None:
    """Write rows into one file, replaced where it is there. `columns`: by name, one of `KINDS`."""
    _write(path, {name: KINDS[kind] for name, kind in columns.items()}, pages)


def _codec(column: Column[Any]) -> Codec:
    """The type of a column in Parquet, and how a stored value is turned into it."""
    if column.name in _CODED:
        return _CODED[column.name]
    if isinstance(column.type, LargeBinary):
        return pa.string(), bytes.hex
    if isinstance(column.type, Integer):
        return pa.int64(), None
    return (pa.float64() if isinstance(column.type, Float) else pa.string()), None


def _plain(row: Row, codecs: Sequence[Codec]) -> Row:
    return tuple(
        value if decode is None or value is None else decode(value)
        for value, (_, decode) in zip(row, codecs, strict=True)
    )


def _exposures(run: Run) -> Iterator[list[Row]]:
    """One page of rows for each page of decisions."""
    place = {name: number for number, name in enumerate(RUN_FILE.tables["decisions"].columns.keys())}
    tbl, seq, agent, seen, shows = (place[name] for name in ("tbl", "seq", "agent", "seen", "shows"))
    for page in run.pages("decisions"):
        yield [(row[tbl], row[seq], row[agent], row[seen], fact) for row in page for fact in decode_ids(row[shows])]


def _write(path: Path, columns: Mapping[str, Any], pages: Iterable[list[Row]]) -> None:
    """A row group whenever enough rows are there, so that no table is ever held whole."""
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(path, schema) as writer:
        group: list[Row] = []
        for page in pages:
            group += page
            if len(group) >= GROUP:
                writer.write_table(_table(group, schema))
                group = []
        writer.write_table(_table(group, schema))


def _table(rows: Sequence[Row], schema: Any) -> Any:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.table([pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)], schema=schema)
