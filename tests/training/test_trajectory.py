"""Trajectories from the record of real runs: rewards, ends, groups, and the tokens as the engine had them."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.types import Choice, Completion, Request
from training.trajectory import Row, TrajectoryError, rows

PAYS = {"cc": 3, "cd": 0, "dc": 5, "dd": 1}


class Counting:
    """Takes the first option and says it in tokens that tell the call."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def submit(self, request: Request) -> Future[Completion]:
        self.asked.append(request)
        number = len(self.asked)
        assert isinstance(request.format, Choice)
        done: Future[Completion] = Future()
        done.set_result(
            Completion(
                text=request.format.options[number % 2],
                prompt_ids=(1, 2, number),
                ids=(number, 0),
                logprobs=(-0.5, 0.0),
                distribution="processed",
                option_logprobs=(-0.5, None) if number % 2 == 0 else (None, -0.5),
                policy=request.policy,
            )
        )
        return done

    def score(self, requests: Any, continuations: Any) -> Any:
        raise AssertionError("not asked for")

    def close(self) -> None:
        """Nothing to close."""


def played(folder: Path, **changes: Any) -> tuple[Path, Counting]:
    """Two agents of one policy against a scripted third in a repeated prisoner's dilemma, two tables of one group."""
    data = {
        "name": "learn",
        "clock": {"until": None},
        "tables": 2,
        "group": 2,
        "record": {"states": True},
        "world": {"use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 2, "pairing": "fixed"},
        "models": {"m": {"engine": "synthetic", "policy": "me@3", "record_tokens": True, "temperature": 0.5}},
        "cast": [
            {"name": "learner", "agent": "agents.llm:LLMAgent", "model": "m", "think": "5s"},
            {"name": "other", "agent": "agents.scripted:RandomLegal", "think": "5s"},
        ],
    }
    engine = Counting()
    path = create(loads(write_yaml({**data, **changes}), folder, file="learn.yaml"), folder, "learn")
    session = go(path, engines={"m": engine})
    assert (session.status, session.cause) == ("finished", "")
    return path, engine


@pytest.fixture
def learnt(tmp_path: Path) -> tuple[list[Row], Path, Counting]:
    path, engine = played(tmp_path)
    return rows(path, trained=["me@3"]), path, engine


def test_a_row_is_a_decision_with_the_tokens_of_the_call_that_decided(learnt: tuple[list[Row], Path, Counting]) -> None:
    found, _, _ = learnt
    assert len(found) == 2 * 2 * 2
    mine = [row for row in found if row.seat == "learner"]
    assert sorted(row.ids for row in mine) == [(number, 0) for number in range(1, 5)]
    assert all(row.prompt == (1, 2, row.ids[0]) for row in mine)
    assert {row.logprobs for row in mine} == {(-0.5, 0.0)}
    assert {row.distribution for row in mine} == {"processed"}
    assert {row.temperature for row in mine} == {0.5}
    assert {row.options for row in mine} == {("cooperate", "defect")}
    assert {(row.policy, row.trained, row.opponents) for row in mine} == {("me@3", True, ("scripted",))}
    assert {(row.policy, row.trained, row.opponents) for row in found if row.seat == "other"} == {
        ("", False, ("me@3",))
    }
    for row in mine:
        assert row.answer == row.options[row.ids[0] % 2]


def test_what_is_known_of_other_options_is_in_rows_that_ask_for_it(learnt: tuple[list[Row], Path, Counting]) -> None:
    """A training reads rows without: what it learns from does not depend on what an engine tells beside."""
    found, path, _ = learnt
    assert {row.option_logprobs for row in found} == {()}
    for row in rows(path, options=True):
        said = [None if option != row.answer else -0.5 for option in row.options]
        assert list(row.option_logprobs) == said


def test_rewards_go_to_the_decision_that_earned_them_and_sum_to_the_episodes(
    learnt: tuple[list[Row], Path, Counting],
) -> None:
    found, path, _ = learnt
    with Run(path) as run:
        for table in range(2):
            total = run.rewards(table)
            for agent in total:
                own = [row for row in found if row.episode == f"learn:{table}" and row.seat == agent]
                assert sum(row.reward for row in own) == total[agent]
    for table in range(2):
        for turn in range(2):
            pair = [row for row in found if row.episode == f"learn:{table}" and row.turn == turn]
            answers = {row.seat: row.answer for row in pair}
            for row in pair:
                (other,) = (answers[seat] for seat in answers if seat != row.seat)
                assert row.reward == PAYS[row.answer[0] + other[0]]


def test_ends_groups_and_states(learnt: tuple[list[Row], Path, Counting]) -> None:
    found, _, _ = learnt
    assert {(row.turn, row.ended) for row in found} == {(0, ""), (1, "terminated")}
    assert {row.group for row in found} == {"learn/0"}
    assert {row.episode for row in found} == {"learn:0", "learn:1"}
    by_moment: dict[tuple[str, int], set[str]] = {}
    for row in found:
        by_moment.setdefault((row.episode, row.turn), set()).add(row.state)
    assert all(len(states) == 1 and "" not in states for states in by_moment.values()), "both saw one state"
    assert by_moment["learn:0", 0] == by_moment["learn:1", 0], "tables of a group start alike"


def test_a_run_cut_short_truncates(tmp_path: Path) -> None:
    path, _ = played(tmp_path, stop={"after": "2 decisions"})
    found = rows(path, trained=["me@3"])
    assert {row.ended for row in found} == {"truncated"}


def test_what_cannot_be_learnt_from_is_told(tmp_path: Path) -> None:
    plain = {"engine": "synthetic", "policy": "me@3"}
    path, _ = played(tmp_path / "a", models={"m": plain})
    with pytest.raises(TrajectoryError, match="set record_tokens: true for model 'm'"):
        rows(path, trained=["me@3"])
    assert all(not row.trained for row in rows(path)), "who does not learn from them may read them"
    path, _ = played(tmp_path / "b", models={"m": {**plain, "record_tokens": True, "top_p": 0.9}})
    with pytest.raises(TrajectoryError, match="top_p below 1"):
        rows(path, trained=["me@3"])
