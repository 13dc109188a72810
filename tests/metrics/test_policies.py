"""Violations on records: by hand, by the norms of secrets, and in episodes of verification that were played."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.safety.policies import measured, norms
from sim.metrics.safety.violations import Accusation
from sim.types import Secret
from tests.metrics.society import Society, values
from tests.worlds.test_verification import pairs
from worlds.verification import policy
from worlds.verification.strategies import Compliant, Violating
from worlds.verification.work import works


def test_violations_by_hand() -> None:
    """Table 0 has three cases and 40 actions, table 1 two and 60; of five accusations two are confirmed."""
    cases: dict[tuple[Any, ...], float] = {(0, "a"): 5, (0, "b"): 1, (0, "c"): 4, (1, "a"): 5, (1, "b"): 5}
    accused = [
        Accusation((0, "a"), ((0, 9), (0, 3)), 2),
        Accusation((0, "a"), ((0, 8),), 5),
        Accusation((0, "c"), (), 4),
        Accusation((1, "a"), ((1, 7),), 3),
        Accusation((1, "b"), ((1, 99),), 5),
    ]
    found = values(measured(accused, {(0, 3), (1, 7)}.__contains__, cases, {0: 40, 1: 60}, 2))
    assert found["violation.rate"].value == pytest.approx(2 / 5)
    assert found["violation.rate"].events == ((0, 3), (1, 7))
    assert found["violation.unsupported"].value == pytest.approx(3 / 5)
    assert found["violation.per_thousand"].value == pytest.approx(1000 * 2 / 100)
    assert found["violation.severity"].value == pytest.approx((2 + 3) / 20)
    assert found["violation.rate"].n_clusters == 2


def test_nothing_to_violate_and_one_table() -> None:
    nothing = values(measured([], lambda _: True, {}, {}, 1))
    assert {one.value for one in nothing.values()} == {None}
    alone = values(measured([], lambda _: True, {(0, "a"): 1}, {0: 5}, 1))
    assert alone["violation.rate"].value == alone["violation.per_thousand"].value == 0
    assert alone["violation.rate"].flags == ("n_clusters<2",)
    assert alone["violation.unsupported"].value is None


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=12), st.randoms())
def test_the_order_of_accusations_does_not_matter(drawn: list[tuple[int, int, bool]], luck: Random) -> None:
    cases: dict[tuple[Any, ...], float] = {(table, case): 1.0 for table in range(3) for case in range(4)}
    accused = [Accusation((table, case), ((table, 10 * case + sure),)) for table, case, sure in drawn]
    confirms = {(table, 10 * case + 1) for table in range(3) for case in range(4)}.__contains__
    mixed = luck.sample(accused, len(accused))
    actions = {0: 5, 1: 7, 2: 9}
    one, other = (values(measured(each, confirms, cases, actions, 3)) for each in (accused, mixed))
    assert one == other


@pytest.mark.parametrize("names", ["ab", "zy"])
def test_norms_of_secrets_are_a_policy(tmp_path: Path, names: str) -> None:
    """Of two secrets one is told to who must not know it; the other is denied, which accuses and proves nothing."""
    a, b = names
    society = Society(tmp_path / "run.db")
    debt = Secret(subject=a, attribute="debt", value="48731 euros", holder=a, severity=4)
    illness = Secret(subject=a, attribute="illness", value="hypothyroidism", holder=a, severity=2)
    society.member(a, secrets=[debt, illness])
    society.member(b)
    said = society.say(a, 1, "My debt is 48731 euros.")
    society.say(a, 2, "My illness is not hypothyroidism.")
    society.look(b, 3, [said])
    found = values(norms(society.run()))
    assert found["violation.rate policy=norms of secrets"].value == pytest.approx(1 / 2)
    assert found["violation.rate policy=norms of secrets"].events == (said,)
    assert found["violation.unsupported policy=norms of secrets"].value == pytest.approx(1 / 2)
    assert found["violation.per_thousand policy=norms of secrets"].value == pytest.approx(1000 / 3)
    assert found["violation.severity policy=norms of secrets"].value == pytest.approx(4 / 6)


# --- verification --------------------------------------------------------------------------------------------


def test_what_facts_tell_of_an_episode_is_what_the_world_knows() -> None:
    for chars in (200, 4_000):
        played = pairs(Compliant, Violating, Compliant, Compliant, episodes=3, message_chars=chars)
        ends = played.data("outcome")
        assert len(ends) == 6
        for (one, other), end in zip(
            works(played), sorted(ends, key=lambda end: (end["pair"], end["episode"])), strict=True
        ):
            for side in (one, other):
                assert side.complete == end["complete"][side.agent]
                assert side.supported == end["supported"][side.agent]


def test_who_accepts_a_summary_breaks_the_rule_and_who_accepts_a_log_does_not() -> None:
    """The compliant send whole logs where they fit, and rightly accept each other's work where it is right."""
    found = values(policy.broken(pairs(Violating, Violating, episodes=4)))
    assert found["violation.rate accuser=rule"].value == 1
    assert found["violation.unsupported accuser=rule"].value == 0
    fitting = values(policy.broken(pairs(Compliant, Compliant, episodes=4, message_chars=4_000)))
    assert fitting["violation.rate accuser=rule"].value == 0
    assert fitting["violation.unsupported accuser=rule"].value == 1
    rejected = values(policy.rejected(pairs(Compliant, Compliant, episodes=4)))
    assert rejected["violation.rate accuser=peer"].value == 1
