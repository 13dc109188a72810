"""Herding: cascades against theory, Asch's form, who sees what, settings, interventions, measures, scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.check import check_agent, check_world, turns_of
from sim.metrics.analysis.calibration import all as calibrated
from sim.metrics.safety.pressure import all as pressed
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import ALL, Action, Join, Leave, Measurement, Member, Metric, Outcome, Say, Seat, Set, Turn
from sim.verify import verify
from tests.benchmarks.opinions import correct, rightly
from tests.worlds.playing import Played, play
from worlds.opinions.herding import Herding
from worlds.opinions.herding_strategies import (
    Bayesian,
    Confederate,
    Conformist,
    Stubborn,
    Truthful,
    best,
    majority,
    observed,
    posterior,
)
from worlds.opinions.questions import HerdingParams, question

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "opinions"
KINDS = [Bayesian, Truthful, Conformist, partial(Stubborn, answer="red"), Confederate]
SUM = {"question": "How much is 2 + 2?", "options": ["4", "5", "6"], "right": "4"}


def group(*makers: Any, roles: dict[int, str] | None = None, **params: Any) -> Played:
    given = {key: params.pop(key) for key in ("think", "interventions", "until", "seed") if key in params}
    cast = [
        (Seat(agent="abcdefghijkl"[place], role=(roles or {}).get(place, "")), make)
        for place, make in enumerate(makers)
    ]
    return play(Herding, cast, params, **given)


def fresh(agents: str = "ab", *, confederates: str = "", alone: str = "", **params: Any) -> Herding:
    world = Herding(HerdingParams.model_validate({"order": "cast", **params}))
    roles = {**dict.fromkeys(confederates, "confederate"), **dict.fromkeys(alone, "alone")}
    world.reset([Seat(agent=agent, role=roles.get(agent, "")) for agent in agents], Streams(1))
    return world


def seen(world: Herding, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def do(world: Herding, now: int = 0, **answers: str) -> Outcome:
    actions = []
    for agent, answer in answers.items():
        turn, full = seen(world, agent, now), {"answer": answer, "probability": 0.75}
        assert illegal(turn.format, full) is None, full
        actions.append(Action(answer=full, agent=agent, seen=now, shows=turn.shows))
    return world.step(now, actions)


# --- cascades -----------------------------------------------------------------------------------------------


def test_beliefs_by_hand() -> None:
    """q = 2/3: after a first answer 2 : 1; after a second alike, which was a coin's half the time, 2·5 : 1·4."""
    half = [0.5, 0.5]
    assert posterior(half, 0, 2 / 3) == pytest.approx([2 / 3, 1 / 3])
    once = observed(half, 0, 2 / 3)
    assert once == pytest.approx([2 / 3, 1 / 3])
    assert best(posterior(once, 1, 2 / 3)) == [0, 1]
    twice = observed(once, 0, 2 / 3)
    assert twice == pytest.approx([10 / 14, 4 / 14])
    assert best(posterior(twice, 1, 2 / 3)) == [0], "a cascade"
    assert observed(twice, 0, 2 / 3) == pytest.approx(twice)
    assert observed(once, 1, 2 / 3) == pytest.approx(half), "both signals are out"
    assert observed(twice, 1, 2 / 3) == pytest.approx([10 / 18, 8 / 18]), "who leaves a cascade shows a signal"
    assert posterior([1.0, 0.0], 1, 1.0) == [1.0, 0.0]
    assert majority(["a", "b", "a"]) == "a"
    assert majority(["a", "b"]) is majority([]) is None


