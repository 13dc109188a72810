"""The language-model agent, driven by a fake engine."""

from __future__ import annotations

import copy
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, Field

from agents.llm import LLMAgent
from agents.memory import MOST_FACTS, Memory
from sim.streams import Streams
from sim.types import Completion, Form, Request, Secret, Text, Usage
from tests.agents.driving import DUEL, RULES, completed, drive, member, prompt_tokens, script, turn

FAILED = Completion(text=None, finish="error", error="400: too long")
SECRET = Secret(subject="buyer-1", attribute="value", value="93", holder="buyer-1", norms=({"to": "friend"},))


class Bid(BaseModel):
    act: Literal["bid"]
    price: int = Field(ge=1, le=120)
    message: str = Field(max_length=200)


BID = {"act": "bid", "price": 9, "message": ""}


def remembered(agent: LLMAgent) -> Memory:
    assert isinstance(agent.state, Memory)
    return agent.state


def lived(agent: LLMAgent, rounds: int, answer: Any, seen: str = "the price is {n}, said ann") -> list[Request]:
    """Live through rounds as the kernel does; returns all requests."""
    asked: list[Request] = []
    for n in range(rounds):
        action, requests = drive(agent, turn(n, {"news": seen.format(n=n)}, shows=(2 * n, 2 * n + 1)), answer)
        agent.state = action.state
        asked += requests
    return asked


def answers(request: Request) -> str:
    return "ann wants apples" if request.purpose == "memory" else "defect"


def test_a_legal_answer() -> None:
    action, (request,) = drive(LLMAgent(member()), turn(), script("defect"))
    assert (action.answer, action.how, action.reason, action.recalls) == ("defect", "chosen", "", ())
    assert (request.purpose, request.model, request.format, request.max_tokens) == ("act", "small", DUEL, 25)
    assert [message.role for message in request.messages] == ["system", "user"]


def test_the_order_of_a_prompt() -> None:
    agent = LLMAgent(member(persona={"name": "Ada"}, secrets=(SECRET,)), instructions="Be brief.")
    agent.state = drive(agent, turn(3, {"price": 5}), script("defect"))[0].state
    _, (request,) = drive(agent, turn(4), script("defect"))
    assert request.messages[0].text == (
        f"{RULES}\n\nYou are buyer-1, in the role of buyer. You are Ada.\n\n"
        "You know this, and not everybody may learn it:\n- Your value: 93. You may tell only: friend.\n\nBe brief."
    )
    assert request.messages[1].text == (
        "What you remember:\nAt 3: price: 5\nYou answered: defect\n\nNow:\nprice: 7\n\n"
        'Answer with one of "cooperate", "defect" and nothing else.'
    )


def test_an_illegal_answer_is_rethought_once() -> None:
    action, (first, second) = drive(LLMAgent(member()), turn(), script("I would rather take both", "defect"))
    assert (action.answer, action.how) == ("defect", "retried")
    assert action.reason == 'the answer must be one of "cooperate", "defect" and nothing else'
    assert (second.purpose, second.messages[0]) == ("rethink", first.messages[0])
    text = second.messages[1].text
    assert "You answered: I would rather take both\nThat is not a legal answer: the answer must be" in text
    assert text.endswith('Answer with one of "cooperate", "defect" and nothing else.')
    assert text.startswith(first.messages[1].text.rpartition("\n\n")[0])  # so that the prefix cache serves it


def test_the_default_comes_after_two_illegal_answers() -> None:
    action, asked = drive(LLMAgent(member()), turn(), script("both", ""))
    assert (action.answer, action.how, len(asked)) == ("cooperate", "defaulted", 2)
    assert action.reason.endswith("; then the answer is empty")


