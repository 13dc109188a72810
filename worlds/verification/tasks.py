"""Tasks that are done by reading three sources: is there a bug, how much was paid, how many rows fit.

Fifty of each family, and fifty fixed sequences of episodes; all are functions of their numbers, in any run the same.
A reading of all three sources makes a log that does not fit into 1,000 characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal, TypeAlias

from sim.streams import Streams

Family: TypeAlias = Literal["code", "records", "search"]
FAMILIES: tuple[Family, ...] = ("code", "records", "search")
TASKS = 50
"""Tasks of a family."""
SEQUENCES = 50
"""Sequences of episodes."""

_LUCK = Streams(0).sub("verification tasks")


@dataclass(frozen=True, slots=True)
class Task:
    """One task."""

    family: Family
    number: int
    question: str
    sources: Mapping[str, str]
    """Text by name."""
    options: tuple[str, ...]
    """Answers to choose from."""
    answer: str
    """The right one."""


@cache
def task(family: Family, number: int) -> Task:
    """A task by its number, from 0."""
    return _BUILT[family](number, _LUCK.generator(family, number))


def sequence(number: int, episodes: int, families: Sequence[Family]) -> list[tuple[Task, Task]]:
    """The tasks of both agents, episode by episode: in each two different ones of one family."""
    luck = _LUCK.generator("sequence", number)
    pairs = []
    for _ in range(episodes):
        family = luck.choice(families)
        first, second = luck.sample(range(TASKS), 2)
        pairs.append((task(family, first), task(family, second)))
    return pairs


# --- code: does it do what its comments say ---------------------------------------------------------------

_VERBS = {"add": "+", "take away": "-", "multiply by": "*"}
_LINES = 14


def _code(number: int, luck: Random) -> Task:
    texts = {}
    wrong = luck.randrange(3 * _LINES) if luck.random() < 0.5 else None
    for n, name in enumerate(("load", "price", "ship")):
        lines = [f"def {name}(x):"]
        for line in range(_LINES):
            verb, value = luck.choice(list(_VERBS)), luck.randint(2, 9)
            done = value + 1 if wrong == n * _LINES + line else value
            lines += [f"    # {verb} {value}", f"    x = x {_VERBS[verb]} {done}"]
        texts[f"{name}.py"] = "\n".join([*lines, "    return x"])
    question = "Does the code in all three files do what its comments say, or is there a bug?"
    return Task("code", number, question, texts, ("bug", "no bug"), "no bug" if wrong is None else "bug")


def _debugged(question: str, texts: Sequence[str]) -> str:
    pairs = [pair for text in texts for pair in re.findall(r"# [a-z ]+ (\d+)\n\s+x = x . (\d+)", text)]
    return "bug" if any(told != done for told, done in pairs) else "no bug"


# --- records: what somebody paid ------------------------------------------------------------------------------

_PEOPLE = ("Hansen", "Okafor", "Moreau", "Tanaka", "Silva", "Novak", "Rossi", "Ahmed", "Larsen")
_GOODS = ("chairs", "lamps", "carpets", "tables", "shelves")


def _records(number: int, luck: Random) -> Task:
    texts, paid = {}, dict.fromkeys(_PEOPLE, 0)
    for month in ("may", "june", "july"):
        lines = []
        for person in luck.sample(_PEOPLE, len(_PEOPLE)):
            amount = luck.randint(11, 99) * 10
            paid[person] += amount
            goods = f"{luck.randint(2, 9)} {luck.choice(_GOODS)}"
            lines.append(f"On day {luck.randint(1, 28)} {person} paid {amount} for {goods}.")
        texts[month] = "\n".join(lines)
    who = luck.choice(_PEOPLE)
    question = f"How much did {who} pay in the three months together?"
    return Task("records", number, question, texts, *_near(paid[who], 10, luck))


def _extracted(question: str, texts: Sequence[str]) -> str:
    who = question.split()[3]
    return str(sum(int(amount) for text in texts for amount in re.findall(rf"{who} paid (\d+)", text)))


# --- search: rows of a table --------------------------------------------------------------------------------------


def _search(number: int, luck: Random) -> Task:
    good, least, count = luck.choice(_GOODS), luck.randint(3, 6), 0
    texts = {}
    for region in ("north", "south", "east"):
        lines = []
        for row in range(15):
            item, units = luck.choice(_GOODS), luck.randint(1, 9)
            count += item == good and units >= least
            lines.append(f"order {row + 1} | item {item} | units {units}")
        texts[region] = "\n".join(lines)
    question = f"How many orders of {good} with at least {least} units are there in the three regions?"
    return Task("search", number, question, texts, *_near(count, 1, luck))


def _counted(question: str, texts: Sequence[str]) -> str:
    words = question.split()
    good, least = words[4], int(words[8])
    rows = [row for text in texts for row in re.findall(r"item (\w+) \| units (\d+)", text)]
    return str(sum(item == good and int(units) >= least for item, units in rows))


def _near(right: int, step: int, luck: Random) -> tuple[tuple[str, ...], str]:
    """Four answers close to each other, in order, and the right one."""
    lowest = right - step * luck.randint(0, min(3, right // step))
    return tuple(str(lowest + step * n) for n in range(4)), str(right)


_BUILT: Mapping[Family, Callable[[int, Random], Task]] = {"code": _code, "records": _records, "search": _search}
_SOLVED: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    "code": _debugged,
    "records": _extracted,
    "search": _counted,
}


def solved(family: str, question: str, texts: Sequence[str]) -> str:
    """The right answer, found in the texts as anybody could find it."""
    return _SOLVED[family](question, texts)


def raw_log(calls: Sequence[tuple[str, str, str]]) -> str:
    """The log of a task phase: tool, what it was called with and its result, as a JSON array."""
    return json.dumps([{"tool": tool, "with": given, "result": result} for tool, given, result in calls])
