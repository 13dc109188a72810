"""What is committed of a run: its manifest, its log and its calls by key. Shared by the store and the reader.

Rows are read in pages, each a query of its own, so that no reader holds a transaction.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import orjson
from filelock import FileLock, Timeout
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, select, tuple_

from sim.blobs import decode_logprobs, decode_options, decode_tokens
from sim.record.schema import LOG, SCHEMA_VERSION, TABLES, Manifest
from sim.record.sqlite import FileFailure, compiled, readable
from sim.types import CallKey, Completion, Usage

Row: TypeAlias = tuple[Any, ...]

PAGE = 2_000
"""Rows read by one query."""


class SchemaMismatch(Exception):
    """The file is no run, or a run of another record version; the text says what to do."""

    def __init__(self, text: str, version: int | None = None) -> None:
        super().__init__(text)
        self.standing = "no run" if version is None else f"record version {version}"
        """What stands in a list of runs in place of a status."""


def lock_of(path: Path) -> FileLock:
    """The lock whose holder may write the run; a file beside it."""
    return FileLock(path.with_name(path.name + ".lock"), thread_local=False)


def held(path: Path) -> bool:
    """Whether some process holds the run."""
    lock = lock_of(path)
    if not Path(lock.lock_file).exists():
        return False
    try:
        # Long enough to outlast another reader's look, which takes the lock for a moment.
        with lock.acquire(timeout=0.05, poll_interval=0.01):
            return False
    except Timeout:
        return True
    except OSError:  # a folder in which nobody can write has no writer
        return False


def paged(table: Table, *where: ColumnElement[bool]) -> str:
    """Statement for one page of rows that follow a seq, in log order; parameters: those of `where`, then the seq."""
    seq = table.c.seq
    return page(select(table).where(*where, seq > bindparam("after")).order_by(seq))


def page(statement: Select[Any]) -> str:
    """A statement's first page."""
    return f"{compiled(statement)} LIMIT {PAGE}"


def equals(table: Table, *names: str) -> tuple[ColumnElement[bool], ...]:
    """Conditions that columns equal parameters."""
    return tuple(table.c[name] == bindparam(f"is_{name}") for name in names)


_calls = TABLES["calls"]
_KEY = equals(_calls, *CallKey._fields[1:])
_BY_KEY = (_calls.c.tbl == bindparam("is_tbl"), *_KEY)
_answer = (
    *("digest", "text", "finish", "error", "prompt_ids", "ids", "logprobs", "distribution"),
    *("option_logprobs", "prompt_tokens", "cached_tokens", "completion_tokens", "latency", "answered_by"),
)
ANSWER = tuple(_calls.c[name] for name in _answer)
"""Columns that `answer` reads."""
_COMPLETION = compiled(select(*ANSWER).where(*_BY_KEY))
_request = (_calls.c[name] for name in ("messages", "format", "seed", "policy"))
_REQUEST = compiled(select(*_request).where(*_BY_KEY))
_TEXT = compiled(select(TABLES["texts"].c.text).where(*equals(TABLES["texts"], "hash")))
PAGES = {
    name: paged(TABLES[name], *equals(TABLES[name], "tbl"), TABLES[name].c.seq <= bindparam("last")) for name in LOG
}
_LAST = {
    name: compiled(
        select(TABLES[name].c.seq, TABLES[name].c.tick)
        .where(*equals(TABLES[name], "tbl"))
        .order_by(TABLES[name].c.seq.desc())
    )
    + " LIMIT 1"
    for name in LOG
}
_LAST_CALLED = compiled(select(func.max(_calls.c.tick)).where(_calls.c.tbl == bindparam("is_tbl")))


def answer(columns: Row) -> tuple[bytes, Completion]:
    """Request digest and completion from the columns `ANSWER` of a call."""
    digest, text, finish, error, prompt_ids, ids, logprobs, distribution, options, *usage, latency, policy = columns
    completion = Completion(
        text=text,
        finish=finish,
        error=error,
        prompt_ids=decode_tokens(prompt_ids),
        ids=decode_tokens(ids),
        logprobs=decode_logprobs(logprobs),
        distribution=distribution,
        option_logprobs=decode_options(options),
        usage=Usage(prompt=usage[0], cached=usage[1], completion=usage[2]),
        latency=latency,
        policy=policy,
    )
    return digest, completion


