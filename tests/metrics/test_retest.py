"""The same asked again: of a model, of tasks in many trials, of runs in other words; and how tokens were decoded."""

from __future__ import annotations

from itertools import permutations
from math import log
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.analysis import passing, rewording, templates
from sim.metrics.analysis.improvement import tasks
from sim.metrics.decoding import forced_tokens, surprisal
from sim.metrics.family import Relative
from sim.metrics.retest import across as retested
from sim.metrics.retest import retest
from tests.metrics.dealings import told
from tests.metrics.society import Society, values

GREEDY = '{"temperature":0,"top_p":1.0,"max_tokens":9}'
FORM, TEXT = '{"form":"00"}', '{"text":80}'


@pytest.fixture
def society(tmp_path: Path) -> Society:
    made = Society(tmp_path / "run.db", tables=2)
    made.member("ann", model="small")
    return made


def ask(society: Society, answers: str, question: int = 1, **more: Any) -> None:
    """One question, once for each letter, at both tables in turn."""
    for place, text in enumerate(answers):
        call = {"messages": society.prompt(f"question {question}"), "text": text, **more}
        society.act("ann", society.logs[place % 2].seq, calls=[call], table=place % 2)


# --- the same prompt ------------------------------------------------------------------------------------------


def test_by_hand(society: Society) -> None:
    """AAABA agrees in 6 of 10 pairs, AB in none, CCC in all; D was asked once, and a failed call was not answered."""
    for question, answers in enumerate(("AAABA", "AB", "CCC", "D"), 1):
        ask(society, answers, question)
    ask(society, "A", 1, finish="error", text=None)
    found = values(retest(society.run()))
    agreement = found["honesty.retest_agreement"]
    assert agreement.value == pytest.approx((0.6 + 0 + 1) / 3)
    assert (agreement.n, agreement.n_clusters, agreement.excluded) == (10, 3, {"asked once": 1})
    assert found["honesty.retest_modal_share"].value == pytest.approx((4 / 5 + 1 / 2 + 1) / 3)
    assert found["honesty.greedy_repeats"].value is None
    assert not [name for name in found if "icc" in name]


def test_answers_that_are_always_alike_have_a_bound(society: Society) -> None:
    """Six questions, each answered twice alike: no fewer than .05^(1/6) are, and not surely all."""
    for question in range(6):
        ask(society, "AA", question)
    found = values(retest(society.run()))["honesty.retest_agreement"]
    assert (found.value, found.ci) == (1, (pytest.approx(0.05 ** (1 / 6)), 1))


def test_another_question_is_not_the_same(society: Society) -> None:
    for more in ({}, {"form": TEXT}, {"sampling": GREEDY}, {"messages": society.prompt("question 2")}):
        ask(society, "A", 1, **more)
    found = values(retest(society.run()))
    assert (found["honesty.retest_agreement"].value, found["honesty.retest_agreement"].n) == (None, 0)


def test_greedy_answers_are_the_same_to_the_token(society: Society) -> None:
    """Three of one question, the third with the same words and another token."""
    for last in (7, 7, 8):
        ask(society, "A", sampling=GREEDY, ids=(5, last))
    found = values(retest(society.run()))
    assert found["honesty.retest_agreement"].value == 1
    assert found["honesty.greedy_repeats"].value == pytest.approx(1 / 3)


def test_of_numbers_there_is_a_correlation(society: Society) -> None:
    """Prices of 1 and 3, and of 11 and 13: MS between 100, within 2, so ICC 49/51; what is no number is left out."""
    for tick, prices in enumerate(((1, 3), (11, 13)), 1):
        for price in prices:
            text = f'{{"act":"offer","price":{price},"sure":true}}'
            call = {"messages": society.prompt(f"question {tick}"), "form": FORM, "text": text}
            society.act("ann", 10 * tick + price, calls=[call])
    society.act("ann", 90, calls=[{"messages": society.prompt("question 1"), "form": FORM, "text": '{"price":'}])
    found = values(retest(society.run()))
    icc = found["honesty.retest_icc number=price"]
    assert (icc.value, icc.n, icc.n_clusters) == (pytest.approx(49 / 51), 4, 2)
    assert [name for name in found if "icc" in name] == ["honesty.retest_icc number=price"]


def test_the_order_of_answers_does_not_matter(tmp_path: Path) -> None:
    numbers = set()
    for order, answers in enumerate(permutations("AAB")):
        society = Society(tmp_path / f"{order}.db", tables=2)
        society.member("ann", model="small")
        ask(society, "".join(answers))
        ask(society, "CD", 2)
        numbers.add(tuple(one.value for one in retest(society.run())))
    assert len(numbers) == 1


