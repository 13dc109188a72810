"""What scenes make of facts: which one fits, and the order book at a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.browse import END, Browse
from sim.types import Fact, RecordedFact
from tests.ui.conftest import played
from ui import provenance
from ui.scenes import bargaining, cards, checking, conversation, fitting, market, matrix, messages, platform, pricing


@pytest.mark.parametrize(
    ("kinds", "scene"),
    [
        ({"pair", "offer", "accept", "deal"}, bargaining),
        ({"period", "bid"}, market),
        ({"period", "ask", "trade"}, market),
        ({"join", "post"}, platform),
        ({"hand", "deal"}, cards),
        ({"match", "round", "message"}, matrix),
        ({"pair", "ask", "answer"}, conversation),
        ({"benchmark"}, pricing),
        ({"benchmark", "period", "sale"}, pricing),
        ({"pair", "task"}, checking),
        ({"pair", "task", "answer", "message", "verdict", "outcome"}, checking),
        ({"rain"}, messages),
        (set(), messages),
    ],
)
def test_the_scene_that_fits(kinds: set[str], scene: object) -> None:
    assert fitting(kinds) is scene


def shout(number: int, kind: str, actor: str = "", price: float = 0, answers: tuple[int, ...] = ()) -> RecordedFact:
    fact = Fact(id=number, kind=kind, actor=actor, data={"price": price, "good": "apple"}, answers=answers)
    return RecordedFact(table=0, seq=number, tick=number, fact=fact)


def test_the_book_by_hand() -> None:
    """Two bids, an ask; a better bid replaces one; the ask trades; a bid expires; another period clears the rest."""
    facts = [
        shout(0, "bid", "a", 10),
        shout(1, "bid", "b", 12),
        shout(2, "ask", "c", 20),
        shout(3, "bid", "a", 15, (0,)),
        shout(4, "ask", "d", 18),
        shout(5, "trade", "b", 18, (4,)),
        shout(6, "expire", "b", 0, (1,)),
    ]

    def book(upto: int) -> tuple[list[int], list[int]]:
        bids, asks = market.standing(facts[:upto])
        return [one.fact.id for one in bids], [one.fact.id for one in asks]

    assert book(3) == ([1, 0], [2])
    assert book(4) == ([3, 1], [2])
    assert book(5) == ([3, 1], [4, 2])
    assert book(6) == ([3, 1], [2])
    assert book(7) == ([3], [2])
    assert market.standing([*facts, shout(7, "period")]) == ([], [])
    assert market.standing(facts[:6], clears=True) == ([], [])


def test_choices_and_benchmarks_by_hand() -> None:
    """Two firms; costs change before the third period; what was published is not taken again from sales."""

    def point(nash: float, optimum: float) -> dict[str, dict[str, list[float]]]:
        return {"nash": {"chosen": [nash, nash + 1]}, "optimum": {"chosen": [optimum, optimum]}}

    told = [
        ("benchmark", "", point(1, 2)),
        ("period", "", {"period": 1, "chosen": {"a": 1.5, "b": 1.6}}),
        ("sale", "a", {"period": 1, "price": 1.5, "quantity": 3}),
        ("period", "", {"period": 2, "chosen": {"a": 1.7, "b": 1.8}}),
        ("benchmark", "", point(3, 4)),
        ("sale", "b", {"period": 3, "price": 3.5, "quantity": 2}),
    ]
    facts = [
        RecordedFact(table=0, seq=place, tick=place, fact=Fact(id=place, kind=kind, actor=actor, data=data))
        for place, (kind, actor, data) in enumerate(told)
    ]
    assert pricing.choices(facts, "price") == {"a": {1: 1.5, 2: 1.7}, "b": {1: 1.6, 2: 1.8, 3: 3.5}}
    assert pricing.choices(facts[2:3], "quantity") == {"a": {1: 3}}
    assert pricing.benchmarks(facts, 3) == {
        "nash": [(1, 1.5), (3, 1.5), (3, 3.5), (3, 3.5)],
        "optimum": [(1, 2), (3, 2), (3, 4), (3, 4)],
    }


def test_an_origin_goes_back_through_who_said_it(folder: Path) -> None:
    """Every arrow leads from what was earlier, and every fact of the view is there."""
    with Browse(folder / "forum.db") as run:
        start = next(one for one in run.last_decisions(0, END, 50) if len(one.action.shows) > 2)
        found = provenance.origin(run, start)
        place = {("decision", seq): seq for seq in found.decisions} | {
            ("fact", number): one.seq for number, one in found.facts.items()
        }
        assert found.arrows
        assert set(start.action.shows) <= found.facts.keys()
        for before, after in found.arrows:
            assert place[before] < place[after]
        for number, one in found.facts.items():
            makers = [before for before, after in found.arrows if after == ("fact", number)]
            assert all(found.decisions[seq].action.agent == one.fact.actor for _, seq in makers)


def test_who_has_learnt_a_secret_is_who_was_shown_its_words(tmp_path_factory: pytest.TempPathFactory) -> None:
    """At the table of the one who shares everything the recipient learns the diagnosis; where refused, nobody does."""
    where = tmp_path_factory.mktemp("secrets")
    path = played(where, "told", "privacy/disclosure.yaml", "tables=6", "world.attackers=1.0")
    shared, refused = 0, 0
    with Browse(path) as run:
        for table in range(6):
            for member in run.cast(table):
                for secret in member.secrets:
                    told = [one for each in provenance.tellings(run, table, secret, END) for one in each.learnt]
                    shared += bool(told) and member.seat.agent.startswith("sharer")
                    refused += bool(told) and member.seat.agent.startswith("refuser")
    assert refused == 0
    assert shared > 0
