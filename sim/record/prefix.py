"""A run as far as it is when it is opened: what is committed later is not seen, so that all numbers are of one moment.

The manifest, `counts` and `calls`, which metrics do not read, are those of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, literal_column, select

from sim.record.committed import PAGE, PAGES, Row
from sim.record.reader import Run
from sim.record.schema import LOG, TABLES
from sim.record.sqlite import compiled
from sim.types import Secret

_calls = TABLES["calls"]
_rowid: ColumnElement[int] = literal_column("rowid")
"""Calls are keyed by agent and committed as they come; their row ids say in which order."""
_LAST_CALL = "SELECT coalesce(max(rowid), 0) FROM calls"
_CALLS_SINCE = compiled(select(_calls).where(_rowid > bindparam("after"), _rowid <= bindparam("last")).order_by(_rowid))


class Mark(NamedTuple):
    """How far a run is."""

    logs: tuple[tuple[int, int], ...]
    """Of each table, seq and tick of the last row of its log; -1 for none."""
    calls: int
    """Calls that are committed."""

    @property
    def rows(self) -> int:
        """Rows of all logs."""
        return sum(seq + 1 for seq, _ in self.logs)

    @property
    def tick(self) -> int:
        """Tick of the table that is furthest behind; 0 before the first row."""
        return max(0, min((tick for _, tick in self.logs), default=0))


class Prefix(Run):
    """What is committed of a run up to a mark, by default up to now. Rows are only ever added after it."""

    def __init__(self, path: Path, secrets: Sequence[Secret] = (), upto: Mark | None = None) -> None:
        super().__init__(path, secrets)
        # Logs first: the calls of a decision are committed no later than the decision.
        last = super()._last
        self.mark = upto or Mark(tuple(map(last, range(self.tables))), self._rows(_LAST_CALL)[0][0])

    def pages(self, name: str) -> Iterator[list[Row]]:
        """All rows of one table of the run file up to the mark, a page at a time, in key order."""
        if name == "calls":
            return self._ordered(name, _rowid <= bindparam("last"), given=(self.mark.calls,))
        if name not in LOG:
            return super().pages(name)
        return ([row for row in page if row[1] <= self._last(row[0])[0]] for page in super().pages(name))

    def since(self, name: str, mark: Mark) -> Iterator[list[Row]]:
        """The rows of calls, or of a table of the log, that follow an earlier mark, a page at a time."""
        if name == "calls":
            for after in range(mark.calls, self.mark.calls, PAGE):
                yield self._rows(_CALLS_SINCE, (after, min(after + PAGE, self.mark.calls)))
            return
        for table, ((before, _), (last, _)) in enumerate(zip(mark.logs, self.mark.logs, strict=True)):
            if before < last:
                yield from self._pages(PAGES[name], table, last, after=before)

    def _paged(self, sql: str, *parameters: Any) -> Iterator[Row]:
        last, _ = self._last(parameters[0])
        return takewhile(lambda row: row[1] <= last, super()._paged(sql, *parameters))

    def _last(self, tbl: int) -> tuple[int, int]:
        return self.mark.logs[tbl]
