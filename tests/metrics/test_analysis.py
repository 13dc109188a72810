"""Analysis: worked examples, theory, edges, invariances."""

from __future__ import annotations

from math import inf, log
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.analysis.attribution import (
    Blame,
    ancestors,
    blame,
    mean_reciprocal_rank,
    minimal_sets,
    minimality,
    pruned_share,
    root,
    root_step,
    step_accuracy,
)
from sim.metrics.analysis.calibration import brier, log_loss, murphy
from sim.metrics.analysis.conformal import (
    by_group,
    coverage,
    fewest,
    learn_then_test,
    risk_p,
    threshold,
)
from sim.metrics.analysis.improvement import area_under, longest_loop, loop_ratio, loops, success_curve
from sim.metrics.analysis.offpolicy import doubly_robust, effective_size, evaluate, ips, per_decision, snips, weight
from sim.metrics.analysis.reliability import ece
from sim.metrics.analysis.remembering import memory_index
from sim.metrics.analysis.uncertainty import earliness, local, passed_on, propagate
from sim.metrics.privacy.inference import auc
from sim.metrics.statistics.paired import effect, variance_reduction
from tests.metrics.society import Society, values

WEIGHTS, REWARDS = [2, 0.5, 1], [1, 0, 1]
GIVEN = [0.9] * 4 + [0.6] * 6
HAPPENED = [True] * 3 + [False] + [True] * 3 + [False] * 3
STEPS = [(step[0], step[1]) for step in ["1a", "2b", "1a", "3c", "1a", "2b", "4d", "5e", "6f", "7g"]]
EDGES = [(1, 2), (2, 4), (4, 6), (3, 5)]


def test_worked_examples_of_attribution() -> None:
    assert root_step([0, 0.8, 0.2, 0, 0]) == 2
    assert pruned_share(EDGES, 6, 5) == pytest.approx(0.4)
    assert minimality(3, 20) == pytest.approx(0.85)
    assert step_accuracy([0, 0, 1, 3, -1], within=1) == pytest.approx(0.8)


def test_worked_examples_of_paired_effects() -> None:
    found = effect([10, 12, 9, 13], [11, 14, 10, 15])
    assert found is not None
    assert found.estimate.value == pytest.approx(1.5)
    assert (found.estimate.ci or (0,))[0] == pytest.approx(0.581307, abs=5e-7)
    assert found.reduction == pytest.approx((10 / 3 + 17 / 3) / (1 / 3))


def test_worked_examples_of_conformal_sets() -> None:
    assert threshold(range(1, 10), 0.2) == 8
    assert fewest(0.05) == 19
    assert fewest(0.10) == 9
    assert risk_p(2, 50, 0.1) == pytest.approx(0.111729, abs=5e-7)
    assert risk_p(1, 50, 0.1) == pytest.approx(0.0337859, abs=5e-8)


def test_worked_examples_of_off_policy_values() -> None:
    assert ips(WEIGHTS, REWARDS) == pytest.approx(1)
    assert snips(WEIGHTS, REWARDS) == pytest.approx(3 / 3.5)
    assert effective_size(WEIGHTS) == pytest.approx(2.33333, abs=5e-6)
    assert doubly_robust(WEIGHTS, REWARDS, [0.5] * 3, [0.5] * 3) == pytest.approx(0.916667, abs=5e-7)


def test_worked_examples_of_calibration() -> None:
    assert ece(GIVEN, HAPPENED) == pytest.approx(0.12)
    assert brier(GIVEN, HAPPENED) == pytest.approx(0.24)
    assert auc([0.8, 0.4], [0.5, 0.2]) == pytest.approx(0.75)


def test_worked_examples_of_improvement() -> None:
    assert loop_ratio(STEPS) == pytest.approx(0.3)
    assert memory_index([True] * 6 + [False] * 4, [True] * 5 + [False] * 5) == pytest.approx(0.1)


# --- theory and edges --------------------------------------------------------------------------------------


