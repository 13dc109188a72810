"""Scripted agents: always legal, uniform where that means something, without calls."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model, model_validator

from agents.scripted import Constant, RandomLegal
from sim.answers import illegal
from sim.streams import Streams
from sim.types import Action, Choice, Form, Format, Text, Turn
from tests.agents.driving import member


class Bid(BaseModel):
    act: Literal["bid"]
    price: int = Field(ge=1, le=3)


class Pass(BaseModel):
    act: Literal["pass"]


class Never(BaseModel):
    number: int

    @model_validator(mode="after")
    def refuse(self) -> Never:
        raise ValueError("never")


def decide(agent: RandomLegal | Constant, format: Format, seed: int = 0, default: Any = "d") -> Action:
    mind = agent.act(Turn(agent="buyer-1", now=0, view={}, format=format, default=default), Streams(seed))
    with pytest.raises(StopIteration) as end:
        next(mind)
    action: Action = end.value.value
    return action


@st.composite
def fields(draw: st.DrawFn) -> tuple[Any, Any]:
    low = draw(st.integers(-50, 50))
    high = low + draw(st.integers(0, 50))
    length = draw(st.integers(0, 30))
    kinds: list[tuple[Any, Any]] = [
        (int, Field(ge=low, le=high)),
        (int, Field(gt=low, lt=high + 2)),
        (int, Field(ge=low, le=low + 30, multiple_of=draw(st.integers(1, 30)))),
        (int, ...),
        (float, Field(ge=low, le=high)),
        (float, Field(gt=low, lt=high + 1)),
        (bool, ...),
        (str, Field(min_length=min(length, 5), max_length=length)),
        (Literal["x", "y"], ...),
        (list[int], Field(max_length=length)),
        (str | None, Field(max_length=length)),
        (Bid, ...),
    ]
    return draw(st.sampled_from(kinds))


@st.composite
def formats(draw: st.DrawFn) -> Format:
    kind = draw(st.sampled_from(["choice", "text", "form"]))
    if kind == "choice":
        return Choice(options=tuple(draw(st.lists(st.text(min_size=1), min_size=1, unique=True))))
    if kind == "text":
        return Text(max_chars=draw(st.integers(1, 300)))
    models = []
    for n in range(draw(st.integers(1, 3))):
        act: Any = Literal[f"act{n}"]  # type: ignore[valid-type]
        inner = {f"f{k}": value for k, value in enumerate(draw(st.lists(fields(), max_size=4)))}
        models.append(create_model(f"Model{n}", act=(act, ...), **inner))
    return Form(models=tuple(models))


@settings(max_examples=100, deadline=None)
@given(formats(), st.integers(0, 2**32))
def test_random_answers_are_legal(format: Format, seed: int) -> None:
    action = decide(RandomLegal(member()), format, seed)
    assert illegal(format, action.answer) is None
    assert (action.how, action.reason, action.state) == ("chosen", "", None)


def test_random_answers_are_uniform() -> None:
    agent = RandomLegal(member())
    choices = Counter(decide(agent, Choice(options=("a", "b", "c")), seed).answer for seed in range(3_000))
    assert all(abs(count - 1_000) < 130 for count in choices.values())  # 5 standard deviations
    forms = [decide(agent, Form(models=(Bid, Pass)), seed).answer for seed in range(3_000)]
    assert abs(sum(answer["act"] == "pass" for answer in forms) - 1_500) < 140
    assert {answer.get("price") for answer in forms} == {None, 1, 2, 3}


def test_random_answers_are_functions_of_the_streams() -> None:
    wide = Choice(options=tuple(map(str, range(1_000))))
    assert decide(RandomLegal(member()), wide, 5) == decide(RandomLegal(member()), wide, 5)
    assert decide(RandomLegal(member()), wide, 5) != decide(RandomLegal(member()), wide, 6)


def test_a_form_that_refuses_everything_is_defaulted() -> None:
    action = decide(RandomLegal(member()), Form(models=(Never,)), default={"number": 1})
    assert (action.answer, action.how, action.reason) == ({"number": 1}, "defaulted", "no legal answer was drawn")


def test_constant() -> None:
    agent = Constant(member(), answer="b")
    assert decide(agent, Choice(options=("a", "b"))) == Action(answer="b")
    action = decide(agent, Choice(options=("a", "c")), default="c")
    assert (action.answer, action.how, action.reason) == ("c", "defaulted", 'the answer must be one of "a", "c"')
    bid = {"act": "bid", "price": 2}
    assert decide(Constant(member(), answer=bid), Form(models=(Bid, Pass))).answer == bid
