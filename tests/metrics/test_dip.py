"""The dip of samples: by hand, against linear programmes, whatever the unit; its test on scales and lines."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sim.metrics.society.opinions import polarised
from sim.metrics.statistics.dip import dip, dip_test, spread
from tests.metrics.society import values
from tests.metrics.test_societies import held


def least(sample: list[float]) -> float:
    """The dip by its definition, the best of linear programmes with the mode at each value."""
    n, x = len(sample), sorted(set(sample))
    low = [sum(one < value for one in sample) / n for value in x]
    high = [sum(one <= value for one in sample) / n for value in x]
    return max(1 / (2 * n), min(programme(x, low, high, mode) for mode in range(len(x))))


def programme(x: list[float], low: list[float], high: list[float], mode: int) -> float:
    """F at each value, twice at the mode, where it may jump; and the largest distance, which is made small."""
    sides = [*range(mode + 1), *range(mode, len(x))]
    rows, bounds, size = [], [], len(sides) + 1

    def add(bound: float, *terms: tuple[int, float]) -> None:
        row = [0.0] * size
        for place, factor in terms:
            row[place] += factor
        rows.append(row)
        bounds.append(bound)

    for place, i in enumerate(sides):
        at_mode = {mode: [low], mode + 1: [high]}.get(place, [low, high])
        for steps in at_mode:
            add(steps[i], (place, 1), (size - 1, -1))
            add(-steps[i], (place, -1), (size - 1, -1))
    for place in range(len(sides) - 1):
        add(0, (place, 1), (place + 1, -1))
    for sign, start, end in ((1, 0, mode), (-1, mode + 1, len(sides) - 1)):
        for place in range(start + 1, end):
            before, after = (x[sides[place + by]] - x[sides[place + by - 1]] for by in (0, 1))
            slopes = (place, 1 / before + 1 / after), (place - 1, -1 / before), (place + 1, -1 / after)
            add(0, *((at, sign * factor) for at, factor in slopes))
    return float(linprog([0.0] * (size - 1) + [1.0], A_ub=rows, b_ub=bounds, bounds=(0, 1)).fun)


def test_by_hand() -> None:
    """Two points as far as can be; an even ladder has no dip but that of its steps."""
    assert dip([0, 0, 0, 1, 1, 1]) == pytest.approx(1 / 4)
    assert dip([1, 2, 3, 4]) == pytest.approx(1 / 8)
    assert dip([7, 7, 7, 7, 7]) == pytest.approx(1 / 10)
    assert dip([1, 2, 3]) is None


@settings(max_examples=40)
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 1_000)), min_size=4, max_size=9))
def test_the_definition(sample: list[int]) -> None:
    assert dip(sample) == pytest.approx(least([float(one) for one in sample]), abs=1e-7)


@given(st.lists(st.integers(-50, 50), min_size=4, max_size=30), st.integers(1, 9), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_nor_direction_matter(sample: list[int], unit: int, luck: Random) -> None:
    found = dip(sample)
    assert found is not None
    assert 1 / (2 * len(sample)) - 1e-12 <= found <= 0.25 + 1e-12
    assert dip([5 - unit * one for one in luck.sample(sample, len(sample))]) == pytest.approx(found)


def test_a_scale_is_not_taken_for_camps() -> None:
    """Opinions from 1 to 7 with one mode; the same number at both ends; two answers, which may be all there are."""
    assert spread([1, 1, 2, 9]) == pytest.approx([0.75, 1.25, 2, 9])
    assert spread([4, 4]) == [4, 4]
    luck = Random(1)
    alarms = 0
    for _ in range(40):
        near = [float(min(7, max(1, round(luck.gauss(4, 1.2))))) for _ in range(40)]
        alarms += (dip_test([spread(near)], 99) or 0) <= 0.05
    assert alarms <= 4
    assert dip_test([spread([float(luck.choice([1, 2, 6, 7])) for _ in range(40)])], 99) == pytest.approx(1 / 100)
    assert (dip_test([spread([0.0, 1.0] * 20)], 99) or 0) > 0.9
    assert dip_test([[luck.gauss(6 * (n % 2), 1) for n in range(300)]], 99) == pytest.approx(1 / 100)
    assert dip_test([[1.0, 2.0, 3.0]]) is None


def test_camps_on_a_record() -> None:
    """Two tables with camps at 0 and 1, and one where too few said anything."""
    told = [held(n, f"a{n}", n % 2 + n / 100, table) for table, n in product(range(2), range(12))]
    found = values(polarised([*told, held(0, "x", 1.0, 2), held(1, "y", 2.0, 2)], 99))["polarisation.dip"]
    assert found.value == pytest.approx(dip([one.value for one in told[:12]]))
    assert (found.n_clusters, found.null["p"]) == (2, 1 / 100)
    few = values(polarised([held(0, "x", 1.0), held(1, "y", 2.0)]))["polarisation.dip"]
    assert (few.value, few.null) == (None, {})
    assert few.flags == ("fewer than 4 opinions about one thing",)


def test_camps_whose_members_agree_are_camps_where_the_scale_has_more() -> None:
    """Two points, as bounded confidence leaves them, of opinions that were anywhere before: the largest dip of all."""
    luck = Random(3)
    first = [held(n, f"a{n}", luck.uniform(-1, 1)) for n in range(40)]
    end = [held(40 + n, f"a{n}", 0.4 if n % 2 else -0.4) for n in range(40)]
    found = values(polarised([*first, *end], 99))["polarisation.dip"]
    assert found.value == pytest.approx(1 / 4, abs=0.02)
    assert found.null["p"] == 1 / 100
    assert (values(polarised(end, 99))["polarisation.dip"].null["p"] or 0) > 0.9, "a scale of two answers"
