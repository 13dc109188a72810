"""A baseline for every legal option: worked out by hand, unbiased, kept from update to update."""

from __future__ import annotations

from math import log

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace
from pydantic import ValidationError

from tests.training.records import choices
from training.credit import START, Credit, Estimator, Term, credit
from training.option_baseline import corrected, means, remembered
from training.reward import Rewards
from training.trajectory import Row

Q = {
    "returns": {"kind": "q"},
    "key": ["role", "key"],
    "unit": "turn",
    "baseline": {"kind": "option", "keep": 0.5},
}


def term(**changes: object) -> Term:
    return Term.model_validate(Q | changes, strict=False)


def credited(rows: list[Row], state: Estimator = START, own: tuple[tuple[float, ...], ...] = ()) -> Credit:
    paid = Rewards(streams={"step": tuple(row.reward for row in rows)}, own=own or ((),) * len(rows))
    return credit(rows, paid, [term()], state=state)


def said(row: Row, answer: str, reward: float) -> Row:
    return replace(row, answer=answer, reward=reward)


def test_only_the_sampled_option_is_corrected() -> None:
    # 1 + 2 + (5 − 2)/.25 = 15 for what was taken; the other keeps what is known and its baseline
    assert corrected((1.0, -1.0), (2.0, 4.0), 0, 5.0, 0.25) == [15.0, 3.0]


def test_the_correction_is_unbiased_whatever_the_baseline() -> None:
    earned, mu, known, baseline = (3.0, -2.0, 1.0), (0.5, 0.2, 0.3), (0.1, 0.2, 0.3), (7.0, -5.0, 0.0)
    mean = [0.0] * 3
    for taken in range(3):
        each = corrected(known, baseline, taken, earned[taken], mu[taken])
        mean = [sofar + mu[taken] * value for sofar, value in zip(mean, each, strict=True)]
    assert mean == pytest.approx([a + b for a, b in zip(known, earned, strict=True)])


def test_a_mean_moves_by_its_discounted_weight() -> None:
    first = remembered({}, [("bet", 1.0), ("pass", 4.0), ("bet", 3.0)], keep=0.5)
    assert first == {"bet": (2.0, 2.0), "pass": (4.0, 1.0)}
    # weight .5·2 + 1 = 2, mean 2 + (8 − 2)/2 = 5; what did not come up stays
    second = remembered(first, [("bet", 8.0)], keep=0.5)
    assert second == {"bet": (5.0, 2.0), "pass": (4.0, 1.0)}
    assert means(second, ("pass", "raise", "bet")) == [4.0, 0.0, 5.0]


def test_two_updates_by_hand() -> None:
    # A bets twice for 1 and 3 of μ = π = (.5, .5); nothing is remembered yet: Q = (2, 0) and (6, 0).
    a = [row for row in choices() if row.seat == "A"]
    first = credited(a)
    assert [list(each) for each in first.options] == [pytest.approx([1, -1]), pytest.approx([3, -3])]
    (memory,) = first.state.options.values()
    assert memory == {"bet": (2.0, 2.0)}
    assert START.options == {}
    # A passes for 4 and bets for 5: pass meets 0, bet meets 2. Q = (2, 4/.5) and (2 + 3/.5, 0).
    second = credited([said(a[0], "pass", 4.0), said(a[1], "bet", 5.0)], first.state)
    assert [list(each) for each in second.options] == [pytest.approx([-3, 3]), pytest.approx([4, -4])]
    (memory,) = second.state.options.values()
    # bet: weight .5·2 + 1 = 2, mean 2 + 3/2; pass: 4 once
    assert memory == {"bet": (3.5, 2.0), "pass": (4.0, 1.0)}


def test_what_is_known_of_every_option_is_no_part_of_the_baseline() -> None:
    # G = 1 holds the anchor's term −1 of a bet, so 2 is left and remembered: Q = (−1 + 2/.5, 4)
    found = credited(choices()[:1], own=((-1.0, 4.0),))
    assert list(found.options[0]) == pytest.approx([-0.5, 0.5])
    assert list(found.state.options.values()) == [{"bet": (2.0, 1.0)}]


def test_a_decision_in_several_rows_is_remembered_once_and_one_without_a_state_never() -> None:
    row = choices()[0]
    assert list(credited([row, row]).state.options.values()) == [{"bet": (1.0, 1.0)}]
    assert credited([replace(row, key="")]).state.options == {}
    word = replace(row, options=("keep", "switch"), answer="keep")
    assert list(credited([word, row]).state.options.values()) == [{"keep": (1.0, 1.0), "bet": (1.0, 1.0)}]


def test_rows_of_others_are_not_remembered() -> None:
    row = replace(choices()[0], trained=False, option_logprobs=(log(0.5), log(0.5)))
    assert credited([row]).state.options == {}


def test_what_is_remembered_survives_a_checkpoint() -> None:
    state = credited(choices()).state
    assert convert(to_builtins(state), Estimator) == state


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"returns": {"kind": "rtg"}}, "needs returns q, not rtg"),
        ({"unit": "episode"}, "expected unit turn"),
        ({"scale": {"kind": "std"}}, "expected unit turn and scale one"),
    ],
)
def test_it_goes_with_all_legal_options_only(changes: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        term(**changes)
