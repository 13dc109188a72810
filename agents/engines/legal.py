"""A legal answer at random, for any answer format.

Left out: the keyword `pattern`, and what a model's own validators ask beyond its schema.
"""

from __future__ import annotations

import math

import orjson

from sim.answers import schema
from sim.streams import Streams
from sim.types import JSON, Choice, Form, Format, Text

_PROSE = (
    "apple bridge candle doubt early fair garden happy island journey kettle letter market never offer paper quiet "
    "river second table under value winter yellow about better common deal even friend good half idea just keep "
    "little more north open price quick reason small trade until very week young answer before clear door every "
    "first great"
)
WORDS = tuple(_PROSE.split())
"""What free text is made of."""

_OPEN = 2**53 - 1
"""The bound that stands in a schema where an integer's author gave none."""
_SPAN = 100
"""Width of the range of a number that the schema leaves open."""


def legal_text(form: Format, streams: Streams, most: int | None = None) -> str:
    """The text of an answer that fits the format; free text has at most `most` characters."""
    match form:
        case Choice():
            return streams.choice(form.options, "option")
        case Form():
            return orjson.dumps(legal_value(schema(form), streams)).decode()
        case Text():
            longest = form.max_chars if most is None else min(form.max_chars, most)
            return sentence(streams, 1, max(1, longest))


def sentence(streams: Streams, shortest: int, longest: int) -> str:
    """Words drawn at random and a full stop, between `shortest` and `longest` characters together."""
    if longest < 1:
        return ""
    target = streams.integer(shortest, max(shortest, min(longest, 160)), "length")
    text, count = streams.choice(WORDS, "word", 0)[: max(1, longest - 1)], 1
    while len(text) < target:
        word = streams.choice(WORDS, "word", count)
        if len(text) + len(word) + 2 > longest:
            break
        text, count = f"{text} {word}", count + 1
    return (text.capitalize() + ".")[:longest].ljust(shortest, ".")


def legal_value(node: JSON, streams: Streams) -> JSON:
    """A JSON value that the schema of a form allows, each part drawn below its own path."""
    if "enum" in node:
        return streams.choice(node["enum"], "enum")
    if "anyOf" in node:
        which = streams.integer(0, len(node["anyOf"]) - 1, "branch")
        return legal_value(node["anyOf"][which], streams.sub("branch", which))
    match node["type"]:
        case "object":
            return {name: legal_value(part, streams.sub(name)) for name, part in node["properties"].items()}
        case "array":
            shortest = node.get("minItems", 0)
            length = streams.integer(shortest, max(shortest, min(node["maxItems"], 3)), "length")
            return [legal_value(node["items"], streams.sub("item", i)) for i in range(length)]
        case "integer":
            low, high = _bounds(node, 1)
            step = node.get("multipleOf", 1)
            return step * streams.integer(math.ceil(low / step), math.floor(high / step), "integer")
        case "number":
            return _number(node, streams)
        case "boolean":
            return streams.draw("boolean") < 0.5
        case "null":
            return None
        case _:
            return sentence(streams, node.get("minLength", 1), node["maxLength"])


def _number(node: JSON, streams: Streams) -> float:
    """A number within its bounds, with two decimals where that stays inside."""
    low, high = _bounds(node, 0)
    value = low + (high - low) * streams.draw("number")
    if "multipleOf" in node:
        step = node["multipleOf"]
        return float(min(max(round(value / step), math.ceil(low / step)), math.floor(high / step)) * step)
    short = round(value, 2)
    return float(short if low <= short <= high else value)


def _bounds(node: JSON, step: int) -> tuple[float, float]:
    """Lowest and highest value; an excluded bound is left by `step`, or by the least possible where that is 0."""
    lows = [bound for bound in (node.get("minimum"),) if bound is not None and bound > -_OPEN]
    highs = [bound for bound in (node.get("maximum"),) if bound is not None and bound < _OPEN]
    if (above := node.get("exclusiveMinimum")) is not None:
        lows.append(math.floor(above) + step if step else math.nextafter(above, math.inf))
    if (below := node.get("exclusiveMaximum")) is not None:
        highs.append(math.ceil(below) - step if step else math.nextafter(below, -math.inf))
    if not lows:
        lows.append(min(highs) - _SPAN if highs and min(highs) < 0 else 0)
    low = max(lows)
    return low, min(highs, default=low + _SPAN)
