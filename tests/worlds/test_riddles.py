"""Riddles: answers and candidates, who sees what, the gate, payoffs by hand and by theory, interventions, measures."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import Action, Join, Leave, Outcome, RecordedFact, Say, Seat, Set, Turn
from tests.worlds.playing import Played, play
from worlds.games.riddles import Riddles
from worlds.games.riddles_problems import Operation, Problem, RiddlesParams, candidates
from worlds.games.riddles_strategies import (
    Calculator,
    Guesser,
    HardestProposer,
    RandomProposer,
    Slipping,
    accuracy,
    hardest,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "games"
OPERATIONS: tuple[Operation, ...] = ("plus", "minus", "times", "divided by")


def fresh(solvers: str = "ab", **params: Any) -> Riddles:
    world = Riddles(RiddlesParams.model_validate(params))
    seats = [Seat(agent="p", role="proposer"), *(Seat(agent=agent, role="solver") for agent in solvers)]
    world.reset(seats, Streams(1))
    return world


def seen(world: Riddles, agent: str) -> Turn:
    turn = world.observe(0, agent)
    assert turn is not None
    return turn


def do(world: Riddles, agent: str, *answers: Any) -> Outcome:
    """What the last of these answers comes to."""
    outcome = Outcome()
    for answer in answers:
        turn = seen(world, agent)
        assert illegal(turn.format, answer) is None, answer
        outcome = world.step(0, [Action(answer=answer, agent=agent, shows=turn.shows)])
    return outcome


def wrong(world: Riddles, right: str) -> str:
    return next(each for each in world.state()["candidates"] if each != right)


def played(proposer: Any, *solvers: Any, seed: int = 0, **params: Any) -> Played:
    cast = [(Seat(agent="p", role="proposer"), proposer)]
    cast += [(Seat(agent=f"s{n}", role="solver"), solver) for n, solver in enumerate(solvers)]
    return play(Riddles, cast, params, seed=seed)


# --- problems ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "operation", "right", "answer", "digits"),
    [
        (12, "plus", 7, 19, 3), (3, "minus", 9, -6, 2), (12, "times", 12, 144, 4), (84, "divided by", 7, 12, 3),
        (85, "divided by", 7, None, 3), (7, "divided by", 0, None, 2), (0, "divided by", 5, 0, 2),
    ],
)  # fmt: skip
def test_answers_by_hand(left: int, operation: Operation, right: int, answer: int | None, digits: int) -> None:
    problem = Problem(left, operation, right)
    assert (problem.answer, problem.digits) == (answer, digits)


PROBLEMS = st.builds(Problem, st.integers(0, 999), st.sampled_from(OPERATIONS[:3]), st.integers(0, 999))


@given(PROBLEMS, st.integers(2, 9), st.integers(9, 40), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_candidates_are_neighbours_and_hold_the_answer_once(problem: Problem, n: int, spread: int, seed: int) -> None:
    params, answer = RiddlesParams(options=n, spread=spread), problem.answer
    assert answer is not None
    found = [int(each) for each in candidates(problem, answer, params, Streams(seed))]
    assert found == sorted(set(found))
    assert len(found) == n
    assert answer in found
    assert found[-1] - found[0] < spread


def test_rank_tells_nothing_of_which_candidate_is_right() -> None:
    """Always the first, or the last, of five: once in five of 2,000 problems, 4 standard errors."""
    params = RiddlesParams(options=5, spread=12)
    ranks = Counter(
        candidates(Problem(left, "plus", right), left + right, params, Streams(2)).index(str(left + right))
        for left, right in product(range(50), range(40))
    )
    assert all(abs(ranks[rank] / 2000 - 0.2) < 4 * sqrt(0.2 * 0.8 / 2000) for rank in range(5))


# --- who sees what, and what it pays -------------------------------------------------------------------------


def test_a_problem_is_made_up_in_parts_and_put_to_all_solvers_alike() -> None:
    world = fresh()
    assert world.observe(0, "a") is None
    assert seen(world, "p").text == "Choose the first number, from 0 to 99."
    assert [wake.agent for wake in do(world, "p", "12").wakes] == ["p"]
    assert "far: 12 ? ?" in seen(world, "p").text
    do(world, "p", "times")
    assert "far: 12 times ?" in seen(world, "p").text
    outcome = do(world, "p", "7")
    assert [wake.agent for wake in outcome.wakes] == ["a", "b"]
    (fact,) = outcome.facts
    assert fact.data["problem"] == "12 times 7"
    assert world.observe(0, "p") is None
    one, other = seen(world, "a"), seen(world, "b")
    assert (one.view, one.key, one.format) == (other.view, other.key, other.format)
    assert one.text.startswith("How much is 12 times 7?")
    assert one.shows == (fact.id,)
    assert "84" in one.view["candidates"]
    answer = do(world, "a", "84").facts[0]
    assert (answer.audience, answer.answers) == (("a",), (fact.id,))
    assert seen(world, "b").shows == (fact.id,), "nobody sees what another answered"


def test_the_proposer_gets_what_solvers_miss() -> None:
    world = fresh("abcd")
    do(world, "p", "12", "times", "7")
    right = do(world, "a", "84")
    assert (right.rewards, right.ended) == ({"a": 1}, {"a": "terminated"})
    for agent in "bc":
        assert do(world, agent, wrong(world, "84")).rewards == {agent: 0}
    last = do(world, "d", wrong(world, "84"))
    assert last.rewards == {"d": 0, "p": 0.75}
    assert last.ended == {"d": "terminated", "p": "terminated"}
    assert last.facts[-1].data == {
        "reason": "answered", "right": 84, "solved": {"a": True, "b": False, "c": False, "d": False},
    }  # fmt: skip


@pytest.mark.parametrize("penalty", [0, 0.5])
@pytest.mark.parametrize("right", ["0", "5"])
def test_what_has_no_answer_goes_to_nobody(penalty: float, right: str) -> None:
    world = fresh(penalty=penalty)
    outcome = do(world, "p", "7", "divided by", right)
    assert not outcome.wakes
    assert outcome.rewards == {"p": -penalty}
    assert str(outcome.rewards["p"])[0] != "-" or penalty, "nothing is 0, not -0"
    assert outcome.ended == dict.fromkeys("pab", "terminated")
    assert [fact.kind for fact in outcome.facts] == ["proposal", "outcome"]
    assert all(world.observe(0, agent) is None for agent in "pab")


def test_the_only_operation_is_not_asked_for() -> None:
    world = fresh(operations=["times"], most=9)
    do(world, "p", "3")
    assert seen(world, "p").text == "Your problem so far: 3 times ?\nChoose the second number, from 0 to 9."
    assert do(world, "p", "9").facts[0].data["problem"] == "3 times 9"


def test_what_is_not_asked_is_stale() -> None:
    world = fresh()
    outcome = world.step(0, [Action(answer="1", agent="a"), Action(answer="100", agent="p")])
    assert [result.status for result in outcome.results] == ["stale", "stale"]
    assert outcome.results[0].reason == "that is not asked now"


# --- theory -----------------------------------------------------------------------------------------------------


def answerable(numbers: int) -> float:
    """Share of random problems of the four operations with numbers below this that have an answer.

    Exact divisions are Σ_b ⌊(N − 1)/b⌋ + 1 of N² (each divisor's multiples, 0 among them).
    """
    return (3 + sum((numbers - 1) // b + 1 for b in range(1, numbers)) / numbers**2) / 4


def every(params: RiddlesParams) -> list[Problem]:
    numbers = range(params.least, params.most + 1)
    return [Problem(*parts) for parts in product(numbers, params.operations, numbers)]


def worth(problem: Problem, solved: float, params: RiddlesParams) -> float:
    """What a proposer expects of a problem that each solver gets right with this probability."""
    return -params.penalty if problem.answer is None else 1 - solved


def test_how_many_random_problems_have_an_answer() -> None:
    """Of numbers below 100: 99 for 0, and Σ_{n<100} d(n) = 473 for the others."""
    assert answerable(100) == pytest.approx((3 + 572 / 10_000) / 4)
    for most in (4, 20):
        problems = every(RiddlesParams(most=most))
        assert fmean(one.answer is not None for one in problems) == pytest.approx(answerable(most + 1))


def test_of_random_sums_one_who_slips_solves_what_its_digits_say() -> None:
    """With q = 1 − slip a number below 100 has the weight (q + 9q²)/10, and the numbers are independent."""
    q = 0.9
    solved = fmean(accuracy(one.digits, 0.1) for one in every(RiddlesParams(operations=("plus",))))
    assert solved == pytest.approx(((q + 9 * q**2) / 10) ** 2)


@given(st.floats(0, 1), st.floats(0, 2), st.integers(3, 25), st.sets(st.sampled_from(OPERATIONS), min_size=1))
@settings(max_examples=25, deadline=None)
def test_the_hardest_is_a_best_response_to_who_slips(slip: float, penalty: float, most: int, of: set[Any]) -> None:
    """What has no answer is never worth more than what has one, so hardness within the gate is all there is."""
    operations = tuple(one for one in OPERATIONS if one in of)
    params = RiddlesParams(most=most, operations=operations, penalty=penalty)
    numbers = tuple(map(str, range(most + 1)))
    drawn: Any = hardest(operations)
    chosen = Problem(int(hardest(numbers)), drawn, int(hardest(numbers)))
    best = max(worth(one, accuracy(one.digits, slip), params) for one in every(params))
    assert worth(chosen, accuracy(chosen.digits, slip), params) == pytest.approx(best)
    assert best == pytest.approx(1 - (1 - slip) ** (2 * len(str(most))))


def test_baselines_earn_what_theory_says() -> None:
    """99 times 99 for 400 who guess among five and 400 who slip: 1/5 and 0.9⁴, 4 standard errors."""
    record = played(HardestProposer, *[Guesser] * 400, *[Slipping] * 400, Calculator, options=5)
    for solvers, p in ((range(400), 1 / 5), (range(400, 800), 0.9**4)):
        assert abs(fmean(record.won[f"s{n}"] for n in solvers) - p) < 4 * sqrt(p * (1 - p) / 400)
    assert record.won["s800"] == 1
    assert record.won["p"] == pytest.approx(1 - fmean(record.won[f"s{n}"] for n in range(801)))


def test_the_shipped_scenario_pays_what_theory_says(tmp_path: Path) -> None:
    """Of what has an answer the expert solves all; the rest within 4 standard errors."""
    path = go(create(load(SCENARIOS / "riddles.yaml", ["tables=80"]), tmp_path)).path
    problems = [one for one in every(RiddlesParams()) if one.answer is not None]
    slips = fmean(accuracy(one.digits, 0.1) for one in problems)
    with Run(path) as run:
        found = {" ".join([one.metric, *(f"{k}={v}" for k, v in one.of.items())]): one
                 for metric in Riddles.metrics for one in metric(run)}  # fmt: skip
    share = found["riddles.answerable"]
    assert share.value == pytest.approx(answerable(100), abs=4 * sqrt(0.764 * 0.236 / 80))
    assert found["riddles.success solver=calculator"].value == 1
    for solver, p in (("guesser", 1 / 4), ("slipping", slips)):
        one = found[f"riddles.success solver={solver}"]
        assert one.value == pytest.approx(p, abs=4 * sqrt(p * (1 - p) / one.n))


# --- measures ------------------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    """Two of four are right: p(1 − p) is a quarter. A default is nobody's answer."""
    world = fresh("abcde", options=2)
    record = Played({}, [])
    outcomes = [do(world, "p", "10", "plus", "5"), *(do(world, agent, "15") for agent in "ab")]
    outcomes += [do(world, agent, wrong(world, "15")) for agent in "cd"]
    outcomes.append(world.step(0, [Action(answer="15", how="defaulted", agent="e")]))
    record.played = [RecordedFact(table=0, seq=f.id, tick=0, fact=f) for each in outcomes for f in each.facts]
    found = record.measured(Riddles.metrics)
    assert {name: one.value for name, one in found.items()} == {
        "riddles.success": 0.5, "riddles.success digits=3": 0.5, "riddles.success operation=plus": 0.5,
        "riddles.success solver=a": 1, "riddles.success solver=b": 1, "riddles.success solver=c": 0,
        "riddles.success solver=d": 0, "riddles.answerable": 1, "riddles.learnability": 0.25,
    }  # fmt: skip
    assert found["riddles.success"].excluded == found["riddles.learnability"].excluded == {"not chosen": 1}
    assert outcomes[-1].rewards["p"] == pytest.approx(2 / 5), "it counts for the proposer all the same"


def test_learnability_of_chance_is_less_by_one_solver() -> None:
    """Expected is p(1 − p)(n − 1)/n: of two who guess among two, 1/8; 60 problems, 4 standard errors."""
    worth = [
        record.measured(Riddles.metrics)["riddles.learnability"].value or 0.0
        for seed in range(60)
        for record in [played(RandomProposer, Guesser, Guesser, seed=seed, options=2, operations=["plus"])]
    ]
    assert fmean(worth) == pytest.approx(1 / 8, abs=4 * (1 / 8) / sqrt(60))


def test_with_nothing_proposed_there_is_no_number() -> None:
    found = Played({}, []).measured(Riddles.metrics)
    assert {one.value for one in found.values()} == {None}


# --- settings, interventions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"least": 9, "most": 9}, "no choice of numbers from 9 to 9"),
        ({"options": 8, "spread": 5}, "8 answers do not fit into 5"),
        ({"operations": ["plus", "plus"]}, "each is another one"),
        ({"operations": []}, "operations"),
        ({"most": 1000}, "most"),
    ],
)
def test_wrong_settings_are_told(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RiddlesParams.model_validate(params)


@pytest.mark.parametrize(
    ("roles", "says"),
    [
        (["solver"], "need a seat of role proposer"),
        (["proposer"], "one or more of role solver"),
        (["proposer", "solver", "proposer"], "s2: s0 makes up the problem"),
        (["proposer", "judge"], "proposer or solver, not 'judge'"),
    ],
)
def test_wrong_casts_are_told(roles: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Riddles(RiddlesParams()).reset([Seat(agent=f"s{n}", role=role) for n, role in enumerate(roles)], Streams(1))


def test_who_leaves_holds_nobody_up_and_who_joins_is_asked() -> None:
    world = fresh("abc")
    world.change(0, Leave(agent="a"))
    do(world, "p", "1", "plus", "1")
    assert [wake.agent for wake in world.change(3, Join(seat=Seat(agent="d", role="solver"))).wakes] == ["d"]
    do(world, "b", "2")
    world.change(0, Leave(agent="c"))
    assert do(world, "d", wrong(world, "2")).rewards == {"d": 0, "p": 0.5}
    with pytest.raises(ValueError, match="p makes up the problem"):
        world.change(0, Join(seat=Seat(agent="q", role="proposer")))


def test_without_a_proposer_or_a_solver_it_is_over() -> None:
    outcome = fresh().change(0, Leave(agent="p"))
    assert outcome.ended == {"a": "terminated", "b": "terminated"}
    world = fresh("a")
    outcome = world.change(0, Leave(agent="a"))
    assert (outcome.ended, outcome.rewards) == ({"p": "terminated"}, {"p": 0})
    assert outcome.facts[-1].data["reason"] == "gone"
    world = fresh("a")
    do(world, "p", "1", "plus", "1")
    world.change(0, Leave(agent="p"))
    assert do(world, "a", "2").rewards == {"a": 1}, "who has gone is not paid"


def test_say_is_shown_once_and_nothing_can_be_set() -> None:
    world = fresh()
    world.change(0, Say(text="Be kind.", to=("p",)))
    turn = seen(world, "p")
    assert turn.text.startswith("News: Be kind.")
    assert turn.shows == (0,)
    do(world, "p", "1")
    assert "News" not in seen(world, "p").text
    with pytest.raises(ValueError, match="nothing be set"):
        world.change(0, Set(key="most", value=5))
