"""Intervals against numbers worked out by hand."""

from __future__ import annotations

import pytest

from sim.intervals import ALIKE, FEW, Interval, Z, clustered, clustered_mean, wilson


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


def test_clusters_by_hand() -> None:
    """Five more or less than half of ten: se = √(3/2 · 2) / 30, and t with two degrees of freedom is 4.3027."""
    found = clustered([4, 5, 6], [10, 10, 10])
    assert found.ci == pytest.approx((0.25159, 0.74841), abs=5e-5)
    assert found.method == "t over clusters"
    assert clustered([4, 5, 6, 0], [10, 10, 10, 0]) == found, "who never tried says nothing"
    assert clustered([0, 10], [10, 10]).ci == (0, 1)


def test_means_of_clusters_by_hand() -> None:
    """As the shares, and not held between 0 and 1."""
    found = clustered_mean([-4, -5, -6], [10, 10, 10])
    assert found.ci == pytest.approx((-0.74841, -0.25159), abs=5e-5)
    assert clustered_mean([20] * 6, [10] * 6) == Interval((2, 2), "t over clusters")
    assert clustered_mean([20, 0, 10, 1], [10, 0, 5, 0.5]) == Interval(None, flags=(ALIKE,)), "three tell no spread"
    assert clustered_mean([3], [4]) == Interval(None, flags=(FEW,))


def test_one_cluster_says_nothing_of_the_next() -> None:
    assert clustered([3], [4]) == Interval(None, flags=(FEW,))
    assert clustered([], []) == Interval(None)


def test_none_and_all() -> None:
    """1 − 0.05^(1/20)."""
    assert clustered([0, 0], [10, 10]).ci == pytest.approx((0, 0.13911), abs=5e-5)
    assert clustered([10, 10], [10, 10]).ci == pytest.approx((0.86089, 1), abs=5e-5)
    assert clustered([0, 0], [10, 10]).flags == ("design effect unknown",)
