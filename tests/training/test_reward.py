"""Reward sources, each on numbers that can be checked by eye."""

from __future__ import annotations

from math import fsum, log

import pytest
from msgspec.structs import replace

from tests.training.records import CHOICES, GAME, choices, game
from training.extras import NO_EXTRAS, Extras
from training.recipe import loads
from training.reward import Source, anchored, rewards
from training.trajectory import Row

GAIN = "{kind: info_gain, truth: 'somewhere:truth'}"


def sources(text: str) -> tuple[Source, ...]:
    """The sources of a recipe whose reward slot is this YAML."""
    head = "name: a_like\nstatus: unverified\nsource: [knowledge]\nstructure: {kind: independent}\n"
    credit = "credit: [{returns: {kind: ep}, baseline: {kind: zero}}]\n"
    return loads(f"{head}{credit}reward: {text}\n").reward


def stream(text: str, rows: list[Row] | None = None, extras: Extras = GAME, update: int = 0) -> list[float]:
    (only,) = rewards(sources(f"[{text}]"), rows or game(), extras, update).streams.values()
    return list(only)


def test_outcome_is_the_whole_at_the_end_once_for_rows_of_one_decision() -> None:
    assert stream("{kind: outcome}") == [0, 0, 8, 4, 0, 0, -4, -4, 5, -5]
    alone = [replace(game()[4], ended="terminated"), replace(game()[5], ended="terminated")]
    assert stream("{kind: outcome}", alone) == [-1, -1]


def test_step_and_format() -> None:
    assert stream("{kind: step}") == [2, 1, 6, 3, -1, -1, -4, -3, 5, -5]
    assert stream("{kind: format, valid: 1, invalid: -2}") == [1, 1, 1, -2, 1, 1, 1, 1, 1, 1]


def test_weights_follow_their_schedule() -> None:
    text = "{kind: step, weight: {points: [[0, 1], [10, 0]]}}"
    assert stream(text, update=5) == [1, 0.5, 3, 1.5, -0.5, -0.5, -2, -1.5, 2.5, -2.5]
    assert stream(text, update=20) == [0] * 10


def test_information_gain_is_a_difference_of_probabilities_and_none_at_the_answer() -> None:
    assert stream(GAIN) == pytest.approx([0.3, -0.1, 0, 0, 0.5, 0.5, 0, 0, 0, 0])


def test_log_ratio() -> None:
    assert stream("{kind: log_ratio, agg: sum}") == pytest.approx([0.75, -0.5, 2, 0, 1, 1, 1, -1, 2, 0])
    halved = stream("{kind: log_ratio, agg: mean, beta: 0.5}")
    assert halved == pytest.approx([0.1875, -0.25, 1 / 3, 0, 0.125, 0.125, 0.5, -0.25, 1, 0])
    # π shown what is hidden from the actor comes with the extras
    shown = replace(GAME, policy=tuple(tuple(0.0 for _ in row.ids) for row in game()))
    assert stream("{kind: log_ratio, agg: sum}", extras=shown)[0] == pytest.approx(2.75)


def test_a_judge_is_taken_at_its_word() -> None:
    assert stream("{kind: judge, rubric: Is it good?, weight: 2}") == [0, 0, 2, 6, 0, 0, -2, 10, 4, 0]


def test_regret_is_against_the_best_constant_answer() -> None:
    assert stream("{kind: regret}") == [0, 0, -4, 0, 0, 0, -2, -1, 0, 0]
    changing = [replace(row, options=("x", "z")) if row.turn else row for row in game()]
    with pytest.raises(ValueError, match="the options change"):
        stream("{kind: regret}", changing)


@pytest.mark.parametrize("text", [GAIN, "{kind: log_ratio}", "{kind: regret}", "{kind: judge, rubric: Is it good?}"])
def test_what_a_source_reads_must_be_there(text: str) -> None:
    with pytest.raises(ValueError, match="holds 0 rows, not 10"):
        stream(text, extras=NO_EXTRAS)


def test_sources_are_summed_by_name() -> None:
    found = rewards(sources("[{kind: step}, {kind: format, invalid: -1}]"), game())
    assert found.total()[3] == 2
    assert found.total(["step"])[3] == 3
    with pytest.raises(ValueError, match=r"no reward source 'judge'; there are \['format', 'step'\]"):
        found.total(["judge"])


