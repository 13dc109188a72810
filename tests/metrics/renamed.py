"""A stored run with its agents called otherwise and its tables in another order: nothing that a metric may look at."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from shutil import copy

Turn = Callable[[str], str]


def renamed(path: Path, to: Path) -> Turn:
    """Write the other run; what turns the names in a text of the one into those of the other.

    Members of an entry of the cast change places, entries get other names in the opposite order of the alphabet, and
    the last table comes first.
    """
    copy(path, to)
    with closing(sqlite3.connect(to)) as file, file:
        turn = _turn([agent for (agent,) in file.execute("SELECT DISTINCT agent FROM [cast] ORDER BY agent")])
        (last,) = file.execute("SELECT max(tbl) FROM [cast]").fetchone()
        for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            found = file.execute(f"SELECT * FROM [{table}]")
            names, rows = [column[0] for column in found.description], found.fetchall()
            place = names.index("tbl") if "tbl" in names else None
            file.execute(f"DELETE FROM [{table}]")
            file.executemany(
                f"INSERT INTO [{table}] VALUES ({', '.join('?' * len(names))})",
                ([_other(one, n == place, last, turn) for n, one in enumerate(row)] for row in rows),
            )
    return turn


def _other(value: object, is_table: bool, last: int, turn: Turn) -> object:
    if is_table and isinstance(value, int):
        return last - value
    return turn(value) if isinstance(value, str) else value


def _turn(agents: Sequence[str]) -> Turn:
    entries: dict[str, list[str]] = {}
    for agent in agents:
        entries.setdefault(re.sub(r"-\d+$", "", agent), []).append(agent)
    names = {
        agent: f"{chr(ord('z') - place)}{entry[::-1]}{other.removeprefix(entry)}"
        for place, (entry, members) in enumerate(entries.items())
        for agent, other in zip(members, reversed(members), strict=True)
    }
    inside = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, names)) + r")(?![\w-])")
    return lambda text: inside.sub(lambda found: names[found[0]], text)