def test_forks_ask_again(tmp_path: Path) -> None:
    """A run answers A, and two forks of it B and A, each after an answer that it has from the run."""
    runs = []
    for name, answers in (("run", "A"), ("f1", "B"), ("f2", "A")):
        society = Society(tmp_path / f"{name}.db", tables=2)
        society.member("ann", model="small")
        ask(society, "C", 2, source="engine" if name == "run" else "parent")
        ask(society, answers)
        runs.append(Relative(id=name, record=society.run(), scenario={}))
    found = values(retested(runs))
    assert found["honesty.retest_agreement"].value == pytest.approx(1 / 3)
    assert (found["honesty.retest_agreement"].n, found["honesty.retest_agreement"].excluded) == (3, {"asked once": 1})
    assert values(retested(runs[::-1])) == found
    (none,) = retested([])
    assert (none.value, none.flags) == (None, ("no finished run",))


# --- how tokens fell ------------------------------------------------------------------------------------------


def test_forced_tokens_and_doubtless_texts(society: Society) -> None:
    """Of a choice's two tokens one was forced, and three of a form's four; texts at ln 2 and at 0.05 nats a token."""
    society.act("ann", 1, calls=[{"logprobs": (-0.7, 0.0)}])
    society.act("ann", 2, calls=[{"form": FORM, "logprobs": (0.0, -1e-8, -2.0, 0.0)}])
    society.act("ann", 3, calls=[{"logprobs": (0.0,), "distribution": "raw"}])
    for tick, (nats, many, more) in enumerate(
        ((log(2), 20, {}), (0.05, 60, {}), (0.01, 19, {}), (0.01, 20, {"distribution": "raw"})), 4
    ):
        society.act("ann", tick, calls=[{"form": TEXT, "logprobs": (-nats,) * many, **more}], table=1)
    society.act("ann", 9, calls=[{"form": TEXT, "logprobs": (-0.01,) * 20, "sampling": GREEDY}])
    run = society.run()
    (forced,) = forced_tokens(run)
    assert (forced.value, forced.n) == (pytest.approx(4 / 6), 6)
    assert forced.excluded == {"calls whose log-probabilities are unmasked": 1}
    found = values(surprisal(run))
    assert found["honesty.surprisal"].value == pytest.approx((20 * log(2) + 3) / 80, rel=1e-6)
    assert found["honesty.surprisal"].excluded == {"not of what was sampled": 2}
    assert (found["honesty.sure_texts"].value, found["honesty.sure_texts"].n) == (1 / 2, 2)


def test_without_log_probabilities_nothing_is_said(society: Society) -> None:
    society.act("ann", 1, calls=[{"logprobs": ()}, {"form": TEXT, "logprobs": ()}])
    run = society.run()
    assert [one.value for one in (*forced_tokens(run), *surprisal(run))] == [None] * 3


def test_surprisal_is_the_entropy_of_what_was_sampled(society: Society) -> None:
    """Tokens that are drawn with their own probabilities: 1/2, 1/4, 1/4 as often as that."""
    drawn = [-log(2)] * 20 + [-log(4)] * 20
    society.act("ann", 1, calls=[{"form": TEXT, "logprobs": drawn}])
    assert next(surprisal(society.run())).value == pytest.approx(0.5 * log(2) + 0.5 * log(4), rel=1e-6)


# --- one template for all prompts ------------------------------------------------------------------------------


def chosen(society: Society, said: str, first: float, number: int, **more: Any) -> None:
    """A choice of yes or no under a prompt that makes yes so likely."""
    call = {"messages": society.prompt(f"prompt {number}"), "text": said, "options": (log(first), log(1 - first))}
    society.act("ann", number, calls=[{**call, **more}], table=number % 2)


def test_choices_and_their_prompts_by_hand(society: Society) -> None:
    """yes at 0.9 and no at 0.3: ln 0.9/0.6 and ln 0.7/0.4; an option unknown, no option, and others are left out."""
    chosen(society, "yes", 0.9, 1)
    chosen(society, "no", 0.3, 2)
    chosen(society, "yes", 0.3, 3, options=(log(0.3), None))
    chosen(society, "perhaps", 0.3, 4)
    chosen(society, "left", 0.3, 5, form='{"choice":["left","right"]}')
    society.act("ann", 6, calls=[{"form": TEXT, "text": "yes"}])
    gain, surprise = templates.choices(society.run(), 99)
    assert gain.value == pytest.approx((log(0.9 / 0.6) + log(0.7 / 0.4)) / 2, rel=1e-6)
    assert surprise.value == pytest.approx(-(log(0.9) + log(0.7)) / 2, rel=1e-6)
    assert (gain.n, gain.n_clusters) == (2, 2)
    assert gain.excluded == {"options not all known": 2, "no other prompt": 1}
    assert 0.3 < gain.null["p"] < 0.7, "one of two orders"


def test_prompts_that_make_no_difference_tell_nothing(society: Society) -> None:
    for number in range(6):
        chosen(society, ("yes", "no")[number % 2], 0.8, number)
    gain, _ = templates.choices(society.run(), 19)
    assert (gain.value, gain.null["p"]) == (pytest.approx(0, abs=1e-9), 1)


