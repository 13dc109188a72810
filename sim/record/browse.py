"""A stored run by pages and by moments, for people who look at it: never more of it than they see.

A moment is a place in a table's log, the `seq` of the last row that has happened. Rows are in order of both seq and
tick, so places are found by bisection, without an index of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sim.blobs import decode_ids, encode_ids
from sim.record.committed import Row
from sim.record.reader import Run, decision_of, fact_of
from sim.record.schema import LOG
from sim.types import AgentId, Audience, FactId, RecordedDecision, RecordedFact

END = 2**62
"""A moment after everything."""
SCAN = 20_000
"""Most rows that a search through decisions reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which facts are wanted; an empty field wants all."""

    kinds: tuple[str, ...] = ()
    actors: tuple[AgentId, ...] = ()
    audience: Audience = ()
    """Exactly these."""
    text: str = ""
    """Part of the data, as stored JSON has it."""

    def sql(self) -> tuple[str, list[object]]:
        """Conditions, each led by AND, and their parameters."""
        parts: list[str] = []
        given: list[object] = []
        for column, values in (("kind", self.kinds), ("actor", self.actors)):
            if values:
                parts.append(f" AND {column} IN ({','.join('?' * len(values))})")
                given += values
        if self.audience:
            parts.append(" AND audience = ?")
            given.append(orjson.dumps(self.audience).decode())
        if self.text:
            parts.append(" AND instr(lower(data), ?) > 0")
            given.append(orjson.dumps(self.text.lower()).decode()[1:-1])
        return "".join(parts), given


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a run has cost so far, over all tables."""

    decisions: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    latency: float
    """Seconds that all calls took, one after the other."""


