"""Interviews: a copy of an agent is asked, with its memory and persona as of then; the run is not touched."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sim.check import check_agent, check_world, generic_turns
from sim.fork import fork
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.studies.interview import Interview, NotAskable, Questions, Recalled, answers, interview
from sim.studies.recall import recall
from sim.types import Completion, EngineFailure, Request
from sim.verify import verify
from tests.commands import Agora
from tests.laws.societies import society
from tests.laws.test_law4_kills import log_of
from tests.sim.test_control import at, going
from tests.sim.test_people import with_person

QUESTIONS = ["What have you seen?", "And why?"]


def made(world: str = "matrix", **changes: Any) -> Scenario:
    data = {**society(world).located.data, **changes}
    return loads(write_yaml(data), Path(), file=f"{world}.yaml")


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Agents that forget nothing."""
    data = society("matrix").located.data
    cast = [{**entry, "with": {"memory_tokens": 1200}} for entry in data["cast"]]
    cast[0] |= {
        "persona": {"name": "Ann Lee", "goals": ["peace"]},
        "secrets": [{"attribute": "debt", "value": "4300"}],
    }
    models = {"m": {"engine": "synthetic", "context": 4096}}
    path = create(made(cast=cast, models=models), tmp_path_factory.mktemp("parent"), "parent")
    assert go(path).status == "finished"
    return path


def asked(path: Path) -> list[Any]:
    with Run(path) as run:
        return list(run.calls())


def told(parent: Path, agent: str, tick: int) -> list[str]:
    """What the agent had answered in the run by then."""
    with Run(parent) as run:
        return [one.action.answer for one in run.decisions(agent=agent) if one.tick <= tick]


# --- what the copy knows ----------------------------------------------------------------------------


def test_it_remembers_what_it_had_lived_through_and_nothing_later(parent: Path, tmp_path: Path) -> None:
    """Its memory is, word for word, the one with which the agent itself went on."""
    with Run(parent) as run:
        decisions = [one for one in run.decisions(agent="slow-2") if one.action.how == "chosen"]
        third, fourth = decisions[2:4]
        (next_call,) = run.calls_of(fourth)
    assert third.tick <= fourth.action.seen
    child = interview(parent, tmp_path, "slow-2", third.tick, QUESTIONS)
    session = go(child)
    assert session.status == "finished"
    first, second = asked(child)
    remembered = next_call.messages[1].text.split("\n\nNow:\n")[0]
    assert remembered.startswith("What you remember:")
    assert first.messages[1].text.split("\n\nNow:\n")[0] == remembered
    assert first.messages[0] == next_call.messages[0], "the same rules, the same person"
    assert QUESTIONS[0] in first.messages[1].text
    assert QUESTIONS[1] not in first.messages[1].text
    assert QUESTIONS[0] in second.messages[1].text.split("\n\nNow:\n")[0], "it remembers the interview"
    assert (first.key.agent, first.key.tick, first.model, first.sampling) == (
        "slow-2", third.tick, next_call.model, {**next_call.sampling, "max_tokens": first.sampling["max_tokens"]}
    )  # fmt: skip


def test_before_anything_happened_it_knows_who_it_is(parent: Path, tmp_path: Path) -> None:
    child = interview(parent, tmp_path, "slow-1", 0, QUESTIONS[:1])
    go(child)
    (call,) = asked(child)
    assert "You are slow-1" in call.messages[0].text
    assert "Ann Lee" in call.messages[0].text
    assert "4300" in call.messages[0].text
    assert "What you remember" not in call.messages[1].text
    with Run(child) as run, Run(parent) as there:
        assert run.cast()[0].persona == there.cast()[0].persona
        assert run.cast()[0].secrets == there.cast()[0].secrets


def test_at_the_end(parent: Path, tmp_path: Path) -> None:
    with Run(parent) as run:
        last = run.last_tick(0)
    child = interview(parent, tmp_path, "quick-1", last, QUESTIONS[:1])
    assert go(child).status == "finished"
    (said,) = answers(child)
    assert (said.question, said.how) == (QUESTIONS[0], "chosen")
    remembered = recall(parent, "quick-1", last).agent.state
    assert [entry.did for entry in remembered.entries][-1] == told(parent, "quick-1", last)[-1]  # type: ignore[attr-defined]


