"""The one writer of a run file. Rows are put in order and committed in order, on the kernel's thread.

Every transaction holds the rows that follow those of the one before, so that whatever stops the process leaves a
prefix of what was put. There is no writer thread on purpose: it would wait for the interpreter, which a busy kernel
gives away every few milliseconds only, and one transaction takes no longer than that.
"""

from __future__ import annotations

import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, chain, count, islice
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Self, TypeAlias

from filelock import BaseFileLock, Timeout
from sqlalchemy import Connection, Engine, insert, update

from sim.record.committed import Committed, Row, lock_of
from sim.record.schema import RUN_FILE, TABLES, Manifest
from sim.record.sqlite import FileFailure, compiled, create, writable

Durable: TypeAlias = Literal["normal", "power"]
"""What committed rows survive: the death of the process, or a power cut too."""

BATCH = 1_500
"""Rows after which the next transaction begins: with those that a log keeps back, no more than 2,000 wait."""
INTERVAL = 0.25
"""Seconds since the last commit after which the next row, or a look at `commit_due`, begins another."""
HEIGHT = 50
"""Rows of a statement where there are that many."""
RECENT = 65_536
"""Texts remembered as already kept."""

_MANIFEST = "run"
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHMSIZE")
"""What SQLite calls a full disk, or a quota that is used up."""


class RunLocked(Exception):
    """Another process holds the run."""


class RecordFailure(Exception):
    """The record can no longer be written: disk full, file locked, or a row that does not fit its table."""


class DiskFull(RecordFailure):
    """There is no more room for the record. What is committed is kept, and the run can be gone on with."""


class Store(Committed):
    """Writes one run. `put`, `text`, `update` and `flush` belong to one thread; reading is free."""

    def __init__(self, path: Path, lock: BaseFileLock, durable: Durable) -> None:
        super().__init__(path)
        self._lock = lock
        self._writing = writable(path, "FULL" if durable == "power" else "NORMAL")
        self._connection = self._writing.connect()
        self._pending: dict[str, list[Any]] = {}
        """Values by table, row after row: tuples that wait are walked by the garbage collector again and again."""
        self._waiting = 0
        """How many rows they are."""
        self._committed = monotonic()
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        self._closed = False
        self._failure: BaseException | None = None
        """Why nothing more is taken."""

    @classmethod
    def create(
        cls,
        path: Path,
        manifest: Manifest,
        *,
        cast: Iterable[Row] = (),
        policies: Iterable[Row] = (),
        durable: Durable = "normal",
    ) -> Self:
        """A new run file with what is known at its start, its folder made where needed.

        Raises FileExistsError, RunLocked.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
        try:
            if path.exists():
                raise FileExistsError(f"there is a run at {path} already")
            _build(path, manifest, {"cast": list(cast), "policies": list(policies)})
            return cls._held(path, lock, durable)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(cls, path: Path, *, durable: Durable = "normal") -> Self:
        """An existing run file, to go on with. Raises FileNotFoundError, RunLocked, SchemaMismatch."""
        if not path.exists():
            raise FileNotFoundError(f"there is no run at {path}")
        lock = _locked(path)
        try:
            return cls._held(path, lock, durable)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _held(cls, path: Path, lock: BaseFileLock, durable: Durable) -> Self:
        store = cls(path, lock, durable)
        store.update(pid=os.getpid())
        return store

    # --- putting ------------------------------------------------------------------------------------

    def put(self, table: str, row: Row) -> None:
        """Take a row for a table, in the order of its columns. Raises RecordFailure where rows cannot be written."""
        self.extend([(table, row)])

    def extend(self, rows: Sequence[tuple[str, Row]]) -> None:
        """Take rows in their order, each after the name of its table. Raises RecordFailure as `put` does."""
        pending = self._pending
        try:
            for table, row in rows:
                if table not in pending:
                    pending[table] = []
                pending[table].extend(row)
            self._waiting += len(rows)
        except KeyboardInterrupt:  # those that came so far are kept
            self._waiting = sum(len(values) // len(TABLES[table].columns) for table, values in pending.items())
            raise
        if self._failure is not None or self._waiting >= BATCH or monotonic() - self._committed > INTERVAL:
            self.flush()

    def text(self, text: str) -> str:
        """Keep a text under its hash, in hex."""
        digest = blake2b(text.encode(), digest_size=16).digest()
        recent = self._recent
        if digest in recent:
            recent.move_to_end(digest)
        else:
            self.put("texts", (digest, text))
            recent[digest] = None
            if len(recent) > RECENT:
                recent.popitem(last=False)
        return digest.hex()

    def update(self, **fields: Any) -> None:
        """Change fields of the manifest, durably, after all rows put so far."""
        unknown = fields.keys() - TABLES[_MANIFEST].columns.keys()
        if unknown:
            raise TypeError(f"the manifest has no field {', '.join(sorted(unknown))}")
        self._commit(fields)

    def commit_due(self) -> None:
        """Commit what has waited for long; for whoever is about to wait for something else."""
        if self._waiting and monotonic() - self._committed > INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Commit everything put so far. Raises RecordFailure."""
        self._commit({})

    def _commit(self, fields: dict[str, Any]) -> None:
        """One transaction; where it fails, nothing of it is kept and nothing more is taken."""
        if self._failure is None:
            try:
                with self._connection.begin():
                    rows = sum(_insert(self._connection, table, values) for table, values in self._pending.items())
                    if rows != self._waiting:
                        raise ValueError(f"{self._waiting} rows have the values of {rows}")
                    if fields:
                        self._connection.execute(update(TABLES[_MANIFEST]).values(**fields))
            except FileFailure as problem:
                self._failure = problem.__cause__
            except Exception as problem:
                self._failure = problem
        if self._failure is not None:
            message = f"{self.path} cannot be written: {self._failure}"
            if getattr(self._failure, "sqlite_errorname", "").startswith(_NO_ROOM):
                raise DiskFull(f"{message}; make room, then: agora resume {self.path.stem}") from self._failure
            raise RecordFailure(message) from self._failure
        self._pending = {}
        self._waiting = 0
        self._committed = monotonic()

    # --- closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit what is left and let go of the run; idempotent. Raises RecordFailure where rows were lost."""
        if self._closed:
            return
        self._closed = True
        try:
            self.flush()
        finally:
            self._connection.close()
            super().close()
            _settle(self._writing)
            self._failure = self._failure or ValueError("it is closed")
            self._lock.release()


