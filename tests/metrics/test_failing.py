"""Failures foretold: similarity and the logistic head by hand and by theory, records with and without a sign."""

from __future__ import annotations

from math import exp, log
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.analysis.failing import foretold, logistic
from sim.metrics.analysis.goals import goal_similarity, near_goals, nearness
from sim.metrics.analysis.uncertainty import disagreement, entropy, passed_on, separations
from tests.metrics.society import Society, values


def test_similarity_entropy_and_disagreement_by_hand() -> None:
    assert goal_similarity("Buy the red apple", "the red pear") == pytest.approx(2 / 5)
    assert goal_similarity("", "a") is goal_similarity("a", " ") is goal_similarity("", "") is None
    assert (goal_similarity("a", "b"), goal_similarity("a b.", "B, A!")) == (0, 1)
    assert entropy({"a": 0.5, "b": 0.25, "c": 0.25, "d": 0}) == pytest.approx(1.5 * log(2))
    assert disagreement(["a", "a", "b"]) == pytest.approx(2 / 3)
    assert disagreement(["a"]) is None
    with pytest.raises(ValueError, match="probabilities add up"):
        entropy({"a": 0.5})


def test_a_head_without_a_penalty_to_speak_of_is_the_likeliest() -> None:
    """Of two kinds, one of four and three of four fail."""
    head = logistic([[0.0]] * 4 + [[1.0]] * 4, [True, False, False, False, True, True, True, False], 1e-9)
    assert (head([0.0]), head([1.0])) == pytest.approx((0.25, 0.75), abs=1e-4)
    assert head([2.0]) == pytest.approx(1 / (1 + exp(-3 * log(3))), abs=1e-4)


def test_a_penalised_head_is_always_there() -> None:
    """Where failures are told apart without fault the plain one has no finite answer; a feature of none has no say."""
    apart = logistic([[0.0, 7.0], [1.0, 7.0]] * 5, [False, True] * 5)
    assert 0.5 < apart([1.0, 7.0]) < 1
    assert apart([1.0, 7.0]) == apart([1.0, 9.0])
    assert logistic([[1.0], [2.0]], [True, True])([1.0]) > 0.99
    shares = logistic([[1.0], [1.0], [1.0], [1.0]], [True, False, False, False])
    assert shares([1.0]) == pytest.approx(0.25, abs=1e-4)
    for rows, outcomes, penalty in (([], [], 1), ([[1.0]], [True], 0), ([[1.0], [1.0, 2.0]], [True, False], 1)):
        with pytest.raises(ValueError):
            logistic(rows, outcomes, penalty)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unequal lengths"):
        apart([1.0])


def test_areas_on_decisions_by_hand() -> None:
    """Failed .8 and .4, others .5 and .2; in the first round nothing stands out, in the second all does."""
    scores = {(0, 1): 0.8, (0, 2): 0.2, (1, 1): 0.4, (1, 2): 0.5}
    failed = {(0, 1): True, (0, 2): False, (1, 1): True, (1, 2): False}
    told = {(0, 1): 1, (0, 2): 1, (1, 1): 0, (1, 2): 0}
    found = values(separations("x", scores, failed, told, {}, 99))
    assert found["x_auc"].value == pytest.approx(3 / 4)
    assert found["x_auprc"].value == pytest.approx((1 + 2 / 3) / 2)
    assert found["x_aurc"].value == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
    assert found["x_earliness"].value == 2
    assert (found["x_ece_debiased"].value, found["x_ece_debiased"].flags) == (None, ("fewer than 50 predictions",))
    none = values(separations("x", scores, dict.fromkeys(scores, False), told, {}))
    assert {one.value for one in none.values()} == {None}


def test_the_entropy_of_choices_by_hand(tmp_path: Path) -> None:
    """Of two options alike all of it, of .9 and .1 so much of ln 2; none where an option is not known."""
    society = Society(tmp_path / "run.db")
    society.member("a")
    for tick, options in enumerate(([log(0.5)] * 2, [log(0.9), log(0.1)], [log(0.9), None], [])):
        call = {"logprobs": [log(0.5)], "options": options}
        society.act("a", tick, calls=[call], how="chosen" if tick else "defaulted")
    with society.run() as record:
        found = values(passed_on(record, draws=0))
    known = -(0.9 * log(0.9) + 0.1 * log(0.1)) / log(2)
    assert found["uncertainty.entropy"].value == pytest.approx((1 + known) / 2, abs=1e-6)
    assert found["uncertainty.entropy"].excluded == {"decisions without log-probabilities": 2}
    assert (found["uncertainty.entropy_auc"].value, found["uncertainty.own_auc"].value) == (1, 0.5)