# --- the runs --------------------------------------------------------------------------------------


def test_the_run_is_untouched_and_the_interview_is_a_run(parent: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in parent.parent.iterdir()}
    first, again = (interview(parent, tmp_path, "slow-1", 60, QUESTIONS) for _ in range(2))
    assert first != again
    assert first.stem == "parent-slow-1-at60"
    for child in (first, again):
        assert go(child).status == "finished"
        assert verify(child).whole
    assert log_of(first) == log_of(again), "the same question to the same copy"
    assert [one.text for one in answers(first)] == [call.completion.text for call in asked(first)]
    with Run(first) as run:
        assert Path(run.manifest().parent) == parent
        assert run.manifest().fork_tick is None
        assert {one.action.recalls for one in run.decisions()} == {()}
    child = fork(first, tmp_path, 60)
    assert go(child).status == "finished"
    assert log_of(child) == log_of(first)
    assert {path.name: path.read_bytes() for path in parent.parent.iterdir()} == before


def test_a_dead_engine_pauses_it(parent: Path, tmp_path: Path) -> None:
    class Dies:
        """Answers one call."""

        calls = 0

        def submit(self, request: Request) -> Future[Completion]:
            future: Future[Completion] = Future()
            self.calls += 1
            if self.calls > 1:
                future.set_exception(EngineFailure("dead"))
            else:
                future.set_result(Completion(text="Everything."))
            return future

    child = interview(parent, tmp_path, "slow-1", 60, QUESTIONS)
    assert go(child, engines={"m": Dies()}).status == "paused"  # type: ignore[dict-item]
    assert [one.text for one in answers(child)] == ["Everything."]
    verify(child)
    assert go(child).status == "finished"
    assert answers(child)[0].text == "Everything."
    assert len(asked(child)) == 2
    assert verify(child).whole


def test_no_usable_answer_is_no_answer(parent: Path, tmp_path: Path) -> None:
    class Mute:
        def submit(self, request: Request) -> Future[Completion]:
            future: Future[Completion] = Future()
            future.set_result(Completion(text=" "))
            return future

    child = interview(parent, tmp_path, "slow-1", 60, QUESTIONS)
    assert go(child, engines={"m": Mute()}).status == "finished"  # type: ignore[dict-item]
    assert {(one.text, one.how) for one in answers(child)} == {("(no answer)", "defaulted")}


def test_a_run_that_goes_on_can_be_asked_about_what_is_recorded(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "going")
    with going(path) as (control, _):
        at(control, 60)
        control.intervene({"do": "say", "text": "An intervention.", "to": "slow-1"})
        at(control, 100)
        session = control._session
        assert session.store is not None
        session.host.orders.put(session.store.flush)  # type: ignore[union-attr]
        at(control, 110)
        with Run(path) as run:
            last = run.last_tick(0)
        with pytest.raises(NotAskable, match=f"is recorded up to tick {last}, so tick {last} is too late"):
            interview(path, tmp_path, "slow-1", last, QUESTIONS)
        child = interview(path, tmp_path, "slow-1", last - 1, QUESTIONS)
        assert go(child).status == "finished"
    assert verify(child).whole, "what comes later changes nothing"
    assert verify(path).whole


def test_of_a_fork_the_side_that_spoke_then_is_asked(parent: Path, tmp_path: Path) -> None:
    child = fork(parent, tmp_path, 80, sets=["models.m.temperature=0.1"], edits=[{"at": 80, "do": "say", "text": "Hm"}])
    go(child)
    for tick, temperature in ((60, 0.8), (90, 0.1)):
        asking = interview(child, tmp_path, "slow-1", tick, QUESTIONS)
        go(asking)
        assert {call.sampling["temperature"] for call in asked(asking)} == {temperature}
        with Run(asking) as run:
            assert Path(run.manifest().parent) == (parent if tick < 80 else child)
        assert verify(asking).whole


def test_each_table_has_its_own_agents(tmp_path: Path) -> None:
    path = create(made(tables=2), tmp_path, "tables")
    go(path)
    children = [interview(path, tmp_path, "quick-1", 60, QUESTIONS, table) for table in (0, 1)]
    for child in children:
        go(child)
    texts = [[call.messages[1].text for call in asked(child)] for child in children]
    assert texts[0] != texts[1]
    assert verify(children[1]).whole


