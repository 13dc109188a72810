"""Logistic models with an intercept a group: against direct integration, at their edges, and probes on records."""

from __future__ import annotations

from math import exp, log, pi, sqrt
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from sim.metrics.safety import probes
from sim.metrics.statistics import glm, glmm
from tests.metrics.society import Society, values

ROWS = [(1.0, float(at)) for _ in range(6) for at in range(4)]
GROUPS = [group for group in range(6) for _ in range(4)]
OUTCOMES = [bool(int(each)) for each in "111011011000010011110000"]


def integrated(coefficients: tuple[float, float], spread: float) -> float:
    """−log-likelihood with each group's intercept integrated out numerically."""
    total = 0.0
    for group in range(6):
        own = [(row, y) for row, y, g in zip(ROWS, OUTCOMES, GROUPS, strict=True) if g == group]

        def density(u: float, own: list[tuple[tuple[float, float], bool]] = own) -> float:
            found = exp(-u * u / 2) / sqrt(2 * pi)
            for row, y in own:
                chance = 1 / (1 + exp(-(coefficients[0] + coefficients[1] * row[1] + spread * u)))
                found *= chance if y else 1 - chance
            return found

        total -= log(quad(density, -9, 9, epsabs=1e-13)[0])
    return total


@pytest.mark.parametrize("parameters", [(0.2, -0.3, 1.3), (1.0, 0.5, 0.4), (-0.5, 0.0, 0.0), (0.3, -1.0, 3.0)])
def test_the_likelihood_is_the_integral(parameters: tuple[float, float, float]) -> None:
    found, slope = glmm.Model(ROWS, OUTCOMES, GROUPS).loss(np.array(parameters))
    assert found == pytest.approx(integrated(parameters[:2], parameters[2]), abs=2e-4)
    many = glmm.Model(ROWS, OUTCOMES, GROUPS, nodes=31)
    assert many.loss(np.array(parameters))[0] == pytest.approx(integrated(parameters[:2], parameters[2]), abs=1e-7)
    for place, step in enumerate(1e-5 * np.eye(3)):
        up, down = (many.loss(np.array(parameters) + sign * step)[0] for sign in (1, -1))
        assert slope[place] == pytest.approx((up - down) / 2e-5, abs=1e-3)


def test_one_node_is_laplaces_approximation() -> None:
    """One group of one success with no intercept: h(u) = −log(1 + e^(−u)) − u²/2 at its mode, and its curvature."""
    found, _ = glmm.Model([(1.0,)], [True], ["a"], nodes=1).loss(np.array([0.0, 1.0]))
    mode = 0.0
    for _ in range(100):
        mode = 1 / (1 + exp(mode))
    chance = 1 / (1 + exp(-mode))
    assert found == pytest.approx(-(log(chance) - mode**2 / 2 - log(1 + chance * (1 - chance)) / 2))


def test_the_most_likely_model_is_found() -> None:
    other = minimize(
        lambda p: integrated((p[0], p[1]), abs(p[2])),
        [0.5, -0.3, 0.8],
        method="Nelder-Mead",
        options={"xatol": 1e-4, "fatol": 1e-7},
    ).x
    found = glmm.fit(ROWS, OUTCOMES, GROUPS, nodes=31)
    assert found is not None
    assert (*found.coefficients, found.spread) == pytest.approx((other[0], other[1], abs(other[2])), abs=2e-3)


def test_groups_that_do_not_differ_leave_the_plain_model() -> None:
    outcomes = [bool(int(each)) for each in "1100" * 4 + "0110" * 2]
    found, plain = glmm.fit(ROWS, outcomes, GROUPS), glm.fit(ROWS, outcomes, "logit")
    assert found is not None
    assert plain is not None
    assert found.spread == pytest.approx(0, abs=0.05)
    assert found.coefficients == pytest.approx(plain.coefficients, abs=1e-3)


def test_neither_names_nor_order_matter() -> None:
    order = Random(2).sample(range(len(ROWS)), len(ROWS))
    mixed = glmm.fit(*([each[i] for i in order] for each in (ROWS, OUTCOMES, [f"g{9 - group}" for group in GROUPS])))
    assert mixed == glmm.fit(ROWS, OUTCOMES, GROUPS)


def test_the_odds_of_the_opposite_are_turned_over() -> None:
    covariate = [row[1] for row in ROWS]
    found, turned = (glmm.effect(covariate, y, GROUPS) for y in (OUTCOMES, [not each for each in OUTCOMES]))
    assert found.ratio.value is not None
    assert found.ratio.ci is not None
    assert turned.ratio.value == pytest.approx(1 / found.ratio.value, rel=1e-4)
    assert turned.ratio.ci == pytest.approx((1 / found.ratio.ci[1], 1 / found.ratio.ci[0]), rel=1e-3)
    assert turned.p == pytest.approx(found.p, rel=1e-4)
    scaled = glmm.effect([10 * each for each in covariate], OUTCOMES, GROUPS)
    assert scaled.ratio.value == pytest.approx(found.ratio.value**0.1, rel=1e-4)


def test_what_does_not_vary_or_is_separated_has_no_odds() -> None:
    assert glmm.fit([], [], []) is glmm.fit([(1.0,)], [True], [0]) is None
    assert glmm.effect([1, 1], [True, False], [0, 0]).ratio.flags == ("does not vary",)
    assert glmm.effect([1, 2], [True, True], [0, 0]).p is None
    told = glmm.effect([0, 0, 1, 1] * 3, [False, False, True, True] * 3, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    assert (told.ratio.value, told.ratio.flags) == (None, ("separated",))


# --- probes --------------------------------------------------------------------------------------------------


def probed(path: Path, told: str, names: str = "ab") -> Society:
    """Two agents are asked two items each in four rounds; `told` says which they got right."""
    society = Society(path)
    for name in names:
        society.member(name)
    right = iter(told)
    for at in range(4):
        for name in names:
            for item in "xy":
                society.fact(at, "task", name, item=item, round=at, success=next(right) == "1")
    society.fact(9, "task", names[0], item="z", round=3, success=True)
    return society


def test_probes_of_a_record(tmp_path: Path) -> None:
    """Shares of success by round are 1, ¾, ½, ¼, a slope of −¼; a probe of one round says nothing of drift."""
    told = "1111" + "1110" + "1010" + "0100"
    found = values(probes.all(probed(tmp_path / "run.db", told).run()))
    odds = found["drift.probe_odds"]
    rows = [[float(at) for at in range(4) for _ in range(4)], [each == "1" for each in told], list(range(4)) * 4]
    other = glmm.effect(*rows)
    assert odds.value == pytest.approx(other.ratio.value)
    assert odds.value is not None
    assert odds.value < 1
    assert odds.null["p"] == pytest.approx(other.p)
    assert (odds.n, odds.excluded) == (16, {"probes of a single round": 1})
    assert found["drift.slope series=probe_success"].value == pytest.approx(-0.25)
    turned = values(probes.all(probed(tmp_path / "other.db", told, "zy").run()))
    assert turned["drift.probe_odds"].value == odds.value


def test_without_probes_nothing_drifts(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    found = values(probes.all(society.run()))
    assert {one.value for one in found.values()} == {None}
    assert found["drift.probe_odds"].flags == ("nothing was probed twice", "n_clusters<2")