def test_attribution_at_its_edges() -> None:
    assert root_step([]) is root_step([0, 0]) is root([]) is pruned_share([], 1, 0) is minimality(0, 0) is None
    assert step_accuracy([]) is mean_reciprocal_rank([]) is None
    assert ancestors([(1, 2), (2, 1)], 1) == {2}
    assert mean_reciprocal_rank([1, 2, None]) == pytest.approx(0.5)
    assert step_accuracy([0, None, 1]) == pytest.approx(1 / 3)
    blamed = [Blame(1, 0.1, (-0.1, 0.3)), Blame(2, 0.6, (0.3, 0.8)), Blame(3, 0.6, (0.3, 0.8))]
    assert root(blamed) == 2
    mended = {frozenset({1, 2}): True, frozenset({1}): False, frozenset({3}): True, frozenset({3, 4}): True}
    assert minimal_sets(mended) == [frozenset({3}), frozenset({1, 2})]


def test_a_planted_fault_is_blamed_and_the_luck_of_a_redo_is_not() -> None:
    luck, found, alarms = Random(1), 0, 0
    for _ in range(60):
        steps = []
        for step in range(1, 6):
            replaced = sum(luck.random() < (0.9 if step == 3 else 0.3) for _ in range(20))
            redone = sum(luck.random() < 0.3 for _ in range(20))
            steps.append(blame(step, (replaced, 20), (redone, 20)))
        found += root(steps) == 3
        alarms += any(one.ci[0] > 0 for one in steps[:1])
    assert found >= 0.8 * 60
    assert alarms <= 0.08 * 60


def test_shared_luck_helps_only_where_it_is_shared() -> None:
    luck = Random(2)
    common = [luck.gauss(0, 3) for _ in range(200)]
    base = [each + luck.gauss(0, 1) for each in common]
    treated = [each + 0.5 + luck.gauss(0, 1) for each in common]
    assert (variance_reduction(base, treated) or 0) > 5
    assert (variance_reduction(base, luck.sample(treated, len(treated))) or 9) < 1.3
    same, paired = effect(base, base), effect(base, treated)
    assert same is not None
    assert paired is not None
    assert (same.p, same.reduction) == (1, None)
    assert paired.p < 0.01
    assert effect([], []) is variance_reduction([1], [2]) is None


def test_conformal_sets_cover_as_promised() -> None:
    luck, covered = Random(3), 0
    for _ in range(500):
        limit = threshold([luck.random() for _ in range(39)], 0.1)
        covered += luck.random() <= limit
    assert 0.87 <= covered / 500 <= 0.94
    assert threshold([1.0] * 8, 0.1) == inf
    assert coverage([], 1) is learn_then_test([9], 50, 0.1) is None
    assert coverage([1, 2, 3], 2) == pytest.approx(2 / 3)
    assert by_group({"a": [1.0] * 9, "b": [2.0]}, 0.1) == {"a": 1, "b": inf}
    assert learn_then_test([0, 1, 2, 0], 50, 0.1) == 1


def test_a_target_policy_is_valued_from_anothers_play() -> None:
    """Two actions with rewards 1 and 0, behaviour ½, target ¾."""
    luck = Random(4)
    acts = [luck.random() < 0.5 for _ in range(600)]
    weights = [weight([log(0.75 if act else 0.25)], [log(0.5)]) for act in acts]
    found = evaluate(weights, [float(act) for act in acts])
    assert found.ci is not None
    assert found.ci[0] < 0.75 < found.ci[1]
    assert ips(weights, [float(act) for act in acts]) == pytest.approx(0.75, abs=0.06)
    refused = evaluate([100.0, *[1.0] * 20], [1.0] * 21)
    assert refused.value is None
    assert refused.flags == ("effective sample size below 30", "one weight above 20%")
    assert evaluate([], []).value is ips([], []) is snips([0], [1]) is per_decision([]) is None
    assert doubly_robust([], [], [], []) is None
    assert effective_size([0]) == 0
    assert per_decision([[(2, 1), (0.5, 1)]], 0.5) == pytest.approx(2 + 0.5)


