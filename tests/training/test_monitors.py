"""Collapse monitors on hand-made rows and matrices."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from training.monitors import (
    entropy,
    legal_rate,
    mutual_information,
    off_policy,
    readings,
    repetition,
    reward_std,
    success,
)
from training.trajectory import Row


def row(episode: str, reward: float = 0.0, ids: tuple[int, ...] = (1, 2), **fields: Any) -> Row:
    logprobs = fields.pop("logprobs", (-0.5,) * len(ids))
    return Row(episode=episode, seat="a", ids=ids, logprobs=logprobs, reward=reward, prompt=(7,), **fields)


# --- readings ---------------------------------------------------------------------------------------


def test_entropy_is_exact_where_the_options_are_known() -> None:
    even = row("0", options=("x", "y"), option_logprobs=(log(0.5), log(0.5)))
    sure = row("1", options=("x", "y"), option_logprobs=(0.0, -float("inf")))
    assert entropy([even]) == pytest.approx(log(2))
    assert entropy([even, sure]) == pytest.approx(log(2) / 2)
    assert entropy([row("2")]) == pytest.approx(1.0)
    assert entropy([row("2", options=("x", "y", "z"), option_logprobs=(-0.5, None, None))]) == pytest.approx(1.0)
    assert entropy([row("2", trained=False)]) is None


def test_the_spread_of_rewards_is_within_groups() -> None:
    rows = [row("0", 1, group="g"), row("1", 3, group="g"), row("2", 5, group="h"), row("3", 5, group="h")]
    assert reward_std(rows) == pytest.approx((2**0.5 + 0) / 2)
    assert reward_std([*rows, row("4", 9, group="alone")]) == pytest.approx(2**0.5 / 2)
    assert reward_std([row("0", 1)]) is None


def test_repetition_counts_ngrams_that_came_before() -> None:
    assert repetition([row("0", ids=(1, 2, 3, 4, 5))]) == 0
    assert repetition([row("0", ids=(1, 1, 1, 1, 1))]) == pytest.approx(2 / 3)
    assert repetition([row("0", ids=(1, 2, 1, 2))], ngram=2) == pytest.approx(1 / 3)
    assert repetition([row("0", ids=(1, 1))]) is None


def test_only_first_answers_count_as_legal() -> None:
    rows = [row(str(n), how=how) for n, how in enumerate(("chosen", "retried", "defaulted", "chosen"))]
    assert legal_rate(rows) == 0.5
    assert legal_rate([row(one.episode, answer="a thought") for one in rows] + rows) == 0.5, "thoughts are none"
    assert legal_rate([row("0", trained=False)]) is None


def test_success_is_a_return_above_zero() -> None:
    assert success([row("0", 1), row("1", 0), row("2", -1), row("3", 2)]) == 0.5
    assert success([]) is None


def test_readings_leave_out_what_has_no_denominator() -> None:
    assert readings([]) == {"learnable": 0.0}
    found = readings([row("0", 1, group="g"), row("1", 2, group="g")])
    assert found.keys() == {
        *("decision_entropy", "reward_std", "reward", "success", "first_legal_rate", "length", "learnable")
    }
    assert (found["length"], found["reward"]) == (2, 1.5)


def test_off_policy_numbers_by_hand() -> None:
    assert off_policy([row("0")], [(-0.5, -0.5)]) == off_policy(
        [row("0"), row("1", how="defaulted")], [(-0.5,) * 2] * 2
    )
    same = off_policy([row("0")], [(-0.5, -0.5)])
    assert same is not None
    assert (same.kl, same.clip_fraction, same.ess) == (0, 0, 1)
    moved = off_policy([row("0", logprobs=(log(0.5), log(0.5)))], [(log(0.25), log(0.5))])
    assert moved is not None
    assert moved.kl == pytest.approx((0.5 - 1 - log(0.5)) / 2)
    assert moved.clip_fraction == 0.5
    assert moved.ess == pytest.approx(1.5**2 / (2 * 1.25))
    assert off_policy([], []) is None


@pytest.mark.parametrize("n", [1, 2, 8])
def test_answers_that_name_their_prompt_carry_log_n(n: int) -> None:
    sure = [[0.0 if i == j else -1e9 for j in range(n)] for i in range(n)]
    found = mutual_information(sure)
    assert found.value == pytest.approx(log(n))
    assert found.retrieval[1] == 1
    assert found.chance == 1 / n


def test_answers_that_ignore_their_prompt_carry_nothing() -> None:
    found = mutual_information([[-3.0] * 4, [-7.0] * 4, [-1.0] * 4, [-2.0] * 4])
    assert found.value == pytest.approx(0)
    assert found.retrieval == {1: 0.25, 2: 0.5, 4: 1.0}


def test_mutual_information_by_hand() -> None:
    cross = [[log(0.8), log(0.2)], [log(0.6), log(0.3)]]
    found = mutual_information(cross, lengths=(2, 1))
    gaps = [log(0.8 / 0.5), log(0.3 / 0.45)]
    assert found.value == pytest.approx(sum(gaps) / 2)
    assert found.per_token == pytest.approx((gaps[0] / 2 + gaps[1]) / 2)
    assert found.retrieval == {1: 0.5, 2: 1.0}


@pytest.mark.parametrize("cross", [[], [[0.0, 0.0]], [[0.0], [0.0]]])
def test_a_cross_matrix_is_square(cross: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="square"):
        mutual_information(cross)
