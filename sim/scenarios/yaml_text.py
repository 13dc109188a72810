"""A strict subset of YAML: one document, text keys, no tags, no merge keys, no duplicate keys, no NaN or infinity.

Plain words are read by YAML 1.2's rules, so `yes`, `1:30` and `2024-01-01` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sim.scenarios.located import Keys, Located, Place, ScenarioError, shown
from sim.types import JSON

MAX_VALUES = 1_000_000
"""Values in one file, aliases written out."""
MAX_DEPTH = 60
"""Mappings and lists inside one another."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BREAKS = "\r\x85\u2028\u2029"
_WORDS: dict[str, JSON] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def text_of(path: Path) -> str:
    """The text of a file that somebody wrote. Raises ScenarioError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ScenarioError(str(path), None, "", "no such file") from None
    except UnicodeDecodeError as error:
        raise ScenarioError(str(path), None, "", f"cannot be read as a UTF-8 text: {error}") from None
    except OSError as error:
        raise ScenarioError(str(path), None, "", f"cannot be read: {error.strerror}") from None


def read_yaml(text: str, file: str) -> Located:
    """Read one YAML document. Raises ScenarioError; executes nothing, whatever tags it holds."""
    reader = _Reader(text, file)
    try:
        data = reader.document()
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, file) from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise ScenarioError(file, line, "", f"not YAML: {getattr(error, 'reason', error)}") from None
    return Located(text, file, data, reader.places)


def _malformed(error: yaml.MarkedYAMLError, text: str, file: str) -> ScenarioError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    lines = text.splitlines()
    written = lines[mark.line] if mark and mark.line < len(lines) else ""
    problem = f"not YAML: {error.problem or error.context}"
    if "\t" in written[: len(written) - len(written.lstrip())]:
        problem = "not YAML: a tab indents this line; indent with spaces"
    elif "mapping values are not allowed" in problem:
        problem += "; quote a text that holds a colon, and check the indentation"
    return ScenarioError(file, line, "", problem)


class _Reader:
    """Builds plain values from parse events: no node of a tree is ever constructed by its tag."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.places: dict[Keys, Place] = {}
        self._events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
        self._anchors: dict[str, tuple[JSON, int] | None] = {}
        """Value and size of each anchor; None while it is being read."""
        self._count = 0

    def document(self) -> JSON:
        data: JSON = None
        found = False
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found:
                    raise self._error(event, (), "a second document starts here; a file holds one")
                found = True
                data = self._value(next(self._events), ())
        return data

    def _value(self, event: Any, keys: Keys) -> JSON:
        self.places.setdefault(keys, Place(self.file, event.start_mark.line + 1))
        before = self._count
        self._grow(event, keys, 1)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, keys)
        if event.tag is not None:
            raise self._error(event, keys, f"the tag {shown(event.tag)} is not allowed; write a plain value")
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(keys)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(keys)
        else:
            value = self._scalar(event, keys)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._count - before)
        return value

    def _grow(self, event: Any, keys: Keys, by: int) -> None:
        self._count += by
        if self._count > MAX_VALUES:
            raise self._error(event, (), f"more than {MAX_VALUES:,} values; split the file")
        if len(keys) > MAX_DEPTH:
            raise self._error(event, keys[:1], f"nested more than {MAX_DEPTH} deep")

    def _alias(self, event: Any, keys: Keys) -> JSON:
        there = self._anchors.get(event.anchor)
        if there is None:
            raise self._error(event, keys, f"*{event.anchor} names no complete value above it")
        value, size = there
        self._grow(event, keys, size)
        return _copy(value)

    def _mapping(self, keys: Keys) -> JSON:
        found: dict[str, JSON] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            plain = isinstance(event, yaml.ScalarEvent) and event.tag is None
            key = self._scalar(event, keys) if plain else None
            if not isinstance(key, str) or key == "<<":
                word = event.value if isinstance(event, yaml.ScalarEvent) else "a mapping or list"
                raise self._error(
                    event, keys, f"{shown(word)} cannot be a key here; keys are plain texts (quote numbers)"
                )
            here = (*keys, key)
            if key in found:
                raise self._error(event, here, f"written twice, first on line {self.places[here].line}; keep one")
            self.places[here] = Place(self.file, event.start_mark.line + 1)
            found[key] = self._value(next(self._events), here)
        return found

    def _sequence(self, keys: Keys) -> JSON:
        found: list[JSON] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, (*keys, len(found))))
        return found

    def _scalar(self, event: Any, keys: Keys) -> JSON:
        text: str = event.value
        if not event.implicit[0]:
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise self._error(event, keys, "half of a surrogate pair is no character")
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text):
            if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
                raise self._error(event, keys, f"{text[:24]}… does not fit 64 bits")
            return int(text)
        if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
            number = float(text.replace(".i", "i").replace(".I", "i").replace(".n", "n").replace(".N", "n"))
            if number - number != 0:
                raise self._error(event, keys, f"{shown(text)} is not a finite number")
            return number
        return text

    def _error(self, event: Any, keys: Keys, message: str) -> ScenarioError:
        return ScenarioError(self.file, event.start_mark.line + 1, ".".join(map(str, keys)), message)


def _copy(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


class _Dumper(yaml.SafeDumper):
    """Quotes what `read_yaml` would otherwise read as something else; writes no aliases."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern in (
    ("null", "~|null|Null|NULL|"),
    ("bool", "true|True|TRUE|false|False|FALSE"),
    ("int", _INT.pattern),
    ("float", f"{_FLOAT.pattern}|{_NOT_FINITE.pattern}"),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), None)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """A text with a line break other than a newline must be escaped, or it comes back as a space."""
    style = '"' if any(mark in text for mark in _BREAKS) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(data: JSON) -> str:
    """A YAML text that `read_yaml` reads back as the same values."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
