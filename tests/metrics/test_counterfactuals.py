"""Sets of what would have come of a change: by hand, on forks, and where nothing can be said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fork import fork
from sim.metrics.analysis.counterfactuals import Case, cases, compared, measured
from sim.metrics.family import opened
from sim.runs import create, go
from sim.scenarios.scenario import loads
from tests.metrics.society import values


def test_sets_by_hand() -> None:
    """Ten cases of one run whose truths lie 1 to 10 above two candidates calibrate at 20%: ⌈11·.8⌉ = 9 is the limit.

    Of four others it covers those at 3, 9 and −4. Around candidates at 0 and 5 a set of half-width 9 is 5 + 18 wide,
    around two at 0 and 100 it is 36.
    """
    old = [Case("r", 100.0 + n, [100.0, 99.0]) for n in range(1, 11)]
    new = [
        *(Case("r", truth, [0.0, 5.0]) for truth in (8.0, 14.0, 14.1)),
        Case("r", -4.0, [0.0, 100.0]),
        *(Case("r", 0.0, [0.0, 0.0]) for _ in range(6)),
    ]
    found = values(measured([*old, *new], 0.2, {}, {"x": 1}, 19))
    limit = found["conformal.threshold scores=counterfactuals"]
    assert (limit.value, limit.unit, limit.n) == (9, "reward", 10)
    coverage = found["conformal.coverage scores=counterfactuals"]
    assert (coverage.value, coverage.n, coverage.excluded) == (0.9, 10, {"x": 1})
    assert found["conformal.set_width"].value == pytest.approx((3 * 23 + 36 + 6 * 18) / 10)
    assert found["conformal.candidates"].value is None, "the truth is never among the first half's candidates"


def test_so_many_candidates_are_needed_by_hand() -> None:
    """Of fifty the first candidate is the truth in 48, the second in one more, the third in the last.

    A21, A22: with 1 miss of 50 a p of .034, with 2 of .112. So two candidates pass at 10%, and one does not.
    """
    old = [Case("r", 1.0, tuple(map(float, first))) for first in ["100"] * 48 + ["010"] + ["001"]]
    new = [Case("r", 1.0, (1.0, 0.0, 0.0))] * 45 + [Case("r", 1.0, (0.0, 0.0, 1.0))] * 5
    found = values(measured([*old, *new], 0.1, {}, {}, 19))
    assert found["conformal.candidates"].value == 2
    coverage = found["conformal.candidates_coverage"]
    assert coverage.value == pytest.approx(0.9)
    assert coverage.ci_method == "wilson"


def test_too_few_cases_have_no_set() -> None:
    few = values(measured([Case("r", 1.0, [1.0])] * 9, 0.1, {}, {}, 19))
    assert {one.value for one in few.values()} == {None}
    assert few["conformal.candidates"].flags == ("more candidates are needed, or more cases",)
    assert {one.value for one in compared([])} == {None}


ROWS = st.tuples(st.integers(0, 9), st.tuples(st.integers(0, 9), st.integers(0, 9)))


@settings(max_examples=15)
@given(st.lists(ROWS, min_size=20, max_size=30))
def test_units_and_what_runs_are_called_do_not_matter(drawn: list[tuple[int, tuple[int, int]]]) -> None:
    plain = [Case("r", truth, candidates) for truth, candidates in drawn]
    other = [Case("q", 7 - 2.0 * truth, [7 - 2.0 * one for one in candidates]) for truth, candidates in drawn]
    found, turned = (values(measured(each, 0.2, {}, {}, 1)) for each in (plain, other))
    for name, one in found.items():
        scale = 2 if one.unit == "reward" else 1
        assert turned[name].value == (None if one.value is None else pytest.approx(scale * one.value))


def test_forks_are_cases(tmp_path: Path) -> None:
    """Eighteen tables of two who act at random, for two rounds more from some moment on, with their luck or another."""
    scenario = """
name: coins
clock: {until: 100}
tables: 18
world: {use: "worlds.games.matrix:Matrix", game: pd, rounds: 2, talk: restricted}
cast:
  - {name: a, agent: "worlds.games.strategies:Random", think: 1}
  - {name: b, agent: "worlds.games.strategies:Random", think: 1}
"""
    path = create(loads(scenario, tmp_path), tmp_path, "coins")
    go(path)
    for replicate in range(3):
        go(fork(path, tmp_path, 2, sets=["rounds=4"], replicate=replicate))
    go(fork(path, tmp_path, 2, sets=["rounds=5"], replicate=1))
    with opened([path]) as runs:
        found, left = cases(runs)
        told = values(compared(runs, n_perm=19))
        again = values(compared([runs[0], *runs[:0:-1]], n_perm=19))
    ((change, own),) = found.items()
    assert '"rounds"' in change
    assert (len(own), {len(one.candidates) for one in own}) == (18, {2})
    assert list(left.values()) == [1], "a change without a fork of the run's own luck"
    coverage = told[f"conformal.coverage change={change} scores=counterfactuals"]
    assert coverage.value is not None
    assert coverage.value >= 0.7
    assert again == told, "the order of forks does not matter"
