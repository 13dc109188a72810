"""The synthetic engine: what it answers is a function of the request; when it answers is a modelled queue."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from agents.engines.legal import legal_text, legal_value, sentence
from agents.engines.synthetic import GARBAGE, SyntheticEngine, identity
from sim.answers import parse
from sim.streams import Streams
from sim.types import Choice, EngineFailure, Form, Message, Request, Sampling, Text


class Bid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    act: Literal["bid"]
    price: Annotated[int, Field(ge=3, le=9)]
    fraction: Annotated[float, Field(gt=0, lt=0.02)]
    reason: Annotated[str, Field(min_length=5, max_length=12)]
    tags: Annotated[list[Literal["a", "b", "c"]], Field(min_length=1, max_length=2)]
    to: Annotated[str, Field(max_length=8)] | None


class Pass(BaseModel):
    model_config = ConfigDict(extra="forbid")
    act: Literal["pass"]
    sure: bool


YES_NO_WAIT = Choice(options=("yes", "no", "wait"))


def ask(text: str = "Now?", form: Any = YES_NO_WAIT, **fields: Any) -> Request:
    return Request(
        messages=(Message(role="system", text="Rules."), Message(role="user", text=text)), format=form, **fields
    )


@contextmanager
def engine(**options: Any) -> Iterator[SyntheticEngine]:
    made = SyntheticEngine(**options)
    try:
        yield made
    finally:
        made.close()


# --- what is answered ---------------------------------------------------------------------------


def test_every_part_of_a_request_counts_but_its_place_in_the_run() -> None:
    base = ask()
    others = [
        ask("Now!"), ask(form=Choice(options=("yes", "no"))), ask(form=Text()), ask(purpose="rethink"), ask(seed=1),
        ask(model="small"), ask(max_tokens=9), ask(policy="a@1"), ask(sampling=Sampling(temperature=0.7)),
        ask(form=Form(models=(Bid,))), ask(form=Form(models=(Bid, Pass))),
        ask(form=Form(models=(Bid,), narrow={"Bid.price": {"maximum": 5}})),
        replace(base, messages=base.messages[::-1]),
        replace(base, messages=(Message(role="system", text="Rules.N"), Message(role="user", text="ow?"))),
    ]  # fmt: skip
    assert len({identity(request) for request in [base, *others]}) == len(others) + 1
    assert identity(replace(base, priority=7)) == identity(base)


def test_answers_repeat_and_depend_on_the_seed() -> None:
    asked = [ask(form=Text(), seed=i) for i in range(20)]
    with engine(seed=1) as one, engine(seed=1, latency="uniform(0ms, 5ms)", slots=3) as again, engine(seed=2) as two:
        first = [one.submit(request).result().text for request in asked]
        second = [future.result().text for future in [again.submit(request) for request in reversed(asked)]][::-1]
        assert first == second
        assert all(a != b for a, b in zip(first, [two.submit(request).result().text for request in asked], strict=True))
        assert len(set(first)) == 20


def test_choices_are_uniform() -> None:
    with engine() as made:
        picks = [made.submit(ask(seed=i)).result().text for i in range(3000)]
    # 3 standard deviations of a binomial(3000, 1/3) are 77.
    assert all(abs(picks.count(option) - 1000) < 77 for option in ("yes", "no", "wait"))


@given(st.integers(0, 2**31))
@settings(max_examples=50, deadline=None)
def test_forms_are_filled_legally(seed: int) -> None:
    text = legal_text(Form(models=(Bid, Pass), narrow={"Bid.price": {"minimum": 5, "maximum": 6}}), Streams(seed))
    model = Bid if '"bid"' in text else Pass
    filled = model.model_validate_json(text)
    assert not isinstance(filled, Bid) or filled.price in (5, 6)


@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(0, 200))
@settings(max_examples=50, deadline=None)
def test_sentences_keep_their_bounds(seed: int, shortest: int, more: int) -> None:
    text = sentence(Streams(seed), shortest, shortest + more)
    assert shortest <= len(text) <= shortest + more
    assert text.strip() == text
    free = legal_text(Text(max_chars=shortest), Streams(seed))
    assert 1 <= len(free) <= shortest


@given(st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_bounds_left_open_or_excluded(seed: int) -> None:
    streams = Streams(seed)
    assert legal_value({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}, streams) == 4
    assert legal_value({"type": "integer", "minimum": 3.5, "maximum": 4.2}, streams) == 4
    assert legal_value({"type": "integer", "minimum": 1, "maximum": 9, "multipleOf": 5}, streams) == 5
    assert legal_value({"type": "integer", "maximum": -7}, streams) <= -7
    assert legal_value({"type": "number", "minimum": 1000}, streams) >= 1000
    assert -107 <= legal_value({"type": "integer", "maximum": -7, "minimum": 1 - 2**53}, streams) <= -7
    assert legal_value({"type": "number", "minimum": 0.4, "maximum": 0.9, "multipleOf": 0.5}, streams) == 0.5
    assert len(legal_value({"type": "array", "items": {"enum": [1, 2]}, "minItems": 5, "maxItems": 9}, streams)) == 5


def test_faults_and_garbage_are_shares_and_ignore_time() -> None:
    asked = [ask(seed=i) for i in range(1000)]

    def fates(**pace: Any) -> list[tuple[str | None, str]]:
        with engine(faults=0.1, garbage=0.2, **pace) as made:
            done = [future.result() for future in [made.submit(request) for request in asked]]
        return [(completion.text, completion.error) for completion in done]

    calm = fates()
    assert calm == fates(latency="uniform(0ms, 2ms)", slots=50, latency_seed=9, order="shuffled")
    assert 70 < sum(bool(error) for _, error in calm) < 130  # 3 sd: 28
    assert 160 < sum(not error and text in GARBAGE[Choice] for text, error in calm) < 240  # 3 sd: 38


def test_garbage_is_no_answer_to_anything() -> None:
    for form in (YES_NO_WAIT, Form(models=(Pass,)), Form(models=(Bid, Pass)), Text()):
        assert [text for text in GARBAGE[type(form)] if parse(form, text)[0] is not None] == []


@given(
    st.integers(0, 2**31),
    st.sampled_from([YES_NO_WAIT, Form(models=(Bid, Pass)), Text(max_chars=30), Text(max_chars=1)]),
)
@settings(max_examples=50, deadline=None)
def test_answers_are_legal_as_the_parser_sees_it(seed: int, form: Any) -> None:
    assert parse(form, legal_text(form, Streams(seed)))[0] is not None


def test_a_rule_answers_where_it_wants_to() -> None:
    with engine(rule=lambda request: "wait" if request.purpose == "act" else None) as made:
        assert {made.submit(ask(seed=i)).result().text for i in range(20)} == {"wait"}
        assert len({made.submit(ask(seed=i, purpose="rethink")).result().text for i in range(20)}) == 3


def test_a_rule_by_path_and_one_that_trips() -> None:
    with engine(rule="operator:attrgetter") as made:  # attrgetter(request) raises TypeError
        tripped = made.submit(ask()).result()
    assert (tripped.text, tripped.finish) == (None, "error")
    assert "TypeError" in tripped.error
    for path in ("nowhere:rule", "operator:nothing", "operator", "sim.types:ALL"):
        with pytest.raises(ValueError, match="rule"):
            SyntheticEngine(rule=path)


def test_usage_and_shape_of_a_completion() -> None:
    with engine() as made:
        done = made.submit(ask("x" * 394, policy="p@3")).result()
        failed = SyntheticEngine(faults=1.0).submit(ask()).result()
    assert (done.usage.prompt, done.finish, done.policy, done.ids) == (101, "stop", "p@3", ())
    assert (failed.text, failed.finish, failed.usage.completion) == (None, "error", 0)


# --- when it is answered --------------------------------------------------------------------------


def test_no_latency_is_done_at_once_without_a_thread() -> None:
    before = threading.active_count()
    with engine() as made:
        assert made.submit(ask()).done()
        assert threading.active_count() == before


def test_one_slot_serves_by_priority_then_submission() -> None:
    order: list[int] = []
    with engine(latency="150ms", slots=1) as made:
        start = time.monotonic()
        futures = [made.submit(ask(seed=i, priority=priority)) for i, priority in enumerate([5, 3, 1, 3])]
        spread = time.monotonic() - start
        for i, future in enumerate(futures):
            future.add_done_callback(lambda _, i=i: order.append(i))
        latencies = [future.result().latency for future in futures]
    assert order == [0, 2, 1, 3]  # the first found the slot free
    for latency, expected in zip(latencies, [0.15, 0.45, 0.3, 0.6], strict=True):
        assert expected - spread - 1e-6 <= latency <= expected + 1e-6


def offline(service: list[float], slots: int) -> list[float]:
    """Finish times of jobs all there at 0, taken in order by the server that is free first."""
    free, finish = [0.0] * slots, []
    for length in service:
        start = heapq.heappop(free)
        finish.append(start + length)
        heapq.heappush(free, start + length)
    return finish


def test_latencies_equal_an_offline_schedule() -> None:
    asked = [ask(seed=i) for i in range(60)]
    with engine(latency="uniform(5ms, 35ms)", slots=4, latency_seed=3) as made:
        expected = offline([made.service_seconds(request) for request in asked], 4)
        start = time.monotonic()
        futures = [made.submit(request) for request in asked]
        spread = time.monotonic() - start
        got = [future.result().latency for future in futures]
        wall = time.monotonic() - start
    assert all(abs(a - b) <= spread + 1e-6 for a, b in zip(got, expected, strict=True))
    assert max(expected) <= wall < max(expected) + 0.5


def test_hundreds_in_flight_take_one_thread_and_a_callback_may_submit() -> None:
    before = threading.active_count()
    again: list[Any] = []
    with engine(latency="uniform(1ms, 10ms)", slots=500) as made:
        futures = [made.submit(ask(seed=i)) for i in range(500)]
        assert threading.active_count() == before + 1
        futures[0].add_done_callback(lambda _: again.append(made.submit(ask(seed=1000))))
        for future in futures:
            future.result(timeout=5)
        assert again[0].result(timeout=5).text


def test_a_cancelled_call_in_the_queue_takes_no_slot() -> None:
    with engine(latency="30ms", slots=1) as made:
        first, second, third = (made.submit(ask(seed=i)) for i in range(3))
        assert second.cancel()
        first.result()
        assert third.result().latency < 0.075


def test_close_cancels_and_later_calls_fail() -> None:
    made = SyntheticEngine(latency="1h", slots=1)
    futures = [made.submit(ask(seed=i)) for i in range(3)]
    made.close()
    made.close()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result()
    with pytest.raises(EngineFailure, match="closed"):
        made.submit(ask()).result()


def test_death_fails_everything_pending_and_after() -> None:
    with engine(dead_after=2) as made:
        assert [made.submit(ask(seed=i)).result().finish for i in range(2)] == ["stop", "stop"]
        with pytest.raises(EngineFailure, match="after 2 calls"):
            made.submit(ask()).result()
    with engine(dead_after=1, latency="1h") as made:
        pending, killer = made.submit(ask()), made.submit(ask())
        for future in (pending, killer):
            with pytest.raises(EngineFailure):
                future.result(timeout=5)


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"slots": 0}, {"faults": 0.7, "garbage": 0.4}, {"faults": -0.1}, {"latency": "soon(1)"}):
        with pytest.raises(ValueError):
            SyntheticEngine(**wrong)  # type: ignore[arg-type]
    with engine() as made, pytest.raises(NotImplementedError):
        made.score([ask()], [(1,)]).result()