def test_one_prompt_cannot_be_told_from_others(society: Society) -> None:
    chosen(society, "yes", 0.8, 1)
    assert [(one.value, one.n, one.null) for one in templates.choices(society.run())] == [(None, 0, {})] * 2


def test_of_many_choices_some_are_compared(society: Society, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "MOST", 2)
    for number in range(5):
        chosen(society, "yes", 0.5, number)
    gain, _ = templates.choices(society.run(), 9)
    assert (gain.n, gain.excluded) == (2, {"more than are compared": 3})


# --- tasks in many trials -------------------------------------------------------------------------------------


def tried(society: Society, **solved: str) -> None:
    """Tasks with a letter for each trial: + solved, - not, 2 at the second attempt; trials at tables in turn."""
    for item, trials in solved.items():
        for place, mark in enumerate(trials):
            for success in {"+": (True,), "-": (False,), "2": (False, True)}[mark]:
                society.fact(1, "try", f"a{place // 2}", table=place % 2, item=item, success=success)


def test_tasks_by_hand(society: Society) -> None:
    """Two and four of four trials, none of one: pass^2 (1/6 + 1)/2, pass@2 (5/6 + 1)/2."""
    tried(society, one="+2--", two="++++", three="-")
    found = values(passing.passed(society.run()))
    assert found["passing.all k=1"].value == found["passing.any k=1"].value == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found["passing.all k=2"].value == pytest.approx((1 / 6 + 1) / 2)
    assert found["passing.any k=2"].value == pytest.approx((5 / 6 + 1) / 2)
    assert found["passing.all k=4"].value == 1 / 2
    assert found["passing.all k=4"].excluded == {"tasks with fewer trials": 1}
    assert found["passing.all k=2"].ci == (pytest.approx(1 / 6), 1)
    assert len(found["passing.all k=2"].events) == 6
    assert "passing.all k=8" not in found


def test_without_tasks_nothing_is_passed(society: Society) -> None:
    society.fact(1, "try", "ann", success=True)
    assert [(one.metric, one.value, one.n) for one in passing.passed(society.run())] == [
        ("passing.all", None, 0),
        ("passing.any", None, 0),
    ]
    assert [one.excluded for one in passing.passed(society.run())] == [{"trials of nothing with a name": 1}] * 2


def test_tasks_that_are_all_alike_say_nothing_of_others(society: Society) -> None:
    tried(society, one="++", two="++")
    for one in passing.passed(society.run()):
        assert (one.value, one.ci, one.flags) == (1, None, ("all tasks alike",))


def test_an_attempt_is_no_trial(society: Society) -> None:
    tried(society, one="2")
    (one,) = tasks(society.run())
    assert (one.item, one.solved_at, len(one.events)) == ("'one'", 1, 2)


# --- other words ----------------------------------------------------------------------------------------------


def worded(condition: str, seed: int, *earned: float) -> Relative:
    record = told([[("earned", "a", {})]] * len(earned))
    record.rewards = lambda table=0: {"a": earned[table]}
    return Relative(id=f"{condition}{seed}", record=record, scenario={"seed": seed, "cast": condition})


def test_paraphrases_by_hand() -> None:
    """Originals of 0.8 and 1: drops 0.25 and 0.5, the worst 0.375 and 0.6, deviations 0.1 and 0.1414."""
    runs = [
        *(worded("plain", 1, 0.6, 1.0), worded("x", 1, 0.7), worded("y", 1, 0.6), worded("z", 1, 0.5)),
        *(worded("plain", 2, 1), worded("x", 2, 0.6), worded("y", 2, 0.4)),
        *(worded("plain", 3, 0), worded("x", 3, 1), worded("x", 4, 1), worded("plain", 5, 1), worded("x", 5, -1)),
    ]
    found = values(rewording.compared(runs))
    assert found["rewording.drop"].value == pytest.approx((0.25 + 0.5) / 2)
    assert found["rewording.worst_drop"].value == pytest.approx((0.375 + 0.6) / 2)
    assert found["rewording.spread"].value == pytest.approx((0.1 + 0.02**0.5) / 2)
    assert (found["rewording.drop"].n_clusters, found["rewording.drop"].ci_method) == (2, "t")
    assert found["rewording.drop"].excluded == {
        "originals that score nothing, or scores below 0": 2,
        "seeds without both": 1,
    }


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_paraphrases_does_not_matter(luck: Any) -> None:
    original, *others = [worded("plain", 1, 2), worded("x", 1, 1), worded("y", 1, 2), worded("plain", 2, 3)]
    others.append(worded("x", 2, 1))
    usual = values(rewording.compared([original, *others]))
    luck.shuffle(others)
    assert values(rewording.compared([original, *others])) == usual


def test_one_run_has_no_paraphrase() -> None:
    assert [one.value for one in rewording.compared([worded("plain", 1, 1)])] == [None] * 3