def test_without_the_run_there_is_nobody_to_ask(tmp_path: Path) -> None:
    path = create(society("matrix"), tmp_path, "gone")
    go(path)
    child = interview(path, tmp_path, "slow-1", 60, QUESTIONS)
    path.unlink()
    with pytest.raises(ValueError, match="is gone; bring it back"):
        go(child)


# --- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "tick", "table", "why"),
    [
        ("slow-9", 60, 0, "no agent has the id 'slow-9'; did you mean slow-"),
        ("slow-1", 99999, 0, "parent ends at tick"),
        ("slow-1", 60, 1, "parent has no table 1"),
    ],
)
def test_who_cannot_be_asked(agent: str, tick: int, table: int, why: str, parent: Path, tmp_path: Path) -> None:
    with pytest.raises(NotAskable, match=why):
        interview(parent, tmp_path, agent, tick, QUESTIONS, table)
    assert not list(tmp_path.iterdir())


def test_who_joins_later_is_asked_later(tmp_path: Path) -> None:
    late = {"name": "late", "agent": "agents.llm:LLMAgent", "model": "m", "think": "5m"}
    join = {"at": "1h", "do": "join", "entry": late}
    path = create(made("forum", clock={"until": "3h"}, interventions=[join]), tmp_path, "forum")
    go(path)
    with pytest.raises(NotAskable, match="late joins at tick 3600; choose a later moment"):
        interview(path, tmp_path, "late", "59m", QUESTIONS)
    child = interview(path, tmp_path, "late", "2h", QUESTIONS)
    assert go(child).status == "finished"
    assert verify(child).whole


def test_scripted_agents_and_people_cannot_be_asked(tmp_path: Path) -> None:
    seats = {"quick-1": {"agent": "agents.scripted:RandomLegal"}}
    path = create(with_person("matrix", "slow-1", "seats.quick-1.agent=agents.scripted:RandomLegal"), tmp_path)
    with pytest.raises(NotAskable, match="tick 5 is too late"):
        interview(path, tmp_path, "slow-1", 5, QUESTIONS)
    path = create(made(seats=seats), tmp_path, "scripted")
    go(path)
    with pytest.raises(NotAskable, match="quick-1 is scripted, so there is no model to ask; choose one of quick-2, sl"):
        interview(path, tmp_path, "quick-1", 5, QUESTIONS)


# --- conformance -----------------------------------------------------------------------------------


def test_the_world_keeps_the_rules_of_a_world() -> None:
    check_world(Interview, ["a", "b"], {"questions": ["One?", "Two?", "Three?"], "at": 4})


def test_the_mind_keeps_the_rules_of_an_agent(parent: Path) -> None:
    with Run(parent) as run:
        member = run.cast()[0]
    check_agent(lambda: Recalled(member, run=str(parent), at=60), generic_turns())


def test_at_least_one_question() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Questions(questions=())


# --- the command line ------------------------------------------------------------------------------


def test_the_command(agora: Agora, tmp_path: Path) -> None:
    path = create(society("bargaining"), tmp_path / "runs", "deal")
    go(path)
    before = path.read_bytes()
    said = agora("interview", "deal", "--agent", "slow-1", "--at", "30s", "Why that offer?", "Are you [red]sure[/red]?")
    assert said.code == 0
    child = tmp_path / "runs" / "deal-slow-1-at30.db"
    for one in answers(child):
        assert one.question in said.out
        assert one.text in said.out
    assert path.read_bytes() == before
    assert "asks an agent of deal" in agora("runs").out
    assert "all equal" in agora("verify", child).out
    assert "Why that offer?" in agora("show", child, "--agent", "slow-1").out
    for words, why in (
        (("deal", "--agent", "slow-1", "--at", "3 moons", "Why?"), "is not a duration"),
        (("deal", "--agent", "nobody", "--at", "30s", "Why?"), "no agent has the id 'nobody'"),
        (("lost", "--agent", "slow-1", "--at", "30s", "Why?"), "no run 'lost'"),
    ):
        refused = agora("interview", *words)
        assert (refused.code, why in refused.line) == (2, True)
