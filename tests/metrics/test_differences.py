"""What two settings make of a number: by hand, at the edges, whatever the order, and how often chance stands apart."""

from __future__ import annotations

from math import comb, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.differences import Difference, difference
from sim.metrics.statistics.clusters import FEW
from sim.metrics.statistics.paired import ALIKE
from sim.types import Measurement


def pair(base: float | None, treated: float | None, unit: str = "points") -> tuple[Measurement, Measurement]:
    one, other = (Measurement(metric="x", value=value, unit=unit, of={"agent": "a"}) for value in (base, treated))
    return one, other


def of(base: list[float], treated: list[float], unit: str = "points") -> Difference:
    found = difference([pair(*each, unit) for each in zip(base, treated, strict=True)])
    assert found is not None
    return found


def test_a_difference_by_hand() -> None:
    """1, 2, 1 and 2: mean 1.5, standard error √(1/3)/2, t 3.182446 with three degrees of freedom; 2 of 16 signs."""
    found = of([10, 12, 9, 13], [11, 14, 10, 15])
    assert (found.metric, found.of, found.unit, found.base, found.treated) == ("x", {"agent": "a"}, "points", 11, 12.5)
    assert found.estimate.value == 1.5
    assert found.estimate.ci == pytest.approx((1.5 - 3.182446 / 12**0.5, 1.5 + 3.182446 / 12**0.5))
    assert (found.p, found.pairs, found.apart) == (2 / 16, 4, True)
    assert found.reduction == pytest.approx((10 / 3 + 17 / 3) / (1 / 3))


def test_ratios_are_compared_by_their_quotient() -> None:
    """Quotients 2, 1 and 4: on logs (to base 2) 1, 0 and 2, standard error 1/√3, t 4.302653."""
    found = of([1, 2, 4], [2, 2, 16], "ratio")
    assert (found.unit, found.estimate.value) == ("times", pytest.approx(2))
    assert found.estimate.ci is not None
    assert log(found.estimate.ci[1] / 2, 2) == pytest.approx(4.302653 / 3**0.5)
    assert not found.apart, "1 is inside"
    assert of([1, 2, 4], [2, 4.1, 8.1], "ratio").apart
    assert of([0, 2, 4], [2, 2, 16], "ratio").unit == "ratio", "0 has no logarithm"


def test_edges() -> None:
    assert difference([]) is difference([pair(None, 1.0), pair(1.0, None)]) is None
    alone = of([1.0], [2.0])
    assert (alone.estimate.ci, alone.estimate.flags, alone.apart, alone.p) == (None, (FEW,), False, 1)
    assert difference([pair(1.0, 3.0), pair(None, 9.0)]) == of([1.0], [3.0])


def test_few_pairs_that_differ_alike_have_no_interval() -> None:
    """Five coins fall alike with 2/32, six with 2/64."""
    five, six = (of([0.0] * n, [1.0] * n) for n in (5, 6))
    assert (five.estimate.ci, five.estimate.flags, five.apart, five.p) == (None, (ALIKE,), False, 2 / 32)
    assert (six.estimate.ci, six.apart, six.p) == ((1, 1), True, 2 / 64)
    assert of([0.1, 0.3], [0.3, 0.5]).estimate.flags == (ALIKE,), "0.3 − 0.1 and 0.5 − 0.3 are apart by rounding"


def test_what_is_apart_by_rounding_is_not_apart() -> None:
    found = of([(0.1 + 0.2) + 0.3] * 8, [0.1 + (0.2 + 0.3)] * 8)
    assert (found.estimate.value, found.apart, found.p) == (0, False, 1)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [2, 3, 4, 6, 8])
def test_a_number_of_two_values_is_rarely_apart_by_chance(n: int, share: float) -> None:
    """Exactly, over all that n pairs of independent runs can be: differences of −1, 0 and 1."""
    apart = 0.0
    changes = share * (1 - share)
    for more in range(n + 1):
        for less in range(n + 1 - more):
            same = n - more - less
            found = of([0.0] * (more + same) + [1.0] * less, [1.0] * more + [0.0] * (same + less))
            ways = comb(n, more) * comb(n - more, less)
            apart += found.apart * ways * changes ** (more + less) * (1 - 2 * changes) ** same
    assert apart < 0.06


numbers = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=6)


@settings(max_examples=40)
@given(numbers, st.randoms())
def test_the_order_of_pairs_does_not_matter_and_sides_mirror(found: list[tuple[int, int]], luck: object) -> None:
    base, treated = ([float(one) for one in side] for side in zip(*found, strict=True))
    mixed = luck.sample(found, len(found))  # type: ignore[attr-defined]
    one, other = of(base, treated), of(*([float(each) for each in side] for side in zip(*mixed, strict=True)))
    back = of(treated, base)
    assert one.estimate.value == pytest.approx(other.estimate.value)
    assert one.p == pytest.approx(back.p)
    assert one.apart == back.apart
    assert back.estimate.value == pytest.approx(-(one.estimate.value or 0))
    if one.estimate.ci is not None:
        assert other.estimate.ci == pytest.approx(one.estimate.ci, abs=1e-9)