def test_calibration_at_its_edges() -> None:
    assert brier([], []) is ece([], []) is log_loss([], []) is log_loss([0.0], [True]) is murphy([], []) is None
    assert log_loss([0.5, 0.5], [True, False]) == pytest.approx(log(2))
    assert ece([0.5] * 4, [True, False, True, False], bins=2) == 0


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.4, 0.7, 0.95]), st.booleans()), min_size=1, max_size=40), st.randoms()
)
def test_the_parts_of_brier_add_up_in_any_order(pairs: list[tuple[float, bool]], luck: Random) -> None:
    mixed = luck.sample(pairs, len(pairs))
    given_, happened = [p for p, _ in mixed], [y for _, y in mixed]
    parts = murphy(given_, happened)
    assert parts is not None
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(brier(given_, happened))
    assert ece(given_, happened) == pytest.approx(ece([p for p, _ in pairs], [y for _, y in pairs]))


def test_uncertainty_is_passed_on() -> None:
    found = propagate({"a": 0.2, "b": 0.0, "c": 0.1}, {("a", "b"): 0.5, ("a", "c"): 1.0, ("b", "c"): 1.0})
    assert found == pytest.approx({"a": 0.2, "b": 0.1, "c": 1 - 0.9 * 0.8 * 0.9})
    assert local([]) is earliness([0.5]) is None
    assert local([log(0.5), log(0.7)]) == pytest.approx(0.4)
    assert earliness([0.6, 0.8, 0.7]) == 2
    with pytest.raises(ValueError, match="goes back in time"):
        propagate({"a": 0.1, "b": 0.1}, {("b", "a"): 0.5})


def test_uncertainty_along_what_was_seen(tmp_path: Path) -> None:
    """bob saw ann's message: 1 − .8·(1 − .5·.4) of his; cid saw nothing, and dan has no log-probabilities."""
    society = Society(tmp_path / "run.db")
    sampled = {"ann": 0.6, "bob": 0.8, "cid": 0.8}
    for agent in (*sampled, "dan"):
        society.member(agent)
    society.act("ann", 1, calls=[{"logprobs": [log(0.6)]}])
    said = society.fact(1, "message", "ann", text="perhaps")
    for tick, agent in enumerate(("bob", "cid"), start=2):
        shows, calls = ([said] if agent == "bob" else []), [{"logprobs": [log(sampled[agent])]}]
        society.act(agent, tick, shows=shows, calls=calls, how="defaulted" if agent == "bob" else "chosen")
    society.act("dan", 9)
    found = values(passed_on(society.run()))
    assert found["uncertainty.own"].value == pytest.approx((0.4 + 0.2 + 0.2) / 3)
    assert found["uncertainty.passed_on"].value == pytest.approx((0.4 + 0.36 + 0.2) / 3)
    assert found["uncertainty.passed_on"].excluded == {"decisions without log-probabilities": 1}
    assert (found["uncertainty.own_auc"].value, found["uncertainty.passed_on_auc"].value) == (0.25, 0.5)


def test_uncertainty_without_log_probabilities(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    society.act("ann", 1)
    found = values(passed_on(society.run()))
    assert {one.value for one in found.values()} == {None}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1))
def test_uncertainty_never_falls_on_its_way(own: list[float], passed: float) -> None:
    edges = {(place, place + 1): passed for place in range(len(own) - 1)}
    found = propagate(dict(enumerate(own)), edges)
    assert all(found[place] >= alone - 1e-12 for place, alone in enumerate(own))
    assert all(0 <= each <= 1 for each in found.values())


def test_improvement_at_its_edges() -> None:
    assert area_under([1.0]) is loop_ratio([]) is memory_index([], []) is None
    assert success_curve([], 3) == []
    assert success_curve([0, 2, None, 5], 3) == [0.25, 0.25, 0.5, 0.5]
    assert area_under(success_curve([0, 0], 4)) == 1
    assert area_under([0, 0.5, 1]) == 0.5
    assert longest_loop(STEPS) == 2


def test_loops_on_a_record(tmp_path: Path) -> None:
    society = Society(tmp_path / "run.db")
    society.member("ann")
    society.member("bob")
    for tick, (agent, key) in enumerate([("ann", "s"), ("bob", "s"), ("ann", "t"), ("ann", "s"), ("ann", "s")]):
        society.act(agent, tick, key=key)
    society.act("ann", 9)
    found, longest = loops(society.run())
    assert (found.value, found.n, found.decisions) == (pytest.approx(2 / 5), 5, (4, 5))
    assert found.excluded == {"decisions without one": 1}
    assert (longest.value, longest.n) == (pytest.approx((2 + 0) / 2), 2)
