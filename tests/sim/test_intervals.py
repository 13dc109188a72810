"""Intervals against numbers worked out by hand."""

from __future__ import annotations

import pytest

from sim.intervals import Z, mean_interval, wilson


def test_wilson_by_hand() -> None:
    """At 5 of 10: 0.5 ± Z·√(0.025 + Z²/400) / (1 + Z²/10); at none of 10: Z²/(10 + Z²)."""
    assert pytest.approx(1.959964, abs=1e-6) == Z
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=5e-5)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-5)
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=5e-5)
    assert wilson(10, 10) == pytest.approx((0.7225, 1), abs=5e-5)
    assert wilson(10, 10)[1] == 1
    assert wilson(5, 10, 0.99)[0] < wilson(5, 10)[0]


@pytest.mark.parametrize(("hits", "n"), [(0, 0), (-1, 3), (4, 3)])
def test_no_share(hits: float, n: float) -> None:
    with pytest.raises(ValueError, match="is no share"):
        wilson(hits, n)


def test_interval_of_a_mean_by_hand() -> None:
    """1, 2, 3: mean 2, standard error 1/√3, t of 2 degrees 4.303; of 40 zeros and ones by the normal."""
    assert mean_interval([1, 2, 3]) == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5))
    assert mean_interval([1, 2]) == pytest.approx((1.5 - 12.706 / 2, 1.5 + 12.706 / 2))
    low, high = mean_interval([0, 1] * 20) or (0, 0)
    assert (low, high) == pytest.approx((0.5 - Z * (10 / 39 / 40) ** 0.5, 0.5 + Z * (10 / 39 / 40) ** 0.5))
    assert mean_interval([5]) is None
    assert mean_interval([]) is None
