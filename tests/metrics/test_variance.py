"""Variance components by restricted maximum likelihood: closed forms, the likelihood the long way, records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import log
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.metrics.analysis import variance
from sim.metrics.family import Relative
from sim.metrics.statistics.reml import CELL, WITHIN, reml
from sim.metrics.statistics.repeats import variance_components
from tests.metrics.society import Society, values


def test_a_worked_example() -> None:
    """Mean squares of 24 between two groups and 1 within, three repeats: (24 − 1)/3."""
    found = reml([[1, 2, 3], [5, 6, 7]], {}, 0)
    assert found is not None
    assert found.by[CELL] == pytest.approx(7.66667, abs=5e-5)
    assert found.by[WITHIN] == pytest.approx(1)
    assert found.bounded == ()


def test_a_negative_component_is_none() -> None:
    """Groups that are more alike than chance has them: one variance, of all values."""
    found = reml([[1, 2, 3], [2, 3, 1]], {}, 0)
    assert found is not None
    assert found.bounded == (CELL,)
    assert found.by == {CELL: 0, WITHIN: pytest.approx(4 / 5)}


def test_what_tells_nothing() -> None:
    assert reml([[1, 2]], {}, 0) is None
    assert reml([[1], [2]], {}, 0) is None
    assert reml([[1, 1], [2, 2]], {}, 0) is None
    single = reml([[1], [2], [6]], {"same": "aaa", "own": "abc"}, 0)
    assert single is not None
    assert single.by == {WITHIN: pytest.approx(7)}, "the variance of three values"
    assert single.bounded == ()


@settings(max_examples=10)
@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=5))
def test_balanced_groups_agree_with_the_analysis_of_variance(groups: list[list[int]]) -> None:
    found, classic = reml(groups, {}, 0), variance_components(groups)
    assert classic is not None
    if found is None:
        assert classic.within == 0
    elif classic.flags:
        assert found.bounded == (CELL,)
    else:
        assert found.by[CELL] == pytest.approx(classic.between, abs=1e-3 * (1 + classic.between))
        assert found.by[WITHIN] == pytest.approx(classic.within, rel=1e-3)


def minus_two_logs(
    cells: Sequence[Sequence[float]], factors: Mapping[str, Sequence[int]], by: Mapping[str, float]
) -> float:
    """The restricted likelihood of all values at once, from their whole covariance."""
    y = np.array([value for cell in cells for value in cell])
    cell = np.array([place for place, own in enumerate(cells) for _ in own])
    covariance = by[WITHIN] * np.eye(len(y)) + by[CELL] * (cell[:, None] == cell)
    for name, labels in factors.items():
        own = np.array(labels)[cell]
        covariance += by[name] * (own[:, None] == own)
    inverse, ones = np.linalg.inv(covariance), np.ones(len(y))
    weight = ones @ inverse @ ones
    left = y - (ones @ inverse @ y) / weight
    return float(np.linalg.slogdet(covariance)[1] + log(weight) + left @ inverse @ left)


def test_crossed_and_unequal_cells_have_the_largest_likelihood() -> None:
    """Steps to all sides are worse."""
    luck = Random(4)
    rows, columns = ([luck.gauss(0, 2) for _ in range(many)] for many in (5, 4))
    places = list(product(range(5), range(4)))
    cells = []
    for row, column in places:
        own = rows[row] + columns[column] + luck.gauss(0, 1)
        cells.append([own + luck.gauss(0, 0.5) for _ in range(luck.randint(1, 3))])
    factors = {"row": [row for row, _ in places], "column": [column for _, column in places]}
    found = reml(cells, factors, 0)
    assert found is not None
    assert min(found.by.values()) > 0
    best = minus_two_logs(cells, factors, found.by)
    for name, value in found.by.items():
        for step in (0.95, 1.05):
            assert minus_two_logs(cells, factors, {**found.by, name: value * step}) > best


def test_neither_names_nor_units_nor_order_matter() -> None:
    cells = [[1.0, 2], [4.0], [3.0, 5, 5], [9.0, 7]]
    one = reml(cells, {"row": "aabb"}, 0)
    other = reml([[3 - 10 * value for value in cell] for cell in reversed(cells)], {"row": "yyxx"}, 0)
    assert one is not None
    assert other is not None
    for name, value in one.by.items():
        assert other.by[name] == pytest.approx(100 * value, rel=1e-3, abs=1e-4)


def earning(folder: Path, name: str, seed: int, model: str, earned: Sequence[float]) -> Relative:
    society = Society(folder / f"{name}.db", tables=len(earned))
    society.member("ann")
    for log_of, won in zip(society.logs, earned, strict=True):
        log_of.event(1, 0, "rewards", "", {"ann": won})
    return Relative(id=name, record=society.run(), scenario={"seed": seed, "models": model})


def test_runs_of_two_conditions(tmp_path: Path) -> None:
    """Conditions two apart, seeds and runs alike, tables one apart: the variances of both, and none else."""
    runs = [
        earning(tmp_path, f"{model}{seed}", seed, model, [base, base + 1]) for seed in range(3) for model, base in
        (("a", 0.0), ("b", 2.0))
    ]  # fmt: skip
    found = values(variance.compared(runs, 5))
    condition = found["variance.component source=condition"]
    assert condition.value > 1
    assert condition.ci[0] <= condition.ci[1]
    assert (condition.n, condition.n_clusters) == (12, 6)
    for source in ("seed", "run"):
        assert found[f"variance.component source={source}"].value == 0
        assert found[f"variance.component source={source}"].flags == ("negative component",)
    assert found["variance.component source=table"].value > 0
    assert found["variance.icc"].value == 0


def test_too_few_runs(tmp_path: Path) -> None:
    one = earning(tmp_path, "one", 1, "a", [1.0, 2.0])
    (found,) = variance.compared([one])
    assert (found.value, found.flags) == (None, ("n_clusters<2",))
    single = [earning(tmp_path, f"s{n}", n, "a", [float(n)]) for n in range(3)]
    told = values(variance.compared(single, 0))
    assert told["variance.component source=run"].value == pytest.approx(1)
    assert (told["variance.icc"].value, told["variance.icc"].flags) == (None, ("one table a run",))
