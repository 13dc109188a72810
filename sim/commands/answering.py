"""A question to a person in the terminal: what the seat sees, and an answer asked for by the form it has to have.

The answer is a text as a model would write it; whether it is legal is not judged here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from sim.commands.failures import visible
from sim.commands.terminal import plain, say
from sim.types import JSON

Read: TypeAlias = Callable[[str], str]
"""Asks for one line."""

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")


def asked(question: Mapping[str, Any], read: Read) -> str:
    """The answer to a question of `sim.steering.people`."""
    form = question["format"]
    if "enum" in form:
        return str(_choice(form["enum"], read, "answer"))
    if form.get("type") == "string":
        return read(f"answer (at most {form['maxLength']} characters): ")
    return orjson.dumps(_value(form, read, "")).decode()


def _value(one: Mapping[str, Any], read: Read, name: str) -> JSON:
    """A value for a schema, asked for part by part."""
    if "anyOf" in one:
        return _value(_branch(one["anyOf"], read, name), read, name)
    if "enum" in one:
        return _choice(one["enum"], read, name) if len(one["enum"]) > 1 else one["enum"][0]
    match one["type"]:
        case "object":
            inside = f"{name}." if name else ""
            return {key: _value(part, read, f"{inside}{key}") for key, part in one["properties"].items()}
        case "array":
            return _list(one, read, name)
        case "integer" | "number":
            return _number(read(f"{name} ({_range(one)}): "))
        case "boolean":
            return _choice(["yes", "no"], read, name) == "yes"
        case "null":
            return None
    return read(f"{name} (at most {one['maxLength']} characters): ")


def _branch(parts: Sequence[Mapping[str, Any]], read: Read, name: str) -> Mapping[str, Any]:
    """Which of several forms the answer has: by its `act`, or whether there is a value at all."""
    acts = {"act": [part["properties"]["act"]["enum"][0] for part in parts if "act" in part.get("properties", {})]}
    if len(acts["act"]) == len(parts):
        act = _choice(acts["act"], read, "act", [part.get("description", "") for part in parts])
        return parts[acts["act"].index(act)]
    names = [part.get("type", "one of several") for part in parts]
    return parts[names.index(_choice(names, read, f"{name} is"))]


def _choice(options: Sequence[JSON], read: Read, name: str, told: Sequence[str] = ()) -> JSON:
    """One of a few, by its number or as it stands; by itself alone where numbers could be taken for options."""
    texts = [str(option) for option in options]
    numbered = not any(_NUMBER.fullmatch(text) for text in texts)
    for place, text in enumerate(texts):
        about = f"  {told[place]}" if told and told[place] else ""
        say(plain(f"  {place + 1}. {text}{about}" if numbered else f"  {text}{about}"))
    while True:
        said = read(f"{name}: ").strip()
        if said in texts:
            return options[texts.index(said)]
        if numbered and said.isdecimal() and 1 <= int(said[:9]) <= len(options):
            return options[int(said) - 1]
        say(
            plain(
                f"{said!r} is none of them; write {f'a number from 1 to {len(texts)}' if numbered else 'one as it is'}"
            )
        )


def _list(one: Mapping[str, Any], read: Read, name: str) -> list[JSON]:
    many = _number(read(f"how many {name} ({one['minItems']} to {one['maxItems']}): "))
    count = min(many, one["maxItems"]) if isinstance(many, int) else 0
    return [_value(one["items"], read, f"{name} {place + 1}") for place in range(count)]


def _number(said: str) -> JSON:
    """A number as it was meant; anything else as it is, for the judge to refuse."""
    text = said.strip().replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return said
    return float(text) if "." in text else int(text)


def _range(one: Mapping[str, Any]) -> str:
    least = one.get("minimum", one.get("exclusiveMinimum"))
    most = one.get("maximum", one.get("exclusiveMaximum"))
    parts = [f"from {least}" * (least is not None), f"to {most}" * (most is not None)]
    return " ".join(["whole number" if one["type"] == "integer" else "number", *filter(None, parts)])


def line(prompt: str) -> str:
    """One line of the terminal. Raises EOFError."""
    return input(visible(prompt))
