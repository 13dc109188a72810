"""Ratios of risks, odds and hazards, and regressions: worked examples, published data, edges, invariances."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import contingency

from sim.metrics.statistics.glm import fit
from sim.metrics.statistics.ratios import (
    CONTINUITY,
    Counts,
    Ratio,
    cochran_mantel_haenszel,
    crude,
    exact_odds_ratio,
    hazard_ratio,
    mantel_haenszel,
    odds_ratio,
    risk_difference,
    risk_ratio,
)

SEEN = Counts(16, 40, 5, 100)
TYPES = [Counts(15, 30, 3, 12), Counts(1, 10, 4, 80)]
"""Chatty and quiet agents."""


def table(strata: list[Counts]) -> tuple[list[list[float]], list[float], list[float]]:
    """Rows (constant, exposure, later strata), outcomes and weights."""
    rows, outcomes, weights = [], [], []
    for place, (a, n, c, m) in enumerate(strata):
        dummies = [float(place == other) for other in range(1, len(strata))]
        for exposed, hits, size in ((1.0, a, n), (0.0, c, m)):
            for y, count in ((1.0, hits), (0.0, size - hits)):
                rows.append([1.0, exposed, *dummies])
                outcomes.append(y)
                weights.append(float(count))
    return rows, outcomes, weights


def test_worked_examples() -> None:
    assert risk_ratio(SEEN).value == pytest.approx(8)
    assert (risk_ratio(SEEN).ci or (0,))[0] == pytest.approx(3.14118, abs=1e-4)
    assert (risk_ratio(SEEN).ci or (0, 0))[1] == pytest.approx(20.374, abs=2e-3)
    assert odds_ratio(SEEN).value == pytest.approx(12.6667, abs=5e-5)
    assert hazard_ratio(SEEN).value == pytest.approx(9.95892, abs=5e-6)
    assert risk_ratio(crude(TYPES)).value == pytest.approx(5.25714, abs=5e-6)
    assert mantel_haenszel(TYPES).value == pytest.approx(2)
    assert cochran_mantel_haenszel(TYPES) == pytest.approx(0.110, abs=5e-4)
    assert mantel_haenszel([Counts(4, 40, 10, 100)]).value == pytest.approx(1)


def test_worked_examples_by_regression() -> None:
    rows, outcomes, weights = table([SEEN])
    for link, expected in (("cloglog", 9.95892), ("logit", 12.66667), ("poisson", 8.0)):
        found = fit(rows, outcomes, link, weights=weights)  # type: ignore[arg-type]
        assert found is not None
        assert found.ratio(1)[0] == pytest.approx(expected, abs=5e-6)
    rows, outcomes, weights = table(TYPES)
    adjusted = fit(rows, outcomes, "poisson", weights=weights)
    assert adjusted is not None
    value, (low, high) = adjusted.ratio(1)
    assert (round(value, 2), round(low, 2), round(high, 2)) == (2.00, 0.78, 5.11)


def test_errors_are_of_the_observed_information() -> None:
    """Coefficients and errors by statsmodels 0.15, `GLM(…).fit(cov_type="cluster")` times √(10/9), and "HC0"."""
    rows = [[1.0, k % 7 - 3.0] for k in range(60)]
    outcomes = [float((k * k + k // 5) % 4 == 1 or k % 11 == 3) for k in range(60)]
    for link, coefficients, errors, alone in (
        ("cloglog", (-1.10567236, -0.04236915), (0.21509495, 0.12900322), (0.24588893, 0.13628367)),
        ("logit", (-0.93473679, -0.04785460), (0.25147837, 0.14606717), (0.28839311, 0.15413419)),
    ):
        found = fit(rows, outcomes, link, [[k // 6 for k in range(60)]])  # type: ignore[arg-type]
        by_row = fit(rows, outcomes, link)  # type: ignore[arg-type]
        assert found is not None
        assert by_row is not None
        assert found.coefficients == pytest.approx(coefficients, abs=1e-8)
        assert found.errors == pytest.approx(errors, abs=1e-8)
        assert by_row.errors == pytest.approx(alone, abs=1e-8)


def test_edges() -> None:
    assert risk_ratio(Counts(0, 0, 3, 5)) == risk_ratio(Counts(0, 4, 0, 5)) == Ratio(None)
    assert risk_ratio(Counts(4, 4, 2, 4)).flags == ()
    assert odds_ratio(Counts(4, 4, 2, 4)).flags == (CONTINUITY,)
    assert risk_ratio(Counts(3, 9, 0, 9)).value == pytest.approx(7)
    assert mantel_haenszel([]) == Ratio(None)
    assert mantel_haenszel([Counts(0, 5, 2, 5)]).value == 0
    assert mantel_haenszel([Counts(2, 5, 0, 5)]) == Ratio(None, None, ("no outcome in one group",))
    assert cochran_mantel_haenszel([Counts(0, 1, 0, 0)]) is None


def test_what_has_no_finite_answer_is_not_fitted() -> None:
    assert fit([[1.0, 0.0], [1.0, 1.0]], [0, 0], "logit") is None
    assert fit([], [], "logit") is None
    apart = [[1.0, float(i >= 10)] for i in range(20)]
    assert fit(apart, [float(i >= 10) for i in range(20)], "logit") is None


def test_errors_grow_where_rows_hang_together() -> None:
    luck = Random(5)
    rows, outcomes, groups = [], [], []
    for group in range(40):
        exposed, own = float(group % 2), luck.gauss(0, 1.5)
        for _ in range(20):
            rows.append([1.0, exposed])
            outcomes.append(float(luck.random() < 1 / (1 + exp(1 - own))))
            groups.append(group)
    alone, together = fit(rows, outcomes, "logit"), fit(rows, outcomes, "logit", [groups])
    assert alone is not None
    assert together is not None
    assert alone.coefficients == together.coefficients
    assert together.errors[1] > 2 * alone.errors[1]
    twice = fit(rows, outcomes, "logit", [groups, groups])
    assert twice is not None
    assert twice.errors == pytest.approx(together.errors)


cells = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)).map(
    lambda one: Counts(one[0], one[0] + one[1], one[2], one[2] + one[3])
)


def test_an_exact_odds_ratio_by_hand() -> None:
    """One of one against none of one: P(K = 1) = ψ/(1 + ψ), a half at 1 and .025 at 1/39; the same table twice: ψ²."""
    one = exact_odds_ratio([Counts(1, 1, 0, 1)])
    assert (one.value, one.ci, one.flags) == (pytest.approx(1), None, ("at least 0.0256, at 97.5%",))
    both = exact_odds_ratio([Counts(1, 1, 0, 1)] * 2)  # P(K = 2) = ψ²/(1 + ψ)², a half at 1/(√2 − 1)
    assert (both.value, both.ci) == (pytest.approx(1 / (sqrt(2) - 1)), None)
    assert exact_odds_ratio([Counts(0, 1, 1, 1)]).flags == ("at most 39, at 97.5%",)
    assert exact_odds_ratio([(1, 1, 0, 1)]) == one, "as its neighbours take it"  # type: ignore[list-item]
    for none in ([], [Counts(3, 3, 0, 0)], [Counts(0, 3, 0, 3)]):
        assert exact_odds_ratio(none) == Ratio(None, None, ("no choice within strata",))


def test_an_exact_interval_is_that_of_scipy() -> None:
    known = contingency.odds_ratio([[16, 24], [5, 95]]).confidence_interval(0.95)
    assert exact_odds_ratio([SEEN]).ci == pytest.approx((known.low, known.high), rel=1e-6)


@given(st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=1, max_size=3))
def test_an_exact_odds_ratio_turns_with_its_groups(cells: list[tuple[int, int, int, int]]) -> None:
    one = exact_odds_ratio([Counts(a, a + b, c, c + d) for a, b, c, d in cells])
    other = exact_odds_ratio([Counts(c, c + d, a, a + b) for a, b, c, d in cells])
    assert (one.value is None) is (other.value is None)
    if one.value is not None and other.value is not None:
        assert one.value * other.value == pytest.approx(1)


@given(st.lists(cells, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_strata_have_no_order_and_one_is_the_crude_ratio(strata: list[Counts], luck: Random) -> None:
    mixed = luck.sample(strata, len(strata))
    assert mantel_haenszel(strata).value == pytest.approx(mantel_haenszel(mixed).value)
    assert mantel_haenszel(strata[:1]).value == pytest.approx(risk_ratio(strata[0]).value)
    found = mantel_haenszel(strata)
    assert found.ci is not None
    assert found.ci[0] <= (found.value or 0) <= found.ci[1]


@given(cells)
def test_the_exposed_and_the_others_change_places(counts: Counts) -> None:
    a, n, c, m = counts
    for measure in (risk_ratio, odds_ratio, hazard_ratio):
        there, back = measure(counts).value, measure(Counts(c, m, a, n)).value
        assert log(there or 0) == pytest.approx(-log(back or 0), abs=1e-9)


def test_homophily_is_matched_away() -> None:
    """Types that disclose more and see more: crude ratios are far off, matched ones near the truth, 1 and 3."""
    for truth, least in ((1.0, 1.3), (3.0, 4.0)):
        luck = Random(7)
        strata = []
        for base, share in ((0.02, 0.1), (0.2, 0.7)):
            a = n = c = m = 0
            for _ in range(4000):
                seen = luck.random() < share
                told = luck.random() < min(1, base * (truth if seen else 1))
                a, n, c, m = a + (seen and told), n + seen, c + (not seen and told), m + (not seen)
            strata.append(Counts(a, n, c, m))
        found = mantel_haenszel(strata)
        assert found.ci is not None
        assert found.ci[0] < truth < found.ci[1]
        assert (risk_ratio(crude(strata)).value or 0) > least * truth / (truth if truth > 1 else 1)


def test_differences_of_risks_within_strata() -> None:
    """1/2 − 1/4 of weight 30·12/42, and 1/10 − 1/20 of weight 10·80/90; a stratum of one group says nothing."""
    weights = 30 * 12 / 42, 10 * 80 / 90
    by_hand = (weights[0] * 1 / 4 + weights[1] * 1 / 20) / sum(weights)
    assert risk_difference(TYPES) == pytest.approx(by_hand)
    assert risk_difference([*TYPES, Counts(0, 0, 7, 9)]) == pytest.approx(by_hand)
    assert risk_difference([Counts(3, 4, 0, 0), Counts(0, 0, 1, 4)]) is None
