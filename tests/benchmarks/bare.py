"""What bare SQLite needs to write the rows of a run: its statements, and a manifest for ours."""

from __future__ import annotations

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateTable

from sim.record.schema import TABLES, Manifest


def manifest() -> Manifest:
    """Of a run that is no scenario's."""
    return Manifest(id="bench", name="bench", scenario="", seed=1)


def statements() -> list[str]:
    """The log's tables, as ours are made."""
    dialect = sqlite.dialect()  # type: ignore[no-untyped-call]
    return [str(CreateTable(TABLES[name]).compile(dialect=dialect)) for name in ("events", "decisions", "facts")]
