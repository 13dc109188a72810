"""A stored run with its agents called otherwise and its tables in another order: nothing that a metric may look at."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from shutil import copy


def renamed(path: Path, to: Path) -> Mapping[str, str]:
    """Write the other run; by what agents and entries of the cast are called in the one, what they are in the other.

    Members of an entry change places, entries get names in the opposite order of the alphabet, and the last table comes
    first.
    """
    copy(path, to)
    with closing(sqlite3.connect(to)) as file, file:
        entries = _entries(agent for (agent,) in file.execute("SELECT DISTINCT agent FROM [cast] ORDER BY agent"))
        others = {entry: f"{chr(ord('z') - place)}{entry[::-1]}" for place, entry in enumerate(entries)}
        agents = {
            agent: others[entry] + twin.removeprefix(entry)
            for entry, members in entries.items()
            for agent, twin in zip(members, reversed(members), strict=True)
        }
        (last,) = file.execute("SELECT max(tbl) FROM [cast]").fetchone()
        for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            _rewrite(file, table, last, _turn(agents))
    return others | agents


def _entries(agents: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for agent in agents:
        found.setdefault(re.sub(r"-\d+$", "", agent), []).append(agent)
    return found


def _turn(agents: Mapping[str, str]) -> Callable[[str], str]:
    inside = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, agents)) + r")(?![\w-])")
    return lambda text: inside.sub(lambda found: agents[found[0]], text)


def _rewrite(file: sqlite3.Connection, table: str, last: int, turn: Callable[[str], str]) -> None:
    """Every text of a table with the other names, every row with the other place of its game table."""
    found = file.execute(f"SELECT * FROM [{table}]")
    columns, rows = [column[0] for column in found.description], found.fetchall()
    file.execute(f"DELETE FROM [{table}]")
    for row in rows:
        values = [turn(value) if isinstance(value, str) else value for value in row]
        if "tbl" in columns:
            values[columns.index("tbl")] = last - row[columns.index("tbl")]
        file.execute(f"INSERT INTO [{table}] VALUES ({', '.join('?' * len(values))})", values)
