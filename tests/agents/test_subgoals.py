"""Subgoals: when an agent is asked for one, who is reminded of it, and that records, resumptions and forks have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.llm import LLMAgent
from agents.memory import Memory
from sim.check import check_agent, generic_turns
from sim.fork import fork
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.types import Choice, Completion, Text
from sim.verify import verify
from tests.agents.driving import DUEL, drive, member, prompt_tokens, script, turn

FAILED = Completion(text=None, finish="error", error="400: too long")


def test_a_subgoal_is_set_at_the_first_turn_and_kept_or_changed_at_later_ones() -> None:
    agent = LLMAgent(member(), subgoals=40, memory_tokens=0)
    action, (aim, answer) = drive(agent, turn(), script("Win Ann's trust.", "cooperate"))
    assert (action.answer, action.how, action.reason) == ("cooperate", "chosen", "")
    assert (aim.purpose, aim.format, aim.max_tokens) == ("subgoal", Text(max_chars=120), 40)
    assert (answer.purpose, answer.format) == ("act", DUEL)
    assert "Your subgoal so far" not in aim.messages[1].text
    assert "\n\nYour subgoal:\nWin Ann's trust.\n\n" in answer.messages[1].text
    agent.state = action.state
    action, (word, answer) = drive(agent, turn(1), script("keep", "cooperate"))
    assert (word.purpose, word.format) == ("switch", Choice(options=("keep", "switch")))
    assert "\n\nYour subgoal so far:\nWin Ann's trust.\n\nYou will be asked: " in word.messages[1].text
    assert "\n\nYour subgoal:\nWin Ann's trust.\n\n" in answer.messages[1].text
    agent.state = action.state
    action, (word, aim, answer) = drive(agent, turn(2), script("switch", "Take all.", "defect"))
    assert [each.purpose for each in (word, aim, answer)] == ["switch", "subgoal", "act"]
    assert "Your subgoal so far:\nWin Ann's trust." in aim.messages[1].text
    assert "\n\nYour subgoal:\nTake all.\n\n" in answer.messages[1].text
    assert "trust" not in answer.messages[1].text
    assert {each.messages[0] for each in (word, aim, answer)} == {answer.messages[0]}
    assert isinstance(action.state, Memory)
    assert action.state.subgoal == "Take all."


def test_what_it_aims_at_is_there_when_it_thinks_and_when_it_answers_again() -> None:
    agent = LLMAgent(member(), subgoals=40, think=40)
    _, asked = drive(agent, turn(), script("Win trust.", "Ann will defect.", "run", "defect"))
    assert [request.purpose for request in asked] == ["subgoal", "think", "act", "rethink"]
    assert "Ann will defect" not in asked[1].messages[1].text
    assert all("Your subgoal:\nWin trust." in request.messages[1].text for request in asked[1:])
    assert "Your subgoal:\nWin trust.\n\nYou thought:\nAnn will defect." in asked[3].messages[1].text


def test_without_a_word_the_subgoal_stays_and_without_a_new_one_there_is_none() -> None:
    agent = LLMAgent(member(), subgoals=40)
    agent.state = Memory(subgoal="Win trust.")
    action, asked = drive(agent, turn(), script("perhaps", "defect"))
    assert action.reason == 'no switch (the answer must be one of "keep", "switch" and nothing else)'
    assert "Your subgoal:\nWin trust." in asked[1].messages[1].text
    action, asked = drive(agent, turn(), script("switch", FAILED, "defect"))
    assert (action.answer, action.how, action.reason) == ("defect", "chosen", "no subgoal (400: too long)")
    assert "Your subgoal" not in asked[2].messages[1].text
    agent.state = action.state
    _, asked = drive(agent, turn(1), script("Win.", "defect"))
    assert [request.purpose for request in asked] == ["subgoal", "act"], "there is none to keep"


def test_who_sets_itself_none_is_shown_none() -> None:
    """Such as one that has become another, and kept the other's memory."""
    agent = LLMAgent(member())
    agent.state = Memory(subgoal="Win trust.")
    action, (request,) = drive(agent, turn(), script("defect"))
    assert "Win trust" not in request.messages[1].text
    assert isinstance(action.state, Memory)
    assert action.state.subgoal == ""


