"""Rates over clusters, permutations, agreement, judges: worked examples, theory, edges."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.intervals import ALIKE, FEW, none_upper, wilson
from sim.metrics.judging.agreement import (
    cohen_kappa,
    crossed,
    flip_rate,
    gwet_ac1,
    krippendorff_alpha,
    observed_agreement,
    weighted_kappa,
)
from sim.metrics.judging.judged import accuracy, ppi_by_strata, ppi_mean, rogan_gladen
from sim.metrics.statistics.clusters import (
    Estimate,
    cluster_se,
    design_effect,
    geometric_mean,
    independent_rate,
    mean,
    rate,
    ratio,
)
from sim.metrics.statistics.multiplicity import adjusted, benjamini_hochberg
from sim.metrics.statistics.permutation import exact_exposure, mcnemar, sign_flips, stratified

CALLS = ([4, 0, 3, 1], [4, 4, 4, 4])
JUDGED = crossed(20, 5, 10, 65)


def test_worked_examples_of_intervals() -> None:
    assert wilson(3, 20) == pytest.approx((0.0523687, 0.360419), abs=5e-7)
    assert none_upper(20) == pytest.approx(0.139108, abs=5e-7)
    assert cluster_se(*CALLS) == pytest.approx(0.228218, abs=5e-7)
    assert design_effect(*CALLS) == pytest.approx(3.33333, abs=5e-6)
    assert sum(benjamini_hochberg([0.01, 0.02, 0.03, 0.50])) == 3


def test_worked_examples_of_judges() -> None:
    assert cohen_kappa(JUDGED) == pytest.approx(0.625)
    assert gwet_ac1(JUDGED) == pytest.approx(0.75052, abs=5e-6)
    assert rogan_gladen(0.30, 0.85, 0.95).value == pytest.approx(0.3125)
    human, judge = [1, 1, 1] + [0] * 7, [1, 1] + [0] * 8
    assert ppi_mean([0.3] * 50, human, judge).value == pytest.approx(0.4)


# --- clusters ----------------------------------------------------------------------------------------------


def test_no_units_are_no_number_and_one_cluster_has_no_interval() -> None:
    assert rate([], []) == rate([0, 0], [0, 0]) == mean([]) == independent_rate(0, 0) == Estimate(None)
    assert rate([3], [20]) == Estimate(0.15, 20, 1, flags=(FEW,))
    assert mean([2.0]).flags == (FEW,)
    assert geometric_mean([]).value is None


def test_none_and_all_have_one_sided_bounds() -> None:
    none, every = rate([0, 0], [10, 10]), rate([10, 10], [10, 10])
    assert none.ci == pytest.approx((0, 0.139108), abs=5e-7)
    assert every.ci == pytest.approx((1 - 0.139108, 1), abs=5e-7)


def test_a_mean_has_a_t_interval() -> None:
    found = mean([1, 2, 1, 2])
    assert found.ci == pytest.approx((0.581307, 2.418693), abs=5e-7)
    assert geometric_mean([10, 40, 160]).value == pytest.approx(40)
    with pytest.raises(ValueError, match="positive"):
        geometric_mean([1, 0])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_clusters_does_not_matter(pairs: list[tuple[int, int]], luck: object) -> None:
    pairs = [(min(hit, size), size) for hit, size in pairs]
    mixed = sorted(pairs, key=lambda _: luck.random())  # type: ignore[attr-defined]
    one, other = (rate([h for h, _ in each], [s for _, s in each]) for each in (pairs, mixed))
    assert one.value == other.value
    assert one.ci == pytest.approx(other.ci) if one.ci else other.ci is None
    if one.value is not None and one.ci is not None:
        assert 0 <= one.ci[0] <= one.value <= one.ci[1] <= 1


def test_few_clusters_that_are_all_alike_have_no_interval() -> None:
    """Five coins fall alike with 2/32, six with 2/64."""
    five = mean([2.5] * 5)
    assert (five.value, five.se, five.ci, five.method, five.flags) == (2.5, 0, None, "", (ALIKE,))
    assert (mean([2.5] * 6).ci, mean([2.5] * 5, 0.9).ci) == ((2.5, 2.5), (2.5, 2.5))
    assert ratio([2, 4, 6], [1, 2, 3]).flags == geometric_mean([3, 3, 3]).flags == (ALIKE,)
    assert rate([0, 0], [5, 5]).method == "exact, one-sided", "none of ten says how many there may be at most"


def test_equal_clusters_have_the_error_of_their_means() -> None:
    assert rate([1, 3], [4, 4]).se == pytest.approx(mean([0.25, 0.75]).se)
    assert design_effect([1], [4]) is None
    assert design_effect([0, 0], [4, 4]) is None


def test_the_interval_covers_where_calls_hang_together() -> None:
    """Runs whose own rates differ: about 95% of intervals over runs cover, Wilson's far fewer."""
    from random import Random

    luck, covered, naive = Random(1), 0, 0
    for _ in range(400):
        own = [luck.betavariate(1, 4) for _ in range(20)]
        hits = [sum(luck.random() < p for _ in range(50)) for p in own]
        low, high = rate(hits, [50] * 20).ci or (0, 0)
        covered += low <= 0.2 <= high
        low, high = wilson(sum(hits), 1000)
        naive += low <= 0.2 <= high
    assert covered >= 0.9 * 400
    assert naive < 0.6 * 400


