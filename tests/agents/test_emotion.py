"""An emotion as a chain: what may be written, how often it moves where, and what a model, a record and a fork see."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.emotion import Emotion
from agents.llm import LLMAgent
from agents.memory import Memory
from sim.check import check_agent, generic_turns
from sim.fork import fork
from sim.log import Row
from sim.metrics.frames import Frames
from sim.metrics.integrity import faults
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import plan
from sim.scenarios.scenario import loads
from sim.simulate import player, simulate
from sim.streams import Streams
from sim.types import Action, Mind, Turn
from sim.verify import verify
from tests.agents.driving import drive, member, script, turn
from tests.stage import Stage

MOODS: dict[str, Any] = {
    "start": {"neutral": 0.7, "anger": 0.3},
    "moves": {"neutral": {"neutral": 0.8, "anger": 0.2}, "anger": {"anger": 0.5, "neutral": 0.25, "joy": 0.25},
              "joy": {"neutral": 1}},
}  # fmt: skip


# --- the chain --------------------------------------------------------------------------------------------


def test_moves_by_hand() -> None:
    """Words lie in the unit interval in the order of the alphabet: anger first."""
    chain = Emotion(MOODS)
    assert [chain.after(None, u) for u in (0.0, 0.29, 0.31, 0.999)] == ["anger", "anger", "neutral", "neutral"]
    assert [chain.after("anger", u) for u in (0.49, 0.51, 0.74, 0.76)] == ["anger", "joy", "joy", "neutral"]
    assert {chain.after("joy", u) for u in (0.0, 0.5, 1 - 2**-53)} == {"neutral"}


def test_without_moves_it_stays_as_it_starts() -> None:
    assert Emotion({"start": "anger"}).after(None, 0.5) == "anger"
    mixed = Emotion({"start": {"joy": 0.5, "fear": 0.5}})
    assert [mixed.after(now, 0.9) for now in (None, "joy", "fear")] == ["joy", "joy", "fear"]


def test_what_the_chain_does_not_know_begins_anew() -> None:
    """As after an agent has become one with another chain."""
    assert Emotion({"start": "anger"}).after("joy", 0.5) == "anger"


def test_the_order_in_the_file_is_no_luck() -> None:
    turned = {"start": dict(reversed(MOODS["start"].items())), "moves": dict(reversed(MOODS["moves"].items()))}
    for place in range(20):
        for now in (None, *MOODS["moves"]):
            assert Emotion(MOODS).after(now, place / 20) == Emotion(turned).after(now, place / 20)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=7).filter(sum), st.floats(0, 1, exclude_max=True))
def test_what_has_no_share_never_comes(shares: list[float], uniform: float) -> None:
    row = {f"e{place}": share / sum(shares) for place, share in enumerate(shares)}
    chain = Emotion({"start": row, "moves": dict.fromkeys(row, row)})
    assert row[chain.after(None, uniform)] > 0
    assert row[chain.after("e0", uniform)] > 0


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ("anger", "emotion: 'anger'; expected {start: neutral}, or start and moves"),
        ({}, "expected {start: neutral}"),
        ({"start": "joy", "move": {}}, "expected {start: neutral}, or start and moves"),
        ({"start": 3}, "start: 3; expected the probability of every emotion, from 0 to 1"),
        ({"start": {"joy": True}}, "start: {'joy': True}; expected the probability"),
        ({"start": {"joy": float("nan")}}, "expected the probability"),
        ({"start": {"joy": 1.5, "fear": -0.5}}, "expected the probability of every emotion, from 0 to 1"),
        ({"start": {"joy": 0.5, "fear": 0.4}}, "start: the probabilities sum to 0.9; expected 1"),
        ({"start": {}}, "start: the probabilities sum to 0; expected 1"),
        ({"start": {" ": 1}}, "start: ' '; expected a word of at most 40 characters"),
        ({"start": {"a\nb": 1}}, "expected a word"),
        ({"start": {1: 1}}, "expected a word"),
        ({"start": "joy", "moves": []}, "moves: []; expected a row of probabilities for every emotion"),
        ({"start": "joy", "moves": {"joy": {"joy": 0.5}}}, "moves: joy: the probabilities sum to 0.5; expected 1"),
        ({"start": "joy", "moves": {"joy": {"fear": 1}}}, "moves: fear can be felt and has no row; expected one"),
        ({"start": "fear", "moves": {"joy": {"joy": 1}}}, "moves: fear can be felt and has no row"),
    ],
)
def test_what_is_no_chain_is_one_line(settings: Any, why: str) -> None:
    with pytest.raises(ValueError, match=r"^emotion: ") as caught:
        Emotion(settings)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


# --- the agent --------------------------------------------------------------------------------------------


def test_it_is_told_before_how_to_answer_and_recorded() -> None:
    agent = LLMAgent(member(), emotion={"start": "anger"})
    action, (first, second) = drive(agent, turn(), script("both", "defect"))
    assert action.feels == "anger"
    assert first.messages[1].text == (
        'Now:\nprice: 7\n\nYou feel anger.\n\nAnswer with one of "cooperate", "defect" and nothing else.'
    )
    assert second.messages[1].text.startswith("Now:\nprice: 7\n\nYou feel anger.\n\nYou answered: both\n")


def test_it_travels_in_the_action_and_is_no_part_of_memory() -> None:
    agent = LLMAgent(member(), emotion=MOODS)
    action, _ = drive(agent, turn(), script("defect"))
    assert agent.state == Memory()
    assert isinstance(action.state, Memory)
    plain, _ = drive(LLMAgent(member()), turn(), script("defect"))
    assert isinstance(plain.state, Memory)
    assert action.state.feels == action.feels in MOODS["moves"]
    assert action.state.text == plain.state.text
    forgetful = LLMAgent(member(), emotion=MOODS, memory_tokens=0)
    kept = drive(forgetful, turn(), script("defect"))[0].state
    assert isinstance(kept, Memory)
    assert (kept.feels, kept.text) == (action.feels, "")


def test_it_moves_once_a_decision_as_often_as_the_chain_says() -> None:
    """Shares of time by hand: anger has 0.2 / 0.5 of neutral's, joy 0.25 of anger's."""
    agent = LLMAgent(member(), emotion=MOODS, memory_tokens=0)
    seen = []
    for now in range(3000):
        action, (request,) = drive(agent, turn(now), script("defect"), seed=now)
        agent.state = action.state
        assert f"You feel {action.feels}." in request.messages[1].text
        seen.append(str(action.feels))
    shares = {word: count / len(seen) for word, count in Counter(seen).items()}
    assert shares == pytest.approx({"neutral": 1 / 1.5, "anger": 0.4 / 1.5, "joy": 0.1 / 1.5}, abs=0.03)
    moves = Counter(pairwise(seen))
    assert moves["anger", "joy"] / seen.count("anger") == pytest.approx(0.25, abs=0.05)
    assert moves["joy", "neutral"] == seen[:-1].count("joy")


def test_its_luck_is_keyed_and_nobody_else_s() -> None:
    """The same streams give the same emotion, whatever else the mind does; a dropped decision has moved nothing."""
    agents = [LLMAgent(member(**more), emotion=MOODS) for more in ({}, {"persona": {"name": "Ada"}})]
    for seed in range(20):
        uniform = Streams(seed).draw("emotion")
        found = [drive(one, turn(), script("both", "defect"), seed)[0].feels for one in agents]
        assert found == [Emotion(MOODS).after(None, uniform)] * 2


def test_it_keeps_the_rules_of_an_agent() -> None:
    check_agent(lambda: LLMAgent(member(), emotion=MOODS), generic_turns())


# --- the record -------------------------------------------------------------------------------------------

TEXT = """\
name: moody
seed: 3
clock: {until: 1h}
world: {use: "worlds.games.matrix:Matrix", game: pd, rounds: 8}
models: {m: {engine: synthetic, garbage: 0.2, context: 2048}}
cast:
  - {name: host, agent: "agents.llm:LLMAgent", model: m, with: {emotion: {start: neutral, moves: {
     neutral: {anger: 0.5, neutral: 0.5}, anger: {anger: 0.5, neutral: 0.5}}}}, think: 20s}
  - {name: guest, agent: "agents.llm:LLMAgent", model: m, think: 20s}
