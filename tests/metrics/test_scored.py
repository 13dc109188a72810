"""How well scores tell failures, and intervals by drawing clusters anew: by hand, by theory, at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sim.metrics.privacy.inference import auc
from sim.metrics.statistics.centred import centred_bootstrap
from sim.metrics.statistics.discrimination import Sums, auroc, average_precision, risk_coverage, scored

Scored = Sequence[tuple[float, bool]]
SCORED = st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.7, 0.9]), st.booleans()), min_size=1, max_size=15)
FAILED, UNSURE = [True, False, True, False], [0.8, 0.5, 0.4, 0.2]


def test_areas_by_hand() -> None:
    """Kept from the surest on: none of one fails, one of two, one of three, two of four."""
    assert auroc(UNSURE, FAILED) == pytest.approx(3 / 4)
    assert average_precision(UNSURE, FAILED) == pytest.approx((1 + 2 / 3) / 2)
    assert risk_coverage(UNSURE, FAILED) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)


def test_precision_as_scikit_learn_has_it() -> None:
    """`average_precision_score` 1.9 of the same, ties among them."""
    scores, happened = [0.9, 0.8, 0.8, 0.7, 0.5, 0.4, 0.3, 0.3], [1, 0, 1, 1, 0, 0, 1, 0]
    assert average_precision(scores, happened) == pytest.approx(0.7291666666666666)  # type: ignore[arg-type]


def test_ties_are_in_random_order() -> None:
    assert risk_coverage([0.5] * 5, [True, False, False, True, False]) == pytest.approx(2 / 5)
    assert average_precision([0.5] * 5, [True, False, False, True, False]) == pytest.approx(2 / 5)
    assert auroc([0.5] * 3, [True, False, False]) == 0.5


def test_areas_at_their_edges() -> None:
    assert auroc([], []) is average_precision([], []) is risk_coverage([], []) is None
    assert auroc([1.0], [True]) is average_precision([0.5, 0.2], [False, False]) is None
    assert risk_coverage([0.1, 0.2], [False, False]) == 0
    assert risk_coverage([0.1, 0.9], [True, True]) == 1
    assert (auroc([1, 2], [False, True]), average_precision([1, 2], [False, True])) == (1, 1)
    for bad in ([float("nan"), 1.0], [0.5]):
        for area in (auroc, average_precision, risk_coverage):
            with pytest.raises(ValueError):
                area(bad, [True, False])


@given(SCORED, st.lists(st.integers(0, 3), min_size=15, max_size=15))
def test_a_weight_is_so_many_alike(pairs: Scored, weights: list[int]) -> None:
    counts = weights[: len(pairs)]
    many = [pair for pair, weight in zip(pairs, counts, strict=True) for _ in range(weight)]
    drawn = scored([s for s, _ in pairs], [y for _, y in pairs]).sums(np.array(counts, float))
    plain = scored([s for s, _ in many], [y for _, y in many]).sums()
    for area in (Sums.auroc, Sums.average_precision, Sums.risk_coverage):
        expected = area(plain)
        assert area(drawn) == (None if expected is None else pytest.approx(expected))


@given(SCORED)
def test_the_area_is_that_of_ranks(pairs: Scored) -> None:
    expected = auc([s for s, y in pairs if y], [s for s, y in pairs if not y])
    found = auroc([s for s, _ in pairs], [y for _, y in pairs])
    assert found == (None if expected is None else pytest.approx(expected))


def test_drawing_clusters_anew_knows_the_spread_of_their_means() -> None:
    """Of twenty-five clusters whose units are alike, about ± 1.96·sd/√25, and no less for having forty of each."""
    luck = Random(1)
    means = [luck.gauss(0, 1) for _ in range(25)]
    labels, units = [n for n in range(25) for _ in range(40)], np.repeat(means, 40)

    def mean(weights: NDArray[np.float64]) -> float | None:
        return float(weights @ units / weights.sum())

    ci = centred_bootstrap(labels, mean)
    assert ci is not None
    assert (ci[1] - ci[0]) / 2 == pytest.approx(1.96 * float(np.std(means)) / 5, rel=0.1)
    assert ci == centred_bootstrap(labels, mean)
    assert sum(ci) / 2 == pytest.approx(np.mean(means), abs=0.1 * (ci[1] - ci[0]))
    assert centred_bootstrap(labels, mean, ends=(0, 0.01)) == (max(0, ci[0]), min(0.01, ci[1]))
    assert (
        centred_bootstrap(["a"] * 3, mean)
        is centred_bootstrap([], mean)
        is centred_bootstrap(labels, lambda _: None)
        is None
    )
    with pytest.raises(ValueError, match="draws"):
        centred_bootstrap(labels, mean, -1)
