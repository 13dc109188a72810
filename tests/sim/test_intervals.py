"""Intervals against numbers worked out by hand."""

from __future__ import annotations

import pytest

from sim.intervals import Z, wilson


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