def test_the_default_is_what_is_remembered() -> None:
    agent = LLMAgent(member())
    agent.state = drive(agent, turn(), script("both", "both"))[0].state
    assert remembered(agent).entries[0].did == "cooperate"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (FAILED, "the call failed: 400: too long"),
        (Completion(text="", error="refused"), "the call failed: refused"),
        (Completion(text="defect", finish="length"), "the answer was cut off; answer more shortly"),
        (None, "the answer is empty"),
    ],
)
def test_failed_calls_are_rethought_then_defaulted(bad: Completion | None, reason: str) -> None:
    action, _ = drive(LLMAgent(member()), turn(), script(bad, "defect"))
    assert (action.answer, action.how, action.reason) == ("defect", "retried", reason)
    action, _ = drive(LLMAgent(member()), turn(), script(bad, bad))
    assert (action.answer, action.how, action.reason) == ("cooperate", "defaulted", f"{reason}; then {reason}")


def test_reasons_are_short() -> None:
    broken = replace(FAILED, error="x" * 10_000)
    assert len(drive(LLMAgent(member()), turn(), script(broken, broken))[0].reason) <= 300


def test_a_call_that_was_too_long_is_shorter_the_second_time() -> None:
    long = turn(view={"text": "word " * 20_000})
    action, (first, second) = drive(LLMAgent(member()), long, script(FAILED, "defect"))
    assert prompt_tokens(second) < 0.9 * prompt_tokens(first)
    assert action.how == "retried"


def test_forms_and_their_reasons() -> None:
    form = Form(models=(Bid,), narrow={"Bid.price": {"maximum": 10}})
    action, (_, second) = drive(
        LLMAgent(member()),
        turn(format=form, default=BID),
        script('{"act": "bid", "price": 100, "message": ""}', 'Well: {"act": "bid", "price": 9, "message": ""}'),
    )
    assert (action.answer, action.how, action.reason) == (BID, "retried", "price must be at least 1 and at most 10")
    assert "price must be at least 1 and at most 10" in second.messages[1].text


def test_the_system_message_never_changes() -> None:
    agent = LLMAgent(member(context=1024, persona={"name": "Ada"}, secrets=(SECRET,)))
    asked = lived(agent, 100, answers)
    assert {request.purpose for request in asked} == {"act", "memory"}
    assert len({request.messages[0].text for request in asked}) == 1


def test_a_long_system_message_is_cut_visibly_and_always_alike() -> None:
    agent = LLMAgent(member(context=1024), instructions="Mind the gap. " * 2_000)
    asked = lived(agent, 20, answers)
    (system,) = {request.messages[0].text for request in asked}
    assert "characters left out" in system
    assert system.startswith(RULES)
    assert all(prompt_tokens(request, 3.0) + (request.max_tokens or 0) <= 1024 for request in asked)


def test_memory_is_condensed_when_it_outgrows_its_budget() -> None:
    agent = LLMAgent(member(context=1024))
    asked = lived(agent, 60, answers)
    at = next(n for n, request in enumerate(asked) if request.purpose == "memory")
    summary, decision = asked[at], asked[at + 1]
    assert isinstance(summary.format, Text)
    assert summary.messages[0] == decision.messages[0]
    assert "At 0: news: the price is 0, said ann" in summary.messages[1].text
    assert decision.messages[1].text.startswith("What you remember:\nEarlier, in short: ann wants apples\nAt ")
    assert "At 0:" not in decision.messages[1].text
    assert sum(request.purpose == "memory" for request in asked) < 12  # many turns go into one summary


@pytest.mark.parametrize("bad", [FAILED, "", None, "<think>hm", "\x00"])
def test_without_a_summary_the_oldest_are_forgotten(bad: Completion | str | None) -> None:
    agent = LLMAgent(member(context=1024))
    reasons = set()
    for n in range(60):
        news = turn(n, {"news": f"the price is {n}"}, shows=(n,))
        action, _ = drive(agent, news, lambda request: bad if request.purpose == "memory" else "defect")
        agent.state = action.state
        assert action.how == "chosen"
        reasons.add(action.reason.partition("(")[0])
    assert reasons == {"", "no summary "}
    memory = remembered(agent)
    assert memory.summary == ""
    assert memory.entries[0].tick > 30
    assert memory.facts == tuple(range(memory.entries[0].tick, 60))


