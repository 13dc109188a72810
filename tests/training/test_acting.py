"""Engines between kernel and engine: how often each answers, and with what log-probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from math import exp, fsum, log
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agents.engines.synthetic import SyntheticEngine
from agents.engines.torch import TorchEngine
from sim.streams import Streams
from sim.types import CallKey, Choice, Completion, Engine, EngineFailure, Logprobs, Message, Request, Sampling, Text
from sim.types import Tokens as Ids
from training.acting import Exploring, Mixing, Taught
from training.schedule import Schedule

POLICY = {"pass": 0.7, "bet one": 0.2, "bet two": 0.1}
TOKENS: dict[str, Ids] = {"pass": (1, 0), "bet one": (2, 3, 0), "bet two": (2, 4, 0)}
FORM = Choice(options=tuple(POLICY))


class TableEngine:
    """Answers by `POLICY`; `bet` is one token, what follows another."""

    def __init__(self, distribution: Any = "processed", late: bool = False) -> None:
        self.distribution, self.late = distribution, late
        self.asked: list[Request] = []
        self.pending: list[tuple[Future[Completion], Completion]] = []
        self.scored = 0

    def submit(self, request: Request) -> Future[Completion]:
        self.asked.append(request)
        future: Future[Completion] = Future()
        completion = self._said(request)
        if self.late:
            self.pending.append((future, completion))
        else:
            future.set_result(completion)
        return future

    def _said(self, request: Request) -> Completion:
        if isinstance(request.format, Text):
            return Completion(text="well", ids=(9,), logprobs=(-1.0,), distribution=self.distribution)
        assert isinstance(request.format, Choice)
        options = request.format.options
        draw = Streams(request.seed).draw("token") * sum(POLICY[option] for option in options)
        for option in options:
            draw -= POLICY[option]
            if draw < 0:
                break
        ids = TOKENS[option]
        logprobs = (0.0,) * len(ids) if len(options) == 1 else logprobs_of(ids)
        return Completion(
            text=option, ids=ids, logprobs=logprobs, distribution=self.distribution, policy=request.policy
        )

    def score(self, requests: Sequence[Request], continuations: Sequence[Ids]) -> Future[Sequence[Logprobs]]:
        assert all(request.format == FORM for request in requests)
        self.scored += len(requests)
        future: Future[Sequence[Logprobs]] = Future()
        future.set_result([logprobs_of(ids) for ids in continuations])
        return future

    def close(self) -> None:
        raise AssertionError("the engine is not ours to close")


def logprobs_of(ids: Ids) -> Logprobs:
    """Token by token: pass or bet, then one or two, then the end."""
    if ids == TOKENS["pass"]:
        return log(0.7), 0.0
    return log(0.3), log(2 / 3 if ids == TOKENS["bet one"] else 1 / 3), 0.0


def ask(seed: int = 0, form: Choice | Text = FORM, **fields: Any) -> Request:
    return Request(messages=(Message(role="user", text="?"),), format=form, seed=seed, **fields)


def mixture(option: str, epsilon: float) -> float:
    return (1 - epsilon) * POLICY[option] + epsilon / 3


# --- exploring -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 1.0])
def test_options_come_as_often_as_the_mixture_says(epsilon: float) -> None:
    """Chi-square with two degrees of freedom: below 13.8 but for one case in a thousand."""
    engine, n = Exploring(TableEngine(), epsilon), 3000
    seen = Counter(engine.submit(ask(seed)).result().text for seed in range(n))
    expected = {option: n * mixture(option, epsilon) for option in POLICY}
    assert sum((seen[option] - expected[option]) ** 2 / expected[option] for option in POLICY) < 13.8


def test_log_probabilities_are_those_of_the_mixture_on_the_first_token() -> None:
    inner = TableEngine()
    engine, explored = Exploring(inner, 0.3), 0
    for seed in range(200):
        said = engine.submit(ask(seed)).result()
        assert said.text is not None
        assert said.ids == TOKENS[said.text]
        assert said.logprobs[0] == pytest.approx(log(mixture(said.text, 0.3)))
        assert said.logprobs[1:] == (0.0,) * (len(said.ids) - 1)
        assert said == engine.submit(ask(seed)).result(), "an answer is a function of the request"
        explored += Streams(seed).draw("explore") < 0.3
    assert inner.scored == 2 * explored, "only what was explored is scored"


def test_options_have_the_mixture_s_probabilities_where_the_engine_chose_itself() -> None:
    """What was explored was offered alone, so nothing is known of the others."""
    known = (log(0.7), log(0.2), None)

    class Telling(TableEngine):
        def _said(self, request: Request) -> Completion:
            own = request.format == FORM
            return replace(super()._said(request), option_logprobs=known if own else (0.0,))

    engine = Exploring(Telling(), 0.3)
    for seed in range(40):
        said = engine.submit(ask(seed)).result()
        if Streams(seed).draw("explore") < 0.3:
            assert said.option_logprobs == ()
        else:
            expected = log(mixture("pass", 0.3)), log(mixture("bet one", 0.3)), None
            assert list(said.option_logprobs) == [one and pytest.approx(one) for one in expected]


def test_no_exploration_and_other_formats_are_the_engine_s_own() -> None:
    inner = TableEngine()
    assert Exploring(inner, 0).submit(ask(3)).result() == inner.submit(ask(3)).result()
    assert Exploring(inner, 1).submit(ask(form=Text())).result().logprobs == (-1.0,)
    single = ask(form=Choice(options=("pass",)))
    assert Exploring(inner, 1).submit(single).result() == inner.submit(single).result()


@pytest.mark.parametrize("inner", [TableEngine("raw"), SyntheticEngine()])
def test_log_probabilities_that_are_not_known_are_left_out(inner: Engine) -> None:
    engine = Exploring(inner, 0.5)
    said = [engine.submit(ask(seed)).result() for seed in range(40)]
    assert {one.text for one in said} == set(POLICY)
    assert {one.logprobs for one in said} == {()}


def test_greedy_answers_have_no_log_probabilities() -> None:
    engine = Exploring(TableEngine(), 0.5)
    assert {engine.submit(ask(seed, sampling=Sampling(temperature=0))).result().logprobs for seed in range(9)} == {()}


def test_failures_and_cancelled_calls_pass_on() -> None:
    dead = Exploring(SyntheticEngine(dead_after=0), 0.5)
    for seed in range(9):
        with pytest.raises(EngineFailure):
            dead.submit(ask(seed)).result()
    faulty = Exploring(SyntheticEngine(faults=1), 0.5)
    assert {faulty.submit(ask(seed)).result().finish for seed in range(9)} == {"error"}
    late = TableEngine(late=True)
    future = Exploring(late, 0.5).submit(ask())
    assert future.cancel()
    assert late.pending[0][0].cancelled()
    kept = Exploring(late, 0.5).submit(ask())
    late.pending[1][0].set_running_or_notify_cancel()
    assert kept.cancel(), "what nobody wants any more"
    late.pending[1][0].set_result(late.pending[1][1])
    assert kept.cancelled()


def test_epsilon_is_a_share_and_the_engine_stays_open() -> None:
    with pytest.raises(ValueError, match="a share"):
        Exploring(TableEngine(), 1.5)
    Exploring(TableEngine(), 0.5).close()


def test_exploring_on_a_model(tiny_folder: Path, one_thread: None) -> None:
    """Over all options the mixture adds up to 1, and each is what the engine's own scores make of it."""
    inner = TorchEngine(str(tiny_folder), max_model_len=256, threads=1)
    try:
        engine = Exploring(inner, 0.5)
        found: dict[str | None, tuple[Ids, Logprobs]] = {}
        for seed in range(60):
            said = engine.submit(ask(seed, sampling=Sampling(temperature=1.0))).result(60)
            assert said.prompt_ids
            found.setdefault(said.text, (said.ids, said.logprobs))
            assert found[said.text] == (said.ids, said.logprobs), "explored or not"
        assert set(found) == set(POLICY)
        assert fsum(exp(fsum(logprobs)) for _, logprobs in found.values()) == pytest.approx(1)
        (own,) = engine.score([ask(sampling=Sampling(temperature=1.0))], [found["pass"][0]]).result(60)
        assert found["pass"][1][0] == pytest.approx(log(0.5 * exp(fsum(own)) + 0.5 / 3))
    finally:
        inner.close()