# --- many tests and permutations ---------------------------------------------------------------------------


def test_adjusted_p_values() -> None:
    assert adjusted([0.01, 0.02, 0.03, 0.50]) == pytest.approx([0.04, 0.04, 0.04, 0.5])
    assert benjamini_hochberg([]) == adjusted([]) == []
    assert benjamini_hochberg([0.2, 0.9]) == [False, False]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.5))
def test_adjusting_and_rejecting_agree(p_values: list[float], level: float) -> None:
    by_hand = [p <= level for p in adjusted(p_values)]
    near = any(abs(p - level) < 1e-12 for p in adjusted(p_values))
    assert near or benjamini_hochberg(p_values, level) == by_hand


def test_exact_tests() -> None:
    assert exact_exposure([(3, 4, 0, 4)]) == pytest.approx(0.0714286, abs=5e-8)
    assert exact_exposure([]) == exact_exposure([(0, 4, 0, 4)]) == 1
    assert exact_exposure([(1, 1, 0, 1), (1, 1, 0, 1)]) == pytest.approx(0.25)
    assert mcnemar(16, 2) == pytest.approx(0.00131226, abs=5e-9)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1


def test_a_permutation_within_strata_has_no_power_between_them() -> None:
    """Labels go with outcomes only because both go with the stratum."""
    strata = [0] * 40 + [1] * 40
    labels = [int(i % 10 < 2) for i in range(40)] + [int(i % 10 < 8) for i in range(40)]
    outcomes = [int(i % 5 == 0) for i in range(40)] + [int(i % 5 != 0) for i in range(40)]

    def together(a: object, b: object) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))  # type: ignore[call-overload]

    within = stratified(labels, outcomes, strata, together, 199)
    across = stratified(labels, outcomes, [0] * 80, together, 199)
    assert across.p < 0.02
    assert within.p > 0.05
    assert within == stratified(labels, outcomes, strata, together, 199)
    assert set(within.null) == {"stat", "p", "method", "n_perm"}


def test_signs_are_flipped_all_ways_where_there_are_few() -> None:
    assert sign_flips([1, 2, 1, 2]) == pytest.approx(2 / 16)
    assert sign_flips([0.0, 0.0]) == 1
    assert sign_flips([1.0] * 20) == pytest.approx(1 / 1000)


# --- agreement and judges ----------------------------------------------------------------------------------


def test_agreement_at_its_edges() -> None:
    for measure in (cohen_kappa, gwet_ac1, observed_agreement):
        assert measure([]) is None
    assert cohen_kappa([(1, 1), (1, 1)]) is None
    assert gwet_ac1([(1, 1), (1, 1)]) == 1
    assert weighted_kappa([(0, 0), (1, 1), (2, 2)], 3) == 1
    assert weighted_kappa([], 3) is None
    assert weighted_kappa([(0, 2), (2, 0)], 3) == pytest.approx(-1)
    assert flip_rate({"a": [1, 1, 2], "b": [1, 1], "c": [1]}) == 0.5
    assert flip_rate({}) is None


def test_weights_do_nothing_where_there_are_two_grades() -> None:
    assert weighted_kappa([(int(a), int(b)) for a, b in JUDGED], 2) == pytest.approx(cohen_kappa(JUDGED))


def test_krippendorff_by_hand() -> None:
    # Two raters, four items: 1 disagreement; o = 2/8 apart, expected (5·3 + 3·5)/(8·7): 1 − 7·2/30.
    assert krippendorff_alpha([("a", "a"), ("a", "a"), ("b", "b"), ("a", "b")]) == pytest.approx(1 - 7 * 2 / 30)
    assert krippendorff_alpha([("a", "a", None), ("b", None, None)]) is None
    assert krippendorff_alpha([("a", "a"), ("b", "b")]) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30))
def test_names_of_categories_do_not_matter(pairs: list[tuple[str, str]]) -> None:
    other = {"a": "z", "b": "y", "c": "x"}
    renamed = [(other[a], other[b]) for a, b in pairs]
    for measure in (cohen_kappa, gwet_ac1):
        found = measure(pairs)
        assert found == (None if found is None else pytest.approx(measure(renamed)))
        assert found is None or found <= 1


def test_a_weak_judge_is_not_corrected() -> None:
    assert rogan_gladen(0.3, 0.6, 0.6).flags == ("judge too weak",)
    assert rogan_gladen(0.02, 0.85, 0.95).value == 0
    assert rogan_gladen(0.02, 0.85, 0.95).flags == ("clipped",)
    assert accuracy([True], [True]) is None
    found = accuracy([True, True, False, False], [True, False, False, False])
    assert found is not None
    assert (found.se, found.sp) == (0.5, 1.0)
    assert ppi_mean([], [], []).value is None


