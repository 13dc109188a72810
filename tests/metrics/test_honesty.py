"""Honesty of a run: worked examples on the public functions, and counts on records written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics import honesty
from sim.metrics.chosen import chosen_only
from sim.metrics.frames import frames
from sim.metrics.honesty import UNFIT, Thresholds, failure_ratio, verdict
from sim.metrics.repetition import (
    degenerate,
    gzip_ratio,
    longest_run,
    longest_stretch,
    repeated_share,
    tokens,
    type_token_ratio,
)
from sim.metrics.substitutes import associated, default_outcome
from sim.types import Measurement, Record
from tests.metrics.society import Society, values
from tests.sim.rows import call

FAILED = ({"purpose": "act", "text": "perhaps"}, {"purpose": "rethink", "text": "perhaps"})
MENDED = ({"purpose": "act", "text": "perhaps"}, {"purpose": "rethink"})
GOOD = ({"purpose": "act"},)


@pytest.fixture
def society(tmp_path: Path) -> Society:
    made = Society(tmp_path / "run.db")
    made.member("ann", model="small")
    made.member("bob", model="small")
    made.member("rule")
    return made


def decided(society: Society, good: int = 0, mended: int = 0, failed: int = 0, agent: str = "ann") -> None:
    """Decisions of each kind, one after the other."""
    tick = 1
    for count, how, calls in ((good, "chosen", GOOD), (mended, "retried", MENDED), (failed, "defaulted", FAILED)):
        for _ in range(count):
            society.act(agent, tick, how=how, calls=calls)
            tick += 1


def test_worked_examples(society: Society) -> None:
    """200 decisions, 10 with a failed first answer, 4 of them defaults; 216 calls (six rethinks more elsewhere)."""
    decided(society, good=190, mended=6, failed=4)
    found = values(honesty.all(society.run()))
    assert found["honesty.parse_failure_first"].value == pytest.approx(0.05)
    assert found["honesty.default_rate"].value == pytest.approx(0.02)
    assert found["honesty.repair_rate"].value == pytest.approx(0.6)
    assert found["honesty.attempts"].value == pytest.approx(210 / 200)
    assert repeated_share(["a", "b", "a", "b", "a", "b", "a", "b"]) == pytest.approx(0.714286, abs=5e-7)
    assert failure_ratio(4, 8, 6, 192) == pytest.approx(16)


def test_attempts_per_call(society: Society) -> None:
    decided(society, good=184, mended=16)
    assert values(honesty.attempts(society.run()))["honesty.attempts"].value == pytest.approx(1.08)


def test_a_truncated_answer_fails_more_often(society: Society) -> None:
    cut = {"purpose": "act", "finish": "length"}
    for tick in range(1, 201):
        short, bad = tick <= 8, tick <= 4 or 8 < tick <= 14
        society.act("ann", tick, how="defaulted" if bad else "chosen", calls=[cut if short else GOOD[0]])
    found = values(honesty.truncation(society.run()))
    assert found["honesty.truncation"].value == pytest.approx(8 / 200)
    assert found["honesty.truncation_failure_ratio"].value == pytest.approx(16)


def test_every_number_names_its_decisions(society: Society) -> None:
    society.act("rule", 1)
    society.act("ann", 2, how="defaulted", calls=FAILED)
    society.act("bob", 3, calls=GOOD)
    society.act("bob", 4, how="faulted")
    society.act("rule", 5, stale=True)
    found = values(honesty.all(society.run()))
    rate = found["honesty.default_rate"]
    assert (rate.value, rate.n, rate.decisions, rate.excluded) == (pytest.approx(2 / 3), 3, (2, 4), {"scripted": 2})
    assert (rate.ci, rate.flags) == (None, ("n_clusters<2",))
    assert found["honesty.default_rate agent=ann"].value == 1
    assert found["honesty.fault_rate"].value == pytest.approx(1 / 5)
    assert found["honesty.stale_rate"].decisions == (5,)
    assert found["honesty.parse_failure_final"].excluded == {"faulted": 1}
    assert found["honesty.truncation_failure_ratio"].value is None


def test_tables_are_clusters(tmp_path: Path) -> None:
    """Four tables of four calls: 4, 0, 3 and 1 defaults."""
    society = Society(tmp_path / "run.db", tables=4)
    society.member("ann", model="small")
    for table, bad in enumerate((4, 0, 3, 1)):
        for tick in range(4):
            society.act("ann", tick, how="defaulted" if tick < bad else "chosen", calls=GOOD, table=table)
    rate = values(honesty.default_rate(society.run()))["honesty.default_rate"]
    assert (rate.value, rate.n, rate.n_clusters, rate.ci_method) == (0.5, 16, 4, "t over clusters")
    assert rate.ci == (0.0, 1.0)
    assert rate.decisions[:5] == ((0, 1), (0, 2), (0, 3), (0, 4), (2, 1))


def test_a_run_of_scripts_is_fit_and_says_little(society: Society) -> None:
    society.act("rule", 1)
    found = values(honesty.all(society.run()))
    assert set(found) == {f"honesty.{name}" for name in ("fit_for_claims", *SCRIPTED)}
    assert found["honesty.fit_for_claims"].value == 1
    assert found["honesty.default_rate"].value is None


SCRIPTED = ("default_rate", "fault_rate", "stale_rate", "integrity")


@pytest.mark.parametrize(
    ("good", "failed", "reason"),
    [(19, 1, None), (18, 2, "default rate 10.0% > 5%"), (0, 1, "default rate of ann 100.0% > 20%")],
)
def test_beyond_the_thresholds_a_run_is_unfit(society: Society, good: int, failed: int, reason: str | None) -> None:
    decided(society, good=good, failed=failed)
    decided(society, good=0 if good else 30, agent="bob")
    head = next(iter(honesty.all(society.run())))
    assert head.value == float(reason is None)
    assert head.flags == (() if reason is None else (f"{UNFIT}: {reason}",))


def test_thresholds_can_be_others(society: Society) -> None:
    decided(society, good=18, failed=2)
    found = list(honesty.default_rate(society.run()))
    assert verdict(found, Thresholds(default=0.2, agent=0.2)).value == 1


# --- what stood in a model's place ---------------------------------------------------------------------------


def test_defaults_by_round(society: Society) -> None:
    """A round is the n-th decision of each agent: ann's first and third fail, bob's third; scripts and forced acts are
    no rounds of a model."""
    for tick, (ann, bob) in enumerate((("defaulted", "chosen"), ("retried", "chosen"), ("faulted", "defaulted"))):
        society.act("rule", tick)
        society.act("ann", tick, how=ann)
        society.act("ann", tick + 100, how="forced")
        society.act("bob", tick + 50, how=bob)
    found = values(honesty.default_by_round(society.run()))
    assert [(name[-7:], one.value, one.n) for name, one in found.items()] == [
        ("round=1", 1 / 2, 2),
        ("round=2", 0, 2),
        ("round=3", 1, 2),
    ]
    assert found["honesty.default_by_round round=3"].decisions == (10, 12)


def test_many_rounds_make_few_numbers(society: Society) -> None:
    """41 decisions of ann, of which the last five fail, in rounds of five; bob has one."""
    decided(society, good=36, failed=5)
    society.act("bob", 1, calls=GOOD)
    found = values(honesty.default_by_round(society.run()))
    told = {name.partition("round=")[2]: (one.value, one.n) for name, one in found.items()}
    assert len(told) == 9
    assert (told["1 to 5"], told["36 to 40"], told["41 to 45"]) == ((0, 6), (4 / 5, 5), (1, 1))


@pytest.mark.parametrize("many", [1, 9, 10, 11, 100, 101])
def test_there_are_at_most_ten_of_them(society: Society, many: int) -> None:
    decided(society, good=many)
    found = list(honesty.default_by_round(society.run()))
    assert len(found) <= 10
    assert sum(one.n for one in found) == many


def test_rounds_are_in_order(society: Society) -> None:
    decided(society, good=41)
    found = [str(one.of["round"]) for one in honesty.default_by_round(society.run())]
    assert found == [f"{first} to {first + 4}" for first in range(1, 42, 5)]


def test_a_run_without_decisions_has_no_rounds(society: Society) -> None:
    assert list(honesty.default_by_round(society.run())) == []


def test_what_comes_of_defaults(tmp_path: Path) -> None:
    """Four tables: shares of ½, 0, 1 and ½ less their mean, and rewards of 3, 4, 2 and 3: r = −1. Carl came late."""
    society = Society(tmp_path / "run.db", tables=4)
    society.member("ann", model="small")
    society.member("carl", model="small")
    for table, (bad, earned) in enumerate(((1, 3), (0, 4), (2, 2), (1, 3))):
        for tick in range(2):
            society.act("ann", tick, how="defaulted" if tick < bad else "chosen", table=table)
        society.logs[table].event(1, 0, "rewards", "", {"ann": earned})
    society.act("carl", 9, table=1)
    (found,) = default_outcome(society.run(), 99)
    assert (found.value, found.n, found.n_clusters) == (pytest.approx(-1), 4, 4)
    assert found.excluded == {"agents not at all tables": 1}
    assert found.null["p"] > 0.05, "four tables have 12 orders"


def test_where_nothing_varies_nothing_comes_of_defaults(society: Society) -> None:
    society.act("ann", 1, how="defaulted")
    (found,) = default_outcome(society.run())
    assert (found.value, found.flags) == (None, ("one table",))
    assert associated(np.array([[0.5, 0.5], [0.1, 0.1]]), np.array([[1.0, 2.0], [1.0, 2.0]])) is None
    assert associated(np.array([[0.5, 0.2]]), np.array([[0.1, 0.1]])) is None


@given(st.permutations(range(5)), st.permutations(range(3)))
def test_neither_agents_nor_tables_have_an_order(tables: list[int], agents: list[int]) -> None:
    luck = np.random.default_rng(3)
    given, earned = luck.random((3, 5)), luck.random((3, 5))
    found, other = (
        associated(*each, 19) for each in ((given, earned), [one[agents][:, tables] for one in (given, earned)])
    )
    assert found is not None
    assert other is not None
    assert found.stat == pytest.approx(other.stat)


def test_calls_of_no_decision(society: Society) -> None:
    society.act("ann", 1, calls=MENDED)
    society.store.put("calls", call("ann", tick=7))
    found = values(honesty.call_failures(society.run()))["honesty.calls_without_decision"]
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)


def test_refusals_errors_and_repetition(society: Society) -> None:
    form = '{"text":80}'
    said = ["I'm sorry, but I cannot do that.", "Good morning to all.", "no " * 30, "every word of this " + "x y " * 9]
    for tick, text in enumerate(said):
        society.act("ann", tick, calls=[{"purpose": "act", "text": text, "form": form}])
    wrong = {"purpose": "act", "finish": "error", "text": None, "error": "prompt is too long"}
    society.act("bob", 9, how="defaulted", calls=[wrong, {"purpose": "rethink"}])
    found = values(honesty.all(society.run()))
    assert found["honesty.refusal_rate"].value == pytest.approx(1 / 4)
    assert found["honesty.refusal_rate"].excluded == {"choices": 1}
    assert found["honesty.failed_calls"].value == pytest.approx(1 / 6)
    assert found["honesty.degenerate_text"].n == 2
    assert found["honesty.degenerate_text"].value == 1
    fours = repeated_share(tokens(said[3]), 4)
    assert found["honesty.repeated_fourgrams"].value == pytest.approx((1 - 1 / 27 + fours) / 2)
    assert found["honesty.repeated_bigrams"].value == pytest.approx((1 - 1 / 29 + repeated_share(tokens(said[3]))) / 2)


def test_words_are_parted_by_any_blank(society: Society) -> None:
    """Twenty words on as many lines are no short answer, and nine with many blanks between are one."""
    for tick, text in enumerate(("\n".join("abcdefghij" * 2), "    ".join("abcdefghi"))):
        society.act("ann", tick, calls=[{"text": text, "form": '{"text":80}'}])
    found = values(honesty.repetition(society.run()))
    assert (found["honesty.repeated_bigrams"].n, found["honesty.degenerate_text"].n) == (1, 1)
    assert found["honesty.repeated_bigrams"].value == pytest.approx(1 - 10 / 19)


# --- integrity ---------------------------------------------------------------------------------------------


def whole(society: Society) -> dict[str, Any]:
    return values(honesty.integrity(society.run()))["honesty.integrity"]


def test_a_sound_record_has_no_faults(society: Society) -> None:
    first = society.say("ann", 1, "hello")
    society.logs[0].mark(1, 0)
    society.say("bob", 2, "hello, too", shows=[first], answers=[first])
    assert whole(society).value == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda it: it.act("ann", 1, shows=[7]), "1 absent facts shown"),
        (lambda it: it.act("ann", 1, recalls=[7, 8]), "2 absent facts recalled"),
        (lambda it: it.fact(1, "message", answers=[7]), "1 absent facts answered"),
        (lambda it: it.act("ann", 6, seen=2, shows=[it.fact(5, "message")]), "1 facts seen before they happened"),
        (lambda it: it.act("ann", 6, seen=2, recalls=[it.fact(5, "message")]), "1 facts recalled before they happened"),
        (lambda it: it.fact(2, "message", answers=[it.fact(5, "message")]), "1 facts answered before they happened"),
        (lambda it: it.store.put("calls", call("nobody")), "1 calls of nobody"),
        (lambda it: it.logs[0].__setattr__("seq", 9), "8 gaps in the log"),
        (lambda it: it.logs[0]._hash.update(b"x"), "1 hashes broken"),
    ],
)
def test_what_is_wrong_is_counted(society: Society, wrong: Any, told: str) -> None:
    wrong(society)
    found = whole(society)
    assert told in found.flags
    assert found.value > 0


def test_missing_calls_are_counted(society: Society) -> None:
    society.store.put("decisions", broken_decision())
    assert "2 calls missing" in whole(society).flags


def test_calls_beyond_their_decision_are_counted(society: Society) -> None:
    society.act("ann", 1, calls=GOOD)
    society.store.put("calls", call("ann", 1, tick=1))
    assert "1 calls beyond those of their decision" in whole(society).flags


def broken_decision() -> tuple[Any, ...]:
    from tests.sim.rows import decision

    return decision(1, "ann", calls=2)


# --- texts -------------------------------------------------------------------------------------------------


def test_texts_at_their_edges() -> None:
    assert repeated_share([]) is None
    assert repeated_share(["a"]) is None
    assert repeated_share(["a", "b", "c"]) == 0
    assert repeated_share(["a", "b", "a", "b", "a", "b", "a", "b"], 4) == pytest.approx(1 - 2 / 5)
    assert longest_run([]) == 0
    assert longest_run(["a", "a", "b", "b", "b", "a"]) == 3
    assert type_token_ratio([]) is None
    assert gzip_ratio("") is None
    assert not degenerate("no " * 19)
    assert degenerate("no " * 20)
    assert not degenerate(" ".join(map(str, range(50))))


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        *(("", 0), ("abc", 1), ("aab", 2), ("hahaha", 6), ("xabababy", 6), ("......", 6), ("abcabcab", 8)),
        *(("abcdefghijkl" * 3, 36), ("abcdefghijklm" * 3, 1), ("é" * 7, 7)),
    ],
)
def test_stretches(text: str, longest: int) -> None:
    assert longest_stretch(text) == longest


@pytest.mark.parametrize("unit", ["a", ".", "ha", "\\n", "[INST]", " ", "\n"])
def test_a_word_that_is_one_thing_over_and_over_is_degenerate(unit: str) -> None:
    """400 characters of it are, whatever stands beside them; 48 are not yet."""
    assert degenerate(unit * (400 // len(unit)))
    assert degenerate(f"Good morning! {unit * (400 // len(unit))}")
    assert not degenerate(f"Good morning! {unit * (48 // len(unit))}.")


@given(st.text("ab ", max_size=30), st.text("ab", min_size=1, max_size=4), st.integers(2, 9))
def test_a_stretch_is_at_least_what_was_put_in(before: str, unit: str, times: int) -> None:
    text = before + unit * times
    assert len(unit) * times <= longest_stretch(text) <= len(text)
    assert longest_stretch(text) == longest_stretch(text[::-1])


def test_one_word_is_looked_at_and_a_vote_is_not(society: Society) -> None:
    """Of a word of 400 characters, one of 50, an option of 400, and forty words that all differ."""
    said = [("a" * 400, '{"text":500}'), ("a" * 50, '{"text":500}'), ("b" * 400, '{"choice":["x"]}')]
    said.append((" ".join(map(str, range(40))), '{"text":500}'))
    for tick, (text, form) in enumerate(said):
        society.act("ann", tick, calls=[{"text": text, "form": form}])
    found = values(honesty.repetition(society.run()))
    assert (found["honesty.degenerate_text"].value, found["honesty.degenerate_text"].n) == (1 / 2, 2)
    assert found["honesty.degenerate_text"].excluded == {"short answers": 1}
    assert (found["honesty.repeated_bigrams"].value, found["honesty.repeated_bigrams"].n) == (0, 1)


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=30))
def test_words_are_only_compared(words: list[str]) -> None:
    renamed = [{"a": "w", "b": "x", "c": "y", "d": "z"}[word] for word in words]
    assert repeated_share(words) == repeated_share(renamed)
    assert longest_run(words) == longest_run(renamed)
    assert 0 <= repeated_share(words) < 1  # type: ignore[operator]


def test_null_runs_are_fit(tmp_path: Path) -> None:
    """Models that fail on 2% of 200 decisions: hardly a run is called unfit."""
    assert sum(one.value == 0 for one in null_verdicts(100)) <= 8


def null_verdicts(runs: int) -> Iterator[Measurement]:
    from random import Random

    for seed in range(runs):
        luck = Random(seed)
        bad = sum(luck.random() < 0.02 for _ in range(200))
        yield verdict([Measurement(metric="honesty.default_rate", value=bad / 200)])


def test_a_metric_without_what_was_not_chosen(society: Society) -> None:
    said = society.say("ann", 1, "hello")
    society.act("bob", 2, how="defaulted", calls=FAILED)
    society.fact(2, "message", "bob", text="default words")
    society.look("rule", 3, [said])
    run = society.run()

    def counted(record: Record) -> Iterator[Measurement]:
        facts = sum(1 for _ in record.facts())
        assert facts == len(frames(record).facts)
        assert sum(1 for _ in record.decisions()) == len(frames(record).decisions)
        yield Measurement(metric="facts", value=float(facts), n=len(frames(record).decisions))

    assert [(one.value, one.n) for one in counted(run)] == [(2, 3)]
    (found,) = chosen_only(counted)(run)
    assert (found.value, found.n, found.of) == (1, 2, {"decisions": "chosen"})
    assert values(chosen_only(honesty.default_rate)(run))["honesty.default_rate decisions=chosen"].value == 0