# --- versions and teachers -----------------------------------------------------------------------------------


def test_each_version_answers_its_share_and_says_so() -> None:
    inner, labels = TableEngine(), ("kuhn@3", "kuhn@2", "kuhn@1")
    engine = Mixing(inner, labels)
    said = Counter(engine.submit(ask(seed, policy="kuhn@3")).result().policy for seed in range(3000))
    assert sum((said[label] - 1000) ** 2 / 1000 for label in labels) < 13.8
    assert Counter(request.policy for request in inner.asked) == said
    assert engine.submit(ask(5)).result() == engine.submit(ask(5)).result()
    with pytest.raises(ValueError, match="nobody"):
        Mixing(inner, [])


def test_the_teacher_answers_with_probability_beta() -> None:
    inner = TableEngine()
    engine = Taught(inner, "teacher@4", 0.25)
    said = Counter(engine.submit(ask(seed, policy="kuhn@3")).result().policy for seed in range(2000))
    assert set(said) == {"teacher@4", "kuhn@3"}
    assert said["teacher@4"] == pytest.approx(500, abs=70)
    assert Counter(request.policy for request in inner.asked) == said


def test_a_teacher_with_an_engine_of_its_own() -> None:
    inner, other = TableEngine(), TableEngine()
    assert Taught(inner, "large", 1.0, other).submit(ask(policy="kuhn@3")).result().policy == "large"
    assert [request.policy for request in other.asked] == [""]
    assert Taught(inner, "large", 0.0, other).submit(ask(policy="kuhn@3")).result().policy == "kuhn@3"


def test_beta_may_fall_with_the_decisions_of_an_episode() -> None:
    engine = Taught(TableEngine(), "teacher@4", Schedule(points=((0, 1.0), (2, 0.0)), shape="step"))

    def who(agent: str, tick: int, nth: int = 0, call: int = 0, table: int = 0) -> str:
        request = ask(tick, policy="kuhn@3", key=CallKey(table, agent, tick, nth, call))
        return engine.submit(request).result().policy

    assert [who("a", 3), who("a", 7), who("a", 7, nth=1), who("a", 9)] == ["teacher@4"] * 2 + ["kuhn@3"] * 2
    assert who("a", 7, call=1) == "teacher@4", "calls of one decision are one"
    assert (who("b", 9), who("a", 9, table=1)) == ("teacher@4", "teacher@4")


def test_requests_are_otherwise_as_they_were() -> None:
    inner = TableEngine()
    request = ask(11, policy="kuhn@3", priority=4)
    Mixing(inner, ["kuhn@1"]).submit(request)
    Taught(inner, "teacher@1", 1.0).submit(request)
    assert inner.asked == [replace(request, policy="kuhn@1"), replace(request, policy="teacher@1")]
