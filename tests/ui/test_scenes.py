"""What scenes make of facts: which one fits, and the order book at a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.browse import END, Browse
from sim.types import Fact, RecordedFact
from tests.ui.conftest import SYNTHETIC, AppTest, played, text_of
from tests.ui.conftest import _view as view
from ui import provenance
from ui.data import head, moment
from ui.scenes import (
    bargaining,
    beliefs,
    cards,
    checking,
    conversation,
    fitting,
    market,
    matrix,
    messages,
    platform,
    pricing,
)


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
        ({"graph", "opinion", "end"}, beliefs),
        ({"question", "signal", "truth", "answer", "stated", "end"}, beliefs),
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


def asked(number: int, kind: str, actor: str = "", to: object = "all", **data: object) -> RecordedFact:
    fact = Fact(id=number, kind=kind, actor=actor, audience=to, data={"item": 1, **data})  # type: ignore[arg-type]
    return RecordedFact(table=0, seq=number, tick=number, fact=fact)


def test_an_agent_sees_answers_and_no_signal_but_its_own_by_hand() -> None:
    facts = [
        asked(0, "signal", to=("a",), signal="red"),
        asked(1, "signal", to=("b",), signal="blue"),
        asked(2, "truth", to=(), right="red", planned=["b"]),
        asked(3, "answer", "b", answer="blue", round=1, position=1),
        asked(4, "answer", "a", answer="red", round=1, position=2),
        asked(5, "stated", "a", to=(), round=1, position=2, probability=0.7, outcome=True),
    ]
    b, a = beliefs.answered(facts, 1, "")
    assert (b["agent"], b["signal"], b["answer"], b["by plan"]) == ("b", "blue", "blue", "yes")
    assert (a["agent"], a["signal"], a["probability"], a["by plan"]) == ("a", "red", 0.7, "")
    assert beliefs.right(facts, "") == {1: "red"}
    seen_by_a = [facts[0], *facts[3:5]]
    b, a = beliefs.answered(seen_by_a, 1, "a")
    assert (b["signal"], a["signal"], a["probability"]) == (None, "red", None)
    assert "by plan" not in b
    assert beliefs.right(seen_by_a, "a") == {}
    assert beliefs.right([asked(6, "result", result="red")], "a") == {1: "red"}


@pytest.fixture(scope="module")
def minds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two camps and one of a herd."""
    where = tmp_path_factory.mktemp("minds")
    for name in ("opinions_llm", "herding_llm"):
        played(where, name, f"opinions/{name}.yaml", SYNTHETIC)
    return where


@pytest.mark.parametrize(
    ("run", "viewer", "figures", "words", "hidden"),
    [
        ("opinions_llm", "", {"opinions", "graph"}, ["driver-1", "· "], []),
        ("opinions_llm", "walker-2", {"opinions", "graph"}, [], []),
        ("herding_llm", "", {"right"}, ["A line is", "The right answer: "], []),
        ("herding_llm", "subject-1", set(), ["A line is", "What is right is not known here."], ["The right answer"]),
    ],
)
def test_beliefs_are_drawn_for_a_watcher_and_as_an_agent_sees_them(
    run: str, viewer: str, figures: set[str], words: list[str], hidden: list[str], minds: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("AGORA_RUNS", str(minds))
    test = AppTest.from_function(view, args=("live",), default_timeout=120)
    for key, value in {"run": run, **({"viewer": viewer} if viewer else {})}.items():
        test.query_params[key] = value
    test.run()
    assert not test.exception
    text = text_of(test)
    assert "can draw; these are the latest" not in text
    assert [word for word in words if word not in text] == []
    assert [word for word in hidden if word in text] == []
    drawn = {one.key.removeprefix("figure-") for one in test.get("plotly_chart") if one.key}
    assert drawn >= figures


def test_nobody_sees_what_the_record_keeps_for_itself(minds: Path) -> None:
    """Nor does whoever it is about: whether an answer was right stands beside its probability."""
    with Browse(minds / "herding_llm.db") as run:
        now = moment(run, head(minds, "herding_llm"), 0, viewer="subject-1")
        kinds = {one.fact.kind for one in now.last(4_000, "stated", "truth", "signal", "answer", "question")}
        assert kinds == {"signal", "answer", "question"}
        assert {one.fact.audience for one in now.last(4_000, "signal")} == {("subject-1",)}


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
