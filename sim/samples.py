"""Random legal answers: for random agents, synthetic engines and conformance checks."""

from __future__ import annotations

import math
import random
from typing import Any

from sim.forms import Schema, branches, misfit
from sim.types import JSON, Choice, Format, Text

_WORDS = ("yes", "no", "maybe", "fine", "good", "deal", "offer", "today", "later", "please", "thanks", "hello")
_MOST_WORDS = 6
_TRIES = 20
_WIDE = 1_000
"""Bound of random numbers where the form sets none."""


def sample(format: Format, rng: random.Random) -> JSON:
    """A random legal answer: choices alike likely; of a form, first the model and then each field on its own.

    None where a model's own validators refuse twenty in a row.
    """
    if isinstance(format, Choice):
        return rng.choice(format.options)
    if isinstance(format, Text):
        return _text(rng, 1, format.max_chars)
    pairs = branches(format).pairs
    for _ in range(_TRIES):
        answer = _value(rng.choice(pairs)[1], rng)
        if misfit(format, answer) is None:
            return answer
    return None


def _value(one: Schema, rng: random.Random) -> JSON:
    if "anyOf" in one:
        return _value(rng.choice(one["anyOf"]), rng)
    if "enum" in one:
        return rng.choice(one["enum"])
    kind = one["type"]
    if kind == "object":
        return {name: _value(part, rng) for name, part in one["properties"].items()}
    if kind == "array":
        return [_value(one["items"], rng) for _ in range(rng.randint(one["minItems"], one["maxItems"]))]
    if kind == "string":
        return _text(rng, one.get("minLength", 0), one["maxLength"])
    if kind in ("integer", "number"):
        return _number(one, rng)
    return rng.random() < 0.5 if kind == "boolean" else None


def _number(one: Schema, rng: random.Random) -> float:
    low: Any = one.get("minimum", one.get("exclusiveMinimum", -_WIDE))
    high: Any = one.get("maximum", one.get("exclusiveMaximum", max(_WIDE, low)))
    if "multipleOf" in one:
        step: Any = one["multipleOf"]
        least = math.ceil(low / step)
        number: float = step * rng.randint(least, max(least, math.floor(high / step)))
        return number
    if one["type"] == "integer":
        return rng.randint(low, high)
    return rng.uniform(min(low, high), high)


def _text(rng: random.Random, least: int, most: int) -> str:
    """A few words, at least `least` and at most `most` characters."""
    words = " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, _MOST_WORDS)))
    while len(words) < least:
        words += " " + rng.choice(_WORDS)
    return words[:most].rstrip().ljust(least, ".")
