"""Calibration errors and the line that would mend predictions: by hand, by theory, at the edges, on records."""

from __future__ import annotations

from math import exp, log
from random import Random

import numpy as np
import pytest

from sim.metrics.analysis.calibration import Stated, measured, parts
from sim.metrics.analysis.reliability import binned, debiased, ece, equal_mass, kernel, plain, recalibration
from sim.metrics.statistics.discrimination import scored
from tests.metrics.society import values

GIVEN = [0.9] * 4 + [0.6] * 6
HAPPENED = [True] * 3 + [False] + [True] * 3 + [False] * 3


def test_calibration_errors_by_hand() -> None:
    """Three of four of .9 happen, three of six of .6."""
    assert equal_mass(GIVEN, 2) == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    squares = 0.4 * (0.15**2 - 0.75 * 0.25 / 3) + 0.6 * (0.1**2 - 0.25 / 5)
    assert debiased(GIVEN, HAPPENED) == pytest.approx(squares)
    assert kernel([0.9, 0.6], [True, False], 0.4) == pytest.approx(0.1 * -0.6 * exp(-0.3 / 0.4))
    first = np.array([1.0] * 4 + [0] * 6)
    assert plain(binned(GIVEN, HAPPENED).sums(first)) == pytest.approx(0.15)
    assert parts(scored(GIVEN, HAPPENED).sums(first)) == pytest.approx((0.15**2, 0, 3 / 16))


def test_the_line_by_hand() -> None:
    """.9 comes to .75 and .6 to .5: in logits ln 9 → ln 3 and ln 1.5 → 0."""
    line = recalibration(GIVEN, HAPPENED)
    assert line is not None
    slope = log(3) / (log(9) - log(1.5))
    assert (line.slope, line.intercept) == pytest.approx((slope, -slope * log(1.5)))


def test_calibration_errors_at_their_edges() -> None:
    assert equal_mass([]) == []
    assert ece([], []) is debiased([], []) is debiased([0.5], [True]) is kernel([], []) is kernel([0.5], [True]) is None
    assert recalibration([], []) is recalibration([0.5] * 9, [True, False, True] * 3) is None
    assert (
        recalibration([0.0, 0.5, 0.6], [False, True, False]) is recalibration([0.2, 0.8] * 5, [False, True] * 5) is None
    )
    for wrong in (
        lambda: debiased([1.2], [True]),
        lambda: debiased([0.5], [True], 0),
        lambda: kernel([0.5], [True], 0),
        lambda: kernel([0.5], [2]),  # type: ignore[list-item]
        lambda: ece([-0.5], [True]),
        lambda: recalibration([0.5, 0.4], [True]),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_right_predictions_have_no_error_but_by_chance() -> None:
    """The plain error is never 0; the debiased ones are in the mean, and the line is 0 and 1."""
    luck, found = Random(2), []
    for _ in range(60):
        given = [luck.uniform(0.1, 0.9) for _ in range(150)]
        happened = [luck.random() < p for p in given]
        line = recalibration(given, happened)
        assert line is not None
        found.append((ece(given, happened), debiased(given, happened), kernel(given, happened), line.slope - 1))
    usual, *right = (sum(one[place] or 0 for one in found) / 60 for place in range(4))
    assert usual > 0.05
    assert right == pytest.approx([0, 0, 0], abs=0.08)
    assert right[:2] == pytest.approx([0, 0], abs=0.003)


def sureness(luck: Random, size: float) -> tuple[float, float]:
    """The interval of the slope where agents are as sure as they may be, or `size` times more."""
    said = []
    for table in range(20):
        for _ in range(10):
            true = luck.uniform(0.1, 0.9)
            odds = (true / (1 - true)) ** (1 + size)
            said.append(Stated(table, "a", len(said), odds / (1 + odds), luck.random() < true))
    found = values(measured(said, {}, 0))["calibration.slope"].ci
    assert isinstance(found, tuple)
    return found


def test_intervals_on_records_hold_the_truth_and_miss_what_is_planted() -> None:
    luck, held, missed = Random(3), 0, 0
    for _ in range(15):
        for size in (0, 2):
            low, high = sureness(luck, size)
            held += size == 0 and low <= 1 <= high
            missed += size == 2 and not low <= 1 <= high
    assert held >= 0.8 * 15
    assert missed >= 0.9 * 15


def test_the_debiased_error_has_an_interval_that_holds_none() -> None:
    """Fifteen tables of eight right predictions, and far too sure ones."""
    luck, held, missed = Random(4), 0, 0
    for _ in range(15):
        for size in (0, 1):
            said = []
            for n in range(120):
                true = luck.choice((0.2, 0.4, 0.6, 0.8))
                odds = (true / (1 - true)) ** (1 + 4 * size)
                said.append(Stated(n % 15, "a", n, odds / (1 + odds), luck.random() < true))
            low, high = values(measured(said, {}, 99))["calibration.ece_debiased"].ci
            held += size == 0 and low <= 0 <= high
            missed += size == 1 and low > 0
    assert held >= 13
    assert missed >= 10


def test_one_table_one_class_and_sure_predictions_are_said() -> None:
    one_class = values(measured([Stated(n % 2, "a", n, 0.5 + n / 200, True) for n in range(60)], {}, 9))
    assert (one_class["calibration.auc"].value, one_class["calibration.auc"].flags) == (
        None,
        ("all happened, or nothing did",),
    )
    alone = values(measured([Stated(0, "a", n, 0.3 + n / 200, n % 2 == 0) for n in range(60)], {}, 9))
    assert (alone["calibration.auc"].ci, alone["calibration.auc"].flags) == (None, ("n_clusters<2",))
    assert (alone["calibration.slope"].ci, alone["calibration.slope"].flags) == (None, ("n_clusters<2",))
    sure = values(measured([Stated(n % 3, "a", n, n % 2, n % 5 != 0) for n in range(60)], {}, 9))
    assert sure["calibration.slope"].value is None
    few = values(measured([Stated(n % 3, "a", n, 0.5, n % 5 != 0) for n in range(49)], {}, 9))
    told = {name for name, one in few.items() if one.value is not None}
    assert told == {"calibration.brier"}
    assert few["calibration.overconfidence"].flags == ("fewer than 50 predictions",)
