"""Forms as JSON schemas: inlined, bounded, narrowed, and equal to what the check accepts."""

from __future__ import annotations

import json
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel, field_validator

from sim.answers import illegal, schema
from sim.types import Form
from tests.sim.answer_corpus import MARKET, Bid, Pass


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    item: Colour
    quantity: int = Field(gt=0, lt=10)


class Order(BaseModel):
    lines: list[Line] = Field(min_length=1, max_length=2)
    note: str | None = Field(default=None, max_length=5)
    weight: float = Field(gt=0, multiple_of=0.5)


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("an even number please")
        return number


ORDER = Form(models=(Order,))


def test_several_models() -> None:
    assert schema(MARKET) == {
        "anyOf": [
            {
                "description": "Offer to buy one unit.",
                "type": "object",
                "properties": {
                    "act": {"type": "string", "enum": ["bid"]},
                    "price": {"type": "integer", "minimum": 80, "maximum": 120},
                    "message": {"type": "string", "maxLength": 80},
                },
                "required": ["act", "price", "message"],
                "additionalProperties": False,
            },
            {
                "description": "Do nothing.",
                "type": "object",
                "properties": {"act": {"type": "string", "enum": ["pass"]}},
                "required": ["act"],
                "additionalProperties": False,
            },
        ]
    }


def test_nested_is_inlined_and_bounded() -> None:
    built = schema(ORDER)
    assert "$" not in json.dumps(built)
    assert list(built["properties"]) == ["lines", "note", "weight"] == built["required"]
    assert built["properties"]["lines"]["items"]["properties"] == {
        "item": {"type": "string", "enum": ["red", "blue"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 9},
    }
    assert built["properties"]["note"] == {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]}


def test_nested_is_checked() -> None:
    legal = {"lines": [{"item": "red", "quantity": 2}], "note": None, "weight": 1.5}
    assert illegal(ORDER, legal) is None
    assert illegal(ORDER, {**legal, "note": "short"}) is None
    for wrong, reason in [
        ({"lines": []}, "lines must have 1 to 2 items"),
        ({"lines": [{"item": "red", "quantity": 10}]}, "lines[0].quantity must be at least 1 and at most 9"),
        ({"lines": [{"item": "green", "quantity": 1}]}, "lines[0].item must be one of 'red', 'blue'"),
        ({"lines": [{"item": "red", "quantity": 1, "x": 1}]}, "it must have only the fields item, quantity"),
        ({"note": "too long"}, "note must have 0 to 5 characters, not 8"),
        ({"weight": 0}, "weight must be more than 0"),
        ({"weight": 0.7}, "weight must be a multiple of 0.5"),
        ({"extra": 1}, "it must have only the fields lines, note, weight"),
    ]:
        assert illegal(ORDER, {**legal, **wrong}) == reason
    assert illegal(ORDER, {"lines": legal["lines"], "weight": 1.5}) == "note is missing"


def test_validators_of_the_model_count() -> None:
    form = Form(models=(Even,))
    assert illegal(form, {"number": 4}) is None
    assert illegal(form, {"number": 3}) == "number: Value error, an even number please"
    assert illegal(form, {"number": 2**53}) is not None


def narrowed(field: str, **keywords: Any) -> dict[str, Any]:
    built: dict[str, Any] = schema(Form(models=(Bid,), narrow={field: keywords}))["properties"]
    return built


def test_narrowing_only_takes_away() -> None:
    assert narrowed("Bid.price", minimum=0, maximum=1_000)["price"] == {"type": "integer", "minimum": 1, "maximum": 500}
    assert narrowed("Bid.price", exclusiveMaximum=10)["price"]["maximum"] == 9
    assert narrowed("Bid.price", enum=[5, 0, 700, "x", True])["price"] == {"type": "integer", "enum": [5]}
    assert narrowed("Bid.price", enum=[5, 50], maximum=10)["price"]["enum"] == [5]
    assert narrowed("Bid.message", maxLength=10, minLength=2)["message"] == {
        "type": "string",
        "minLength": 2,
        "maxLength": 10,
    }
    assert narrowed("Bid.message", enum=["hi", "x" * 99])["message"]["enum"] == ["hi"]
    order = Form(models=(Order,), narrow={"Order.note": {"maxLength": 2}})
    assert schema(order)["properties"]["note"]["anyOf"] == [{"type": "string", "maxLength": 2}, {"type": "null"}]


def test_schemas_are_cached_by_value() -> None:
    one = schema(Form(models=(Bid,), narrow={"Bid.price": {"maximum": 9}}))
    assert schema(Form(models=(Bid,), narrow=MappingProxyType({"Bid.price": {"maximum": 9}}))) is one
    assert schema(Form(models=(Bid,), narrow={"Bid.price": {"maximum": 8}})) is not one
    assert schema(Form(models=(Bid,)))["properties"]["price"]["maximum"] == 500


class Unbounded(BaseModel):
    text: str


class UnboundedList(BaseModel):
    items: list[int]


class Anything(BaseModel):
    value: Any


class Mapped(BaseModel):
    value: dict[str, int]


class Tree(BaseModel):
    children: list[Tree] = Field(max_length=2)


class Root(RootModel[int]):
    pass


class Mixed(BaseModel):
    value: Literal["a", 1]


@pytest.mark.parametrize("model", [Unbounded, UnboundedList, Anything, Mapped, Tree, Root, Mixed])
def test_unbounded_models_are_refused(model: type[BaseModel]) -> None:
    with pytest.raises(ValueError, match=model.__name__):
        schema(Form(models=(model,)))


@pytest.mark.parametrize(
    "form",
    [
        Form(models=()),
        Form(models=(Bid, Order)),
        Form(models=(Bid, Bid)),
        Form(models=(Bid, Pass), narrow={"Sell.price": {"minimum": 1}}),
        Form(models=(Bid,), narrow={"Bid.cost": {"minimum": 1}}),
        Form(models=(Bid,), narrow={"Bid.price": {"format": "even"}}),
        Form(models=(Bid,), narrow={"Bid.price": {"minimum": 501}}),
        Form(models=(Bid,), narrow={"Bid.price": {"enum": []}}),
        Form(models=(Bid,), narrow={"Bid.message": {"minLength": 81}}),
    ],
)
def test_wrong_forms_are_refused(form: Form) -> None:
    with pytest.raises(ValueError):
        schema(form)
