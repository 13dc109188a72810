"""Answer forms as JSON schemas: built from pydantic models, narrowed for one turn, checked without a schema library.

The subset is what every constrained decoder understands: objects with fixed keys, bounded lists and texts, numbers,
truth values, null, choices and `anyOf`. Anything else is refused when the schema is built, because an unbounded
answer cannot be guaranteed to end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import orjson
from pydantic import BaseModel, ValidationError

from sim.types import JSON, Form

Schema: TypeAlias = dict[str, Any]

LARGEST = 2**53 - 1
"""Bound of whole numbers that state none: the largest that every JSON reader holds exactly."""

UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters no answer may hold: controls but for newline and tab, and halves of surrogate pairs."""

_RAISE = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})
_LOWER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems"})
_TEXTUAL = ("minLength", "maxLength", "pattern")


class Branches(NamedTuple):
    """A form made ready: its schema, and each model with its own."""

    schema: Schema
    pairs: tuple[tuple[type[BaseModel], Schema], ...]
    by_act: Mapping[JSON, tuple[type[BaseModel], Schema]]
    """The pair that each literal of the field `act` selects; empty where there is one model."""


def branches(form: Form) -> Branches:
    """The form as narrowed this turn; cached and shared: do not change it. Raises ValueError as `schema` does."""
    return _built(form.models, orjson.dumps(form.narrow, default=dict))


def schema(form: Form) -> Schema:
    """JSON schema of the form as narrowed this turn; `anyOf` where there are several models. Shared: do not change it.

    Raises ValueError where a model or its narrowing is no bounded form: a mistake of the world's author.
    """
    return branches(form).schema


@lru_cache(maxsize=64)  # the engine, the prompt and the parser ask for the form of one turn; the next turn's is another
def _built(models: tuple[type[BaseModel], ...], narrowing: bytes) -> Branches:
    narrow = orjson.loads(narrowing)
    names = ", ".join(model.__name__ for model in models) or "(none)"
    for name in narrow:
        if name.partition(".")[0] not in names.split(", "):
            raise ValueError(f"narrow names {name!r}, but the form's models are {names}")
    pairs = tuple((model, _narrowed(model, narrow)) for model in models)
    if len(pairs) == 1:
        return Branches(pairs[0][1], pairs, {})
    literals = [(act, pair) for pair in pairs for act in _acts(pair[1])]
    by_act = dict(literals)
    if not pairs or len(by_act) < len(literals) or not all(_acts(one) for _, one in pairs):
        raise ValueError(f"models {names} need a literal field `act` that tells them apart")
    return Branches({"anyOf": [one for _, one in pairs]}, pairs, by_act)


def _acts(one: Schema) -> list[JSON]:
    found: list[JSON] = one["properties"].get("act", {}).get("enum", [])
    return found


@lru_cache(maxsize=1024)
def _base(model: type[BaseModel]) -> Schema:
    raw = model.model_json_schema()
    built = _plain(raw, raw.get("$defs", {}), model.__name__, ())
    if "properties" not in built:
        raise ValueError(f"{model.__name__}: an answer is an object with named fields")
    return built


def _narrowed(model: type[BaseModel], narrow: Mapping[str, Mapping[str, JSON]]) -> Schema:
    prefix = f"{model.__name__}."
    own = {name: keywords for name, keywords in narrow.items() if name.startswith(prefix)}
    return _tight(model, orjson.dumps(own, default=dict)) if own else _base(model)


@lru_cache(maxsize=512)
def _tight(model: type[BaseModel], narrowing: bytes) -> Schema:
    base = _base(model)
    properties = dict(base["properties"])
    for name, keywords in orjson.loads(narrowing).items():
        attribute = name.partition(".")[2]
        if attribute not in properties:
            raise ValueError(f"narrow names {name!r}, but {model.__name__} has the fields {', '.join(properties)}")
        properties[attribute] = _tightened(properties[attribute], keywords, name)
    return {**base, "properties": properties}