# --- the anchor -----------------------------------------------------------------------------------------------


def test_the_anchor_is_zero_sum_and_has_an_own_term_for_every_option() -> None:
    paid, own = anchored(choices(), CHOICES, 0.2)
    # both moved by ln 2 from their reference: what each pays, the other gets
    assert paid == pytest.approx([1, -1, 3, -3])
    assert own[0] == pytest.approx((-0.2 * log(2), 0.2 * log(1.5)))
    assert own[1] == pytest.approx((-0.2 * log(2), 0.2 * log(3)))
    paid, _ = anchored(
        choices(), Extras(reference_options=(*CHOICES.reference_options[:1], (log(0.8), log(0.2))) * 2), 0.2
    )
    assert paid == pytest.approx([1 - 0.2 * log(2), -1 + 0.2 * log(2), 3 - 0.2 * log(2), -3 + 0.2 * log(2)])


def test_others_pay_to_the_decision_before_theirs() -> None:
    one = choices()[0]
    rows = [
        replace(one, seat="A", turn=0, reward=0.0, ended=""),
        replace(one, seat="B", turn=0, reward=0.0),
        replace(one, seat="A", turn=1, reward=0.0),
    ]
    flat, far = (log(0.5), log(0.5)), (log(0.5 / 2.718281828459045), log(0.5))
    # only B moved, by 1: it pays η, and A's first decision, the latest before it, gets it
    assert anchored(rows, Extras(reference_options=(flat, far, flat)), 0.3)[0] == pytest.approx([0.3, -0.3, 0])
    # only A's second moved: B's one decision gets it
    assert anchored(rows, Extras(reference_options=(flat, flat, far)), 0.3)[0] == pytest.approx([0, 0.3, -0.3])


def test_of_three_seats_each_other_one_gets_half() -> None:
    one = choices()[0]
    rows = [replace(one, seat=seat, reward=0.0) for seat in "ABC"]
    flat, far = (log(0.5), log(0.5)), (log(0.5 / 2.718281828459045), log(0.5))
    paid, _ = anchored(rows, Extras(reference_options=(far, flat, flat)), 1.0)
    assert paid == pytest.approx([-1, 0.5, 0.5])
    assert fsum(paid) == pytest.approx(0)


def test_a_thought_and_its_answer_pay_for_both_and_have_one_form() -> None:
    one = choices()[0]
    thought = replace(one, options=(), logprobs=(-1.0, -1.0), ids=(1, 2), reward=2.0)
    rows = [thought, replace(one, reward=2.0, how="defaulted"), replace(one, seat="B", reward=0.0)]
    flat, far = (log(0.5), log(0.5)), (log(0.5 / 2.718281828459045), log(0.5))
    extras = Extras(reference=((-1.5, -1.0), (), ()), reference_options=((), far, flat))
    # −η·(0.5 of the thought + 1 of the answer), which B gets
    assert anchored(rows, extras, 1.0)[0] == pytest.approx([0.5, 0.5, 1.5])
    assert stream("{kind: format, valid: 1, invalid: -2}", rows) == [-2, -2, 1]


def test_a_thought_and_its_answer_gain_and_regret_as_one() -> None:
    """Gains are from what is asked first to what is asked first next time; regrets are of answers."""
    one = replace(choices()[0], ended="")
    answers = [one, replace(one, turn=1, ended="terminated")]
    rows = [replace(one, **more) for one in answers for more in ({"options": ("keep", "switch")}, {})]
    extras = Extras(
        truth_before=(log(0.1), log(0.9), log(0.4), log(0.2)),
        truth_after=(log(0.4), log(0.4), log(0.4), log(0.2)),
        counterfactual=((), (1, 5), (), (2, 3)),
    )
    assert stream(GAIN, rows, extras) == pytest.approx([0.3, 0.3, 0, 0])
    assert stream("{kind: regret}", rows, extras) == [0, 0, 3 - 8, 3 - 8]  # bet, bet: 1 + 2; pass: 5 + 3


def test_free_text_is_anchored_by_its_tokens_and_others_have_no_term() -> None:
    rows = [replace(row, options=()) for row in game()]
    extras = Extras(reference=(GAME.reference[0], *((),) * 9))
    paid, own = anchored(rows, extras, 1.0)
    assert paid[:2] == pytest.approx([2 - 0.75, 1 + 0.75])
    assert own == [()] * 10