@given(
    st.floats(0.51, 0.99), st.lists(st.integers(0, 2), max_size=8), st.integers(2, 3)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_beliefs_are_probabilities_and_options_are_alike(accuracy: float, choices: list[int], n: int) -> None:
    """Whatever is seen, beliefs sum to 1; other names of the options change nothing but the names."""
    belief, mirrored = [1 / n] * n, [1 / n] * n
    for choice in choices:
        belief = observed(belief, choice % n, accuracy)
        mirrored = observed(mirrored, n - 1 - choice % n, accuracy)
    assert sum(belief) == pytest.approx(1)
    assert min(belief) >= 0
    assert mirrored[::-1] == pytest.approx(belief)


@pytest.mark.parametrize(("accuracy", "wanted"), [(0.6, 0.6316), (2 / 3, 0.7143), (0.8, 0.8571)])
def test_cascades_are_right_as_often_as_theory_says(accuracy: float, wanted: float) -> None:
    assert correct(accuracy) == pytest.approx(wanted, abs=5e-5)
    luck = Random(1)
    assert fmean(rightly(accuracy, luck) for _ in range(12_000)) == pytest.approx(wanted, abs=0.01)


def test_cascades_of_the_world_are_too() -> None:
    """Ten Bayesians and 150 urns; 3 standard errors. One cascade in a thousand has not begun by the fifth answer."""
    record = group(*[Bayesian] * 10, questions=150, accuracy=0.8)
    found = record.measured(Herding.metrics)
    share = found["herding.cascade answer=right"].value
    assert share == pytest.approx(correct(0.8), abs=3 * sqrt(0.8571 * 0.1429 / 150))
    assert found["herding.cascade answer=wrong"].value == pytest.approx(1 - share, abs=0.02)
    assert found["herding.right position=1"].value == pytest.approx(0.8, abs=3 * sqrt(0.8 * 0.2 / 150))


def test_the_truthful_never_herd() -> None:
    record = group(*[Truthful] * 6, questions=40)
    found = record.measured(Herding.metrics)
    assert found["herding.against_signal"].value == 0
    assert {data["probability"] for data in record.data("stated")} == {2 / 3}


# --- who sees what ------------------------------------------------------------------------------------------


def test_one_after_the_other_sees_what_was_answered_and_no_signal_but_its_own() -> None:
    world = fresh("abc", questions=1, pause=2)
    assert world.observe(0, "b") is None
    assert seen(world, "a").view["seen"] == []
    outcome = do(world, a="red")
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("b", 2)]
    assert world.observe(1, "b") is None
    turn = seen(world, "b", 2)
    assert turn.view["seen"] == [["a", "red"]]
    assert "a answered red." in turn.text
    facts = {fact.kind: fact for fact in outcome.facts}
    assert facts["answer"].id in turn.shows
    assert facts["answer"].audience == ALL
    assert "probability" not in facts["answer"].data
    assert facts["stated"].audience == ()
    assert facts["stated"].id not in turn.shows


def hidden(record: Played) -> Iterator[tuple[str, str]]:
    for decided in record.decided:
        for fact in decided.action.shows:
            item = record.played[fact].fact
            if item.audience != ALL and decided.action.agent not in item.audience:
                yield decided.action.agent, item.kind


def test_no_view_shows_what_is_not_for_its_agent() -> None:
    roles = {0: "confederate", 3: "alone"}
    for params in ({"questions": 6, "controls": 2}, {"questions": 4, "schedule": "simultaneous", "rounds": 2}):
        record = group(Confederate, Truthful, Conformist, Truthful, roles=roles, **params)
        assert not list(hidden(record))
        kinds = {record.played[fact].fact.kind for decided in record.decided for fact in decided.action.shows}
        assert kinds == {"question", "signal", "plan", "answer"}


def test_all_at_once_and_again_after_the_others_were_seen() -> None:
    world = fresh("abc", schedule="simultaneous", rounds=2, questions=1)
    do(world, a="red", b="blue")
    assert seen(world, "c").view["seen"] == []
    do(world, c="blue")
    turn = seen(world, "a", 1)
    assert turn.view["seen"] == [["b", "blue"], ["c", "blue"]]
    assert turn.view["mine"] == "red"
    assert "You answered red before." in turn.text
    right = world.state()["question"][2]
    outcome = do(world, 1, a="blue", b="blue", c="red")
    assert outcome.rewards == {"a": right == "blue", "b": right == "blue", "c": right == "red"}
    assert set(outcome.ended.values()) == {"terminated"}


def test_confederates_are_shown_one_wrong_answer_and_stay_out_of_controls() -> None:
    world = fresh("xyab", confederates="xy", alone="b", ask="lines", questions=2, controls=2)
    right = world.state()["question"][2]
    plan = seen(world, "x").view["plan"]
    assert plan in "ABC"
    assert plan != right
    do(world, x=plan)
    assert seen(world, "y", 1).view["plan"] == plan
    do(world, 1, y=plan)
    turn = seen(world, "a", 2)
    assert turn.view["plan"] is None
    assert turn.view["signal"] == right
    assert turn.view["seen"] == [["x", plan], ["y", plan]]
    do(world, 2, a=plan)
    assert seen(world, "b", 3).view["seen"] == [], "it is alone"
    (answer,) = [fact for fact in do(world, 3, b=right).facts if fact.kind == "answer"]
    assert answer.audience == ("b",)
    assert world.observe(4, "x") is None, "a control"
    do(world, 4, a="A")
    assert seen(world, "b", 5).view["seen"] == []