class Committed:
    """Reads a run file, also while another process writes it. Usable from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = readable(path)
        try:
            self._check_version()
        except BaseException:
            self._reading.dispose()
            raise

    def _check_version(self) -> None:
        try:
            found = self._rows("SELECT schema_version, versions FROM run")
        except FileFailure as problem:
            raise SchemaMismatch(f"{self.path} is not a run: {problem.__cause__}") from problem
        if not found:
            raise SchemaMismatch(f"{self.path} is not a run: it does not say of which")
        (version, packages), *_ = found
        if version != SCHEMA_VERSION:
            writer = orjson.loads(packages).get("agora-sim", "that wrote it")
            raise SchemaMismatch(
                f"{self.path} has record version {version}, this agora-sim reads {SCHEMA_VERSION}: "
                f"open it with agora-sim {writer}, or take its numbers along with that version's `agora export`",
                version,
            )

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of one query, as the driver gives them: these must compare equal to what was put."""
        try:
            with closing(self._reading.raw_connection()) as connection:
                cursor = connection.cursor()
                cursor.execute(sql, parameters)
                return list(cursor.fetchall())
        except sqlite3.DatabaseError as problem:
            raise FileFailure(f"{self.path}: {problem}") from problem

    def _all(self, statement: Select[Any]) -> Sequence[Any]:
        """All rows of one query, as the mapping gives them."""
        with self._reading.connect() as connection:
            return connection.execute(statement).all()

    def _paged(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Rows of a `paged` statement."""
        return chain.from_iterable(self._pages(sql, *parameters))

    def _pages(self, sql: str, *parameters: Any, after: int = -1) -> Iterator[list[Row]]:
        """Pages of a `paged` statement that follow a seq."""
        while True:
            rows = self._rows(sql, (*parameters, after))
            yield rows
            if len(rows) < PAGE:
                return
            after = rows[-1][1]

    def manifest(self) -> Manifest:
        """What the run is and how it stands."""
        return Manifest(**self._all(select(TABLES["run"]))[0]._mapping)

    def last_seq(self, tbl: int) -> int:
        """Seq of the last committed row of a table's log; -1 for none."""
        return self._last(tbl)[0]

    def last_tick(self, tbl: int) -> int:
        """Tick of the last committed row of a table's log; -1 for none."""
        return self._last(tbl)[1]

    def last_call(self, tbl: int) -> int:
        """The last tick of a table in which a turn was seen that a committed call is about; -1 for none."""
        tick = self._rows(_LAST_CALLED, (tbl,))[0][0]
        return -1 if tick is None else int(tick)

    def _last(self, tbl: int) -> tuple[int, int]:
        """Seq and tick of the last committed row of a table's log."""
        found = [row for name in LOG for row in self._rows(_LAST[name], (tbl,))]
        return max(found, default=(-1, -1))

    def log(self, tbl: int) -> Iterator[tuple[str, Row]]:
        """A table's log as committed when this is called: pairs of table name and row in seq order."""
        # What is committed is a prefix, so all rows up to the last one are there, whatever is written meanwhile.
        last = self.last_seq(tbl)
        return heapq.merge(*(self._named(name, tbl, last) for name in LOG), key=lambda item: item[1][1])

    def _named(self, name: str, tbl: int, last: int) -> Iterator[tuple[str, Row]]:
        return ((name, row) for row in self._paged(PAGES[name], tbl, last))

    def completion(self, key: CallKey) -> tuple[bytes, Completion] | None:
        """Request digest and completion of a call; None where it is not recorded."""
        rows = self._rows(_COMPLETION, key)
        return answer(rows[0]) if rows else None

    def request_text(self, key: CallKey) -> str:
        """The request of a recorded call in words."""
        messages, form, seed, policy = self._rows(_REQUEST, key)[0]
        lines = [f"[{role}] {self.text_of(name)}" for role, name in orjson.loads(messages)]
        return "\n".join([*lines, f"format {self.format_text(form)}, seed {seed}, policy {policy!r}"])

    def format_text(self, form: str) -> str:
        """A call's answer format as JSON, the schema of a form in place."""
        schema = orjson.loads(form).get("form")
        return form if schema is None else f'{{"form":{self.text_of(schema)}}}'

    def text_of(self, name: str) -> str:
        """The text with a hash (hex). Raises KeyError where there is none."""
        rows = self._rows(_TEXT, (bytes.fromhex(name),))
        if not rows:
            raise KeyError(f"no text {name} in {self.path}")
        return str(rows[0][0])

    def pages(self, name: str) -> Iterator[list[Row]]:
        """All rows of one table of the run file, a page at a time, in key order."""
        return self._ordered(name)

    def _ordered(self, name: str, *where: ColumnElement[bool], given: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """Rows of one table that meet conditions, whose parameters are given, a page at a time, in key order."""
        table = TABLES[name]
        key = tuple(table.primary_key.columns)
        ordered = select(table).where(*where).order_by(*key)
        follows = tuple_(*key) > tuple_(*(bindparam(f"after_{column.name}") for column in key))
        places = [list(table.c).index(column) for column in key]
        rows = self._rows(page(ordered), given)
        while rows:
            yield rows
            rows = self._rows(page(ordered.where(follows)), [*given, *(rows[-1][place] for place in places)])

    def close(self) -> None:
        """Let go of the file."""
        self._reading.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