@pytest.mark.parametrize("context", [256, 512])
def test_prompts_with_a_long_subgoal_fit_the_context(context: int) -> None:
    agent = LLMAgent(member(context=context), subgoals=10 * context, think=10 * context)
    agent.state = Memory(subgoal="so " * context)
    seen = turn(0, {"news": "word " * 2 * context})
    _, asked = drive(agent, seen, script("switch", "so " * 9000, "so " * 9000, "defect"))
    assert [request.max_tokens for request in asked[1:3]] == [context // 3] * 2
    for request in asked:
        assert prompt_tokens(request) + request.max_tokens <= context


def test_one_that_is_too_long_is_cut_where_its_tokens_end() -> None:
    action, _ = drive(LLMAgent(member(), subgoals=3), turn(), script("1, 2, 3 and so on", "defect"))
    assert isinstance(action.state, Memory)
    assert action.state.subgoal == "1, 2, 3 a"


def test_it_keeps_the_rules_of_an_agent() -> None:
    check_agent(lambda: LLMAgent(member(), subgoals=40), generic_turns())


# --- the record -------------------------------------------------------------------------------------------

TEXT = """\
name: aiming
seed: 3
clock: {until: 1h}
world: {use: "worlds.games.matrix:Matrix", game: pd, rounds: 6}
models: {m: {engine: synthetic, context: 2048}}
cast:
  - {name: host, agent: "agents.llm:LLMAgent", model: m, with: {subgoals: 8, memory_tokens: 0}, think: 20s}
  - {name: guest, agent: "agents.llm:LLMAgent", model: m, think: 20s}
"""


def played(folder: Path, name: str) -> Path:
    path = create(loads(TEXT, folder), folder, name)
    go(path)
    return path


def asked(path: Path) -> list[tuple[int, str, str, str | None]]:
    """The calls of the host: when, for what, with which words, and what was said."""
    with Run(path) as run:
        calls = [call for call in run.calls() if call.key.agent == "host"]
    return [(call.key.tick, call.purpose, call.messages[-1].text, call.completion.text) for call in calls]


def test_it_is_recorded_replayed_and_shown_until_it_is_switched(tmp_path: Path) -> None:
    path = played(tmp_path, "aiming")
    assert verify(path).whole
    aim = ""
    for _, purpose, words, said in asked(path):
        if purpose == "subgoal":
            aim = str(said)
        elif purpose == "act":
            assert f"Your subgoal:\n{aim}\n\n" in words
    purposes = {purpose for _, purpose, _, _ in asked(path)}
    assert purposes == {"subgoal", "switch", "act"}
    with Run(path) as run:
        assert {call.purpose for call in run.calls() if call.key.agent == "guest"} == {"act"}


def test_a_run_that_was_stopped_goes_on_with_it(tmp_path: Path) -> None:
    cut = create(loads(TEXT, tmp_path), tmp_path, "cut")
    assert go(cut, budget=1500).status == "paused"
    before = len(asked(cut))
    go(cut)
    whole = asked(played(tmp_path, "whole"))
    assert 0 < before < len(whole)
    assert asked(cut) == whole


def test_a_fork_goes_on_from_it_and_may_end_it(tmp_path: Path) -> None:
    path = played(tmp_path, "aiming")
    same = fork(path, tmp_path, 60)
    session = go(same)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert asked(same) == asked(path)
    child = fork(path, tmp_path, 60, edits=[{"do": "become", "agent": "host", "at": 60, "with": {"subgoals": 0}}])
    go(child)
    assert [one for one in asked(child) if one[0] < 60] == [one for one in asked(path) if one[0] < 60]
    assert {purpose for tick, purpose, _, _ in asked(child) if tick >= 60} == {"act"}
    assert not any("Your subgoal" in words for tick, _, words, _ in asked(child) if tick >= 60)
    assert verify(child).whole