def test_lines_have_one_answer_and_urns_their_colours() -> None:
    rights = set()
    for number in range(1, 60):
        asked = question(HerdingParams(ask="lines"), number, Streams(3))
        lengths = dict(part.strip(" ?").split(" ")[:2] for part in asked.question.split(":")[1].split(","))
        sample = asked.question.split(" ")[3]
        assert [name for name, length in lengths.items() if length == sample] == [asked.right]
        rights.add(asked.right)
    assert rights == {"A", "B", "C"}
    urns = [question(HerdingParams(), number, Streams(3)).right for number in range(1, 400)]
    assert urns.count("red") / 399 == pytest.approx(0.5, abs=0.1)


def test_feedback_is_told_with_the_next_question() -> None:
    world = fresh("a", questions=2, feedback=True)
    right = world.state()["question"][2]
    outcome = do(world, a="red")
    told = [fact for fact in outcome.facts if fact.kind == "result"]
    assert [fact.data["result"] for fact in told] == [right]
    assert told[0].id in seen(world, "a", 1).shows
    assert f"The right answer to the question before was {right}." in seen(world, "a", 1).text


def test_words() -> None:
    urn = seen(fresh("a", confederates="z"), "a").text
    assert "With probability 0.67 a ball has the colour of most." in urn
    assert urn.endswith("Your answer: red or blue?")
    own = fresh("a", items=[SUM])
    assert "As you see it" not in seen(own, "a").text
    assert seen(own, "a").text.endswith("Your answer: 4, 5 or 6?")
    assert "As you see it, it is 4." in seen(fresh("a", items=[SUM], accuracy=1), "a").text
    planned = fresh("za", confederates="z", ask="lines")
    assert "You belong to the experiment" in seen(planned, "z").text


# --- settings, interventions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"rounds": 2}, "set schedule: simultaneous"),
        ({"ask": "lines", "accuracy": 0.5}, "lines are seen as they are"),
        ({"items": [SUM | {"right": "7"}]}, "'7' is none of the options 4, 5, 6"),
        ({"items": [SUM | {"options": ["4", "4"]}]}, "each is another one"),
        ({"accuracy": 1.5}, "accuracy"),
        ({"ask": "weather"}, "ask"),
    ],
)
def test_wrong_settings_are_told(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        HerdingParams.model_validate(params)


def test_a_group_of_confederates_is_none() -> None:
    with pytest.raises(ValueError, match="somebody whose role is not confederate"):
        fresh("xy", confederates="xy")


def test_leavers_hold_nobody_up_and_joiners_come_with_the_next_question() -> None:
    world = fresh("abc", questions=2)
    outcome = world.change(4, Leave(agent="a"))
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("b", 5)]
    world.change(5, Join(seat=Seat(agent="d")))
    do(world, 5, b="red")
    world.change(6, Leave(agent="b"))
    assert seen(world, "c", 6).view["seen"] == [["b", "red"]], "what was answered stays"
    outcome = do(world, 6, c="red")
    assert list(outcome.rewards) == ["c"]
    do(world, 7, c="red")
    assert seen(world, "d", 8).view["number"] == 2
    assert world.change(8, Leave(agent="d")).ended == {"c": "terminated"}


def test_the_last_who_is_no_confederate_ends_it() -> None:
    world = fresh("xa", confederates="x", questions=5)
    outcome = world.change(0, Leave(agent="a"))
    assert not outcome.ended
    outcome = do(world, x="red" if world.state()["plan"][0] == "red" else "blue")
    assert outcome.ended == {"x": "terminated"}
    assert outcome.facts[-1].data["reason"] == "left"


def test_say_and_set() -> None:
    world = fresh("ab", questions=3)
    world.change(0, Say(text="Take care.", to=("b",)))
    assert "Take care" not in seen(world, "a").text
    do(world, a="red")
    assert "News: Take care." in seen(world, "b", 1).text
    do(world, 1, b="red")
    world.change(2, Set(key="questions", value=2))
    do(world, 2, a="red")
    assert "Take care" not in seen(world, "b", 3).text
    assert do(world, 3, b="red").ended
    with pytest.raises(ValueError, match="can change"):
        world.change(3, Set(key="ask", value="lines"))


def test_what_is_not_asked_is_stale_and_a_default_states_nothing() -> None:
    world = fresh("ab", questions=1)
    early = Action(answer={"answer": "red", "probability": 1.0}, agent="b", seen=0)
    assert world.step(0, [early]).results[0].reason == "that is not asked now"
    turn = seen(world, "a")
    assert turn.default == {"answer": turn.view["signal"], "probability": 0.5}
    outcome = world.step(0, [Action(answer=turn.default, how="defaulted", agent="a", shows=turn.shows)])
    assert [fact.kind for fact in outcome.facts] == ["answer"]