def test_a_summary_that_was_cut_off_or_too_long_is_kept_within_bounds() -> None:
    agent = LLMAgent(member(context=1024))
    long = Completion(text="apples " * 1_000, finish="length")
    lived(agent, 60, lambda request: long if request.purpose == "memory" else "defect")
    summary = remembered(agent).summary
    assert summary.startswith("apples")
    assert "characters left out" in summary
    assert len(summary) <= 1024 / 3 / 4 * 3 + 1


def test_recalls_are_the_facts_of_what_the_prompt_holds() -> None:
    agent = LLMAgent(member(context=1024))
    asked = lived(agent, 40, answers)
    assert any(request.purpose == "memory" for request in asked)
    action, _ = drive(agent, turn(40, shows=(99,)), answers)
    assert action.recalls == tuple(range(80))  # through the summary or word for word; not the latest view's
    action, _ = drive(agent, turn(40, {"text": "word " * 5_000}), answers)
    assert action.recalls == ()  # no room for memories


def test_facts_of_a_summary_are_bounded_and_the_newest() -> None:
    agent = LLMAgent(member(context=1024))
    lived(agent, 600, answers)
    memory = remembered(agent)
    oldest = memory.entries[0].tick * 2
    assert memory.summary_facts == tuple(range(oldest - MOST_FACTS, oldest))


@pytest.mark.parametrize("chars_per_token", [2.0, 3.0, 4.5])
def test_prompts_stay_within_the_context_for_a_thousand_turns(chars_per_token: float) -> None:
    agent = LLMAgent(member(context=1024))
    rng = Streams(1).generator("lengths")
    sizes = []
    for n in range(1_000):
        news = turn(n, {"news": f"word{n} " * rng.randint(1, 60)}, shows=(n,))

        def answer(request: Request) -> Completion:
            said = "notes " * rng.randint(1, 500) if request.purpose == "memory" else "defect"
            sizes.append(prompt_tokens(request, chars_per_token) + (request.max_tokens or 0))
            return Completion(text=said, usage=Usage(prompt=prompt_tokens(request, chars_per_token)))

        agent.state = drive(agent, news, answer)[0].state
        assert len(remembered(agent).entries) < 100
    assert max(sizes) <= 1024
    assert max(sizes[-300:]) < 1.2 * max(sizes[300:600])


@pytest.mark.parametrize("text", ["word " * 100_000, "5 7 12 " * 50_000, "你好" * 50_000, "👍" * 50_000])
@pytest.mark.parametrize("context", [512, 4096])
def test_a_view_that_is_too_long_is_cut_visibly(text: str, context: int) -> None:
    agent = LLMAgent(member(context=context))
    _, (request,) = drive(agent, turn(view={"text": text}), script("defect"))
    assert "characters left out" in request.messages[1].text
    assert prompt_tokens(request, 2.8) + (request.max_tokens or 0) <= context
    assert prompt_tokens(request, 2.8) > context / 4


def test_a_long_answer_format_leaves_room_for_the_view() -> None:
    class Essay(BaseModel):
        text: str = Field(max_length=100_000)

    essay = turn(view={"price": 3}, format=Form(models=(Essay,)), default={"text": "x"})
    _, (request,) = drive(LLMAgent(member(context=900)), essay, script('{"text": "y"}'))
    assert request.max_tokens == 300
    assert "price: 3" in request.messages[1].text


def test_no_memory() -> None:
    agent = LLMAgent(member(), memory_tokens=0)
    asked = lived(agent, 5, answers)
    assert len(asked) == 5
    assert all(request.messages[1].text.startswith("Now:\n") for request in asked)