"""


def feelings(path: Path) -> list[tuple[str, int, str | None]]:
    with Run(path) as run:
        return [(one.action.agent, one.action.seen, one.action.feels) for one in run.decisions()]


def test_it_is_recorded_and_replayed_and_only_where_there_is_one(tmp_path: Path) -> None:
    path = create(loads(TEXT, tmp_path), tmp_path, "moody")
    go(path)
    found = feelings(path)
    assert [felt for agent, _, felt in found if agent == "guest"] == [None] * (len(found) // 2)
    assert {felt for agent, _, felt in found if agent == "host"} == {"neutral", "anger"}
    assert verify(path).whole
    with Run(path) as run:
        assert not any(faults(run, Frames(run)).values()), "whoever recomputes the hashes counts feelings too"


def test_a_run_that_was_stopped_goes_on_with_it(tmp_path: Path) -> None:
    whole, cut = (create(loads(TEXT, tmp_path), tmp_path, name) for name in ("whole", "cut"))
    go(whole)
    assert go(cut, budget=600).status == "paused"
    assert 0 < len(feelings(cut)) < len(feelings(whole))
    go(cut)
    assert feelings(cut) == feelings(whole)


def test_a_fork_goes_on_from_it_and_may_change_it(tmp_path: Path) -> None:
    path = create(loads(TEXT, tmp_path), tmp_path, "moody")
    go(path)
    same = fork(path, tmp_path, 60)
    session = go(same)
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted
    assert feelings(same) == feelings(path)
    other = {"do": "become", "agent": "host", "at": 60, "with": {"emotion": {"start": "joy"}}}
    child = fork(path, tmp_path, 60, edits=[other])
    go(child)
    before = [one for one in feelings(path) if one[1] < 60]
    found = feelings(child)
    assert found[: len(before)] == before
    assert {felt for agent, seen, felt in found if agent == "host" and seen >= 60} == {"joy"}
    assert verify(child).whole


def test_a_wrong_chain_is_told_with_its_place(tmp_path: Path) -> None:
    wrong = TEXT.replace("{anger: 0.5, neutral: 0.5}, anger", "{anger: 0.5, neutral: 0.6}, anger")
    with pytest.raises(ScenarioError) as caught:
        plan(loads(wrong, tmp_path, file="moody.yaml"))
    line = str(caught.value)
    assert line.startswith("moody.yaml:")
    assert " cast.host.with: " in line
    assert line.endswith("emotion: moves: neutral: the probabilities sum to 1.1; expected 1")
    assert "\n" not in line


class Feeling:
    """Says that it feels something."""

    def __init__(self, feels: Any) -> None:
        self.state: object = None
        self._feels = feels

    def act(self, turn: Turn, streams: Streams) -> Mind:
        return Action(answer=turn.default, feels=self._feels)
        yield


def decided(feels: Any) -> tuple[list[Row], str]:
    """The rows of a run of one such mind, and its hash."""
    run = simulate(Stage(), [player(Feeling(feels), "a", 4)], until=9)
    return [row for kind, row in run.rows if kind == "decisions"], run.hash


def test_any_mind_may_feel_and_what_is_no_text_is_its_fault() -> None:
    assert [(row[8], row[-1]) for row in decided("bored")[0]] == [("chosen", "bored")] * 2
    assert [(row[8], row[-1]) for row in decided("\ud800")[0]] == [("faulted", None)] * 2
    assert [(row[8], row[-1]) for row in decided(7)[0]] == [("faulted", None)] * 2


def test_a_feeling_is_in_the_hash() -> None:
    hashes = {decided(feels)[1] for feels in (None, "bored", "glad")}
    assert len(hashes) == 3