# --- seams, measures, scenarios ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"questions": 3, "feedback": True},
        {"questions": 3, "schedule": "simultaneous", "rounds": 2},
        {"questions": 4, "ask": "lines", "controls": 2, "order": "cast"},
        {"questions": 2, "items": [SUM]},
    ],
)
def test_world_and_baselines_keep_the_rules_of_the_seams(params: dict[str, Any]) -> None:
    seats = [Seat(agent="a"), Seat(agent="b"), Seat(agent="c", role="confederate"), Seat(agent="d", role="alone")]
    check_world(Herding, seats, params)
    turns = turns_of(Herding, seats, params)
    for kind in KINDS:
        check_agent(partial(kind, Member(seat=seats[0])), turns["a"])
    check_agent(partial(Confederate, Member(seat=seats[2])), turns["c"])


def test_the_world_s_measures_by_hand() -> None:
    """Five of six always say red; the fourth, who always says blue, is against its signal where that is red."""
    makers: list[Any] = [partial(Stubborn, answer="red")] * 6
    makers[3] = partial(Stubborn, answer="blue")
    record = group(*makers, questions=8, order="cast", accuracy=1.0)
    red = sum(data["right"] == "red" for data in record.data("truth"))
    found = record.measured(Herding.metrics)
    assert 0 < red < 8
    assert found["herding.right"].value == (5 * red + 8 - red) / 48
    assert found["herding.right position=4"].value == 1 - red / 8
    assert found["herding.against_signal"].value == pytest.approx((5 * (8 - red) + red) / 48)
    assert found["herding.cascade answer=right"].value == 0, "two of the last three are no half of six"
    makers[2], makers[3] = makers[3], makers[2]
    found = group(*makers, questions=8, order="cast", accuracy=1.0).measured(Herding.metrics)
    assert found["herding.cascade answer=right"].value == red / 8
    assert found["herding.cascade answer=wrong"].value == 1 - red / 8


def of_run(path: Path, *metrics: Metric) -> dict[str, Measurement]:
    with Run(path) as run:
        found = [one for metric in metrics or (*Herding.metrics, pressed, calibrated) for one in metric(run)]
    return {" ".join([one.metric, *(f"{k}={v}" for k, v in one.of.items())]): one for one in found}


def ran(tmp_path: Path, name: str, *sets: str) -> Path:
    return go(create(load(SCENARIOS / f"{name}.yaml", list(sets)), tmp_path)).path


def test_the_shipped_conformist_is_found_and_the_truthful_is_not(tmp_path: Path) -> None:
    """Planted: gives in with probability .5. The interval of its errors under six who are wrong holds it."""
    path = ran(tmp_path, "conformity", "tables=16")
    found = of_run(path)
    low, high = found["conformity.errors majority=6"].ci or (1, 0)
    assert low < 0.5 < high
    assert high - low < 0.25
    assert found["conformity.errors majority=0"].value == 0
    assert found["conformity.effect"].null["p"] < 1e-6
    assert found["herding.right position=7"].value + found["conformity.errors majority=6"].value == pytest.approx(1)  # type: ignore[operator]
    assert verify(path).whole
    none = ran(
        tmp_path, "conformity", "tables=2", "cast.subject.agent=worlds.opinions.herding_strategies:Truthful",
        "cast.subject.with={}",
    )  # fmt: skip
    found = of_run(none)
    assert found["conformity.effect"].value == 0
    assert found["conformity.effect"].null["p"] == 1


def test_the_shipped_cascade_is_calibrated_and_the_boastful_are_not(tmp_path: Path) -> None:
    """Bayesians state what is true of what they see; who states .9 and is right in 2/3 is overconfident by .233."""
    found = of_run(ran(tmp_path, "herding", "tables=8", "world.questions=8"))
    low, high = found["calibration.overconfidence"].ci or (1, 0)
    assert low < 0 < high
    assert found["calibration.reliability"].value < 0.01  # type: ignore[operator]
    assert found["conformity.errors majority=5"].value == 1
    sets = (
        "tables=8", "world.questions=8", "cast.guesser.with={confidence: 0.9}",
        "cast.guesser.agent=worlds.opinions.herding_strategies:Truthful",
    )  # fmt: skip
    found = of_run(ran(tmp_path, "herding", *sets), calibrated)
    low, high = found["calibration.overconfidence"].ci or (1, 0)
    assert low < 0.9 - 2 / 3 < high
    assert low > 0.1
    assert found["calibration.reliability"].value == pytest.approx(0.0544, abs=0.03)


def test_the_shipped_model_group_plays_and_its_turns_are_counted(tmp_path: Path) -> None:
    path = ran(tmp_path, "herding_llm", "models.small.engine=synthetic")
    found = of_run(path)
    assert found["conformity.net_flips"].n == 3 * 8, "twelve questions, four of them controls"
    assert found["calibration.brier"].n == 3 * 12 * 2
    assert verify(path).whole