def _tightened(one: Schema, keywords: Mapping[str, JSON], where: str) -> Schema:
    """The schema with keywords that may only take answers away."""
    if "anyOf" in one:
        parts = [p if p.get("type") == "null" else _tightened(p, keywords, where) for p in one["anyOf"]]
        return {**one, "anyOf": parts}
    tight = dict(one)
    for word, value in keywords.items():
        if word in _RAISE:
            tight[word] = max(tight.get(word, value), value)
        elif word in _LOWER:
            tight[word] = min(tight.get(word, value), value)
        elif word == "enum":
            tight[word] = [item for item in value if check(one, item) is None]
        else:
            raise ValueError(f"{where}: cannot narrow by {word!r}")
    return _settled(tight, where)


def _settled(one: Schema, where: str) -> Schema:
    """The schema with whole-number bounds inclusive and only possible choices. Raises ValueError if none is left."""
    if "enum" in one:
        values = [item for item in one["enum"] if check(one, item) is None]
        one = {word: one[word] for word in ("description", "type") if word in one} | {"enum": values}
        if not values:
            raise ValueError(f"{where}: no choice is left")
    elif one["type"] == "integer":
        low = [math.ceil(one.get("minimum", -LARGEST)), math.floor(one.pop("exclusiveMinimum", -LARGEST - 1)) + 1]
        high = [math.floor(one.get("maximum", LARGEST)), math.ceil(one.pop("exclusiveMaximum", LARGEST + 1)) - 1]
        one |= {"minimum": max(low), "maximum": min(high)}
    for least, most in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if least in one and most in one and one[least] > one[most]:
            raise ValueError(f"{where}: no value from {one[least]} to {one[most]}")
    return one


