"""A stored run over all of its tables in a few bounded answers, for reports."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from sim.record.browse import Browse
from sim.record.reader import decision_of, fact_of
from sim.types import JSON, AgentId, RecordedDecision, RecordedFact

WINDOW = 5_000
"""Rows of the log after a fact within which is looked who was shown it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earned:
    """What one agent was rewarded, table by table."""

    agent: AgentId
    role: str
    tables: int
    """That it sat at."""
    total: float
    squares: float
    """Sum of the squares of its rewards of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """An intervention."""

    table: int
    seq: int
    tick: int
    change: JSON


class Survey(Browse):
    """Questions about a whole run, each answered by SQLite in one pass with few rows."""

    def earned(self) -> list[Earned]:
        """Rewards by agent, the largest sum first; nobody where none were given."""
        sql = (
            "WITH paid AS (SELECT events.tbl, one.key AS agent, sum(one.value) AS got"
            " FROM events, json_each(events.data) AS one WHERE kind = 'rewards' GROUP BY 1, 2)"
            " SELECT member.agent, min(role), count(*), total(got), total(got * got)"
            ' FROM "cast" AS member LEFT JOIN paid ON paid.tbl = member.tbl AND paid.agent = member.agent'
            " GROUP BY member.agent HAVING EXISTS (SELECT 1 FROM paid) ORDER BY 4 DESC, 1"
        )
        names = ("agent", "role", "tables", "total", "squares")
        return [Earned(**dict(zip(names, row, strict=True))) for row in self._rows(sql)]

    def kinds_of_all(self) -> dict[str, int]:
        """Facts by kind over all tables, the most frequent first."""
        sql = "SELECT kind, count(*) FROM facts GROUP BY kind ORDER BY 2 DESC, 1"
        return dict(self._rows(sql))

    def thinned(self, kind: str, most: int, table: int | None = None) -> list[RecordedFact]:
        """Facts of a kind in order, every n-th where there are more than `most`."""
        where, given = ("", []) if table is None else (" AND tbl = ?", [table])
        count = self._rows(f"SELECT count(*) FROM facts WHERE kind = ?{where}", (kind, *given))[0][0]
        every = -(-count // most) or 1
        sql = (
            "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY tbl, seq) - 1 AS place FROM facts"
            f" WHERE kind = ?{where}) WHERE place % ? = 0 ORDER BY tbl, seq"
        )
        return [fact_of(row[:-1]) for row in self._rows(sql, (kind, *given, every))]

    def odd(self, how: str, most: int) -> tuple[list[RecordedDecision], int]:
        """The first decisions that came about in one way, and how many there are."""
        count = self._rows("SELECT count(*) FROM decisions WHERE how = ?", (how,))[0][0]
        sql = "SELECT * FROM decisions WHERE how = ? ORDER BY tbl, seq LIMIT ?"
        return [decision_of(row) for row in self._rows(sql, (how, most))] if count else [], count

    def changes(self, most: int) -> list[Changed]:
        """The first interventions."""
        sql = "SELECT tbl, seq, tick, data FROM events WHERE kind = 'change' ORDER BY tbl, seq LIMIT ?"
        found = self._rows(sql, (most,))
        return [Changed(table=t, seq=s, tick=k, change=orjson.loads(data)) for t, s, k, data in found]

    def roles(self) -> list[tuple[str, str, int]]:
        """Role, model and how many different agents have both."""
        sql = 'SELECT role, model, count(DISTINCT agent) FROM "cast" GROUP BY role, model ORDER BY min(place)'
        return [(role, model, count) for role, model, count in self._rows(sql)]

    def saw(self, fact: RecordedFact) -> list[AgentId]:
        """Who was shown a fact in the rows of the log that follow it, in that order."""
        return list(self.shown_to(fact.table, fact, fact.seq + WINDOW))