def _locked(path: Path) -> BaseFileLock:
    lock = lock_of(path)
    try:
        # A reader that asks whether the run is held takes the lock for a moment.
        lock.acquire(timeout=0.5, poll_interval=0.02)
    except Timeout:
        raise RunLocked(f"{path} is being written by {_holder(path)}; wait for it, or stop it") from None
    return lock


def _holder(path: Path) -> str:
    try:
        run = Committed(path)
    except Exception:  # it is just being made
        return "another process"
    pid = run.manifest().pid
    run.close()
    return f"process {pid}"


def _build(path: Path, manifest: Manifest, known: Mapping[str, list[Row]]) -> None:
    """Make the file beside its place and move it there, so that a file at its place is always whole."""
    new = path.with_name(path.name + ".new")
    for leftover in (new, new.with_name(new.name + "-journal")):
        leftover.unlink(missing_ok=True)
    engine = create(new)
    try:
        with engine.begin() as connection:
            RUN_FILE.create_all(connection)
            connection.execute(insert(TABLES[_MANIFEST]).values(**manifest.model_dump()))
            for table, rows in known.items():
                _insert(connection, table, list(chain.from_iterable(rows)))
    except BaseException as problem:
        new.unlink(missing_ok=True)
        if isinstance(problem, sqlite3.Error):
            raise FileFailure(f"{new}: {problem}") from problem
        raise
    finally:
        engine.dispose()
    new.rename(path)


def _settle(engine: Engine) -> None:
    """Fold the log into the file, so that a run at rest is one file; readers at work prevent it, without loss."""
    with suppress(sqlite3.OperationalError), closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("PRAGMA busy_timeout=0")
        cursor.execute("PRAGMA journal_mode=DELETE")
    engine.dispose()


def _insert(connection: Connection, table: str, values: list[Any]) -> int:
    """Insert rows whose values follow one another; how many they are.

    Binding takes most of the time: so there are many rows a statement, in which a column of one value is bound once,
    and the driver is called directly.
    """
    if not values:
        return 0
    width = len(TABLES[table].columns)
    columns = [values[place::width] for place in range(width)]
    rows = len(columns[0])
    same = tuple(column[0] == column[-1] and column.count(column[0]) == rows for column in columns)
    shared = [column[0] for column, one in zip(columns, same, strict=True) if one]
    others = chain.from_iterable(
        zip(*(column for column, one in zip(columns, same, strict=True) if not one), strict=True)
    )
    driver: Any = connection.connection.driver_connection
    for height, times in ((HEIGHT, rows // HEIGHT), (1, rows % HEIGHT)):
        if times:
            binds = [(*shared, *islice(others, height * same.count(False))) for _ in range(times)]
            driver.executemany(_statement(table, same, height), binds)
    return rows


@lru_cache
def _statement(table: str, same: tuple[bool, ...], height: int) -> str:
    """Inserts so many rows: its first parameters are the columns that are the `same` in all of them.

    A text that is there already is the same text.
    """
    bare = insert(TABLES[table])
    into, values, _ = compiled(bare.prefix_with("OR IGNORE") if table == "texts" else bare).partition(" VALUES ")
    shared = list(accumulate(map(int, same)))
    others = count(shared[-1] + 1)
    rows = (
        [f"?{place if one else next(others)}" for one, place in zip(same, shared, strict=True)] for _ in range(height)
    )
    return into + values + ", ".join(f"({', '.join(row)})" for row in rows)
