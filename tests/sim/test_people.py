"""Seats that people take: what they are asked, what their answers are to the log, and what a kill leaves of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sim.fork import fork
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.steering.channel import connect
from sim.steering.control import Control
from sim.steering.live import Refused
from sim.steering.people import peoples, taking
from sim.verify import verify
from tests.laws.societies import WORLDS, society
from tests.laws.test_law4_kills import log_of
from tests.sim.processes import Process, until
from tests.sim.test_channel import process as process
from tests.sim.test_control import going


def with_person(world: str, seat: str = "slow-1", *more: str, **changes: Any) -> Scenario:
    """The society of a world with a person in a seat."""
    data = {**society(world).located.data, **changes}
    return loads(write_yaml(data), Path(), overrides=[*taking(seat), *more])


def least(schema: Any) -> Any:
    """The plainest value that fits a schema; of several forms, the last."""
    if "anyOf" in schema:
        return least(schema["anyOf"][-1])
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {key: least(part) for key, part in schema["properties"].items()}
        case "string":
            return "Fine."
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "array":
            return [least(schema["items"])] * schema["minItems"]
    return None


def answered(control: Any, asked: Callable[[], Any], limit: float = 1e9, hold: Callable[[], float] = lambda: 0) -> int:
    """Answer whatever is asked until `asked` gives None or the limit is reached; how many answers were taken."""
    count = 0
    while count < limit and (questions := asked()) is not None:
        for question in questions[:1]:
            time.sleep(hold())
            try:
                control.answer(question["id"], least(question["format"]))
                count += 1
            except Refused as refused:
                if not any(why in str(refused) for why in ("nobody asks", "has ended")):
                    raise
        time.sleep(0.002)
    return count


def played(path: Path, hold: Callable[[], float] = lambda: 0, limit: float = 1e9) -> int:
    with going(path, paused=False) as (control, ended):
        return answered(control, lambda: None if ended.done() else control.questions(), limit, hold)


def asked_of(path: Path, agent: str) -> list[Any]:
    with Run(path) as run:
        return [call for call in run.calls() if call.key.agent == agent]


# --- seats ------------------------------------------------------------------------------------------


def test_a_seat_changes_nothing_but_who_decides() -> None:
    before, after = plan(society("forum")), plan(with_person("forum"))
    assert peoples(before.scenario) == []
    assert peoples(after.scenario) == ["slow-1"]
    for old, new in zip(before.cast[0], after.cast[0], strict=True):
        agent = old.member.seat.agent
        assert (new.member.seat, new.member.secrets, new.think) == (old.member.seat, old.member.secrets, old.think)
        assert new.member.model == ("person" if agent == "slow-1" else "m")
    minds = {player.id: type(player.agent).__name__ for player in after.tables[0].players}
    assert minds.pop("slow-1") == "Human"
    assert set(minds.values()) == {"LLMAgent"}
    assert "agents.human:Human" in after.code


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("seats.nobody.agent=agents.human:Human", "seats.nobody: no agent has the id 'nobody'"),
        ("seats.slow.agent=agents.human:Human", "seats.slow: no agent has the id 'slow'"),
        ("seats.slow-1.model=mw", "seats.slow-1.model: no model is named 'mw'; did you mean m?"),
        ("seats.slow-1.agent=agents.human:Hum", "Hum"),
        ("seats.slow-1.with={mood: 1}", "seats.slow-1.with.mood: unknown setting of agents.human:Human"),
        ("seats.slow-1.mind=x", "seats.slow-1.mind: unknown key"),
    ],
)
def test_a_seat_that_cannot_be_taken(more: str, why: str) -> None:
    with pytest.raises(ScenarioError) as found:
        with_person("matrix", "slow-1", more)
    assert why in str(found.value)


def test_any_mind_may_take_a_seat() -> None:
    data = {**society("matrix").located.data, "seats": {"quick-1": {"agent": "agents.scripted:RandomLegal"}}}
    made = plan(loads(write_yaml(data), Path()))
    assert type(made.tables[0].players[3].agent).__name__ == "RandomLegal"
    assert made.cast[0][3].member.model == ""


# --- questions and answers -------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS)
def test_a_person_plays_any_world(world: str, tmp_path: Path) -> None:
    seat = "buyer-1" if world == "double auction" else "slow-1"
    shorter = {"clock": {"until": "3h"}} if world == "forum" else {}
    path = create(with_person(world, seat, **shorter), tmp_path)
    count = played(path)
    assert count > 0
    calls = asked_of(path, seat)
    assert len([call for call in calls if call.completion.text is not None]) >= count
    assert {call.purpose for call in calls} == {"human"}
    with Run(path) as run:
        assert {one.action.how for one in run.decisions(agent=seat)} == {"chosen"}
    assert verify(path).whole


def test_when_people_answer_never_reaches_the_log(tmp_path: Path) -> None:
    rng = random.Random(3)
    paths = [
        create(with_person("matrix", "slow-1", "world.rounds=2"), tmp_path, name)
        for name in ("quick", "slow", "interrupted")
    ]
    played(paths[0])
    played(paths[1], hold=lambda: rng.uniform(0, 0.05))
    for _ in range(3):
        with going(paths[2], paused=False) as (control, ended):
            answered(control, lambda: None if ended.done() else control.questions(), 2)
            control.stop()
            assert ended.result(10).status == "interrupted", "whoever stops a run does not wait for people"
    before = asked_of(paths[2], "slow-1")
    played(paths[2])
    assert log_of(paths[0]) == log_of(paths[1]) == log_of(paths[2])
    assert len(before) >= 6
    assert before == asked_of(paths[2], "slow-1")[: len(before)], "nothing that was answered is asked again"


def test_a_question_says_what_the_seat_sees_and_how_to_answer(tmp_path: Path) -> None:
    path = create(with_person("bargaining"), tmp_path)
    with going(path, paused=False) as (control, ended):
        until(control.questions)
        (question,) = control.status()["questions"]
        assert question["id"] == f"0/slow-1/{question['tick']}/0/0"
        assert (question["agent"], question["table"]) == ("slow-1", 0)
        assert "Round 1 of 8" in question["text"]
        assert "You are slow-1" in question["about"]
        assert question["format"]
        assert question["how"].startswith("Answer with")
        for wrong, given in (("nonsense", "nonsense"), ("slow-1", ""), ("slow-1", 12), ("slow-1", None)):
            with pytest.raises(Refused):
                control.answer(wrong, given)
        with pytest.raises(Refused, match="nobody asks 'slow-2' anything"):
            control.obey({"do": "answer", "question": "slow-2", "answer": "accept"})
        with pytest.raises(Refused, match="'answer' is no command"):
            control.obey({"do": "answer"})
        control.obey({"do": "answer", "question": "slow-1", "answer": least(question["format"])})
        until(lambda: question["id"] not in {one["id"] for one in control.questions()})
        with pytest.raises(Refused):  # nobody asks that any more, or the answer has ended the run
            control.answer(question["id"], least(question["format"]))
        with suppress(Refused):
            control.stop()
        ended.result(10)


def test_who_leaves_is_asked_no_more(tmp_path: Path) -> None:
    path = create(with_person("bargaining"), tmp_path)
    with going(path, paused=False) as (control, ended):
        until(control.questions)
        control.intervene({"do": "leave", "agent": "slow-1"})
        until(lambda: ended.done() or not control.questions())
        if not ended.done():
            with pytest.raises(Refused):
                control.answer("slow-1", "accept")
        assert ended.result(30).status == "finished"
    assert verify(path).whole


def test_a_fork_asks_only_what_is_new(tmp_path: Path) -> None:
    path = create(with_person("matrix", "slow-1", "world.rounds=2"), tmp_path, "parent")
    played(path)
    same = fork(path, tmp_path, 20)
    assert go(same).status == "finished"
    assert log_of(same) == log_of(path)
    other = fork(path, tmp_path, 20, edits=[{"at": 20, "do": "say", "text": "Think again.", "to": "slow-1"}])
    assert played(other) > 0
    assert len(asked_of(other, "slow-1")) > 0
    assert verify(other).whole


def test_a_mind_of_ones_own_can_ask_people_too(tmp_path: Path) -> None:
    """An LLMAgent whose model is a person: every call of it is the person's."""
    data = society("matrix").located.data
    scenario = loads(write_yaml({**data, "models": {**data["models"], "me": {"engine": "human"}}}), Path(),
                     overrides=["seats.slow-1.agent=agents.llm:LLMAgent", "seats.slow-1.model=me"])  # fmt: skip
    path = create(scenario, tmp_path)
    assert peoples(scenario) == ["slow-1"]
    assert played(path) > 0
    assert {call.purpose for call in asked_of(path, "slow-1")} == {"human"}
    assert verify(path).whole


# --- killed ----------------------------------------------------------------------------------------


def test_answers_survive_a_kill(process: Callable[[Path], Process], tmp_path: Path) -> None:
    whole = create(with_person("matrix", "slow-1", "world.rounds=2"), tmp_path, "whole")
    played(whole)
    path = create(with_person("matrix", "slow-1", "world.rounds=2"), tmp_path, "killed")
    for survivors in (2, 4):
        running = process(path)
        with connect(path) as channel:
            channel.go()
            answered(channel, lambda: channel.status()["questions"], 2)
            running.kill()
        given = [call for call in asked_of(path, "slow-1") if call.completion.text is not None]
        assert len(given) == survivors, "what was answered is committed when the answer returns"
        verify(path)
    played(path)
    assert log_of(path) == log_of(whole)


def test_a_control_without_people_has_no_questions(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path)
    with going(path) as (control, _):
        assert isinstance(control, Control)
        assert control.questions() == []