def _plain(raw: Schema, defs: Schema, where: str, inside: tuple[str, ...]) -> Schema:
    """The schema in our subset, references inlined; `where` names it in errors."""
    if "$ref" in raw:
        name = raw["$ref"].rpartition("/")[2]
        if name in inside:
            raise ValueError(f"{where}: {name} contains itself")
        return _plain({**defs[name], **{k: v for k, v in raw.items() if k != "$ref"}}, defs, where, (*inside, name))
    about = {"description": raw["description"]} if "description" in raw else {}
    if "anyOf" in raw or "oneOf" in raw:
        parts = raw.get("anyOf") or raw["oneOf"]
        return about | {"anyOf": [_plain(part, defs, where, inside) for part in parts]}
    if raw.get("type") == "object" and "properties" in raw:
        properties = {name: _plain(one, defs, f"{where}.{name}", inside) for name, one in raw["properties"].items()}
        return about | {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    return about | _leaf(raw, defs, where, inside)


def _leaf(raw: Schema, defs: Schema, where: str, inside: tuple[str, ...]) -> Schema:
    kind = raw.get("type")
    if "const" in raw or "enum" in raw:
        return _choices(raw.get("enum", [raw.get("const")]), where)
    if kind in ("string", "array") and raw.get("maxLength", raw.get("maxItems")) is None:
        raise ValueError(f"{where}: give it a max_length, so that an answer is sure to end")
    if kind == "string":
        return {"type": kind, **{word: raw[word] for word in _TEXTUAL if word in raw}}
    if kind == "array" and "items" in raw and "prefixItems" not in raw:
        items = _plain(raw["items"], defs, f"{where}[]", inside)
        return {"type": kind, "items": items, "minItems": raw.get("minItems", 0), "maxItems": raw["maxItems"]}
    if kind in ("integer", "number"):
        words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
        return _settled({"type": kind, **{word: raw[word] for word in words if word in raw}}, where)
    if kind in ("boolean", "null"):
        return {"type": kind}
    raise ValueError(f"{where}: a field of an answer is text, a number, a truth value, a choice, a list or a form")


def _choices(values: list[JSON], where: str) -> Schema:
    kinds = {type(value) for value in values}
    names = {str: "string", int: "integer", bool: "boolean"}
    if len(kinds) != 1 or (kind := names.get(next(iter(kinds)))) is None:
        raise ValueError(f"{where}: the choices of a field are all texts or all whole numbers")
    return {"type": kind, "enum": list(values)}


# --- checking ---------------------------------------------------------------------------------


def misfit(form: Form, answer: JSON) -> str | None:
    """Why an answer does not fit the form as narrowed this turn, or None."""
    if type(answer) is not dict:
        return "the answer must be one JSON object"
    model = form.models[0] if len(form.models) == 1 else _model_of(form, answer.get("act"))
    if model is None:
        return f"act must be {_listed(list(branches(form).by_act))}"
    return check(_narrowed(model, form.narrow), answer) or _refused(model, answer)


def _model_of(form: Form, act: JSON) -> type[BaseModel] | None:
    """The model that the act of an answer selects: only that one need be narrowed to check it."""
    return next((model for model in form.models if type(act) is str and act in _acts(_base(model))), None)


def check(one: Schema, value: JSON, where: str = "") -> str | None:
    """Why a value does not fit a schema of our subset, or None. `where` names the value in the reason."""
    if "anyOf" in one:
        reasons = [check(part, value, where) for part in one["anyOf"]]
        return None if None in reasons else reasons[0]
    kind = one["type"]
    if type(value) not in _TYPES[kind]:
        return f"{where or 'it'} must be {_NAMES[kind]}"
    if "enum" in one and value not in one["enum"]:
        return f"{where} must be {_listed(one['enum'])}"
    return _CHECKS[kind](one, value, where) if kind in _CHECKS else None


def _object(one: Schema, value: dict[str, JSON], where: str) -> str | None:
    properties = one["properties"]
    if value.keys() != properties.keys():
        missing = [name for name in properties if name not in value]
        return f"{missing[0]} is missing" if missing else f"it must have only the fields {', '.join(properties)}"
    for name, part in properties.items():
        if (reason := check(part, value[name], f"{where}.{name}" if where else name)) is not None:
            return reason
    return None


def _array(one: Schema, value: list[JSON], where: str) -> str | None:
    if not one["minItems"] <= len(value) <= one["maxItems"]:
        return f"{where} must have {one['minItems']} to {one['maxItems']} items"
    reasons = (check(one["items"], item, f"{where}[{n}]") for n, item in enumerate(value))
    return next((reason for reason in reasons if reason is not None), None)


def _string(one: Schema, value: str, where: str) -> str | None:
    least, most = one.get("minLength", 0), one.get("maxLength", len(value))
    if not least <= len(value) <= most:
        return f"{where} must have {least} to {most} characters, not {len(value)}"
    return f"{where} holds a control character" if UNSAFE.search(value) else None


def _number(one: Schema, value: float, where: str) -> str | None:
    if not -LARGEST <= value <= LARGEST:  # also not a number
        return f"{where} must be an ordinary number"
    if value < one.get("minimum", value) or ("exclusiveMinimum" in one and value <= one["exclusiveMinimum"]):
        return f"{where} must be {_range(one)}"
    if value > one.get("maximum", value) or ("exclusiveMaximum" in one and value >= one["exclusiveMaximum"]):
        return f"{where} must be {_range(one)}"
    if kind_step := one.get("multipleOf"):
        return f"{where} must be a multiple of {kind_step}" if value % kind_step else None
    return None


def _range(one: Schema) -> str:
    """The bounds of a number in words."""
    return " and ".join(f"{text} {one[word]}" for word, text in _BOUNDS.items() if word in one) or "a number"


def _refused(model: type[BaseModel], answer: dict[str, JSON]) -> str | None:
    """What the model's own validators say, read strictly from JSON."""
    try:
        model.__pydantic_validator__.validate_json(orjson.dumps(answer), strict=True)
    except ValidationError as refusal:
        first = refusal.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"[:200]
    return None


def _listed(values: list[JSON]) -> str:
    """Choices in words, the first twelve of many."""
    named = [repr(value) for value in values[:12]] + (["…"] if len(values) > 12 else [])
    return named[0] if len(named) == 1 else f"one of {', '.join(named)}"


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NAMES = {
    "object": "a JSON object",
    "array": "a list",
    "string": "text in quotes",
    "integer": "a whole number without quotes",
    "number": "a number without quotes",
    "boolean": "true or false",
    "null": "null",
}
_CHECKS: dict[str, Any] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
}
