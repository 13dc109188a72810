"""Values that know where they were written, and the one-line error that says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from sim.types import JSON

Keys: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the root."""


class Place(NamedTuple):
    """Where a value was written."""

    file: str
    line: int | None = None


class ScenarioError(ValueError):
    """A scenario, or a file it names, cannot be used. Its text is one line: `file:line: key: what is wrong`."""

    def __init__(self, file: str, line: int | None, key: str, message: str) -> None:
        self.file = file
        self.line = line
        self.key = key
        self.message = message
        super().__init__(file, line, key, message)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return " ".join(": ".join(part for part in (where, self.key, self.message) if part).split())


@dataclass(slots=True)
class Located:
    """Plain values, and where each was written."""

    text: str
    """The file's text."""
    file: str
    """Its name, as errors show it."""
    data: JSON
    """What it says."""
    places: dict[Keys, Place]
    """Where each value, or its key, stands."""

    def place(self, keys: Keys) -> Place:
        """Where a value stands, or the nearest value around it."""
        while keys and keys not in self.places:
            keys = keys[:-1]
        return self.places.get(keys, Place(self.file))

    def key(self, keys: Keys) -> str:
        """The keys in dots, as `--set` takes it: an entry of a list by its name where it has one."""
        parts: list[str] = []
        value = self.data
        for step in keys:
            value = _child(value, step)
            name = value.get("name") if isinstance(step, int) and isinstance(value, dict) else None
            parts.append(name if isinstance(name, str) and name else str(step))
        return ".".join(parts)

    def error(self, keys: Keys, message: str) -> ScenarioError:
        """The error that a value deserves."""
        place = self.place(keys)
        return ScenarioError(place.file, place.line, self.key(keys), message)


def _child(value: JSON, step: str | int) -> JSON:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None


def shown(value: object, most: int = 60) -> str:
    """A value as an error shows it: short, on one line."""
    text = repr(value[: most + 1]) if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """What was probably meant: the nearest known name, or the names there are."""
    names = sorted(set(known))
    if close := get_close_matches(word, names, n=1, cutoff=0.6):
        return f"did you mean {close[0]}?"
    if not names:
        return "none is known here"
    if len(names) == 1:
        return f"there is only {names[0]}"
    return "choose one of " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