def test_texts_that_a_rule_chose_weigh_as_often_as_there_are_such() -> None:
    """Of ten texts six are hits, of which people know four; the judge misses half of those, and none of the others.

    .3 + .6·½ = .6; by hand se² = .7·.3·10/9/10 + .36·(1/3)/4, as gaps of 0, 1, 0, 1 have a variance of 1/3.
    """
    judged: dict[str, list[float]] = {"hit": [1, 1, 1, 0, 0, 0], "miss": [0] * 4}
    human: dict[str, list[float]] = {"hit": [1, 1, 1, 1], "miss": [0, 0]}
    judge: dict[str, list[float]] = {"hit": [1, 0, 1, 0], "miss": [0, 0]}
    found = ppi_by_strata(judged, human, judge)
    half = 1.959964 * sqrt(0.7 * 0.3 / 9 + 0.36 / 12)
    assert found.value == pytest.approx(0.6)
    assert found.ci == pytest.approx((0.6 - half, 0.6 + half), abs=1e-6)
    turned = ({"x": each["miss"], "y": each["hit"]} for each in (judged, human, judge))
    assert ppi_by_strata(*turned).value == pytest.approx(0.6), "neither names nor order matter"
    assert ppi_by_strata(judged, {**human, "miss": []}, {**judge, "miss": []}) == (None, None, ())
    assert ppi_by_strata(judged, {**human, "miss": [0]}, {**judge, "miss": [0]}).ci is None
    assert ppi_by_strata({"hit": judged["hit"]}, human, judge) == ppi_mean(judged["hit"], human["hit"], judge["hit"])


def test_weighted_sensitivity_by_hand() -> None:
    """Of weights 1 and 3 the lighter is right: ¼, worth 4²/10 texts; of equal weights it is as without any."""
    found = accuracy([True, True, False, False], [True, False, False, False], [1, 3, 2, 2])
    assert found is not None
    assert (found.se, found.sp, found.positives, found.negatives) == (0.25, 1, 1, 2)
    many = ([True] * 7 + [False] * 9, [True] * 5 + [False] * 11)
    plain, equal = accuracy(*many), accuracy(*many, [0.3] * 16)
    assert plain is not None
    assert equal is not None
    assert equal[:4] == pytest.approx(plain[:4])
    assert equal.se_ci == pytest.approx(plain.se_ci)
    assert accuracy([True, False], [True, True], [0, 1]) is None


def test_the_corrected_interval_by_hand() -> None:
    """30 of 100, 17 of 20 and 19 of 20, by the steps of Lang and Reiczigel's paper.

    Moved shares .307397 of 103.8415, 18/22 and 20/22, so that .216490/.727273 = .297673 with a shift of
    2·3.841459·(.297673·.006762 − .702327·.003757) = −.004806 and a half-width of 1.959964·.092263.
    """
    assert rogan_gladen(0.30, 0.85, 0.95, 100, 20, 20).ci == pytest.approx((0.112058, 0.473670), abs=5e-5)


@pytest.mark.parametrize(
    ("rate", "se", "sp", "positives", "negatives"),
    [(0.1, 0.85, 0.92, 60, 140), (0.02, 0.95, 0.98, 30, 70), (0.02, 0.85, 0.92, 10, 20), (0.6, 0.85, 0.92, 10, 20)],
)
def test_the_corrected_interval_covers_the_truth(
    rate: float, se: float, sp: float, positives: int, negatives: int
) -> None:
    """Where positives are rare, the judge is good or few texts are known too: the delta method covers 81% to 95%."""
    from random import Random

    luck, covered = Random(2), 0

    def share(p: float, n: int) -> float:
        return sum(luck.random() < p for _ in range(n)) / n

    for _ in range(400):
        said = share(rate * se + (1 - rate) * (1 - sp), 400)
        found = rogan_gladen(said, share(se, positives), share(sp, negatives), 400, positives, negatives)
        covered += found.ci is not None and found.ci[0] <= rate <= found.ci[1]
    assert covered >= 0.93 * 400


@given(st.integers(1, 60), st.integers(1, 30), st.integers(1, 30), st.data())
def test_the_corrected_interval_holds_its_rate(n: int, positives: int, negatives: int, data: st.DataObject) -> None:
    hits, right, rightly = (data.draw(st.integers(0, most)) for most in (n, positives, negatives))
    found = rogan_gladen(hits / n, right / positives, rightly / negatives, n, positives, negatives)
    if found.ci is None:
        assert {"judge too weak", "too few to calibrate"} & set(found.flags)
    else:
        assert found.value is not None
        assert 0 <= found.ci[0] <= found.value <= found.ci[1] <= 1


def test_interval_of_a_mean_by_hand() -> None:
    """1, 2, 3: mean 2, standard error 1/√3, t of 2 degrees 4.302653; of 40 zeros and ones t of 39 degrees 2.022691."""
    assert mean([1, 2, 3]).ci == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert mean([1, 2]).ci == pytest.approx((1.5 - 12.706205 / 2, 1.5 + 12.706205 / 2))
    half = 2.022691 * (10 / 39 / 40) ** 0.5
    assert mean([0, 1] * 20).ci == pytest.approx((0.5 - half, 0.5 + half))
    assert mean([5]).ci is None
    assert mean([]).ci is None
