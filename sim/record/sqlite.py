"""How SQLite files are opened: the one place for connections, pragmas and compiled statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import orjson
from sqlalchemy import Connection, Engine, ExceptionContext, QueuePool, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

PATIENCE = 30.0
"""Seconds to wait for another process's short lock."""

_DIALECT = sqlite.dialect(paramstyle="qmark")


class FileFailure(Exception):
    """A file of the record cannot be read or written: no room, no right to, or no database. The text says it."""


def compiled(statement: ClauseElement) -> str:
    """SQL of a statement with `?` for its parameters, in the order in which they stand in it."""
    return str(statement.compile(dialect=_DIALECT))


def readable(path: Path) -> Engine:
    """Engine on an existing file that cannot change it; every query is a transaction of its own."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    return _engine(path, partial(sqlite3.connect, uri, uri=True))


def writable(path: Path, synchronous: Literal["NORMAL", "FULL"] = "NORMAL") -> Engine:
    """Engine on a file in WAL mode; a transaction takes the write lock as it begins."""
    engine = _engine(path, partial(sqlite3.connect, path))
    _on_connect(engine, ("PRAGMA journal_mode=WAL", f"PRAGMA synchronous={synchronous}"))
    event.listen(engine, "begin", _begin)
    return engine


def create(path: Path) -> Engine:
    """Engine on a new file that nobody else opens before it is renamed: no WAL yet."""
    engine = _engine(path, partial(sqlite3.connect, path))
    event.listen(engine, "begin", _begin)
    return engine


def _engine(path: Path, connect: Any) -> Engine:
    # Transactions are begun by hand (isolation_level None): the driver's own rules leave DDL outside of them.
    engine = create_engine(
        "sqlite://",
        creator=partial(connect, timeout=PATIENCE, isolation_level=None, check_same_thread=False),
        poolclass=QueuePool,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )

    def failed(context: ExceptionContext) -> None:
        raise FileFailure(f"{path}: {context.original_exception}") from context.original_exception

    event.listen(engine, "handle_error", failed)
    return engine


def _on_connect(engine: Engine, pragmas: Iterable[str]) -> None:
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        for pragma in pragmas:
            connection.execute(pragma).close()

    event.listen(engine, "connect", connected)


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
