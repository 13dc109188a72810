"""The mind of a seat that a person takes."""

from __future__ import annotations

from typing import Any

import pytest

from agents.human import Human
from agents.memory import MOST_FACTS
from sim.check import check_agent, generic_turns
from sim.streams import Streams
from sim.types import Action, Choice, Completion, Member, Request, Seat, Secret, Turn

MEMBER = Member(
    seat=Seat(agent="ann", role="buyer"),
    persona={"name": "Ann Lee"},
    secrets=(Secret(subject="ann", attribute="debt", value="4300", holder="ann"),),
    model="me",
)
TURN = Turn(
    agent="ann", now=4, view={"price": 7}, format=Choice(options=("buy", "wait")), default="wait", rules="Buy cheap.",
    shows=(3, 5),
)  # fmt: skip


def decided(mind: Human, turn: Turn, completion: Completion) -> tuple[Request, Action]:
    """One decision: what was asked, and what it came to."""
    going: Any = mind.act(turn, Streams(0))
    (request,) = next(going)
    with pytest.raises(StopIteration) as ended:
        going.send((completion,))
    return request, ended.value.value


def test_it_asks_for_what_the_seat_sees() -> None:
    request, action = decided(Human(MEMBER), TURN, Completion(text="buy"))
    assert (request.purpose, request.model, request.format) == ("human", "me", TURN.format)
    about, view = request.messages
    assert (about.role, view.role, view.text) == ("system", "user", "price: 7")
    for told in ("Buy cheap.", "ann", "buyer", "Ann Lee", "4300"):
        assert told in about.text
    assert (action.answer, action.how, action.reason) == ("buy", "chosen", "")


@pytest.mark.parametrize("completion", [Completion(text="both"), Completion(text=None, finish="error", error="gone")])
def test_without_a_legal_answer_it_takes_the_default(completion: Completion) -> None:
    _, action = decided(Human(MEMBER), TURN, completion)
    assert (action.answer, action.how) == ("wait", "defaulted")
    assert action.reason


def test_what_was_shown_is_recalled_up_to_a_bound() -> None:
    mind = Human(MEMBER)
    _, action = decided(mind, TURN, Completion(text="buy"))
    assert (action.recalls, action.state, mind.state) == ((), (3, 5), ()), "it changes only when its decision stands"
    mind.state = action.state
    many = Turn(**{name: getattr(TURN, name) for name in TURN.__struct_fields__} | {"shows": tuple(range(2000))})
    _, action = decided(mind, many, Completion(text="buy"))
    assert action.recalls == (3, 5)
    assert action.state == tuple(range(2000 - MOST_FACTS, 2000))


def test_it_keeps_the_rules_of_an_agent() -> None:
    check_agent(lambda: Human(MEMBER), generic_turns())
