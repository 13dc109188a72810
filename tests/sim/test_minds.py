"""Minds and worlds that break the rules of the seams: a mind's fault costs one decision, a world's stops the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agents.engines.synthetic import SyntheticEngine
from sim.kernel import MAX_ROUNDS, WorldError
from sim.simulate import Simulation, player, simulate
from sim.types import APPLIED, Action, Fact, Message, Outcome, Request, Result, Wake
from tests.stage import YES_NO, Stage, Yes, results


def once(stage: Stage, now: int, actions: Sequence[Action]) -> Outcome:
    """Nobody is asked again."""
    return Outcome(results=results(actions))


def request(text: str = "x", model: str = "m") -> Request:
    return Request(messages=(Message(role="user", text=text),), format=YES_NO, model=model)


class Mind:
    """An agent whose mind is given by the test."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        self.state: object = None

    def act(self, turn: Any, streams: Any) -> Any:
        return self._act()


def yields(*asked: Any) -> Mind:
    """Asks for these things one after the other, then says yes."""

    def act() -> Any:
        for each in asked:
            _answers = yield each
        return Action(answer="yes")

    return Mind(act)


def answers(action: Any) -> Mind:
    def act() -> Any:
        return action
        yield

    return Mind(act)


def played(mind: Mind, rule: Any = once, **settings: Any) -> Simulation:
    return simulate(Stage(rule), [player(mind, "a", 1)], engines={"m": SyntheticEngine()}, **settings)


def decision(run: Simulation) -> tuple[Any, ...]:
    (row,) = [row for kind, row in run.rows if kind == "decisions"]
    return row


class Ambiguous:
    """Neither equal nor unequal to anything, like an array."""

    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth value is ambiguous")

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request(), "Request"),
        (["a question"], "str"),
        ([request(), None], "NoneType"),
        (7, "int"),
        ([request("half a pair: \ud800")], "surrogate"),
    ],
)
def test_a_mind_that_asks_for_nonsense_is_at_fault(asked: Any, why: str) -> None:
    run = played(yields([request()], asked))
    row = decision(run)
    assert (row[7], row[8]) == ('"no"', "faulted")
    assert why in row[9]
    assert row[16] == 1, "only calls that were made count"


@pytest.mark.parametrize(
    "action",
    [
        Action(answer=Ambiguous()),
        Action(answer="yes", recalls=(-1,)),
        Action(answer="yes", recalls=("a",)),  # type: ignore[arg-type]
        Action(answer="yes", how="retried", reason="half a pair: \ud800"),
    ],
)
def test_an_action_that_cannot_be_recorded_is_a_fault(action: Action) -> None:
    assert decision(played(answers(action)))[8] == "faulted"


def test_a_fault_is_told_in_one_line_that_can_be_recorded() -> None:
    def act() -> Any:
        raise ValueError("half a pair: \ud800\nand more")
        yield

    assert decision(played(Mind(act)))[9] == "ValueError: half a pair: ?"


def test_a_mind_that_will_not_close_is_dropped_all_the_same() -> None:
    def act() -> Any:
        try:
            yield [request()]
        except GeneratorExit:
            raise ValueError("never") from None

    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        return Outcome(results=results(actions), ended={"slow": "terminated", "quick": "terminated"})

    stage = Stage(rule)
    slow = SyntheticEngine(latency="1h")
    try:
        run = simulate(stage, [player(Yes(), "quick", 1), player(Mind(act), "slow", 10)], engines={"m": slow})
    finally:
        slow.close()
    assert run.table.finished


def test_an_agent_that_asks_for_no_model_there_is_stops_the_run() -> None:
    with pytest.raises(WorldError, match=r"a asks for model 'other'; models: m"):
        played(yields([request(model="other")]))


def outcome(**fields: Any) -> Any:
    return lambda stage, now, actions: Outcome(**{"results": results(actions), **fields})


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (lambda stage, now, actions: None, "NoneType"),
        (outcome(results=iter([APPLIED])), "len"),
        (outcome(results=[None]), "status"),
        (outcome(facts=[Fact(id=0, kind="price", data={"price": 2**70})]), "64-bit"),
        (outcome(facts=[Fact(id=0, kind="price", data={"price": object()})]), "serializable"),
        (outcome(facts=[Fact(id=0, kind="word", data={"text": "\ud800"})]), "surrogates"),
        (outcome(rewards={"a": math.nan}), "reward"),
        (outcome(rewards={"a": math.inf}), "reward"),
        (outcome(wakes=[Wake(agent="a", tick=2.5)]), "2.5"),  # type: ignore[arg-type]
        (outcome(timers=[3.5]), "3.5"),
    ],
)
def test_an_outcome_that_does_not_fit_stops_the_run_and_says_where(rule: Any, why: str) -> None:
    with pytest.raises(WorldError, match=rf"table 0, tick 1: .*{why}"):
        played(answers(Action(answer="yes")), rule)


def test_an_outcome_may_hold_its_facts_and_wakes_as_iterators() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        return Outcome(
            facts=(stage.fact("did") for _ in actions),  # type: ignore[arg-type]
            results=[Result()] * len(actions),
            wakes=iter([Wake(agent="a", tick=now + 1)] if now < 2 else []),  # type: ignore[arg-type]
        )

    run = played(answers(Action(answer="yes")), rule)
    assert sum(kind == "facts" for kind, _ in run.rows) == 2


def test_the_thousandth_round_is_the_last() -> None:
    def rule(stage: Stage, now: int, actions: Any) -> Outcome:
        again = [Wake(agent="a", tick=now)] if len(stage.steps) < most else []
        return Outcome(results=results(actions), wakes=again)

    most = MAX_ROUNDS - 1
    stage = Stage(rule)
    simulate(stage, [player(Yes(), "a", 0)])
    assert len(stage.steps) == most
    most = MAX_ROUNDS
    with pytest.raises(WorldError, match="more than 1000 rounds"):
        simulate(Stage(rule), [player(Yes(), "a", 0)])
