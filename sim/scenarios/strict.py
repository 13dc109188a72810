"""Models of what a file may hold, and their errors as one line: the place, what is wrong, what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from sim.scenarios.located import Keys, Located, ScenarioError, nearest, shown
from sim.types import JSON

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A list in the file, held as a tuple."""


class Strict(BaseModel):
    """What a file may hold: known keys only, of the written type, never changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_pattern_mismatch": "a text like {pattern}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
}
"""What was expected, by pydantic's error type; the braces are filled from its context."""


def checked(model: type[M], data: JSON, located: Located, at: Keys = (), context: dict[str, Any] | None = None) -> M:
    """The data as an instance of the model. Raises ScenarioError with the place of the first thing wrong."""
    try:
        return model.model_validate(data, context=context)
    except ValidationError as error:
        raise _first(error, data, located, at, model) from None
    except Exception as error:
        message = f"{model.__qualname__} refuses it: {type(error).__name__}: {error}"
        raise located.error(at, message) from None


def _first(error: ValidationError, data: JSON, located: Located, at: Keys, model: type[BaseModel]) -> ScenarioError:
    """The first error, an unknown key before a missing one (it is often that one, misspelt).

    Where a union failed, its branches all complain: the one that got deepest into the value knows best.
    """
    errors = [(tuple(_written(item["loc"], data)), item) for item in error.errors(include_url=False)]
    first, _ = min(errors, key=lambda pair: pair[1]["type"] != "extra_forbidden")
    keys, details = max((pair for pair in errors if pair[0][: len(first)] == first), key=lambda pair: len(pair[0]))
    if details["type"] in ("union_tag_invalid", "union_tag_not_found"):
        keys = (*keys, details["ctx"]["discriminator"].strip("'"))
    return located.error((*at, *keys), _message(details, model))


def _written(loc: Sequence[str | int], data: JSON) -> Iterator[str | int]:
    """The part of an error's location that a file shows: names of union branches left out."""
    for index, step in enumerate(loc):
        try:
            data = data[step]
        except (LookupError, TypeError):
            if index < len(loc) - 1 or not isinstance(data, dict):
                continue
        yield step


def _message(details: ErrorDetails, model: type[BaseModel]) -> str:
    kind, ctx = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(str(details['loc'][-1]), known_keys(model, details['loc'][:-1]))}"
    if kind == "missing" and isinstance(details["loc"][-1], int):
        return f"{shown(details['input'])} is wrong; expected more values"
    if kind in ("missing", "union_tag_not_found"):
        return "missing; this key is required"
    if kind == "union_tag_invalid":
        return f"{shown(ctx['tag'])} is wrong; expected {ctx['expected_tags']}"
    if kind in ("value_error", "assertion_error"):
        return str(ctx["error"])
    if kind in _EXPECTED:
        return f"{shown(details['input'])} is wrong; expected {_EXPECTED[kind].format(**ctx)}"
    return f"{shown(details['input'])} is wrong; {details['msg'][:1].lower()}{details['msg'][1:]}"


def known_keys(model: type[BaseModel], loc: Sequence[str | int]) -> set[str]:
    """The keys that a model knows at a location."""
    models: list[type[BaseModel]] = [model]
    for step in loc:
        if isinstance(step, int):
            continue
        fields = [field for each in models if (field := _field(each, step)) is not None]
        if fields:
            models = [inner for field in fields for inner in _models(field)]
        else:
            models = [each for each in models if _is_branch(each, step)] or models
    return {field.alias or name for each in models for name, field in each.model_fields.items()}


def _field(model: type[BaseModel], key: str) -> Any:
    """The annotation of the field that a key sets."""
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            return field.annotation
    return None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The pydantic models that an annotation mentions."""
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _is_branch(model: type[BaseModel], tag: str) -> bool:
    """Whether a literal field of the model holds the tag."""
    return any(
        get_origin(field.annotation) is Literal and tag in get_args(field.annotation)
        for field in model.model_fields.values()
    )