@given(st.text("ab .", max_size=12), st.text("ab .", max_size=12))
def test_similarity_knows_no_side_and_no_order_of_words(goal: str, text: str) -> None:
    found = goal_similarity(goal, text)
    assert found == goal_similarity(text, goal)
    assert found == goal_similarity(" ".join(reversed(goal.split())), f"{text} {text}")
    assert found is None or 0 <= found <= 1


def test_how_near_decisions_are_to_goals_by_hand(tmp_path: Path) -> None:
    """ann has goals of her own, then a subgoal too, then a task she is shown; bob has none, and cid says nothing."""
    society = Society(tmp_path / "run.db", tables=2)
    society.member("ann", persona={"goals": ["buy apples", "buy pears"]})
    society.member("bob", persona={"name": "Bob"})
    society.member("cid", persona={"goals": "buy pears"})
    society.act("ann", 1, answer="buy apples")
    society.act("ann", 2, answer="sell", calls=[{"purpose": "subgoal", "text": "sell plums", "form": '{"text":20}'}])
    society.act("ann", 3, answer="sell", calls=[{"purpose": "switch", "text": "keep"}])
    task = [society.fact(3, "task", question=words) for words in ("eat", "rest")]
    society.act("ann", 4, answer="rest", shows=task[:1], recalls=task[1:])
    for table in range(2):
        society.act("bob", 5, answer="buy apples", table=table)
        society.act("cid", 6, answer="", table=table)
    with society.run() as record:
        assert list(nearness(record).values()) == pytest.approx([2 / 3, 1 / 5, 1 / 5, 1 / 6])
        (found,) = near_goals(record)
    assert found.value == pytest.approx((2 / 3 + 1 / 5 + 1 / 5 + 1 / 6) / 4)
    assert (found.n, found.n_clusters, found.ci) == (4, 1, None)
    assert found.excluded == {"no goals, or no words": 4}
    nobody = Society(tmp_path / "none.db")
    nobody.member("bob")
    nobody.act("bob", 1)
    with nobody.run() as record:
        assert [one.value for one in near_goals(record)] == [None]


def straying(folder: Path, luck: Random, size: float, goals: str = "buy three red apples") -> Society:
    """Twelve tables of two who decide eight times, unsure by chance; who speaks of something else fails more often."""
    society = Society(folder / "run.db", tables=12)
    for agent in ("a", "b"):
        society.member(agent, persona={"goals": goals})
    for table in range(12):
        for tick in range(16):
            away = luck.random() < 0.4
            how = "defaulted" if luck.random() < 0.2 + size * away else "chosen"
            answer = "what a fine day" if away else "three apples, please"
            call = {"logprobs": [log(luck.uniform(0.3, 1))]}
            society.act("ab"[tick % 2], tick, answer=answer, how=how, calls=[call], table=table)
    return society


def test_a_head_finds_who_strays_from_a_goal_and_only_from_one(tmp_path: Path) -> None:
    """Where nobody has a goal, what is said tells nothing."""
    found = []
    for place, goals in enumerate(("buy three red apples", "")):
        (tmp_path / f"{place}").mkdir()
        with straying(tmp_path / f"{place}", Random(2), 0.6, goals).run() as record:
            found.append(values(foretold(record, 99))["failing.head_auc"].ci or (1, 0))
    (near, _), (none, _) = found
    assert none < 0.5 < 0.6 < near


def stuck(folder: Path, luck: Random, size: float) -> Society:
    """Twelve tables of two who decide eight times, unsure by chance; the lost repeat themselves and fail, or not."""
    society = Society(folder / "run.db", tables=12)
    for agent in ("a", "b"):
        society.member(agent)
    for table in range(12):
        lost = {agent: luck.random() < 0.5 for agent in ("a", "b")}
        for tick in range(8):
            for agent in ("a", "b"):
                again = luck.random() < (0.9 if lost[agent] else 0.1)
                key = "here" if again else f"{agent}{tick}"
                how = "defaulted" if luck.random() < 0.2 + size * again else "chosen"
                call = {"logprobs": [log(luck.uniform(0.3, 1))]}
                society.act(agent, 2 * tick + (agent == "b"), key=key, how=how, calls=[call], table=table)
    return society


def test_a_head_finds_a_sign_that_uncertainty_does_not_have(tmp_path: Path) -> None:
    with stuck(tmp_path, Random(1), 0.6).run() as record:
        found = values(foretold(record, 99))
    assert (found["failing.head_auc"].ci or (0,))[0] > 0.5
    assert found["failing.head_auc"].value > (found["failing.learned_auc"].value or 1) + 0.05
    assert found["failing.head_auprc"].value > found["failing.head_aurc"].value


def test_a_single_table_foretells_nothing(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("a")
    for tick in range(4):
        society.act("a", tick, how="defaulted" if tick % 2 else "chosen", calls=[{"logprobs": [log(0.5)]}])
    with society.run() as record:
        assert {one.value for one in foretold(record)} == {None}
