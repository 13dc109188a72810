"""The one writer of a run file. Rows are put from the kernel's thread and committed in order by another.

Every transaction holds the rows that follow those of the one before, so that whatever stops the process leaves a
prefix of what was put.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from filelock import BaseFileLock, Timeout
from sqlalchemy import Connection, Engine, insert, update
from sqlalchemy.exc import DBAPIError

from sim.committed import Committed, Row, lock_of
from sim.schema import RUN_FILE, TABLES, Manifest
from sim.sqlite import compiled, create, writable

Durable: TypeAlias = Literal["normal", "power"]
"""What committed rows survive: the death of the process, or a power cut too."""

BATCH = 2_000
"""Most rows of a transaction."""
INTERVAL = 0.4
"""Most seconds that a row waits for its transaction to begin."""
AHEAD = 4 * BATCH
"""Rows not committed yet at which `put` waits for the disk."""
SIZES = (125, 25, 5, 1)
"""Rows of one statement. The driver lets go of the interpreter once a statement, and a busy kernel gives it back
after milliseconds only: rows inserted one by one would never keep up."""
RECENT = 65_536
"""Texts remembered as already kept."""

_FLUSH = ""
_MANIFEST = "run"


class RunLocked(Exception):
    """Another process holds the run."""


class RecordFailure(Exception):
    """The record can no longer be written: disk full, file locked, or a row that does not fit its table."""


class Store(Committed):
    """Writes one run. `put`, `text`, `update` and `flush` belong to one thread; reading is free."""

    def __init__(self, path: Path, lock: BaseFileLock, durable: Durable) -> None:
        super().__init__(path)
        self._lock = lock
        self._writing = writable(path, "FULL" if durable == "power" else "NORMAL")
        self._pending: deque[tuple[str, Any]] = deque()
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        self._wake = threading.Event()
        self._closing = False
        self._failure: BaseException | None = None
        """Why the writer stopped; told to whoever puts or flushes next."""
        self._writer = threading.Thread(target=self._write, name=f"record {path.name}", daemon=True)
        self._writer.start()

    @classmethod
    def create(cls, path: Path, manifest: Manifest, *, cast: Iterable[Row] = (), durable: Durable = "normal") -> Self:
        """A new run file with its cast, its folder made where needed. Raises FileExistsError, RunLocked."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
        try:
            if path.exists():
                raise FileExistsError(f"there is a run at {path} already")
            _build(path, manifest, list(cast))
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

    # --- putting, on the kernel's thread ------------------------------------------------------------

    def put(self, table: str, row: Row) -> None:
        """Take a row for a table, in the order of its columns. Raises RecordFailure where an earlier row failed."""
        if self._failure is not None:
            self._fail()
        pending = self._pending
        pending.append((table, row))
        if len(pending) >= BATCH:
            self._press()

    def _press(self) -> None:
        self._wake.set()
        if len(self._pending) >= AHEAD:
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
        self._pending.append((_MANIFEST, fields))
        self.flush()

    def flush(self) -> None:
        """Return once everything put so far is committed. Raises RecordFailure."""
        done = threading.Event()
        self._pending.append((_FLUSH, done))
        self._wake.set()
        while not done.wait(0.05):
            if self._failure is not None:
                self._fail()

    def _fail(self) -> None:
        raise RecordFailure(f"{self.path} cannot be written: {self._failure}") from self._failure

    # --- committing, on the writer's thread ---------------------------------------------------------

    def _write(self) -> None:
        try:
            with self._writing.connect() as connection:
                while self._pending or not self._closing:
                    self._wake.wait(INTERVAL)
                    self._wake.clear()
                    while self._pending:
                        self._commit(connection)
        except DBAPIError as problem:  # what the driver said, without a thousand parameters
            self._failure = problem.orig
        except Exception as problem:
            self._failure = problem

    def _commit(self, connection: Connection) -> None:
        """One transaction of the oldest rows."""
        rows: dict[str, list[Row]] = {}
        fields: dict[str, Any] = {}
        waiting: list[threading.Event] = []
        pending = self._pending
        for _ in range(min(BATCH, len(pending))):
            table, row = pending.popleft()
            if table == _FLUSH:
                waiting.append(row)
            elif table == _MANIFEST:
                fields.update(row)
            else:
                rows.setdefault(table, []).append(row)
        with connection.begin():
            for table, these in rows.items():
                _insert(connection, table, these)
            if fields:
                connection.execute(update(TABLES[_MANIFEST]).values(**fields))
        for done in waiting:
            done.set()

    # --- closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit what is left and let go of the run; idempotent. Raises RecordFailure where rows were lost."""
        if self._closing:
            return
        try:
            self.flush()
        finally:
            self._closing = True
            self._wake.set()
            self._writer.join()
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


def _build(path: Path, manifest: Manifest, cast: list[Row]) -> None:
    """Make the file beside its place and move it there, so that a file at its place is always whole."""
    new = path.with_name(path.name + ".new")
    for leftover in (new, new.with_name(new.name + "-journal")):
        leftover.unlink(missing_ok=True)
    engine = create(new)
    with engine.begin() as connection:
        RUN_FILE.create_all(connection)
        connection.execute(insert(TABLES[_MANIFEST]).values(**manifest.model_dump()))
        _insert(connection, "cast", cast)
    engine.dispose()
    new.rename(path)


def _settle(engine: Engine) -> None:
    """Fold the log into the file, so that a run at rest is one file; readers at work prevent it, without loss."""
    with suppress(sqlite3.OperationalError), closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("PRAGMA busy_timeout=0")
        cursor.execute("PRAGMA journal_mode=DELETE")
    engine.dispose()


@cache
def _statement(table: str, size: int) -> str:
    """Insert of `size` rows. A text that is there already is the same text."""
    bare = insert(TABLES[table])
    one = compiled(bare.prefix_with("OR IGNORE") if table == "texts" else bare)
    values = one[one.index("(", one.index("VALUES")) :]
    return one + f", {values}" * (size - 1)


def _insert(connection: Connection, table: str, rows: list[Row]) -> None:
    start = 0
    for size in SIZES:
        stop = start + (len(rows) - start) // size * size
        if stop > start:
            joined = [tuple(chain.from_iterable(rows[i : i + size])) for i in range(start, stop, size)]
            connection.exec_driver_sql(_statement(table, size), joined)
        start = stop
