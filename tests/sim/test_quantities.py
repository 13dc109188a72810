"""Durations and distributions, one grammar."""

from __future__ import annotations

import math
from statistics import fmean, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.quantities import distribution, milliseconds, readable, ticks


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20s", 20_000), ("250ms", 250), ("1h30m", 5_400_000), ("2d", 172_800_000), ("1.5m", 90_000), ("", None),
     ("5", None),
     ("5 s", None), ("s", None), ("5s!", None), ("1h-5m", None), ("soon", None)],
)  # fmt: skip
def test_milliseconds(text: str, expected: float | None) -> None:
    assert milliseconds(text) == expected


def test_ticks_round_to_nearest_and_never_to_nothing() -> None:
    assert ticks("10m", 1000) == 600
    assert ticks("1500ms", 1000) == 2
    assert ticks(7, 1000) == ticks("7", 1000) == 7
    assert ticks("0s", 1000) == 0
    for bad in ("400ms", -1, "tomorrow", None, True, 1.5):
        with pytest.raises(ValueError):
            ticks(bad, 1000)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**9))
def test_readable_keeps_two_units(count: int) -> None:
    length = milliseconds(readable(count, 1000))
    assert length is not None
    assert length <= count * 1000
    assert length >= 0.95 * count * 1000 - 1


def samples(text: str, tick_ms: float | None = None, n: int = 2000) -> list[float]:
    each = distribution(text, tick_ms)
    return [each.quantile((i + 0.5) / n) for i in range(n)]


def test_families_have_their_moments() -> None:
    assert fmean(samples("uniform(80, 120)")) == pytest.approx(100)
    assert fmean(samples("normal(5, 2)")) == pytest.approx(5, abs=0.01)
    assert median(samples("lognormal(20s, 0.5)", 1000)) == pytest.approx(20, rel=0.01)
    assert fmean(samples("lognormal(20, 0.5)")) == pytest.approx(20 * math.exp(0.125), rel=0.01)
    assert fmean(samples("exponential(3)")) == pytest.approx(3, rel=0.01)
    assert sorted(set(samples("integer(1, 6)"))) == [1, 2, 3, 4, 5, 6]
    assert set(samples("choice(red, blue)")) == {"red", "blue"}


def test_think_times_are_zero_only_for_a_literal_zero() -> None:
    assert distribution(0).ticks(0.3) == 0
    assert distribution("0s", 1000).ticks(0.3) == 0
    assert distribution("uniform(0, 0.1)").ticks(0.5) == 1
    assert distribution("normal(0, 9)").ticks(0.01) == 1
    assert distribution("5s", 1000).ticks(0.9) == 5


@pytest.mark.parametrize(
    "bad", ["uniform(1)", "uniform(9, 1)", "gauss(1, 2)", "normal(0, 0)", "lognormal(-1, 1)", "exponential(0)",
            "uniform(a, b)", "integer(1.5, 2)", "5s; rm", "uniform(1, 2", "choice()"],
)  # fmt: skip
def test_bad_distributions_are_refused_in_one_line(bad: str) -> None:
    with pytest.raises(ValueError) as error:
        distribution(bad, 1000)
    assert "\n" not in str(error.value)
