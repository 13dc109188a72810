"""One table's event log: numbered rows and a running hash over them.

The rows are the very tuples that are stored, so a reader can recompute every hash, and a replay
compares row by row. They are hashed and handed on a round at a time: rows are many and small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import orjson
from msgspec.json import Encoder

from sim.blobs import encode_ids
from sim.types import ALL, Act, Become, Fact, Intervention, Join, Leave, Result, Say, Seat, Set

Row: TypeAlias = tuple[Any, ...]
"""Ints, strings, bytes and None, in the column order of the record's tables."""
Named: TypeAlias = tuple[str, Row]
"""A row after the name of its table."""
Put: TypeAlias = Callable[[Sequence[Named]], None]
"""Takes rows in order."""

MOST_WAITING = 500
"""Rows that wait for the end of their round at most."""

_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


class Divergence(Exception):
    """A replay met something other than what is recorded; both sides are in the text."""


def dumps(value: Any) -> str:
    """Canonical JSON: sorted keys; what is no finite number becomes null. Raises TypeError for what is no JSON."""
    return orjson.dumps(value, option=_CANONICAL).decode()


_TO_ALL = dumps(ALL)


coded: Callable[[Sequence[Named]], bytes] = Encoder().encode_lines
"""What rows count with in the hash: a line of JSON for each, `[table, row]`, bytes in base64."""


class Log:
    """Appends one table's rows in order; `seq` runs over events, decisions and facts together.

    `put` gets the rows of a round when it is closed, or sooner where they are many.
    """

    def __init__(self, table: int, put: Put) -> None:
        self.table = table
        self.seq = 0
        self._put = put
        self._hash = blake2b(digest_size=16)
        self._marked = 0
        self._waiting: list[Named] = []

    @property
    def hash(self) -> str:
        """Hash of all rows handed on so far but for the hashes themselves, in hex: blake2b over them as `coded`."""
        return self._hash.hexdigest()

    def _append(self, kind: str, row: Row) -> None:
        self.seq += 1
        self._waiting.append((kind, row))
        if len(self._waiting) == MOST_WAITING:
            self.hand_on()

    def hand_on(self) -> None:
        """Hash the rows that wait and put them."""
        if rows := self._hashed():
            self._put(rows)

    def _hashed(self) -> list[Named]:
        """The rows that waited; one that cannot be coded raises, and they are gone."""
        rows, self._waiting = self._waiting, []
        self._hash.update(coded(rows))
        return rows

    def event(self, tick: int, round_: int, kind: str, agent: str = "", data: Any = None) -> None:
        """Something of the kernel's own: start, change, rewards, ended, end."""
        self._append("events", (self.table, self.seq, tick, round_, kind, agent, dumps(data)))

    def fact(self, tick: int, round_: int, fact: Fact) -> None:
        """A fact of the world."""
        row = (
            self.table,
            self.seq,
            tick,
            round_,
            fact.id,
            fact.kind,
            fact.actor,
            _TO_ALL if fact.audience == ALL else dumps(fact.audience),
            dumps(fact.data),
            encode_ids(fact.answers) if fact.answers else b"",
        )
        self._append("facts", row)

    def decision(self, tick: int, round_: int, decision: Any, result: Result) -> None:
        """A decision that was stepped, and what became of it."""
        action = decision.action
        turn = decision.turn
        row = (
            self.table,
            self.seq,
            tick,
            round_,
            action.agent,
            action.seen,
            decision.nth,
            dumps(action.answer),
            action.how,
            action.reason,
            result.status,
            result.reason,
            encode_ids(action.shows) if action.shows else b"",
            encode_ids(action.recalls) if action.recalls else b"",
            action.thread,
            turn.key,
            decision.calls,
            decision.digest,
            decision.state,
            action.feels,
        )
        self._append("decisions", row)

    def mark(self, tick: int, round_: int) -> None:
        """Close a round: hand its rows on with the hash so far, if anything was written since the last mark."""
        if self.seq != self._marked:
            rows = self._hashed()
            rows.append(("events", (self.table, self.seq, tick, round_, "tick", "", f'"{self.hash}"')))
            self.seq += 1
            self._marked = self.seq
            self._put(rows)


class NoLog(Log):
    """Keeps nothing."""

    def __init__(self, table: int = 0) -> None:
        super().__init__(table, lambda _rows: None)

    def _append(self, kind: str, row: Row) -> None:
        pass

    def event(self, tick: int, round_: int, kind: str, agent: str = "", data: Any = None) -> None:
        """Nothing."""

    def fact(self, tick: int, round_: int, fact: Fact) -> None:
        """Nothing."""

    def decision(self, tick: int, round_: int, decision: Any, result: Result) -> None:
        """Nothing."""

    def mark(self, tick: int, round_: int) -> None:
        """Nothing."""


def checked(recorded: Iterator[Named], put: Put) -> Put:
    """A `put` that compares rows with the recorded ones while there are any, then hands on to `put`.

    Raises `Divergence` at the first row that differs.
    """

    def compare(rows: Sequence[Named]) -> None:
        for place, row in enumerate(rows):
            there = next(recorded, None)
            if there is None:
                put(rows[place:])
                break
            if there != row:
                raise Divergence(_differ(there, row))

    return compare


def _differ(recorded: Named, replayed: Named) -> str:
    table, seq, tick, *_ = recorded[1]
    return (
        f"table {table}, seq {seq}, tick {tick}: the replay differs from the record\n"
        f"  recorded: {recorded[0]} {recorded[1][2:]}\n"
        f"  replayed: {replayed[0]} {replayed[1][2:]}"
    )


def change_json(change: Intervention) -> dict[str, Any]:
    """An intervention as it stands in the log."""
    match change:
        case Say(text=text, to=to):
            return {"do": "say", "text": text, "to": to}
        case Set(key=key, value=value):
            return {"do": "set", "key": key, "value": value}
        case Join(seat=seat):
            return {"do": "join", "seat": seat_json(seat)}
        case Leave(agent=agent):
            return {"do": "leave", "agent": agent}
        case Act(agent=agent, answer=answer):
            return {"do": "act", "agent": agent, "answer": answer}
        case Become(agent=agent, what=what):
            return {"do": "become", "agent": agent, **what}


def seat_json(seat: Seat) -> dict[str, Any]:
    """A seat as it stands in the log."""
    return {"agent": seat.agent, "role": seat.role, "private": dict(seat.private), "public": dict(seat.public)}