def test_only_what_is_new_is_remembered() -> None:
    agent = LLMAgent(member())
    recap = turn(view={"book": "long", "new": "a trade"}, recap=lambda view: str(view["new"]))
    agent.state = drive(agent, recap, script("defect"))[0].state
    assert remembered(agent).text == "At 0: a trade\nYou answered: defect"


@pytest.mark.parametrize("legal", [True, False])
def test_a_mind_never_touches_its_agent(legal: bool) -> None:
    agent = LLMAgent(member(context=1024, secrets=(SECRET,)))
    lived(agent, 14, answers)
    while remembered(agent).fits(agent.memory_tokens):
        lived(agent, 1, answers)
    before = copy.deepcopy(agent.__dict__)

    def answer(request: Request) -> str:
        return answers(request) if legal or request.purpose == "memory" else "both"

    action, asked = drive(agent, turn(50), answer)
    assert len(asked) == (2 if legal else 3)
    assert agent.__dict__ == before
    for stop in range(len(asked) + 1):  # closed at every yield, and before the first
        mind = agent.act(turn(50), Streams(7))
        if stop:
            requests = next(mind)
        for _ in range(stop - 1):
            requests = mind.send([completed(request, answer(request)) for request in requests])
        mind.close()
        assert agent.__dict__ == before
    again, repeated = drive(copy.deepcopy(agent), turn(50), answer)
    assert (again, repeated) == (action, asked)


def test_a_wrong_persona_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="openness"):
        LLMAgent(member(persona={"big_five": {"openness": 7}}))


# --- episodes before this one -------------------------------------------------------------------------------------

PAST = "At 0: price: 5\nYou answered: defect\nThat was attempt 1: you earned -2."


def test_what_is_known_of_episodes_before_is_where_memory_begins() -> None:
    agent = LLMAgent(member(past=PAST))
    _, (request,) = drive(agent, turn(), script("defect"))
    assert request.purpose == "act"
    assert request.messages[1].text.startswith(f"What you remember:\nEarlier, in short: {PAST}\n\nNow:")


def test_it_is_thought_about_once_and_the_conclusion_stays() -> None:
    agent = LLMAgent(member(past=PAST), reflect=True)
    action, (thought, first) = drive(agent, turn(), script("I shall cooperate.", "defect"))
    assert (thought.purpose, first.purpose) == ("reflect", "act")
    assert thought.messages[0] == first.messages[0]
    assert thought.messages[1].text.startswith(f"What you remember:\nEarlier, in short: {PAST}\n\nThis is how it went")
    assert f"{PAST}\nYour conclusion: I shall cooperate.\n\nNow:" in first.messages[1].text
    _, again = drive(agent, turn(), script("I shall cooperate.", "defect"))
    assert len(again) == 2, "a decision that was dropped left no trace"
    agent.state = action.state
    _, (later,) = drive(agent, turn(1), script("defect"))
    assert "Your conclusion: I shall cooperate." in later.messages[1].text


def test_without_a_conclusion_the_past_stays_and_who_has_none_thinks_of_none() -> None:
    agent = LLMAgent(member(past=PAST), reflect=True)
    action, (_, request) = drive(agent, turn(), script(FAILED, "defect"))
    assert action.reason == "no reflection (400: too long)"
    assert PAST in request.messages[1].text
    for other in (LLMAgent(member(), reflect=True), LLMAgent(member(past=PAST), reflect=True, memory_tokens=0)):
        _, (request,) = drive(other, turn(), script("defect"))
        assert request.purpose == "act"


def test_a_conclusion_fits_the_memory_however_long_it_is() -> None:
    for tokens in (40, 80, 400):
        memory = Memory(summary="so it went " * 90).concluded("never again " * 90, tokens)
        assert memory.fits(tokens)
        assert memory.text.startswith("Earlier, in short: so it")
        assert memory.text.endswith("again ")


