"""Where theory says that a bargain ends, what can be gained from more than one unit, and who envies whom."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.society.bargaining import envy_free_but_one_share, envy_free_share
from sim.metrics.society.economy import assigned_gains, transported_gains
from sim.metrics.society.solutions import apart, ideal, kalai_smorodinsky, nash_point, nash_product_ratio

PIE = [(1.0, 0.0), (0.0, 1.0)]
LINE = [(0.0, 2.0), (4.0, 0.0)]
points = st.tuples(st.integers(-5, 10), st.integers(-5, 10)).map(lambda one: (float(one[0]), float(one[1])))


def test_a_pie_is_halved() -> None:
    assert nash_point(PIE, (0, 0)) == kalai_smorodinsky(PIE, (0, 0)) == pytest.approx((0.5, 0.5))
    assert nash_point(PIE, (0.2, 0)) == pytest.approx((0.6, 0.4))
    assert nash_product_ratio((0.7, 0.3), (0.2, 0.1), PIE) == pytest.approx(0.816327, abs=5e-7)
    assert apart((0.7, 0.3), (0.5, 0.5)) == pytest.approx(0.08**0.5)


def test_the_two_solutions_differ_where_one_can_hope_for_less() -> None:
    """A square less its corner: Nash's product is largest on y = 3/2 − x, at ¾ of either.

    Of (0, 10), (6, 8), (12, 0): along the second side, x = 6 + 6s and y = 8 − 8s, the product 48(1 + s)(1 − s) is
    largest at s = 0. The most either can hope for is (12, 10): x/12 = y/10 there where (1 + s)/2 = (8 − 8s)/10, so
    s = 3/13.
    """
    kinked = [(0.0, 10.0), (6.0, 8.0), (12.0, 0.0)]
    assert nash_point([(0, 0), (0, 1), (0.5, 1), (1, 0.5), (1, 0)], (0, 0)) == pytest.approx((0.75, 0.75))
    assert ideal(kinked, (0, 0)) == (12, 10)
    assert nash_point(kinked, (0, 0)) == pytest.approx((6, 8))
    assert kalai_smorodinsky(kinked, (0, 0)) == pytest.approx((6 + 18 / 13, 8 - 24 / 13))
    assert ideal(kinked, (6, 0)) == (12, 8)
    assert ideal(LINE, (1, 0.5)) == pytest.approx((3, 1.5))


def test_no_deal_that_serves_both_has_no_solution() -> None:
    for outcomes, least in (([], (0, 0)), ([(1.0, -1.0)], (0, 0)), ([(0.0, 5.0)], (0, 0)), (PIE, (1, 1))):
        assert nash_point(outcomes, least) is kalai_smorodinsky(outcomes, least) is None
        assert nash_product_ratio((1, 1), least, outcomes) is None
    assert nash_product_ratio((-1, -1), (0, 0), PIE) is None


@given(st.lists(points, min_size=1, max_size=5), st.floats(0.5, 4), st.floats(0.5, 4), st.floats(-3, 3))
def test_solutions_know_no_unit_and_are_at_least_each_outcome(
    outcomes: list[tuple[float, float]], a: float, b: float, shift: float
) -> None:
    for solution in (nash_point, kalai_smorodinsky):
        found = solution(outcomes, (0, 0))
        moved = solution([(a * x + shift, b * y) for x, y in outcomes], (shift, 0))
        if found is None or moved is None:
            assert max((min(one) for one in outcomes), default=0) <= 1e-9
            continue
        assert moved == pytest.approx((a * found[0] + shift, b * found[1]), abs=1e-6)
        assert not any(x > found[0] + 1e-6 and y > found[1] + 1e-6 for x, y in outcomes)
    best = nash_point(outcomes, (0, 0))
    if best is not None:
        assert all(best[0] * best[1] >= x * y - 1e-6 for x, y in outcomes if x >= 0 and y >= 0)


# --- gains of several units ---------------------------------------------------------------------------------


def test_assigned_gains_by_hand() -> None:
    """Each buyer its house: 5 + 4 is less than 3 + 8; pairs that lose stay apart."""
    assert assigned_gains([[5, 3], [8, 4]]) == 11
    assert assigned_gains([[-1, -2], [3, -4]]) == 3
    assert assigned_gains([[2, 7, 1]]) == 7
    assert assigned_gains([[-1]]) == assigned_gains([]) == assigned_gains([[]]) == 0


@given(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=3, max_size=3))
def test_assigned_gains_are_the_best_of_all_matchings(surplus: list[list[int]]) -> None:
    best = max(sum(max(0, surplus[i][j]) for i, j in enumerate(order)) for order in permutations(range(3)))
    assert assigned_gains(surplus) == pytest.approx(best)
    assert transported_gains(surplus, [1] * 3, [1] * 3) == pytest.approx(best)


def test_transported_gains_by_hand() -> None:
    """The second buyer gains only with the first seller, who has two: 2 of it makes 5 a 4; a loss is left alone."""
    assert transported_gains([[5, 4], [2, -1]], [3, 1], [2, 5]) == pytest.approx(5 + 4 + 4 + 2)
    assert transported_gains([[5, 4], [2, -1]], [3, 1], [0, 5]) == pytest.approx(3 * 4)
    assert transported_gains([[5, 4], [2, -1]], [0, 0], [2, 5]) == transported_gains([], [], []) == 0


# --- envy ----------------------------------------------------------------------------------------------------


def test_shares_of_those_without_envy() -> None:
    """a envies nobody; b and c envy a, even but for the better one of its items."""
    values = [dict(zip("wxyz", own, strict=True)) for own in ((5, 5, 1, 1), (4, 4, 1, 1), (4, 4, 0, 2))]
    bundles = ["wx", "y", "z"]
    assert envy_free_share(values, bundles) == pytest.approx(1 / 3)
    assert envy_free_but_one_share(values, bundles) == pytest.approx(1 / 3)
    assert envy_free_but_one_share([{"x": 1, "y": 1}] * 2, [[], ["x"]]) == 1
    assert envy_free_share([{"x": 1, "y": 1}] * 2, [[], ["x"]]) == 0.5
    assert envy_free_share([], []) is envy_free_but_one_share([], []) is None
