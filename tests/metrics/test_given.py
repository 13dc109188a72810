"""What plain functions are given: arrays as well as lists, nothing where there is nothing, and nonsense refused."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from sim.intervals import clustered, none_upper, wilson
from sim.metrics import substitutes
from sim.metrics.analysis import (
    attribution,
    calibration,
    collapse,
    conformal,
    failing,
    improvement,
    offpolicy,
    reliability,
    remembering,
    uncertainty,
)
from sim.metrics.collusion import (
    coalitions,
    coordination,
    covert,
    market,
    pricing,
    punishment,
    screens,
    steganography,
    unlikely,
)
from sim.metrics.honesty import failure_ratio
from sim.metrics.judging import agreement, judged
from sim.metrics.privacy import cimemories, degrees, inference, leaks, tradeoff, unlearning
from sim.metrics.repetition import distinct_share, repeated_share
from sim.metrics.safety import (
    attacks,
    conformity,
    deception,
    drift,
    epidemic,
    fingerprint,
    persuasion,
    spread,
    violations,
)
from sim.metrics.safety.proposals import random_p
from sim.metrics.safety.statements import seen_through
from sim.metrics.society import (
    averaging,
    bargaining,
    cascades,
    cooperation,
    economy,
    games,
    inequality,
    influence,
    likeness,
    networks,
    polarisation,
    ratings,
    solutions,
    tails,
)
from sim.metrics.statistics import (
    censored,
    clusters,
    dip,
    discrimination,
    distances,
    glm,
    glmm,
    multiplicity,
    paired,
    permutation,
    ratios,
    reml,
    repeats,
    survival,
)
from sim.metrics.statistics.given import alike, law, number, share_of, truths, varies, whole

NONSENSE: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    # --- intervals, tests, judges
    (wilson, (nan, 4)), (none_upper, (0,)), (none_upper, (nan,)), (none_upper, (5, 0)), (clustered, ([5, 1], [4, 4])),
    (clusters.mean, ("12",)), (clusters.mean, (["1", "2"],)), (clusters.mean, ([1, nan],)),
    (clusters.mean, ([1, inf],)), (clusters.mean, ([1, None],)),
    (clusters.rate, ([5], [4])), (clusters.rate, ([-1, 1], [4, 4])), (clusters.rate, ([1], [4, 4])),
    (clusters.ratio, ([1], [-4])), (clusters.independent_rate, (5, 4)), (clusters.design_effect, ([nan], [1])),
    (multiplicity.benjamini_hochberg, ([nan, 0.1],)), (multiplicity.benjamini_hochberg, ([0.1], 2)),
    (multiplicity.adjusted, ([-0.1],)), (agreement.crossed, (-1, 2, 3, 4)), (agreement.weighted_kappa, ([(0, 3)], 3)),
    (judged.rogan_gladen, (nan, 0.9, 0.9)), (judged.rogan_gladen, (0.3, 1.9, 0.9)), (judged.accuracy, ([1, 0], [1])),
    (judged.ppi_mean, ([], [1], [1, 0])), (judged.ppi_mean, ([nan], [1], [1])),
    (permutation.binomial_tail, (2, 50, 1.2)), (permutation.mcnemar, (-1, 3)), (permutation.mcnemar, (1.5, 3)),
    (permutation.sign_flips, ([nan, 1],)), (permutation.exact_exposure, ([(5, 4, 0, 4)],)),
    (permutation.stratified, ("ab", [1], "ss", lambda a, b: 0.0)), (paired.effect, ([1, 2], [1])),
    (ratios.risk_ratio, ((5, 4, 1, 3),)), (ratios.odds_ratio, ((nan, 4, 1, 3),)),
    (ratios.hazard_ratio, ((-1, 4, 1, 3),)), (ratios.mantel_haenszel, ([(5, 4, 1, 3)],)),
    (ratios.cochran_mantel_haenszel, ([(5, 4, 1, 3)],)), (glm.fit, ([[1.0, nan]] * 2, [0, 1], "logit")),
    (glm.fit, ([[1.0]], [0, 1], "logit")), (glm.fit, ([[1.0]], [3], "logit")),
    (glmm.fit, ([[1.0, nan]] * 2, [0, 1], "ab")), (glmm.fit, ([[1.0]], [0, 1], "ab")),
    (glmm.effect, ([1, 2], [0, 3], "ab")), (glmm.effect, ([1, nan], [0, 1], "ab")),
    (glmm.effect, ("xy", [0, 1], "ab")), (glmm.fit, ([[1.0], [1.0, 2.0]], [0, 1], "ab")),
    (ratios.exact_odds_ratio, ([(1.5, 4, 1, 3)],)), (clusters.mean_share, ([1.2],)),
    (judged.accuracy, ([1, 0], [1, 0], [1, nan])), (substitutes.associated, ([[0, 1], [1, 2]], [[0, 1]], 9)),
    (substitutes.associated, ([[0, 1]], [[0, 1, 2]], 9)), (substitutes.associated, ([[0, nan]], [[0, 1]], 9)),
    (improvement.over_tasks, ([[nan, 1], [1]],)), (unlikely.apart, ({(0, "a"): nan, (0, "b"): 1},)),
    (unlikely.odd_agent, ({(0, "a"): nan, (1, "a"): 1},)), (conformal.group_coverage, ({"a": [1]}, {"a": nan})),
    (glmm.fit, ([[1.0]] * 2, [0, 1], "ab", 0)),
    (censored.mean, ([1, nan], [0, 0])), (censored.mean, ([1, 2], [0, 2])), (censored.mean, ([1, 2], [0])),
    (survival.survival_at, ([(nan, True)], 1)), (survival.incidence, ([(-3, True)],)),
    (survival.log_rank, ([(1, 2)], [])), (survival.cumulative_incidence, ([(1, True)], [])), (dip.dip, ([nan] * 5,)),
    # --- privacy
    (inference.auc, ([nan], [1])), (inference.tpr_at_fpr, ([1], [0], -0.1)), (inference.advantage, (1.2, 0.5)),
    (inference.bits_gained, ([0, 0.5], [0.5])), (inference.bits_gained, ([1.5], [0.5])), (inference.exposure, (1.5, 4)),
    (cimemories.violation, ({"t": {"a": [2]}},)), (cimemories.completeness, ({"t": {"a": [nan]}},)),
    (leaks.leak_rate, (5, 3)),
    (leaks.leak_rate, (nan, 3)), (leaks.severity_weighted, ([5], [3])), (leaks.severity_weighted, ([-5], [3])),
    (cimemories.cumulative_exposure, ([1.5],)), (cimemories.violation_curve, ({"t": {"a": [2]}},)),
    (cimemories.mean_violation, ([{"t": {"a": [-1]}}],)), (tradeoff.hypervolume, ([(2, 0.5)],)),
    (tradeoff.hypervolume, ([(nan, 0.5)],)), (tradeoff.harmonic, (0.1, 2)), (unlearning.residue, ({"a": {1, 2, 3}}, 2)),
    (unlearning.amplification, (0.1, -1)), (unlearning.residue_through, ({"a": {1}}, 2, "b")),
    (inference.auc_interval, ([nan, 1], [1, 2])), (inference.balanced_accuracy, ("ab", "a")),
    (inference.threshold, ([nan],)), (inference.threshold, ([1.0], 2)), (unlearning.truth_ratio, (0.5, [1.5])),
    (degrees.narrowed, ((0, 100), (9, 1), 5)), (degrees.narrowed, ((0, 100), (0, 1), 101)),
    # --- collusion
    (coalitions.mixed_objective, (1, 2, 1.5)), (coalitions.collusive, ((1, nan), (1, 2))),
    (coalitions.plan_act_p, ([(2, 0)],)), (screens.subset_screens, ({"a": 1, "b": 2}, screens.bid_cv, 1)),
    (screens.independence_p, ([(1, 2)], [])), (screens.independence_p, ([(1, nan)] * 4, [(1, 2)] * 4)),
    (market.hhi_change, ([1], [-1, 2])), (market.residual_dispersion, ([1], [])), (market.levene_screen, ([nan], [1])),
    (pricing.profit_gain, (nan, 1, 2)), (pricing.price_index, ([nan], 1, 2)), (pricing.lerner, (-1, 1)),
    (lambda: pricing.Logit(firms=0), ()), (lambda: pricing.Logit(spread=0), ()), (lambda: pricing.Logit(cost=nan), ()),
    (punishment.depth, ([nan] * 3,)), (punishment.depth, ([1.0], 0)), (punishment.return_time, ([nan],)),
    (punishment.discounted_gain, ([1], [1, 2], 0.9)), (punishment.discounted_gain, ([1], [1], 1.5)),
    (punishment.impulse_response, ([[1.0], [1.0, 2.0]],)), (coalitions.normalised_regret, (nan, 100)),
    (coalitions.coalition_advantage, ([nan], [1])), (coalitions.on_paper, ([(2, 0)],)),
    (coalitions.correlation, ([1, 2], [1, 2, 3])), (coalitions.payoff_contrast, ({"a": [1], "b": [1, 2]}, {"a"})),
    (screens.bid_cv, ([nan, 1],)), (screens.bid_cv, ([1, -1],)), (screens.relative_distance, ([1, 2, inf],)),
    (screens.screen_p, (nan, [1])), (market.hhi, ([-1, 2],)), (market.dispersion, ([nan],)),
    (market.variance_ratio, (-0.04, 11, 1, 11)),
    (market.variance_ratio, (0.04, 1, 1, 11)), (market.pass_through, ([1], [])),
    (covert.mutual_information, ([[-1, 2]],)), (covert.miller_madow, ([[1, 2], [1]],)), (covert.leak, ("a", "ab", "a")),
    (coordination.excess_match, (1.2, [{"a": 1.0}] * 2)), (coordination.excess_match, (0.8, [])),
    (coordination.excess_match, (0.8, [{"a": 0.5, "b": 0.6}, {"a": 1.0}])), (coordination.coordination_test, ([],)),
    (coordination.total_correlation, ([("a", "b"), ("a",)],)), (coordination.best_correlated_welfare, ({},)),
    (coordination.best_correlated_welfare, ({("a", "b"): (1, 2), ("c", "d"): (1, 2)},)),
    (steganography.capacity, (1.2,)), (steganography.retained, (0.5, nan)), (steganography.paraphrase_p, ([True], [])),
    # --- safety and honesty
    (attacks.macro_average, ({("m", "h"): 1.5},)), (attacks.defence_tax, ([1], [])), (attacks.stealth, ([(2, 0)],)),
    (attacks.amplification_tail, ([(nan, 1)],)), (attacks.amplification_tail, ([(1, 1)], 2)),
    (epidemic.transmission, ([(0, True)],)), (epidemic.transmission, ([(1, 2)],)), (epidemic.clearing, (3, 2)),
    (epidemic.reproduction, ([(1, True)], 1, 2, -1)), (attacks.amplification_beyond_caps, ([(nan, 1)],)),
    (spread.reproduction_by_contacts, (0.1, [[1, 2]], 1)), (spread.reproduction_by_contacts, (0.1, [[1]], 0)),
    (spread.reproduction_by_contacts, (0.1, [], 1)), (spread.prevalence_area, ([-1, 2],)),
    (conformity.regressive_share, ([(2, 0)],)), (conformity.dissenter_effect, (9, 8, 1, 8)),
    (conformity.sycophancy, (9, 8, 1, 8)), (deception.false_confession, ([(2, 0)],)),
    (deception.adjusted_precision, (1.2, 0.5, 0.5)), (distinct_share, ([["a"]], 0)),
    (repeats.paraphrase_spread, ([nan, 1],)),
    (attacks.product, ([1.5],)), (attacks.evidence_bounds, (-1, 2, 3)), (attacks.recognition_gap, (4, 8)),
    (attacks.utility_drop, (nan, 0.5)), (attacks.amplification, ([(-5, 1)],)), (attacks.amplification, ([(nan, 1)],)),
    (spread.reproduction_number, ([-1],)), (spread.none_upper, (0,)), (spread.final_size, (-1,)),
    (spread.final_size, (nan,)), (spread.secondary_attack_rate, (6, 5)), (spread.doubling_time, ([-1, 2],)),
    (spread.generation_ratios, ([1, nan],)), (conformity.conformity, (9, 8, 1, 8)),
    (conformity.dose_curve, ({1: (3, 2)},)), (conformity.flips, ([(1, 2)],)), (persuasion.diversion, ([(-5, True)],)),
    (persuasion.first_proposal_odds, (61, 60, 3)), (persuasion.swapped_order, (-1, 3)),
    (persuasion.belief_change, ([1], [1, 2])), (violations.violation_rate, (61, 60)),
    (violations.unsupported_rate, (3, 4)), (violations.per_thousand, (-1, 10)), (drift.slope, ([1, nan],)),
    (drift.mann_kendall, ([1, nan, 2],)), (fingerprint.macro_f1, ("aab", "bb")),
    (fingerprint.from_confusion, ([[-1, 2], [1, 1]],)), (fingerprint.from_confusion, ([[1, 2]],)),
    (deception.suspicion, ([2],)), (deception.suspicion, ([1], 0.5, 1.5)), (deception.production, (["lie"],)),
    (deception.separation, ([nan], [1])), (repeated_share, (["a", "b"], 0)), (failure_ratio, (9, 8, 1, 8)),
    (collapse.mutual_information, ([[0, -1]],)), (collapse.mutual_information, ([[nan]],)),
    (collapse.retrieval_accuracy, ([[0, -1], [0, -1]], 0)), (repeats.pass_all, ([(5, 6)], 2)),
    (repeats.pass_any, ([(5, 6)], 2)), (repeats.pass_all, ([(5, 3)], 0)), (repeats.variance_component, (24, 1, 0)),
    (repeats.variance_component, (nan, 1, 3)), (repeats.variance_components, ([[1, nan], [1, 2]],)),
    (repeats.paraphrase_drop, (nan, [1])),
    (random_p, ([0], 1)), (random_p, ([2, 3], -1)), (seen_through, ([True, False], [1, nan], [0, 0])),
    (seen_through, ([True, False], [1], [0, 0])), (deception.detection, ([1, 0], [1])),
    (violations.severity_rate, ([violations.Accusation("a", (1,), 9)], {"a": 5})),
    (reml.reml, ([[1, nan], [3]], {}, 0)),
    (violations.severity_rate, ([violations.Accusation("z", (1,))], {"a": 5})),
    (reml.reml, ([[1], [3]], {"f": ["a"]}, 0)),
    (coalitions.group_contrast, ({"a": [1, 2], "b": [1]}, [{"a", "b"}], 9)),
    (conformal.learn_then_test, ([0], 50, 0.1, 2)), (collapse.retrieval_accuracy, ([[0, -1], [-1, 0]], 1, "a")),
    # --- society
    (economy.efficiency, ([10], [2], [(10, 2), (10, 2)])), (economy.efficiency, ([nan], [2], [])),
    (economy.seller_share, (10, 2, nan)), (economy.welfare_ratio, ([1], -2)), (economy.nash_welfare, ([1, nan],)),
    (inequality.gini, ([1, nan],)), (inequality.gini, ([1, inf],)), (inequality.lorenz, ([1, 2], 1.5)),
    (inequality.theil, ({"a": [nan]},)), (bargaining.nash_product, ([nan], [1])),
    (bargaining.nash_ratio, ([7], [2, 1], 3)), (bargaining.max_envy, ([{"x": 1}], [["x"], ["y"]])),
    (bargaining.proportional_share, ([{"x": 6}], [["y"]])), (polarisation.esteban_ray, ([nan],)),
    (polarisation.bimodality, ([nan] * 5,)), (games.nash_conv, ([], [{"a": 1.0}])),
    (games.nash_conv, ([{("R",): 1.0}], [{"R": 0.5}])), (games.nash_conv, ([{("R",): 1.0}], [{"P": 1.0}])),
    (games.external_regret, ("HH", "T", max, "H")), (games.external_regret, ("", "", max, "")),
    (games.regret_growth, ([nan],)), (cooperation.cooperation_after, ("CCDC", "CD", "C")),
    (cooperation.cross_play_gap, ([[1, 2], [3]],)), (influence.shapley, ("aa", len)),
    (influence.leave_one_out, ("ab", len, "z")), (influence.shapley_share, ("ab", len, "z")),
    (influence.causal_influence, ([({"x": 0.5, "y": 0.6}, {})],)), (influence.causal_influence, ([({"x": 1.0}, {})],)),
    (distances.wasserstein, ([nan], [1])), (distances.ks, ([nan], [1])), (distances.jensen_shannon, ([0.5], [1, 0])),
    (distances.jensen_shannon, ([-0.5, 1.5], [1, 0])), (distances.jensen_shannon, ([0, 0], [1, 0])),
    (distances.entropy, ([nan],)), (distances.normalised, (nan, 0, 1)), (likeness.step_accuracy, ("ab", "a")),
    (likeness.log_score, ([1.5],)), (networks.modularity, ([("a", "b")], [{"a"}])),
    (networks.assortativity, ([("a", "b")], {"a": 1})), (networks.adjusted_rand, ([{1, 2}], [{1, 2, 3}])),
    (networks.adjusted_rand, ([{1, 2}, {2}], [{1, 2}])), (cascades.structural_virality, ({"a": None, "b": None},)),
    (cascades.cascades, ({"a": None, "b": "z"},)), (cascades.cascades, ({"r": None, "a": "b", "b": "a"},)),
    (cascades.time_to_half, ([nan],)), (ratings.elo_expected, (nan, 1)), (ratings.elo_update, (1500, 1500, 2)),
    (ratings.plackett_luce, ([ratings.Skill()], [])), (ratings.plackett_luce, ([ratings.Skill(25, -1)], [1])),
    (ratings.glicko2, (ratings.Glicko(), [(ratings.Glicko(), 2)])), (ratings.glicko2, (ratings.Glicko(1500, -1), [])),
    (ratings.bradley_terry, ([("a", "b", 2)],)), (ratings.bradley_terry, ([("a", "a", 1)],)),
    (ratings.alpha_rank, ([[1, 2]],)), (ratings.alpha_rank, ([[nan, 1], [1, 1]],)),
    (ratings.elo_orders, ([("a", "b", 2)],)), (ratings.elo_orders, ([("a", "b", 1)], nan)),
    (ratings.win_probability, (ratings.Skill(nan), ratings.Skill())), (averaging.nash_average, ([[1, 2]],)),
    (averaging.nash_average, ([[nan, 1], [1, 1]],)), (solutions.nash_point, ([(1, nan)], (0, 0))),
    (solutions.nash_point, ([(1, 2, 3)], (0, 0))), (solutions.kalai_smorodinsky, ([(1, 2, 3)], (0, 0, 0))),
    (solutions.apart, ((1, 2), (1,))), (solutions.nash_product_ratio, ((1, nan), (0, 0), [(1, 1)])),
    (economy.assigned_gains, ([[1, 2], [3]],)), (economy.assigned_gains, ([[nan]],)),
    (economy.transported_gains, ([[1, 2]], [1], [1])), (economy.transported_gains, ([[1]], [-1], [1])),
    (economy.transported_gains, ([[1]], [1, 1], [1])), (bargaining.envy_free_share, ([{"x": 1}], [["y"]])),
    (bargaining.envy_free_but_one_share, ([{"x": 1}], [["x"], ["x"]])), (tails.vuong, ([0.5] * 60,)),
    (tails.vuong, ([0] * 60,)), (tails.vuong, ([1, 2] * 30, "normal")), (tails.ccdf, ([nan],)),
    (games.exploitability, ([], [{"a": 1.0}])), (games.sampled_exploitability, ([{("R",): 1.0}], [{"R": -1}])),
    (games.sampled_exploitability, ([{("R",): 1.0}], [{"P": 3}])), (games.response_bound, ([nan], {"a": [1, 2]})),
    (games.response_bound, ([1], {"a": [1, nan]})), (games.cumulative_regret, ("HH", "T", max, "H")),
    (influence.sampled_influence, ([({"x": 1.0}, {})],)), (influence.sampled_influence, ([({"x": 1.0}, {"x": {}})],)),
    (influence.sampled_influence, ([({"x": 1.0}, {"x": {"l": -1, "r": 2}})],)),
    (influence.sampled_shapley, ("aa", len)), (influence.sampled_shapley, ("ab", lambda _: nan)),
    (influence.lazy, (0,)), (influence.lazy, (2, nan)), (influence.lazy, (2, None, 0.0, 1.5)),
    (distances.energy_distance, ([nan], [1])), (likeness.accuracy, ([("ab", "a")],)),
    (likeness.final_f1, ([("ab", "a")], "a")), (likeness.final_f1, ([("", "")], "a")),
    (likeness.floor, ([[1], [nan]],)), (likeness.floor, ([[1], [2]], distances.ks, 0)),
    (likeness.scaled, ([[1], [2]], [[nan]], [[1]])),
    # --- analysis
    (attribution.root_step, ([nan],)), (attribution.root_step, ([1.2],)), (attribution.minimality, (21, 20)),
    (attribution.pruned_share, ([(1, 3), (2, 3)], 3, 1)), (attribution.blame, (1, (0, 0), (1, 4))),
    (attribution.step_accuracy, ([nan],)), (attribution.step_accuracy, ([0], -1)),
    (attribution.mean_reciprocal_rank, ([0],)), (conformal.threshold, ([1, nan], 0.2)), (conformal.threshold, ([1], 1)),
    (conformal.fewest, (0,)), (conformal.fewest, (nan,)), (conformal.risk_p, (51, 50, 0.1)),
    (conformal.risk_p, (2, 50, 1.1)), (conformal.coverage, ([nan], 1)), (offpolicy.ips, ([-1], [1])),
    (offpolicy.ips, ([], [1])), (offpolicy.snips, ([nan], [1])), (offpolicy.weight, ([0.5], [0])),
    (offpolicy.doubly_robust, ([], [1], [1], [1])), (offpolicy.effective_size, ([-1],)),
    (offpolicy.per_decision, ([[(-1, 1)]],)), (calibration.brier, ([-0.1], [True])), (calibration.brier, ([0.5], [2])),
    (reliability.ece, ([nan], [True])), (reliability.ece, ([0.5], [True], 0)), (calibration.log_loss, ([1.2], [0])),
    (calibration.murphy, ([], [1])), (improvement.success_curve, ([-2], 3)), (improvement.area_under, ([0, 2],)),
    (remembering.memory_index, ([1, 0], [1])), (uncertainty.local, ([1.0],)), (uncertainty.propagate, ({"a": 1.5}, {})),
    (uncertainty.propagate, ({"a": 0.5}, {("z", "a"): 1})), (uncertainty.entropy, ({"a": 0.5},)),
    (discrimination.auroc, ([nan], [True])), (discrimination.average_precision, ([1], [2])),
    (discrimination.risk_coverage, ([1, 2], [True])), (reliability.debiased, ([1.2], [True])),
    (reliability.kernel, ([0.5], [True], 0)), (reliability.recalibration, ([0.5], [])),
    (reliability.equal_mass, ([2],)),
    (failing.logistic, ([[nan]], [True])), (offpolicy.clipped, ([1], -1)), (offpolicy.clip_level, ([nan],)),
    (offpolicy.empirical_bernstein, ([2, 1], 0, 1)), (conformal.weighted_threshold, ([1], [nan], 1, 0.1)),
    (conformal.group_coverage, ({"a": [nan]}, {"a": 1})), (attribution.sets_to_try, ([1], 0)),
    (uncertainty.propagate, ({"a": 0.5, "b": 0.1}, {("a", "b"): 2})), (uncertainty.earliness, ([nan],)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args"), NONSENSE, ids=[f"{row[0].__name__}-{place}" for place, row in enumerate(NONSENSE)]
)
def test_nonsense_is_refused_in_one_line(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError) as raised:
        function(*args)
    told = str(raised.value)
    assert told
    assert "\n" not in told
    assert not told.startswith(("zip()", "math domain", "The truth value", "not enough values", "too many values"))


ARRAYS: list[tuple[Callable[..., Any], tuple[list[Any], ...]]] = [
    (clusters.mean, ([1, 2, 4],)), (clusters.rate, ([1, 2], [3, 4])), (multiplicity.benjamini_hochberg, ([0.01, 0.5],)),
    (multiplicity.adjusted, ([0.01, 0.5],)), (judged.ppi_mean, ([0, 1], [1, 0], [1, 1])),
    (judged.accuracy, ([1, 0], [1, 0])), (inference.auc, ([1, 2], [0, 1])), (inference.bits_gained, ([0.5], [0.25])),
    (cimemories.cumulative_exposure, ([0.1, 0.2],)), (tradeoff.hypervolume, ([[0, 0.4], [0.2, 0.7]],)),
    (screens.bid_cv, ([1, 2],)), (screens.relative_distance, ([1, 2, 4],)), (market.hhi, ([0.5, 0.5],)),
    (market.dispersion, ([1, 2],)), (market.price_range, ([1, 2],)), (market.pass_through, ([1, 2], [2, 4])),
    (covert.mutual_information, ([[3, 1], [1, 3]],)), (covert.miller_madow, ([[3, 1], [1, 3]],)),
    (punishment.depth, ([-1, -1, -1],)), (coalitions.coalition_advantage, ([1, 2], [1])),
    (pricing.price_index, ([1, 2],)), (inequality.gini, ([1, 2, 3],)), (inequality.absolute_gini, ([1, 2, 3],)),
    (economy.greatest_gains, ([5, 4], [1, 2])), (economy.nash_welfare, ([2, 8],)),
    (polarisation.esteban_ray, ([0, 1],)), (polarisation.bimodality, ([0, 0, 1, 1],)),
    (bargaining.nash_product, ([2, 3], [1, 1])), (distances.wasserstein, ([0, 1], [1, 2])),
    (distances.ks, ([0, 1], [1, 2])), (distances.jensen_shannon, ([0.5, 0.5], [1, 0])),
    (distances.energy_distance, ([0, 1], [1, 2])), (economy.assigned_gains, ([[5, 3], [8, 4]],)),
    (economy.transported_gains, ([[5, 3]], [2], [1, 1])), (tails.ccdf, ([1, 1, 2],)),
    (solutions.nash_point, ([[1, 0], [0, 1]], [0, 0])), (solutions.apart, ([1, 0], [0, 0])),
    (averaging.nash_average, ([[0, 1], [-1, 0]],)),
    (likeness.step_accuracy, ([1, 2], [1, 3])), (cooperation.cross_play_gap, ([[1, 0], [0, 1]],)),
    (ratings.alpha_rank, ([[0, 1], [0, 0]],)), (spread.reproduction_number, ([1, 0],)),
    (spread.doubling_time, ([1, 2],)), (attacks.product, ([0.5, 0.5],)), (drift.slope, ([1, 2, 4],)),
    (drift.mann_kendall, ([1, 2, 4],)), (fingerprint.macro_f1, ([0, 1], [0, 0])),
    (deception.detection, ([1, 0], [1, 1])), (repeats.pass_all, ([[5, 3], [5, 5]],)),
    (collapse.mutual_information, ([[0, -1], [-1, 0]],)), (calibration.brier, ([0.5, 0.2], [1, 0])),
    (reliability.ece, ([0.5, 0.2], [1, 0])), (calibration.murphy, ([0.5, 0.2], [1, 0])),
    (discrimination.auroc, ([0.5, 0.2], [1, 0])), (discrimination.average_precision, ([0.5, 0.2], [1, 0])),
    (discrimination.risk_coverage, ([0.5, 0.2], [1, 0])), (reliability.debiased, ([0.5, 0.5], [1, 0])),
    (reliability.kernel, ([0.5, 0.2], [1, 0])), (offpolicy.clipped, ([2, 1],)),
    (offpolicy.ips, ([2, 1], [1, 0])), (offpolicy.snips, ([2, 1], [1, 0])), (offpolicy.effective_size, ([2, 1],)),
    (attribution.root_step, ([0, 0.5],)), (conformal.coverage, ([1, 2],)), (improvement.area_under, ([0, 1],)),
    (remembering.memory_index, ([1, 0], [0, 0])), (paired.effect, ([1, 2], [2, 4])),
    (paired.variance_reduction, ([1, 2], [2, 4])), (judged.accuracy, ([1, 1, 0], [1, 0, 0], [1.0, 3.0, 1.0])),
    (ratios.exact_odds_ratio, ([[3, 4, 1, 4]],)), (clusters.mean_share, ([1.0, 0.5],)),
]  # fmt: skip
MORE = {pricing.price_index: (1.0, 2.0), repeats.pass_all: (2,), conformal.coverage: (1.0,)}
"""Arguments that are no lists."""


@pytest.mark.parametrize(("function", "args"), ARRAYS, ids=[row[0].__name__ for row in ARRAYS])
def test_arrays_are_taken_as_lists_are(function: Callable[..., Any], args: tuple[list[Any], ...]) -> None:
    more = MORE.get(function, ())
    found = function(*map(np.array, args), *more)
    assert found == function(*args, *more)
    assert "np." not in repr(found)


def test_nothing_is_no_number() -> None:
    assert (
        economy.welfare_ratio([], 24)
        is covert.mutual_information([[0, 0]])
        is market.variance_ratio(1, 9, 0, 9)
        is None
    )
    assert market.dispersion([-1, 1]) is market.price_range([-1, 2]) is None
    assert cascades.structural_virality({}) is coalitions.correlation([], []) is None
    assert ratings.bradley_terry([("a", "b", 1)], prior=0) is None


def test_a_name_a_value_and_what_would_be_right() -> None:
    for call, told in (
        (lambda: number("alpha", nan), "alpha: nan is not a finite number"),
        (lambda: number("cost", -1, 0), "cost: -1 is not a finite number from 0"),
        (lambda: number("rate", 1.5, 0, 1), "rate: 1.5 is not a number from 0 to 1"),
        (lambda: number("score", "x", -inf, inf), "score: 'x' is not a number"),
        (lambda: whole("n", 1.5), "n: 1.5 is not a whole number"),
        (lambda: truths("called", [1, 2]), "called: 2 is neither true nor false"),
        (lambda: law("policy", {"a": 0.5}), "policy: probabilities add up to 0.5, not to 1"),
        (lambda: alike(given=[1], happened=[]), "unequal lengths: 1 given, 0 happened"),
        (lambda: share_of(5, 4), "5 of 4 is no share"),
    ):
        with pytest.raises(ValueError) as raised:
            call()
        assert str(raised.value) == told


def test_shares_and_what_varies() -> None:
    assert (share_of(1, 4), share_of(0, 0), share_of(3, 0)) == (0.25, None, None)
    assert not varies([]) and not varies([0.1 + 0.2, 0.3]) and not varies([0, 0])  # noqa: PT018
    assert varies([0, 1e-9])
