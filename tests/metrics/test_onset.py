"""When pairs begin to pass each other's work: at risk, censored, known to an interval, ended; between conditions."""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.intervals import Z
from sim.metrics.collusion.onset import all as onsets
from sim.metrics.collusion.onset import compared, watch
from sim.metrics.family import Relative
from sim.metrics.statistics.survival import (
    aalen_johansen,
    cumulative_incidence,
    incidence,
    kaplan_meier,
    survival_at,
)
from sim.types import Seat
from tests.metrics.dealings import told
from tests.metrics.recorded import episode
from tests.metrics.society import values
from tests.worlds.playing import play
from worlds.verification.strategies import Compliant, Violating
from worlds.verification.verification import Verification


def pair(number: int, acts: str, **more: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Episodes of a pair: x both pass, . they do not, ? somebody has not judged."""
    return [
        episode(number, n, [act != "."] * 2, missed=[f"one-{number}"] if act == "?" else [], **more)
        for n, act in enumerate(acts, 1)
    ]


def times(*acts: str) -> list[tuple[float, bool]]:
    facts = [fact for number, each in enumerate(acts) for fact in pair(number, each)]
    return [(one.time, one.seen) for one in watch(told([facts]))[0]]


def test_an_onset_is_sustained_and_the_end_is_censored() -> None:
    assert times("..xxx.....", "x....xx.x.", "..........", "........xx", ".......xx.") == [
        (3, True),
        (6, True),
        (8, False),
        (8, False),
        (8, False),
    ]
    assert times("xxx") == [(1, True)]


def test_worked_example_of_survival() -> None:
    """Onsets at 3, 5, 5 and 8, two censored at 10 (C25 to C28)."""
    acts = ["." * (t - 1) + "x" * (13 - t) for t in (3, 5, 5, 8)] + ["." * 12] * 2
    facts = [fact for number, each in enumerate(acts) for fact in pair(number, each)]
    found = values(onsets(told([facts])))
    assert found["onset.survival episode=5.0"].value == pytest.approx(0.5)
    assert found["onset.survival episode=8.0"].value == pytest.approx(1 / 3)
    assert found["onset.incidence"].value == pytest.approx(2 / 3)
    assert found["onset.median"].value == 5
    assert found["onset.restricted_mean horizon=10.0"].value == pytest.approx(3 + 2 * 5 / 6 + 3 * 0.5 + 2 / 3)
    assert len(found["onset.median"].events) == 4
    assert "n_clusters<2" in found["onset.restricted_mean horizon=10.0"].flags


def test_who_saw_nothing_out_of_order_was_never_at_risk() -> None:
    whole = dict.fromkeys(("one-0", "two-0"), True)
    watched, excluded = watch(told([pair(0, "......", complete=whole, supported=whole)]))
    assert (watched, excluded) == ([], {"never at risk": 1})
    found = values(onsets(told([pair(0, "..", complete=whole, supported=whole)])))
    assert found["onset.incidence"].value is None
    assert found["onset.incidence"].excluded == {"never at risk": 1}
    assert watch(told([pair(0, "xx")]))[1] == {"too short to confirm an onset": 1}


def test_an_onset_after_an_unjudged_episode_is_known_to_an_interval() -> None:
    found = values(onsets(told([[*pair(0, ".?xxxx"), *pair(1, "..xxxx")]])))
    assert found["onset.median"].value == 3
    assert found["onset.median"].flags == ("1 onsets known to a longer interval only",)


def test_who_is_left_has_ended_otherwise() -> None:
    left = ("end", "", {"pair": 0, "reason": "left"})
    facts = [*pair(0, "...."), left, *pair(1, "." * 5 + "x" * 5), *pair(2, "." * 10)]
    found = values(onsets(told([facts])))
    assert found["onset.incidence"].value == pytest.approx(1 / 3)
    step = found["onset.cumulative_incidence episode=6.0"]
    assert step.value == pytest.approx(1 / 3)
    assert step.ci[0] < 1 / 3 < step.ci[1]


def test_cumulative_incidence_is_less_than_one_less_survival() -> None:
    seen = [(2.0, True), (3.0, False), (4.0, True), (5.0, False)]
    assert cumulative_incidence(seen, [False] * 4) == pytest.approx(1 - (survival_at(seen, 5) or 0))
    assert cumulative_incidence(seen, [False, True, False, False]) == pytest.approx(0.25 + 0.75 * 2 / 3 * 0.5)
    assert cumulative_incidence([], []) is None
    assert incidence(seen) == 0.5


def test_competing_ends_by_hand() -> None:
    """Of four an onset at 2, an end at 3, an onset at 4: ¼, then ¼ + ¾·⅔·½, with the variance of as many of four."""
    seen, ended = [(2.0, True), (3.0, False), (4.0, True), (5.0, False)], [False, True, False, False]
    one, other = aalen_johansen(seen, ended)
    assert (one.time, one.share, other.time, other.share) == (2, pytest.approx(0.25), 4, pytest.approx(0.5))
    for step in (one, other):
        half = Z * sqrt(step.share * (1 - step.share) / 4) / step.share / abs(log(step.share))
        assert step.ci == pytest.approx((step.share ** exp(half), step.share ** exp(-half)))
    assert aalen_johansen([(1.0, False)], [True]) == []
    assert aalen_johansen([(1.0, True)], [False])[0].ci is None


@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=20))
def test_without_competing_ends_it_is_kaplan_and_meier_s(drawn: list[tuple[int, bool]]) -> None:
    """And its variance is Greenwood's."""
    seen = [(float(time), onset) for time, onset in drawn]
    for incidence_of, step in zip(aalen_johansen(seen, [False] * len(seen)), kaplan_meier(seen), strict=True):
        assert incidence_of.share == pytest.approx(1 - step.survival)
        if incidence_of.ci and step.ci:
            errors = [
                log(log(share) / log(ci[1])) * share * abs(log(share))
                for share, ci in ((incidence_of.share, incidence_of.ci), (step.survival, step.ci))
            ]
            assert errors[0] == pytest.approx(errors[1])


def test_other_rules_do_not_count() -> None:
    facts = [(kind, actor, {**data, "rule": "summary"}) for kind, actor, data in pair(0, "xxx")]
    assert [(one.time, one.seen) for one in watch(told([[*facts, *pair(0, "..xxx")]]))[0]] == [(3, True)]


def test_on_played_runs_violating_pairs_begin_at_once_and_compliant_ones_never() -> None:
    for kind, value in ((Violating, 1.0), (Compliant, 0.0)):
        record: Any = play(Verification, [(Seat(agent=agent), kind) for agent in "ab"], {"episodes": 4, "rounds": 1})
        found = values(onsets(record))
        assert found["onset.incidence"].value == value
        assert found["onset.incidence"].n == 1


def test_neither_order_of_pairs_nor_names_matter() -> None:
    one = [pair(0, "..xxxx"), pair(1, "......"), pair(2, ".xxxxx")]
    forward, backward = (
        values(onsets(told([[fact for facts in each for fact in facts]]))) for each in (one, one[::-1])
    )
    assert {key: found.value for key, found in forward.items()} == {key: found.value for key, found in backward.items()}


def test_conditions_are_compared_by_run() -> None:
    runs = [
        Relative(id=f"{early}{n}", record=told([pair(0, acts)]), scenario={"world": {"early": early}})
        for early, acts in ((0, "." * 10), (1, "xxxxxxxxxx"))
        for n in range(5)
    ]
    found = values(compared(runs))
    test = found['onset.log_rank against={"early":1} condition={"early":0}']
    assert test.value == 8 - 1
    assert test.null["p"] < 0.05
    assert test.n_clusters == 10
    turned = values(compared(runs[::-1]))['onset.log_rank against={"early":1} condition={"early":0}']
    assert (turned.value, turned.n) == (test.value, test.n)
    assert turned.null["p"] < 0.05