class Browse(Run):
    """Small queries on one run, each a bounded number of rows."""

    # --- moments --------------------------------------------------------------------------------------

    def end(self, table: int = 0) -> tuple[int, int]:
        """Seq and tick of the last row; (-1, 0) for none."""
        sql = "SELECT seq, tick FROM {} WHERE tbl = ? ORDER BY seq DESC LIMIT 1"
        return max((row for name in LOG for row in self._rows(sql.format(name), (table,))), default=(-1, 0))

    def moment(self, table: int, tick: int) -> int:
        """Seq of the last row at or before a tick; -1 for none."""
        return max(self._bisect(name, table, lambda row: row[1] <= tick) for name in LOG)

    def tick_at(self, table: int, seq: int) -> int:
        """Tick of the last row at or before a seq."""
        sql = "SELECT tick FROM {} WHERE tbl = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
        return max((row[0] for name in LOG for row in self._rows(sql.format(name), (table, seq))), default=0)

    def tick_after(self, table: int, tick: int) -> int | None:
        """The first tick after one at which there is a fact; None where there is none."""
        at = self._bisect("facts", table, lambda row: row[1] <= tick)
        found = self._rows("SELECT tick FROM facts WHERE tbl = ? AND seq > ? ORDER BY seq LIMIT 1", (table, at))
        return found[0][0] if found else None

    def tick_before(self, table: int, tick: int) -> int | None:
        """The last tick before one at which there is a fact; None where there is none."""
        at = self._bisect("facts", table, lambda row: row[1] < tick)
        return self.tick_at(table, at) if at >= 0 else None

    def _bisect(self, name: str, table: int, holds: Callable[[Row], bool], columns: str = "tick") -> int:
        """Seq of the last row (seq, columns) for which a condition holds that holds for all rows before; -1: none."""
        row_after = f"SELECT seq, {columns} FROM {name} WHERE tbl = ? AND seq >= ? ORDER BY seq LIMIT 1"
        last = self._rows(f"SELECT max(seq) FROM {name} WHERE tbl = ?", (table,))[0][0]
        low, high = -1, -1 if last is None else int(last)
        while low < high:
            middle = (low + high) // 2 + 1
            row = self._rows(row_after, (table, middle))[0]
            if holds(row):
                low = row[0]
            else:
                high = middle - 1
        return low

    # --- facts ----------------------------------------------------------------------------------------

    def kinds(self, table: int = 0) -> dict[str, int]:
        """How many facts there are of each kind."""
        return dict(self._rows("SELECT kind, count(*) FROM facts WHERE tbl = ? GROUP BY kind", (table,)))

    def last_facts(self, table: int, upto: int, count: int, wanted: Filter = Filter()) -> list[RecordedFact]:
        """The last facts at or before a moment, newest first."""
        where, given = wanted.sql()
        sql = f"SELECT * FROM facts WHERE tbl = ? AND seq <= ?{where} ORDER BY seq DESC LIMIT ?"
        return [fact_of(row) for row in self._rows(sql, (table, upto, *given, count))]

    def next_facts(self, table: int, after: int, count: int, wanted: Filter = Filter()) -> list[RecordedFact]:
        """The first facts after a moment, oldest first."""
        where, given = wanted.sql()
        sql = f"SELECT * FROM facts WHERE tbl = ? AND seq > ?{where} ORDER BY seq LIMIT ?"
        return [fact_of(row) for row in self._rows(sql, (table, after, *given, count))]

    def facts_by_id(self, table: int, ids: Iterable[FactId]) -> dict[FactId, RecordedFact]:
        """Facts by their ids, those that there are."""
        found: dict[FactId, RecordedFact] = {}
        for wanted in ids:
            at = self._bisect("facts", table, lambda row, wanted=wanted: row[1] <= wanted, "id")  # type: ignore[misc]
            rows = self._rows("SELECT * FROM facts WHERE tbl = ? AND seq = ? AND id = ?", (table, at, wanted))
            rows = rows or self._rows("SELECT * FROM facts WHERE tbl = ? AND id = ? LIMIT 1", (table, wanted))
            if rows:
                found[wanted] = fact_of(rows[0])
        return found

    def answers_to(
        self, table: int, ids: Sequence[FactId], kinds: Sequence[str], after: int, upto: int, count: int
    ) -> list[RecordedFact]:
        """Facts of some kinds, between two moments, that answer one fact each, of those given; oldest first."""
        marks = ["?" * len(kinds), "?" * len(ids)]
        sql = (
            f"SELECT * FROM facts WHERE tbl = ? AND kind IN ({','.join(marks[0])}) AND seq > ? AND seq <= ?"
            f" AND answers IN ({','.join(marks[1])}) ORDER BY seq LIMIT ?"
        )
        blobs = [encode_ids([one]) for one in ids]
        return [fact_of(row) for row in self._rows(sql, (table, *kinds, after, upto, *blobs, count))]

    def over_time(self, table: int, upto: int, bins: int) -> list[tuple[str, int, int]]:
        """Facts by kind over the ticks so far in equal bins: kind, first tick of the bin, count."""
        width = max(1, -(-(self.tick_at(table, upto) + 1) // bins))
        sql = (
            "SELECT kind, tick / ? AS bin, count(*) FROM facts WHERE tbl = ? AND seq <= ?"
            " GROUP BY kind, bin ORDER BY kind, bin"
        )
        return [(kind, bin_ * width, count) for kind, bin_, count in self._rows(sql, (width, table, upto))]

    # --- agents ---------------------------------------------------------------------------------------

    def last_decisions(self, table: int, upto: int, count: int, agent: AgentId | None = None) -> list[RecordedDecision]:
        """The last decisions at or before a moment, newest first."""
        where, given = ("", []) if agent is None else (" AND agent = ?", [agent])
        sql = f"SELECT * FROM decisions WHERE tbl = ? AND seq <= ?{where} ORDER BY seq DESC LIMIT ?"
        return [decision_of(row) for row in self._rows(sql, (table, upto, *given, count))]

    def feelings(self, table: int, upto: int, count: int, agent: AgentId) -> list[tuple[int, str]]:
        """What an agent felt in the last decisions with a feeling at or before a moment, newest first, each with the
        tick at which it saw its turn."""
        sql = (
            "SELECT seen, feels FROM decisions WHERE tbl = ? AND seq <= ? AND agent = ? AND feels IS NOT NULL"
            " ORDER BY seq DESC LIMIT ?"
        )
        return self._rows(sql, (table, upto, agent, count))

    def decision(self, table: int, seq: int) -> RecordedDecision | None:
        """The decision at a seq, if there is one."""
        rows = self._rows("SELECT * FROM decisions WHERE tbl = ? AND seq = ?", (table, seq))
        return decision_of(rows[0]) if rows else None

    def shown_to(self, table: int, fact: RecordedFact, upto: int) -> dict[AgentId, tuple[int, int]]:
        """Who was shown a fact, with seq and tick of the first decision made on it.

        Only the first `SCAN` decisions after the fact are read.
        """
        sql = (
            "SELECT seq, agent, seen, shows FROM decisions WHERE tbl = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        )
        found: dict[AgentId, tuple[int, int]] = {}
        for seq, agent, seen, shows in self._rows(sql, (table, fact.seq, upto, SCAN)):
            if agent not in found and fact.fact.id in decode_ids(shows):
                found[agent] = seq, seen
        return found

    def rewards_by(self, table: int, upto: int = END) -> dict[AgentId, float]:
        """Sum of rewards by agent up to a moment."""
        sql = (
            "SELECT one.key, sum(one.value) FROM events, json_each(events.data) AS one"
            " WHERE tbl = ? AND seq <= ? AND kind = 'rewards' GROUP BY one.key"
        )
        return {agent: float(total) for agent, total in self._rows(sql, (table, upto))}

    # --- the whole ------------------------------------------------------------------------------------

    def spent(self) -> Spent:
        """Counts and costs so far."""
        calls = self._rows(
            "SELECT count(*), total(prompt_tokens), total(completion_tokens), total(latency) FROM calls"
        )[0]
        decisions = self._rows("SELECT count(*) FROM decisions")[0][0]
        whole = [int(value) for value in calls]
        return Spent(
            decisions=decisions,
            calls=whole[0],
            prompt_tokens=whole[1],
            completion_tokens=whole[2],
            latency=float(calls[3]),
        )

    def log_between(self, table: int, after: int, upto: int) -> list[tuple[str, Row]]:
        """Rows of a table's log after one moment up to another, with the names of their tables; few, please."""
        rows: list[tuple[str, Row]] = []
        for name in LOG:
            sql = f"SELECT * FROM {name} WHERE tbl = ? AND seq > ? AND seq <= ? ORDER BY seq"
            rows += [(name, row) for row in self._rows(sql, (table, after, upto))]
        return sorted(rows, key=lambda item: item[1][1])

    def mark_at(self, table: int, seq: int) -> tuple[int, str] | None:
        """Seq and hash of the last mark at or before a seq: the hash of the log up to it."""
        sql = "SELECT seq, data FROM events WHERE tbl = ? AND seq <= ? AND kind = 'tick' ORDER BY seq DESC LIMIT 1"
        rows = self._rows(sql, (table, seq))
        return (int(rows[0][0]), str(rows[0][1])) if rows else None


def first_divergence(one: Browse, other: Browse, table: int = 0) -> tuple[Any, Any] | None:
    """The first rows in which two logs of a table differ, each as (table name, row) or None where it has ended.

    None where one log is the start of the other or they are equal up to the end of both.
    """
    low, high = -1, min(one.end(table)[0], other.end(table)[0])
    while low < high:  # the last mark at which both hashes are equal
        middle = (low + high) // 2 + 1
        mine, theirs = one.mark_at(table, middle), other.mark_at(table, middle)
        if mine == theirs:
            low = middle
        else:
            high = middle - 1
    mark = one.mark_at(table, low)
    after = mark[0] if mark else -1
    sides = [_rows_after(run, table, after) for run in (one, other)]
    for mine, theirs in zip(*sides, strict=False):
        if mine != theirs:
            return mine, theirs
    return None


def _rows_after(run: Browse, table: int, after: int) -> list[tuple[str, Row]]:
    """Rows of the next round, and a few more."""
    return run.log_between(table, after, after + SCAN // 10)
