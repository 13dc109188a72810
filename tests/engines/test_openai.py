"""The `openai` engine against a real HTTP server that misbehaves in every way endpoints are known for."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from agents.engines import chat
from agents.engines.chat import Abilities
from agents.engines.health import Health
from agents.engines.limiter import Limiter, retry_after
from agents.engines.openai import OpenAIEngine
from sim.answers import describe, parse
from sim.types import Choice, Completion, EngineFailure, Form, Message, Request, Sampling, Text
from tests.engines.fake_server import Answer, Call, FakeServer, Flavour, error, said, serving

KEY = "sk-live-0123456789abcdefXYZ"
CHOICE = Choice(options=("accept", "reject"))


class Bid(BaseModel):
    model_config = ConfigDict(extra="forbid")
    act: Literal["bid"]
    price: Annotated[int, Field(ge=1, le=9)]


class Pass(BaseModel):
    model_config = ConfigDict(extra="forbid")
    act: Literal["pass"]


def ask(text: str = "Now?", form: Any = CHOICE, **fields: Any) -> Request:
    return Request(
        messages=(Message(role="system", text="Rules."), Message(role="user", text=text)), format=form, **fields
    )


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@contextmanager
def engine(server: FakeServer, **options: Any) -> Iterator[OpenAIEngine]:
    options = {"base_url": server.url, "backoff": 0.01, "patience": 5.0, **options}
    made = OpenAIEngine("m", **options)
    try:
        yield made
    finally:
        made.close()


def results(futures: list[Future[Completion]]) -> list[Completion]:
    return [future.result(timeout=20) for future in futures]


# --- plain working ----------------------------------------------------------------------------------


def test_a_choice_comes_back_bare_with_everything_the_endpoint_tells() -> None:
    with serving() as server, engine(server) as made:
        done = made.submit(ask(seed=5, sampling=Sampling(temperature=0.3, top_p=0.9, max_tokens=40))).result(timeout=20)
        assert done.text in CHOICE.options
        assert (done.finish, done.logprobs, done.distribution) == ("stop", (-0.5, -0.5), "raw")
        assert (done.usage.prompt, done.usage.cached, done.usage.completion) == (11, 5, 3)
        assert 0 < done.latency < 20
        sent = server.calls[0].body
        assert (sent["model"], sent["seed"], sent["temperature"], sent["top_p"], sent["logprobs"]) == (
            "m",
            5,
            0.3,
            0.9,
            True,
        )
        assert 40 <= sent["max_tokens"] < 60
        assert sent["response_format"]["json_schema"]["schema"]["properties"]["answer"]["enum"] == ["accept", "reject"]


def test_forms_of_one_and_of_several_models_come_back_as_written() -> None:
    one, two = Form(models=(Bid,)), Form(models=(Bid, Pass))
    with serving() as server, engine(server) as made:
        for form in (one, two):
            done = made.submit(ask(form=form)).result(timeout=20)
            assert parse(form, done.text)[0] is not None
        assert all(call.body["response_format"]["json_schema"]["schema"]["type"] == "object" for call in server.calls)


def test_a_policy_is_asked_for_by_its_name_and_text_is_left_alone() -> None:
    spoken = '  {"answer": "accept"} said she.\n'
    with serving(lambda call: said(spoken)) as server, engine(server) as made:
        done = made.submit(ask(form=Text(), policy="trader@3")).result(timeout=20)
        assert (done.text, done.policy, server.calls[0].body["model"]) == (spoken, "trader@3", "trader@3")
        assert "response_format" not in server.calls[0].body


def test_the_key_is_sent_and_extra_fields_too() -> None:
    with serving() as server, engine(server, extra={"top_k": 7}) as made:
        made.submit(ask()).result(timeout=20)
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
        assert all(call.body["top_k"] == 7 for call in server.calls + server.probes)


# --- the probe --------------------------------------------------------------------------------------


ABLE = Abilities(constraint="json_schema", logprobs=True, seed=True, temperature=True)


@pytest.mark.parametrize(
    ("flavour", "expected", "calls"),
    [
        (Flavour(), ABLE, 2),
        (Flavour(formats=("json_schema",)), ABLE, 2),
        (Flavour(formats=("json_object",)), replace(ABLE, constraint="json_object"), 7),
        (Flavour(formats=("json_object",), ignores_formats=True), replace(ABLE, constraint="json_object"), 3),
        (Flavour(formats=()), replace(ABLE, constraint="text"), 7),
        (Flavour(formats=(), ignores_formats=True), replace(ABLE, constraint="text"), 3),
        (Flavour(rejects=("logprobs",)), replace(ABLE, logprobs=False), 6),
        (Flavour(silent=("logprobs",)), replace(ABLE, logprobs=False), 2),
        (Flavour(rejects=("seed",)), replace(ABLE, seed=False), 6),
        (
            Flavour(rejects=("max_tokens", "temperature", "logprobs"), thinks="apart"),
            Abilities(constraint="json_schema", seed=True, bound="max_completion_tokens", thinks="apart", room=4096),
            7,
        ),
        (Flavour(thinks="inline"), replace(ABLE, constraint="text", thinks="inline", room=4096, logprobs=False), 2),
    ],
)
def test_the_probe_finds_what_the_endpoint_can_do(flavour: Flavour, expected: Abilities, calls: int) -> None:
    with serving(flavour=flavour) as server, engine(server) as made:
        form = Form(models=(Bid, Pass))
        results([made.submit(ask(form=form, seed=i)) for i in range(5)])
        assert made.abilities == expected
        assert len(server.probes) == calls
        assert len(server.calls) == 5  # no request was refused for what it asked
        sent = server.calls[0].body
        assert sent.get("response_format", {}).get("type", "text") == expected.constraint
        assert "JSON" in sent["messages"][-1]["content"]


def test_a_description_that_the_mind_gave_is_not_repeated() -> None:
    with serving(flavour=Flavour(formats=())) as server, engine(server) as made:
        made.submit(ask(f"Well? {describe(CHOICE)}")).result(timeout=20)
        assert server.calls[0].text == f"Well? {describe(CHOICE)}"


def test_thinking_has_room_and_stays_in_the_record() -> None:
    with serving(lambda call: said("<think>a or r</think>accept"), Flavour(thinks="inline")) as server:
        with engine(server, thinking=1000) as made:
            done = made.submit(ask(max_tokens=10)).result(timeout=20)
        assert done.text is not None
        assert done.text.startswith("<think>")
        assert parse(CHOICE, done.text)[0] == "accept"
        assert server.calls[0].body["max_tokens"] >= 1010


def test_a_schema_that_is_too_much_is_put_in_words() -> None:
    def script(call: Call) -> Answer | None:
        return (
            error(400, "Invalid schema for response_format 'answer'")
            if "response_format" in call.body
            else said("accept")
        )

    with serving(script) as server, engine(server) as made:
        assert [done.text for done in results([made.submit(ask()), made.submit(ask())])] == ["accept", "accept"]
        before = len(server.calls)
        made.submit(ask("Again?")).result(timeout=20)
        assert len(server.calls) == before + 1
        assert "accept" in server.calls[-1].text


# --- concurrency --------------------------------------------------------------------------------------


def test_slowness_never_shrinks_concurrency_and_it_grows_while_calls_wait() -> None:
    # Latencies spread 12 to 1, as 3 to 37 s would be.
    with serving(lambda call: replace(said("accept"), delay=0.03 + 0.34 * (call.number % 12) / 11)) as server:
        with engine(server, concurrency=(4, 32)) as made:
            limits: list[int] = []
            futures = [made.submit(ask(seed=i)) for i in range(160)]
            for future in futures:
                future.add_done_callback(lambda _: limits.append(made.limiter.limit))
            assert all(done.finish == "stop" for done in results(futures))
        assert limits == sorted(limits)
        assert limits[-1] == 32
        assert len(server.calls) == 160  # nothing was asked twice
        assert max(call.under_way for call in server.calls[:4]) <= 4
        assert 12 < max(call.under_way for call in server.calls) <= 32


def test_too_many_requests_halves_once_and_waits_as_told() -> None:
    refused: list[float] = []

    def script(call: Call) -> Answer:
        if call.under_way > 8 or (not refused and call.number == 20):
            refused.append(time.monotonic())
            return error(429, "slow down", "rate_limit_exceeded", retry_after="0.3")
        return replace(said("accept"), delay=0.02)

    with serving(script) as server, engine(server, concurrency=(8, 64)) as made:
        done = results([made.submit(ask(seed=i)) for i in range(80)])
    assert all(completion.text == "accept" for completion in done)
    assert refused
    # What was sent within the 0.3 s had been sent before the refusal was read.
    sent = sorted(call.at for call in server.calls)
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert max(gaps) > 0.25
    assert made.limiter.limit < 64


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after({"retry-after": "7"}, 0) == 7
    assert retry_after({"retry-after": " 1.5 "}, 0) == 1.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}, 0) == 0.25
    assert retry_after({"retry-after": formatdate(1_000_020, usegmt=True)}, 1_000_000) == 20
    assert retry_after({"retry-after": formatdate(1_000_000, usegmt=True)}, 1_000_050) == 0
    for nonsense in ("", "soon", "nan", "inf", "-inf", "Mon, 99 Foo 2020", "\x00"):
        assert retry_after({"retry-after": nonsense}, 0) is None
    assert retry_after({}, 0) is None
    assert retry_after({"retry-after": "-3"}, 0) == 0


def test_the_limiter_by_hand() -> None:
    limiter = Limiter(2, 10)
    limiter.succeeded(waiting=False)
    assert limiter.limit == 2
    for expected in (3, 4, 5, 6):
        limiter.succeeded(waiting=True)
        assert limiter.limit == expected
    limiter.refused(sent=1.0, now=2.0, wait=5.0)
    limiter.refused(sent=1.5, now=2.1, wait=1.0)  # the same burst
    assert (limiter.limit, limiter.held(4.0), limiter.held(7.5)) == (3, 3.0, 0.0)
    for _ in range(3):
        limiter.succeeded(waiting=True)
    assert limiter.limit == 3  # a third at a time now
    limiter.succeeded(waiting=True)
    assert limiter.limit == 4
    for i in range(9):
        limiter.refused(sent=10.0 + i, now=10.5 + i, wait=0.0)
    assert limiter.limit == 1
    with pytest.raises(ValueError, match="concurrency"):
        Limiter(0, 4)


@given(st.lists(st.booleans(), max_size=300), st.integers(1, 20), st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_the_limiter_stays_in_bounds_and_shrinks_only_on_refusal(events: list[bool], start: int, more: int) -> None:
    limiter = Limiter(start, start + more)
    for now, ok in enumerate(events):
        before = limiter.limit
        if ok:
            limiter.succeeded(waiting=True)
            assert limiter.limit >= before
        else:
            limiter.refused(now, now, 0.0)
        assert 1 <= limiter.limit <= start + more


def test_the_most_urgent_goes_first_then_the_oldest() -> None:
    gate = threading.Event()

    def script(call: Call) -> Answer:
        if "first" in call.text:
            gate.wait(10)
        return said("accept")

    with serving(script) as server, engine(server, concurrency=(1, 1)) as made:
        futures = [made.submit(ask("first"))]
        while not server.calls:
            time.sleep(0.01)
        futures += [made.submit(ask(f"{i} at {p}", priority=p)) for i, p in enumerate([5, 3, 9, 3, 1])]
        gate.set()
        results(futures)
        order = [call.text.split("\n")[0] for call in server.calls[1:]]
    assert order == ["4 at 1", "1 at 3", "3 at 3", "0 at 5", "2 at 9"]


# --- what goes wrong and passes -----------------------------------------------------------------------


TROUBLES = [
    error(503),
    error(500),
    error(502, "<html>"),
    error(408),
    error(503, "loading", retry_after="0.05"),
    replace(said("accept"), cut=25),
    replace(said("accept"), cut=0),
    Answer(body=b'{"choices": [{"mess'),
    Answer(body=b"<html>busy</html>", headers={"content-type": "text/html"}),
    Answer(body=b""),
    Answer(body=None),
    Answer(body=[1]),
    Answer(body={"choices": []}),
    Answer(body={"choices": [{"message": None}]}),
    Answer(body={"error": {"message": "upstream", "code": 503}}),
]


def test_transient_trouble_is_tried_again() -> None:
    met: Counter[int] = Counter()

    def script(call: Call) -> Answer:
        which = int(call.text.split()[0])
        met[which] += 1
        return TROUBLES[which] if met[which] < 4 else said("accept")

    with serving(script) as server, engine(server) as made:
        done = results([made.submit(ask(f"{i} now?")) for i in range(len(TROUBLES))])
        assert [completion.text for completion in done] == ["accept"] * len(TROUBLES)
        assert set(met.values()) == {4}
        assert made.limiter.limit >= 8


def test_trouble_while_probing_is_tried_again() -> None:
    with serving() as server:
        troubles = [error(503), replace(said("hi"), cut=9), error(429, retry_after="0.01")]
        server.probe_script = lambda call: troubles[call.number] if call.number < 3 else None
        with engine(server) as made:
            assert made.submit(ask()).result(timeout=20).text in CHOICE.options
        assert made.abilities is not None
        assert made.abilities.constraint == "json_schema"


def test_one_poisoned_request_fails_alone() -> None:
    def script(call: Call) -> Answer:
        return error(500, "boom") if "poison" in call.text else said("accept")

    with serving(script) as server, engine(server, attempts=3) as made:
        poison, fine = made.submit(ask("poison")), made.submit(ask("fine"))
        failed = poison.result(timeout=20)
        assert (failed.text, failed.finish) == (None, "error")
        assert "boom" in failed.error
        assert fine.result(timeout=20).text == "accept"
        assert sum("poison" in call.text for call in server.calls) == 3


def test_a_refused_request_is_a_failed_completion() -> None:
    why = {400: "maximum context length is 4096", 413: "too large", 422: "bad field", 403: "flagged by moderation"}

    def script(call: Call) -> Answer:
        status = int(call.text.split()[0])
        return error(status, why[status]) if status in why else said("accept")

    with serving(script) as server, engine(server) as made:
        bad = {status: made.submit(ask(f"{status} bad", policy="p@1")) for status in why}
        good = made.submit(ask("200 good"))
        for status, future in bad.items():
            failed = future.result(timeout=20)
            assert (failed.text, failed.finish, failed.policy) == (None, "error", "p@1")
            assert why[status] in failed.error
        assert good.result(timeout=20).text == "accept"
        assert len(server.calls) == 5


def test_no_room_for_an_answer_is_not_even_asked() -> None:
    with serving() as server, engine(server) as made:
        for bound in (0, -7):
            done = made.submit(ask(max_tokens=bound)).result(timeout=20)
            assert (done.finish, str(bound) in done.error) == ("error", True)
        assert made.submit(ask("half \ud800 a pair")).result(timeout=20).finish == "error"
        assert made.submit(ask()).result(timeout=20).finish == "stop"
        assert len(server.calls) == 1


# --- what ends the run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "final",
    [
        error(429, "You exceeded your current quota", "insufficient_quota"),
        error(429, "come back tomorrow", retry_after="86400"),
        error(402, "payment required"),
        error(401, f"Incorrect API key provided: {KEY}"),
        error(403, "country not supported"),
        error(404, "no such model"),
        Answer(body={"error": {"message": "no credit", "code": 402}}),
    ],
)
@pytest.mark.parametrize("when", ["at once", "later"])
def test_no_quota_or_bad_credentials_fail_everything_pending(final: Answer, when: str) -> None:
    with serving() as server, engine(server) as made:
        if when == "later":
            assert made.submit(ask()).result(timeout=20).finish == "stop"
        server.script = server.probe_script = lambda call: final
        futures = [made.submit(ask(seed=i)) for i in range(30)]
        for future in futures:
            with pytest.raises(EngineFailure) as caught:
                future.result(timeout=20)
            assert KEY not in str(caught.value)
        with pytest.raises(EngineFailure):
            made.submit(ask()).result(timeout=20)
        assert "out of service" in made.status()


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_dead_server_fails_everything_pending_after_patience(when: str) -> None:
    server = FakeServer()
    made = OpenAIEngine("m", base_url=server.url, backoff=0.02, patience=0.4)
    if when == "later":
        made.submit(ask()).result(timeout=20)
    server.close()
    start = time.monotonic()
    futures = [made.submit(ask(seed=i)) for i in range(20)]
    for future in futures:
        with pytest.raises(EngineFailure, match="connection"):
            future.result(timeout=20)
    assert 0.4 <= time.monotonic() - start < 5
    made.close()


def test_nothing_but_503_pauses_rather_than_defaults() -> None:
    with serving() as server, engine(server, patience=0.3, attempts=2) as made:
        assert made.submit(ask()).result(timeout=20).finish == "stop"
        server.script = server.probe_script = lambda call: error(503, "loading")
        futures = [made.submit(ask(seed=i)) for i in range(5)]
        for future in futures:
            with pytest.raises(EngineFailure, match="loading"):
                future.result(timeout=20)


def test_an_endpoint_that_refuses_a_plain_request_is_of_no_use() -> None:
    with serving() as server, engine(server) as made:
        server.probe_script = lambda call: error(400, "model m is for embeddings")
        with pytest.raises(EngineFailure, match="embeddings"):
            made.submit(ask()).result(timeout=20)


def test_a_server_that_comes_back_in_time_is_forgiven() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = OpenAIEngine("m", base_url=f"http://127.0.0.1:{port}/v1", backoff=0.02, patience=10)
    future = made.submit(ask())
    time.sleep(0.2)
    assert not future.done()
    with serving(port=port):
        assert future.result(timeout=20).finish == "stop"
        made.close()


def test_slow_is_not_dead_whatever_the_patience() -> None:
    reports: list[str] = []
    slow = replace(said("accept"), delay=0.6)
    options = {"patience": 0.05, "quiet": 0.15, "report": reports.append}
    with serving(lambda call: slow) as server, engine(server, **options) as made:
        future = made.submit(ask())
        while not server.calls:
            time.sleep(0.01)
        time.sleep(0.3)
        assert "no completed call for" in made.status()
        assert future.result(timeout=20).text == "accept"
        assert "no completed call" not in made.status()
    assert reports
    assert all("no completed call for" in line for line in reports)


def test_health_by_hand() -> None:
    health = Health(patience=30, backoff=0.5)
    assert not health.dead(100)
    health.troubled("refused", 100)
    health.troubled("again", 120)
    assert (health.dead(129), health.dead(130), health.trouble) == (False, True, "again")
    health.lively()
    assert (health.dead(1000), health.trouble) == (False, "")
    assert all(0.25 <= health.delay(1) <= 0.5 for _ in range(20))
    assert all(1.0 <= health.delay(3) <= 2.0 for _ in range(20))
    assert all(3.75 <= health.delay(50) <= 7.5 for _ in range(20))
    assert health.delay(1, 12.0) == 12.0


# --- odd answers --------------------------------------------------------------------------------------


ODD: list[tuple[Any, str | None]] = [
    (None, None),
    ("", ""),
    ('{"answer": "accept", "answer": "reject"}', '{"answer": "accept", "answer": "reject"}'),
    ('{"answer": "perhaps"}', '{"answer": "perhaps"}'),
    ('{"answer": ["accept"]}', '{"answer": ["accept"]}'),
    ('{"answer": "accept"} or not', '{"answer": "accept"} or not'),
    (' { "answer" : "accept" } ', "accept"),
    ("accept\x00\x1b", "accept\x00\x1b"),
    ([{"type": "text", "text": "acc"}, {"type": "image"}, {"type": "text", "text": "ept"}], "accept"),
    ("x" * 1_000_000, "x" * 1_000_000),
]


def test_answers_are_passed_on_as_they_are() -> None:
    with serving(lambda call: said(ODD[int(call.text.split()[0])][0])) as server, engine(server) as made:
        done = results([made.submit(ask(f"{i} now?")) for i in range(len(ODD))])
    assert [(completion.text, completion.finish) for completion in done] == [(text, "stop") for _, text in ODD]


def test_a_refusal_and_reasoning_without_an_answer() -> None:
    replies = [said(None, refusal="I won't."), said(None, reasoning_content="hm")]
    done = [chat.completion(reply.body, ask(), "json_schema", 0.0) for reply in replies]
    assert [(completion.text, completion.finish) for completion in done] == [(None, "error"), (None, "stop")]
    assert "I won't." in done[0].error


def test_finish_reasons_and_nonsense_numbers() -> None:
    plain = said("accept").body

    def read(**changes: Any) -> Completion:
        choice = {**plain["choices"][0], **changes.pop("choice", {})}
        return chat.completion({**plain, "choices": [choice], **changes}, ask(), "text", 0.1)

    assert read(choice={"finish_reason": "length"}).finish == "length"
    assert read(choice={"finish_reason": "content_filter"}).finish == "error"
    assert read(choice={"finish_reason": None}).finish == "stop"
    for usage in (None, [], {"prompt_tokens": -5, "prompt_tokens_details": 3}, {"prompt_tokens": "many"}):
        assert (read(usage=usage).usage.prompt, read(usage=usage).usage.completion) == (0, 0)
    some = [{"logprob": -1}, 5], [{"logprob": None}], [{"logprob": float("nan")}]
    for logprobs in (None, 3, {"content": None}, *({"content": tokens} for tokens in some)):
        assert (read(choice={"logprobs": logprobs}).logprobs, read(choice={"logprobs": logprobs}).distribution) == (
            (),
            "",
        )


WORDS = ["choices", "message", "content", "error", "usage", "logprobs", "code", "text", "refusal"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
@settings(max_examples=50, deadline=None)
def test_reading_a_body_is_total(data: Any) -> None:
    chat.verdict(429, data)
    chat.error_status(data)
    if chat.first_choice(data) is not None:
        chat.completion(data, ask(), "json_schema", 0.0)


# --- the key ------------------------------------------------------------------------------------------


def test_the_key_reaches_no_text(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    told = f"Incorrect API key provided: {KEY}. Authorization: Bearer {KEY}; url http://u:{KEY}@h/"
    texts: list[str] = []

    def script(call: Call) -> Answer:
        if call.number == 0:
            return error(400, f"{told} {call.headers}")
        return error(500, told) if call.number < 4 else error(401, told)

    with serving(script) as server, engine(server, attempts=3, report=texts.append, quiet=0.01) as made:
        texts.append(made.submit(ask()).result(timeout=20).error)
        texts.append(made.submit(ask("poison")).result(timeout=20).error)
        with pytest.raises(EngineFailure) as caught:
            made.submit(ask()).result(timeout=20)
        failure: BaseException | None = caught.value
        while failure is not None:
            texts.append(repr(failure))
            failure = failure.__cause__ or failure.__context__
        texts += [made.status(), repr(made), str(vars(made).keys())]
    texts += [repr(record.__dict__) + record.getMessage() for record in caplog.records]
    texts += list(capfd.readouterr())
    assert len(texts) > 5
    assert any("[key]" in text for text in texts)
    assert not [text for text in texts if KEY in text or KEY[8:] in text]


def test_redaction_by_hand() -> None:
    assert chat.redacted("key ab/cd e", ("ab/cd", "e")) == "key [key] e"
    assert chat.redacted("key ab%2Fcd", ("ab/cd",)) == "key [key]"
    assert (
        chat.redacted('{"Authorization": "Bearer abc.def", "x": 1}', ()) == '{"Authorization": "Bearer [key]", "x": 1}'
    )
    assert chat.redacted("Incorrect key sk-pro***wxyz given", ()) == "Incorrect key [key] given"
    assert chat.redacted("api_key=hunter22\nnext", ()) == "api_key=[key] next"
    assert len(chat.redacted("x" * 5000, ())) == 300


def test_a_missing_key_is_said_at_once_unless_the_server_is_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EngineFailure, match="OTHER_KEY"):
        OpenAIEngine("m", api_key_env="OTHER_KEY")
    with serving() as server, engine(server) as made:
        assert made.submit(ask()).result(timeout=20).finish == "stop"


# --- the end ------------------------------------------------------------------------------------------


def test_close_cancels_what_is_pending_and_ends_the_thread() -> None:
    before = threading.active_count()
    with serving(lambda call: replace(said("accept"), delay=0.5)) as server:
        made = OpenAIEngine("m", base_url=server.url)
        futures = [made.submit(ask(seed=i)) for i in range(20)]
        while not server.calls:
            time.sleep(0.01)
        made.close()
        made.close()
        for future in futures:
            with pytest.raises(CancelledError):
                future.result(timeout=20)
        with pytest.raises(EngineFailure, match="closed"):
            made.submit(ask()).result(timeout=20)
    assert not any(thread.name == "remote-engine" for thread in threading.enumerate())
    assert before >= 1
    OpenAIEngine("m", base_url="http://127.0.0.1:9/v1").close()


def test_a_cancelled_call_is_not_sent() -> None:
    with serving(lambda call: replace(said("accept"), delay=0.1)) as server, engine(server, concurrency=(1, 1)) as made:
        first, second, third = (made.submit(ask(f"call {i}")) for i in range(3))
        assert second.cancel()
        results([first, third])
        assert len(server.calls) == 2


def test_nothing_is_scored() -> None:
    with serving() as server, engine(server) as made, pytest.raises(NotImplementedError):
        made.score([ask()], [(1,)]).result()
