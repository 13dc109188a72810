"""Hazards of onsets: closed forms, who is at risk when, conditions, edges."""

from __future__ import annotations

from itertools import product
from math import log
from random import Random
from typing import Any

import pytest

from sim.metrics.collusion.onset_hazard import BEFORE, EPISODE, Period, all, compared, measured, periods
from sim.metrics.family import Relative
from sim.metrics.statistics.glm import hazard_ratios
from tests.metrics.recorded import episode, told
from tests.metrics.society import values


def test_worked_example_of_a_hazard_ratio() -> None:
    """Sixteen of forty against five of a hundred: ln(1 − .4)/ln(1 − .05) (P26)."""
    seen = [1.0] * 40 + [0.0] * 100
    outcomes = [1.0] * 16 + [0.0] * 24 + [1.0] * 5 + [0.0] * 95
    found = hazard_ratios({"seen": seen, "same": [2.0] * 140}, outcomes, [])
    assert found["seen"].value == pytest.approx(9.95892, abs=5e-5)
    assert found["same"] == (None, None, ("does not vary",))
    few = hazard_ratios({"seen": seen[38:42]}, [1.0, 0.0, 1.0, 0.0], [])
    assert few["seen"].flags == ("fewer than 10 outcomes a coefficient",)
    apart = hazard_ratios({"seen": seen}, seen, [])
    assert (apart["seen"].value, apart["seen"].flags) == (None, ("separated",))


def test_who_is_at_risk() -> None:
    """Until the onset, or two before the end; before: whether one of both did it the time before."""
    one = [episode(0, n, [mark in "ox", mark == "x"]) for n, mark in enumerate(".oxxx", 1)]
    other = [episode(1, n, [False, False]) for n in range(1, 5)]
    found = periods(told([[*one, *other]]))
    assert [(each.pair, each.episode, each.began, each.before) for each in found] == [
        (0, 1, False, False),
        (0, 2, False, False),
        (0, 3, True, True),
        (1, 1, False, False),
        (1, 2, False, False),
    ]


def society(luck: Random, hazard: float, tables: int = 12) -> Any:
    """Tables of five pairs in ten episodes; whose one member has begun begins three times as likely."""
    facts = []
    for _ in range(tables):
        own = []
        for pair in range(5):
            begun = False
            one = False
            for n in range(1, 11):
                begun = begun or luck.random() < hazard * (3 if one else 1)
                one = luck.random() < 0.4
                own.append(episode(pair, n, [begun or one, begun]))
        facts.append(own)
    return told(facts)


def test_what_is_planted_is_found() -> None:
    found = values(all(society(Random(3), 0.06, 30)))
    before = found[f"onset.hazard_ratio covariate={BEFORE}"]
    assert before.ci[0] <= 3 <= before.ci[1]
    assert before.ci[0] > 1
    later = found[f"onset.hazard_ratio covariate={EPISODE}"]
    assert later.ci[0] <= 1 <= later.ci[1]
    assert (before.n_clusters, before.unit) == (30, "ratio")


def test_conditions_stand_against_the_first() -> None:
    runs = [
        Relative(id=f"{side}{n}", record=society(Random(f"{side}{n}"), hazard, 4), scenario={"world": {"side": side}})
        for (side, hazard), n in product((("a", 0.04), ("b", 0.12)), range(4))
    ]
    found = values(compared(runs))
    side = found['onset.hazard_ratio against={"side":"a"} condition={"side":"b"}']
    assert side.ci[0] <= 3 <= side.ci[1]
    assert side.ci[0] > 1
    assert side.n_clusters == 32


def test_nobody_at_risk_and_one_table() -> None:
    assert {one.value for one in all(told([[]]))} == {None}
    assert {one.value for one in compared([])} == {None}
    rows = [Period(cluster=("", 0), pair=n, began=n % 3 == 0, episode=1 + n % 4, before=n % 2 == 0) for n in range(120)]
    found = list(measured(rows, {}))
    assert {one.n_clusters for one in found} == {120}
    assert abs(log(found[1].value or 0)) < 1
