"""People as an engine: questions stand until they are answered legally, taken back or closed."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agents.engines.human import HumanEngine
from sim.steering.people import AsksPeople
from sim.types import CallKey, Choice, Completion, EngineFailure, Form, Format, Message, Request, Text


class Offer(BaseModel):
    price: int = Field(ge=0, le=10)


def request(agent: str = "a", tick: int = 0, nth: int = 0, call: int = 0, table: int = 0, form: Any = None) -> Request:
    messages = (Message(role="user", text="Well?"),)
    return Request(
        messages=messages, format=form or Choice(options=("yes", "no")), key=CallKey(table, agent, tick, nth, call)
    )


def done(future: Future[Completion]) -> Completion:
    return future.result(0)


def test_a_question_stands_until_it_is_answered() -> None:
    engine = HumanEngine()
    assert isinstance(engine, AsksPeople)
    first, second = request("a"), request("b")
    futures = engine.submit(first), engine.submit(second)
    assert list(engine.pending()) == [first, second]
    assert engine.status() == "asked, and to answer: a, b"
    assert engine.answer(second.key, "no") == ""
    assert done(futures[1]).text == "no"
    assert done(futures[1]).finish == "stop"
    assert list(engine.pending()) == [first]
    assert not futures[0].done()
    with pytest.raises(KeyError):
        engine.answer(second.key, "yes")
    engine.close()


@pytest.mark.parametrize(
    ("form", "illegal", "legal"),
    [
        (Choice(options=("yes", "no")), "maybe", "Yes."),
        (Form(models=(Offer,)), '{"price": 11}', '{"price": 7}'),
        (Form(models=(Offer,)), "seven", 'I say {"price": 7}'),
        (Text(max_chars=5), "far too long", "short"),
        (Text(max_chars=5), " ", "ok"),
    ],
)
def test_what_is_no_legal_answer_never_becomes_one(form: Format, illegal: str, legal: str) -> None:
    engine = HumanEngine()
    asked = request(form=form)
    future = engine.submit(asked)
    assert engine.answer(asked.key, illegal)
    assert list(engine.pending()) == [asked]
    assert not future.done()
    assert engine.answer(asked.key, legal) == ""
    assert done(future).text == legal


def test_a_later_decision_of_the_seat_takes_the_older_question_back() -> None:
    engine = HumanEngine()
    old, other, elsewhere = request(tick=3), request("b", tick=3), request(table=1, tick=3)
    together = request(tick=3, call=1)
    futures = [engine.submit(one) for one in (old, other, elsewhere, together)]
    assert not futures[0].done(), "calls of one decision stand side by side"
    new = request(tick=3, nth=1)
    engine.submit(new)
    assert list(engine.pending()) == [other, elsewhere, new]
    for future in (futures[0], futures[3]):
        assert done(future).finish == "error"
        assert "taken back" in done(future).error
    engine.close()


def test_closing_takes_all_back_and_asks_nobody_any_more() -> None:
    engine = HumanEngine()
    future = engine.submit(request())
    engine.close()
    engine.close()
    with pytest.raises(CancelledError):
        done(future)
    with pytest.raises(EngineFailure, match="nobody is asked"):
        done(engine.submit(request("b")))
    assert not engine.pending()
    with pytest.raises(NotImplementedError):
        engine.score([request()], [(1,)]).result(0)