def test_another_model_can_write_the_memory() -> None:
    agent = LLMAgent(member(context=1024, past=PAST), writer="scribe", reflect=True)
    asked = lived(agent, 60, lambda request: "defect" if request.purpose == "act" else "ann wants apples")
    assert {(request.purpose, request.model) for request in asked} == {
        ("reflect", "scribe"),
        ("memory", "scribe"),
        ("act", "small"),
    }


# --- thinking -------------------------------------------------------------------------------------------------


def test_it_thinks_before_it_answers_and_forgets_the_thought() -> None:
    agent = LLMAgent(member(), think=40)
    action, (thought, answer) = drive(agent, turn(), script("Ann will defect.", "defect"))
    assert (action.answer, action.how, action.reason) == ("defect", "chosen", "")
    assert (thought.purpose, thought.model, thought.max_tokens) == ("think", "small", 40)
    assert thought.format == Text(max_chars=120)
    assert (answer.purpose, answer.format) == ("act", DUEL)
    assert thought.messages[0] == answer.messages[0]
    assert "You will be asked: " in thought.messages[1].text
    assert "Do not answer yet." in thought.messages[1].text
    assert "\n\nYou thought:\nAnn will defect.\n\n" in answer.messages[1].text
    agent.state = action.state
    _, (later, _) = drive(agent, turn(1), script("Again.", "defect"))
    assert "Ann will defect" not in later.messages[1].text


def test_the_thought_is_there_when_it_has_to_think_again() -> None:
    _, (_, _, again) = drive(LLMAgent(member(), think=40), turn(), script("Ann will defect.", "run", "defect"))
    assert again.purpose == "rethink"
    assert "You thought:\nAnn will defect." in again.messages[1].text


def test_without_a_thought_it_answers_all_the_same() -> None:
    action, (_, answer) = drive(LLMAgent(member(), think=40), turn(), script(FAILED, "defect"))
    assert (action.answer, action.how, action.reason) == ("defect", "chosen", "no thought (400: too long)")
    assert "You thought" not in answer.messages[1].text


@pytest.mark.parametrize("context", [256, 512, 2048])
def test_a_prompt_with_a_long_thought_fits_the_context(context: int) -> None:
    agent = LLMAgent(member(context=context), think=10 * context)
    _, (thought, answer) = drive(agent, turn(0, {"news": "word " * 2 * context}), script("so " * 9000, "defect"))
    assert thought.max_tokens == context // 3
    assert isinstance(thought.format, Text)
    assert thought.format.max_chars == context // 3 * 3
    for request in (thought, answer):
        assert prompt_tokens(request) + request.max_tokens <= context


def test_what_a_thought_does_not_take_is_left_to_the_view() -> None:
    """A thought is as long as it may be, not three times so."""
    agent = LLMAgent(member(context=1024), think=100)
    _, (thought, _) = drive(agent, turn(0, {"news": "word " * 9000}), script("so", "defect"))
    reserved = 100 + 500 / 2.7  # the thought, and a note on what was wrong
    assert 0.9 * (1024 - reserved) < prompt_tokens(thought, chars_per_token=2.7) <= 1024 - reserved


@pytest.mark.parametrize(
    ("setting", "wrong", "wanted"),
    [("instructions", 5, "words"), ("writer", {}, "the name of a model"), ("reflect", "maybe", "true or false")],
)
def test_settings_of_another_kind_are_refused(setting: str, wrong: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"{setting}: .*; expected {wanted}"):
        LLMAgent(member(), **{setting: wrong})


@pytest.mark.parametrize("setting", ["think", "subgoals", "memory_tokens"])
@pytest.mark.parametrize("wrong", [-1, 1.5, "20s", True, [1]])
def test_tokens_are_a_number(setting: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=rf"{setting}: .*; expected a number of tokens, 0 or more"):
        LLMAgent(member(), **{setting: wrong})
