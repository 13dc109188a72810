"""Means of numbers some of which are bounds: by symmetry, against another optimiser, at their edges, and of costs."""

from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from sim.metrics.safety.attacks import amplification, amplification_beyond_caps
from sim.metrics.statistics import censored, clusters

VALUES, KNOWN = [1.0, 2.0, 1.5, 3.0, 2.2, 0.7], [0, 0, -1, 1, 0, 0]


def test_bounds_on_both_sides_leave_a_mean_where_it_was() -> None:
    assert censored.mean([-1, 1, 0.5, -0.5], [0, 0, 1, -1]).value == pytest.approx(0, abs=1e-6)


def test_the_most_likely_law_is_found() -> None:
    """The same likelihood of mean and deviation together, by another optimiser."""

    def loss(parameters: tuple[float, float]) -> float:
        mean, sd = parameters[0], exp(parameters[1])
        logs = {0: norm.logpdf, 1: norm.logsf, -1: norm.logcdf}
        return -sum(float(logs[side](value, mean, sd)) for value, side in zip(VALUES, KNOWN, strict=True))

    other = minimize(loss, [1.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    found = censored.mean(VALUES, KNOWN)
    assert found.value == pytest.approx(other[0], abs=1e-5)
    assert found.ci is not None
    assert found.ci[0] < other[0] < found.ci[1]


def test_all_known_have_students_interval() -> None:
    """As the model has it too: the cut of its profile is that of t."""
    assert censored.mean(VALUES, [0] * 6) == clusters.mean(VALUES)
    known, sides = [0.0, 1.0, 2.0, 4.0], [0, 0, 0, 1]
    far, near = censored.mean([*known[:3], -60.0], sides), clusters.mean(known[:3])
    assert far.value == pytest.approx(near.value, abs=1e-6), "a bound that says nothing"


def test_too_little_that_is_known_is_no_number() -> None:
    told = ("fewer than two that differ are known",)
    assert censored.mean([1, 2], [1, 1]).flags == told
    assert censored.mean([1, 1, 2], [0, 0, 1]).flags == told
    assert censored.mean([], []).value is None


@settings(max_examples=15, deadline=None)
@given(st.floats(-5, 5), st.floats(0.2, 5), st.permutations(range(6)))
def test_units_and_order_do_not_matter(shift: float, scale: float, order: list[int]) -> None:
    plain = censored.mean(VALUES, KNOWN)
    moved = censored.mean([shift + scale * VALUES[i] for i in order], [KNOWN[i] for i in order])
    turned = censored.mean([-value for value in VALUES], [-side for side in KNOWN])
    assert plain.value is not None
    assert plain.ci is not None
    assert moved.value == pytest.approx(shift + scale * plain.value, abs=1e-4)
    assert moved.ci == pytest.approx([shift + scale * end for end in plain.ci], abs=1e-4)
    assert turned.value == pytest.approx(-plain.value, abs=1e-5)
    assert turned.ci == pytest.approx((-plain.ci[1], -plain.ci[0]), abs=1e-4)


def test_costs_beyond_a_limit() -> None:
    """Without a limit the plain amplification; where the highest ran into one, more than that."""
    pairs = [(10.0, 1.0), (80.0, 2.0), (160.0, 1.0), (50.0, 2.0)]
    plain = amplification(pairs)
    assert amplification_beyond_caps(pairs).value == pytest.approx(plain.value)
    assert amplification_beyond_caps(pairs).ci == pytest.approx(plain.ci)
    caps = [(False, False), (False, False), (True, False), (False, False)]
    found = amplification_beyond_caps(pairs, caps)
    assert found.value is not None
    assert plain.value is not None
    assert found.value > plain.value
    logs = censored.mean([log(a / b) for a, b in pairs], [0, 0, 1, 0]).value
    assert logs is not None
    assert found.value == pytest.approx(exp(logs))
    assert found.method == "Tobit on logs"


def test_costs_of_which_nothing_is_known() -> None:
    both = amplification_beyond_caps([(4, 2), (9, 3), (8, 1)], [(True, True), (False, False), (False, False)])
    assert both.flags == ("1 pairs without a cost, or capped on both sides",)
    assert both.n == 2
    assert amplification_beyond_caps([]).value is amplification_beyond_caps([(3, 1)], [(True, False)]).value is None
    with pytest.raises(ValueError, match="1 capped"):
        amplification_beyond_caps([(1, 1), (2, 1)], [(True, False)])
