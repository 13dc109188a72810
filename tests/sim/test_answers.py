"""Reading answers: an exact corpus, and the laws that hold for any text."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import describe, illegal, max_tokens, parse, sample
from sim.types import Choice, Form, Format, Text
from tests.sim.answer_corpus import AB, BID, BID_TEXT, CORPUS, DUEL, MARKET, NUMBERS, OFFER, PASS, PHRASES, SHORT, Bid

FORMATS: list[Format] = [MARKET, OFFER, AB, DUEL, NUMBERS, PHRASES, SHORT]
LAWS = settings(max_examples=50, deadline=None)
formats = st.sampled_from(FORMATS)
seeds = st.integers(0, 2**32)


def dump(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer)


@pytest.mark.parametrize(
    ("format", "text", "expected"), [case[1:] for case in CORPUS], ids=[case[0] for case in CORPUS]
)
def test_corpus(format: Format, text: str | None, expected: Any) -> None:
    start = time.process_time()
    answer, reason = parse(format, text)
    assert (answer, type(answer)) == (expected, type(expected))
    assert (reason == "") == (expected is not None)
    assert len(reason) < 400
    assert time.process_time() - start < 5


def test_corpus_is_large() -> None:
    assert len(CORPUS) > 150


@LAWS
@given(formats, st.text())
def test_any_text_gives_a_legal_answer_or_none(format: Format, text: str) -> None:
    answer, reason = parse(format, text)
    assert (answer is None) == bool(reason)
    assert answer is None or illegal(format, answer) is None


PIECES = [
    *('{"act": "pass"}', BID_TEXT, "{", "}", '"', "\\", "```", "```json\n", "\n", "<think>", "</think>", "true", "NaN"),
    *(
        "a",
        "b",
        "not ",
        "Answer: ",
        "I choose ",
        "defect",
        "1",
        "5",
        ".",
        "-",
        " ",
        ":",
        "(",
        ")",
        "**",
        "\x00",
        "\ud800",
    ),
]


@settings(max_examples=200, deadline=None)
@given(formats, st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_mixture_gives_a_legal_answer_or_none(format: Format, pieces: list[str]) -> None:
    answer, reason = parse(format, "".join(pieces))
    assert (answer is None) == bool(reason)
    assert answer is None or illegal(format, answer) is None


@LAWS
@given(formats, seeds)
def test_what_is_legal_comes_back(format: Format, seed: int) -> None:
    answer = sample(format, random.Random(seed))
    assert illegal(format, answer) is None
    assert parse(format, dump(answer)) == (answer, "")


@LAWS
@given(st.text(max_size=80))
def test_any_message_comes_back(message: str) -> None:
    answer = {**BID, "message": message}
    reason = illegal(MARKET, answer)
    assert parse(MARKET, json.dumps(answer)) == ((answer, "") if reason is None else (None, reason))


def wrappings(text: str) -> list[str]:
    return [text, f"```json\n{text}\n```", f"I decide: {text}", f"{text} That is it.", f"<think>Or pass?</think>{text}"]


@LAWS
@given(
    st.one_of(st.integers(max_value=79), st.integers(min_value=121), st.booleans(), st.text(), st.none(), st.floats())
)
def test_an_illegal_price_never_becomes_a_legal_answer(price: Any) -> None:
    for text in wrappings(json.dumps({**BID, "price": price})):
        assert parse(MARKET, text)[0] is None
        assert parse(MARKET, f"{text} {json.dumps(PASS)}")[0] is None


@LAWS
@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=9))
def test_an_illegal_option_never_becomes_a_legal_one(option: str) -> None:
    for choice in (AB, DUEL, NUMBERS):
        if option.rstrip(".") in choice.options:
            continue
        marked = [f"Answer: {option}", f"I choose {option}", f'{{"answer": "{option}"}}']
        mixed = [f"I take {option}, not {choice.options[0]}", f"Answer: {option}\n{choice.options[0]}"]
        for text in (*wrappings(option), *marked, *mixed):
            assert parse(choice, text)[0] is None, text


@LAWS
@given(st.integers(0, len(BID_TEXT) - 1))
def test_truncated_is_none(length: int) -> None:
    assert parse(MARKET, BID_TEXT[:length])[0] is None


@pytest.mark.parametrize("format", FORMATS)
def test_answers_fit_the_bound_with_one_token_per_character(format: Format) -> None:
    rng = random.Random(1)
    for _ in range(50):
        assert len(dump(sample(format, rng))) <= max_tokens(format)


def test_bounds() -> None:
    assert max_tokens(DUEL) == len("cooperate") + 16
    assert max_tokens(SHORT) == 40 + 16
    longest = json.dumps({**BID, "message": "x" * 80})
    assert len(longest) < max_tokens(MARKET) < len(longest) + 60


def test_illegal_names_the_reason() -> None:
    assert illegal(AB, "c") == 'the answer must be one of "a", "b"'
    assert illegal(AB, ["a"]) is not None
    assert illegal(MARKET, {**BID, "price": 200}) == "price must be at least 80 and at most 120"
    assert illegal(MARKET, {**BID, "price": True}) == "price must be a whole number without quotes"
    assert illegal(MARKET, {"act": "bid", "price": 100}) == "message is missing"
    assert illegal(MARKET, {"act": "sell"}) == "act must be one of 'bid', 'pass'"
    assert illegal(MARKET, "pass") == "the answer must be one JSON object"
    assert illegal(SHORT, "x" * 41) == "the text has 41 characters; at most 40 are allowed"
    assert illegal(SHORT, 3) == "the answer must be text"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300, 2**70, True, "0.5", None])
def test_what_is_no_number(value: Any) -> None:
    assert illegal(OFFER, {"share": value, "public": True, "to": None, "items": []}) is not None


def test_descriptions() -> None:
    assert describe(AB) == 'Answer with one of "a", "b" and nothing else.'
    assert describe(Text(max_chars=9)) == "Answer with plain text of at most 9 characters and nothing else."
    assert describe(MARKET) == (
        "Answer with one JSON object, in one of these forms, and nothing else:\n"
        '{"act": "bid", "price": <whole number from 80 to 120>, "message": <text of at most 80 characters>}'
        "  (Offer to buy one unit.)\n"
        '{"act": "pass"}  (Do nothing.)'
    )
    assert describe(Form(models=(Bid,))).startswith("Answer with one JSON object of this form and nothing else:\n{")
    assert describe(Choice(options=("only",))) == 'Answer with "only" and nothing else.'
