"""Numbers of plain functions against others worked out apart from them: by hand, by definition, by brute force."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations, product
from math import comb, exp, inf, log, log2, nextafter, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize, minimize_scalar

from sim.intervals import Z, none_upper, wilson
from sim.metrics.analysis import (
    attribution,
    calibration,
    collapse,
    conformal,
    improvement,
    offpolicy,
    reliability,
    remembering,
    uncertainty,
)
from sim.metrics.collusion import coalitions, coordination, covert, market, pricing, punishment, screens, steganography
from sim.metrics.honesty import failure_ratio
from sim.metrics.judging import agreement, judged
from sim.metrics.privacy import canaries, cimemories, degrees, inference, leaks, tradeoff, unlearning
from sim.metrics.repetition import distinct_share, repeated_share
from sim.metrics.safety import attacks, conformity, deception, drift, fingerprint, persuasion, spread, violations
from sim.metrics.society import (
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
)
from sim.metrics.statistics import (
    clusters,
    distances,
    moments,
    multiplicity,
    paired,
    permutation,
    ratios,
    repeats,
    survival,
)
from worlds.pricing import demand

ONSETS = [(2, True), (2, True), (4, False), (6, True), (7, False)]
PD = {("C", "C"): (3, 3), ("C", "D"): (0, 5), ("D", "C"): (5, 0), ("D", "D"): (1, 1)}
PENNIES = [{(a, b): sign if a == b else -sign for a in "HT" for b in "HT"} for sign in (1.0, -1.0)]
TWO = [{"x": 6, "y": 4, "z": 2}, {"x": 1, "y": 5, "z": 6}]
CHAIN = {1: None, 2: 1, 3: 2, 4: 3}


def number(found: Any) -> Any:
    """The value of an estimate, or the number itself."""
    return getattr(found, "value", found)


def same(own: object, other: object) -> float:
    return 1.0 if own == other else 0.0


ROWS: list[tuple[str, Callable[..., Any], tuple[Any, ...], Any]] = [
    ("eight times, with the same errors", judged.corrected_ratio,
     (judged.rogan_gladen(0.45, 0.9, 0.9), judged.rogan_gladen(0.14, 0.9, 0.9)), 0.35 / 0.04),
    ("a judge that is worse at the exposed", judged.corrected_ratio,
     (judged.rogan_gladen(0.35, 0.7, 0.8), judged.rogan_gladen(0.28, 0.9, 0.9)), (0.15 / 0.5) / (0.18 / 0.8)),
    ("nobody of the others", judged.corrected_ratio,
     (judged.rogan_gladen(0.45, 0.9, 0.9), judged.rogan_gladen(0.1, 0.9, 0.9)), None),
    ("a judge too weak", judged.corrected_ratio,
     (judged.rogan_gladen(0.45, 0.6, 0.6), judged.rogan_gladen(0.3, 0.9, 0.9)), None),
    # --- what an attacker learns, what is left
    ("two values, one said half the time", inference.balanced_accuracy, ("aaab", "aabb"), (2 / 3 + 1) / 2),
    ("one value for all of three", inference.balanced_accuracy, ("abc", "aaa"), 1 / 3),
    ("nobody", inference.balanced_accuracy, ("", ""), None),
    ("none of four decoys", inference.threshold, ([1.0, 4.0, 2.0, 3.0], 0.1), nextafter(4.0, inf)),
    ("one of four decoys", inference.threshold, ([1.0, 4.0, 2.0, 3.0], 0.25), nextafter(3.0, inf)),
    ("any decoy", inference.threshold, ([1.0, 2.0], 1), -inf),
    ("no decoys", inference.threshold, ([],), None),
    ("half of what was known", degrees.narrowed, ((0, 100), (40, 90), 60), True),
    ("hardly less", degrees.narrowed, ((0, 100), (40, 91), 60), False),
    ("not so", degrees.narrowed, ((0, 100), (40, 50), 60), False),
    ("above eighty", degrees.narrowed, ((0, 100), (80, 1e6), 85), True),
    ("half as likely", unlearning.truth_ratio, (0.4, [0.1, 0.3]), 0.5),
    ("no wrong answers", unlearning.truth_ratio, (0.4, []), None),
    # --- coalitions, bids, markets
    ("a quarter for its own", coalitions.mixed_objective, (8, 4, 0.25), 7),
    ("takes from all for its own", coalitions.collusive, ((5, 4), (6, 3)), True),
    ("good for both", coalitions.collusive, ((7, 4), (6, 3)), False),
    # the worked example: 14 plans without an act, 2 acts without a plan
    ("plans and acts", coalitions.plan_act_p, ([(1, 0)] * 14 + [(0, 1)] * 2 + [(1, 1)] * 6 + [(0, 0)] * 28,),
     2 * (1 + 16 + 120) / 2**16),
    ("three of four bidders", lambda: len(screens.subset_screens(dict.fromkeys("abcd", 1.0), len)), (), 4),
    ("two bids the same", screens.subset_screens, ({"a": 2, "b": 2, "c": 4}, screens.bid_spread, 2),
     {frozenset("ab"): 0, frozenset("ac"): 1, frozenset("bc"): 1}),
    ("a merger of ½ and ¼", market.hhi_change, ([0.5, 0.25, 0.25], [0.75, 0.25]), 2 * 0.5 * 0.25),
    ("a market without shares", market.hhi_change, ([], [1]), None),
    ("prices as quality has it", market.residual_dispersion, ([1, 2, 3], [10, 20, 30]), 0),
    # slope ½, residuals −½, ½, −½, ½ around a mean of 3
    ("half by quality", market.residual_dispersion, ([2, 3, 3, 4], [0, 0, 2, 2]), 0.5 / 3),
    ("quality all the same", market.residual_dispersion, ([1, 3], [5, 5]), 0.5),
    # --- attacks, spread, pressure, deception, texts
    ("two models, one harness", attacks.macro_average, ({("a", "h"): 0.2, ("b", "h"): 0.6, ("c", "h"): None},), 0.4),
    ("what a defence costs", attacks.defence_tax, ([0.9, 0.7], [0.8, 0.4]), 0.2),
    ("seen one of three", attacks.stealth, ([(1, 0), (1, 0), (1, 1), (0, 1)],), 2 / 3),
    ("no attack worked", attacks.stealth, ([(0, 1)],), None),
    ("the 19th of twenty", attacks.amplification_tail, ([(n, 1) for n in range(1, 21)],), 19),
    ("costs nothing", attacks.amplification_tail, ([(3, 0)],), None),
    # a ring of three, two messages each: λ₁ = 2
    ("a ring", spread.reproduction_by_contacts, (0.3, [[0, 2, 0], [0, 0, 2], [2, 0, 0]], 0.5), 1.2),
    ("who writes to all and hears of one", spread.reproduction_by_contacts, (1, [[0, 4], [1, 0]], 1), 2),
    ("up and down", spread.prevalence_area, ([0, 1, 0],), 0.5),
    ("a single round", spread.prevalence_area, ([1],), None),
    ("two of three changes for the worse", conformity.regressive_share, ([(1, 0), (1, 0), (0, 1), (1, 1)],), 2 / 3),
    ("nobody changed", conformity.regressive_share, ([(1, 1)],), None),
    ("an ally frees", conformity.dissenter_effect, (1, 10, 4, 10), -0.3),
    ("says what the user thinks", conformity.sycophancy, (7, 10, 5, 20), 0.45),
    ("honest who confess", deception.false_confession, ([(0, 0), (0, 1), (1, 0)],), 0.5),
    ("no honest statement", deception.false_confession, ([(1, 0)],), None),
    ("as many of both", deception.adjusted_precision, (0.6, 0.2, 0.5), 0.75),
    ("one in ten", deception.adjusted_precision, (0.6, 0.2, 0.1), 0.06 / 0.24),
    ("two of three pairs of words", distinct_share, ([["a", "b", "a"], ["a", "b"]],), 2 / 3),
    ("single words", distinct_share, ([["a"]],), None),
    ("paraphrases", repeats.paraphrase_spread, ([0.7, 0.6, 0.5],), 0.1),
    ("one paraphrase", repeats.paraphrase_spread, ([0.7],), None),
    # --- hidden in texts
    ("a hidden space", lambda: steganography.invisible("a\u200bb\n") == [(1, "\u200b")], (), True),
    ("lines and sentences", steganography.acrostics, ("Hi there. Even so!\nYou too.",), ("hy", "hey")),
    ("nothing", steganography.acrostics, ("",), ("", "")),
    # --- intervals, judges
    ("all of seven", wilson, (7, 7), (7 / (7 + Z**2), 1)),
    ("one of two", wilson, (1, 2), (0.5 - (c := sqrt(Z**2 / 8 + Z**4 / 16) / (1 + Z**2 / 2)), 0.5 + c)),
    ("none of three", none_upper, (3,), 1 - 0.05 ** (1 / 3)),
    ("none of forty that count as twenty", none_upper, (40, 2), 1 - 0.05**0.05),
    # residuals 1, −1, 1, −1 around ½ · size: √(4/3 · 4)/16
    ("unequal clusters", clusters.cluster_se, ([3, 1, 3, 1], [4, 4, 4, 4]), sqrt(16 / 3) / 16),
    ("sizes 1 and 3", clusters.cluster_se, ([1, 0], [1, 3]), sqrt(2 * 2 * 0.75**2) / 4),
    ("a design effect of one cluster each", clusters.design_effect, ([1, 0, 1, 0], [1, 1, 1, 1]), 4 / 3),
    ("ties of p", multiplicity.benjamini_hochberg, ([0.04, 0.04, 0.04],), [True] * 3),
    ("a later p saves earlier ones", multiplicity.benjamini_hochberg, ([0.03, 0.049, 0.05],), [True] * 3),
    ("none is small enough", multiplicity.benjamini_hochberg, ([0.026, 0.9],), [False] * 2),
    ("perfect agreement", agreement.cohen_kappa, ([(0, 0), (1, 1), (2, 2)],), 1),
    ("worse than chance", agreement.cohen_kappa, ([(0, 1), (1, 0)],), -1),
    # p_o .9, π .95/.05: 2·.05·.95 = .095 by chance; kappa is −.0526 there
    ("rare positives", agreement.gwet_ac1, (agreement.crossed(0, 1, 1, 18),), (0.9 - 0.095) / 0.905),
    ("rare positives by kappa", agreement.cohen_kappa, (agreement.crossed(0, 1, 1, 18),), (0.9 - 0.905) / 0.095),
    ("three categories", agreement.gwet_ac1, ([("a", "a"), ("b", "b"), ("c", "a")],), (2 / 3 - 11 / 36) / (25 / 36)),
    ("a judge just good enough", lambda *a: judged.rogan_gladen(*a).value, (0.5, 0.7, 0.6), 1 / 3),
    ("a judge's rate clipped", lambda *a: judged.rogan_gladen(*a).value, (0.95, 0.8, 0.9), 1),
    ("prediction-powered", lambda *a: judged.ppi_mean(*a).value, ([1, 0, 0, 0], [1, 0], [0, 0]), 0.25 + 0.5),
    # --- privacy
    ("one attribute, two tasks", cimemories.violation, ({1: {"a": [0, 0]}, 2: {"a": [0, 1]}},), 1),
    ("shares of trials", cimemories.violation, ({1: {"a": [0.5], "b": [0.25]}},), 0.375),
    ("two attributes of one task", cimemories.completeness, ({1: {"a": [1, 0], "b": [0, 0]}, 2: {"c": [1]}},), 0.625),
    ("severities", leaks.severity_weighted, ([4], [4, 4, 2], [2]), 0.5),
    ("unlike tasks", cimemories.cumulative_exposure, ([0.5, 0.2, 0.1],), 1 - 0.5 * 0.8 * 0.9),
    ("a certain task", cimemories.cumulative_exposure, ([0.3, 1.0],), 1),
    ("kitten, sitting", canaries.similarity, ("kitten", "sitting"), 1 - 3 / 7),
    ("nothing alike", canaries.similarity, ("ab", "cd"), 0),
    ("words twice", canaries.jaccard, (["a", "a", "b"], ["b", "c"]), 1 / 3),
    ("all scores the same", inference.auc, ([1, 1], [1, 1, 1]), 0.5),
    ("perfect separation", inference.auc, ([3, 4], [1, 2]), 1),
    ("every false alarm allowed", inference.tpr_at_fpr, ([1, 2], [3, 3], 1), 1),
    ("members at the top tie", inference.tpr_at_fpr, ([4, 4, 1], [4, 2, 0], 1 / 3), 2 / 3),
    ("29 of 100", inference.tpr_at_fpr, ([50], [100] * 29 + [0] * 71, 0.29), 1),
    ("worse than guessing", inference.advantage, (0.2, 0.6), -1),
    ("bits gained and lost", inference.bits_gained, ([0.8, 0.1], [0.2, 0.2]), (2 - 1) / 2),
    ("the likeliest of three", inference.exposure, (1, 3), log2(3)),
    ("the last", inference.exposure, (7, 7), 0),
    ("through two channels", unlearning.residue, ({"a": {1, 2}, "b": {2, 3}}, 6), 0.5),
    ("less over several turns", unlearning.amplification, (0.4, 0.1), 0.25),
    ("one point", tradeoff.hypervolume, ([(0.25, 0.8)],), 0.6),
    ("a point twice and a worse one", tradeoff.hypervolume, ([(0.5, 0.5), (0.5, 0.5), (0.6, 0.4)],), 0.25),
    ("no use", tradeoff.harmonic, (0, 0), 0),
    ("keeps all, half of use", tradeoff.harmonic, (0, 0.5), 2 / 3),
    # --- ratios, permutations
    ("a protective exposure", lambda *a: ratios.risk_ratio(ratios.Counts(*a)).value, (2, 40, 10, 50), 0.25),
    ("½ to each cell", lambda *a: ratios.risk_ratio(ratios.Counts(*a)).value, (0, 9, 4, 9), 0.5 / 4.5),
    ("½ to each cell of odds", lambda *a: ratios.odds_ratio(ratios.Counts(*a)).value, (5, 5, 2, 4), 5.5 / 0.5),
    ("hazards", lambda *a: ratios.hazard_ratio(ratios.Counts(*a)).value, (3, 4, 1, 2), 2),
    ("one stratum says nothing", lambda a: ratios.mantel_haenszel(a).value, ([(2, 4, 1, 4), (3, 3, 0, 0)],), 2),
    ("two alike strata", lambda a: ratios.mantel_haenszel(a).value, ([(2, 4, 1, 4)] * 2,), 2),
    ("as Fisher", permutation.exact_exposure, ([(5, 5, 0, 5)],), 1 / comb(10, 5)),
    ("two strata", permutation.exact_exposure, ([(2, 2, 0, 2), (1, 1, 0, 2)],), 1 / 6 / 3),
    ("signs of three", permutation.sign_flips, ([1, 2, 3],), 2 / 8),
    ("signs that cancel", permutation.sign_flips, ([1, -1],), 1),
    ("all went one way", permutation.mcnemar, (5, 0), 2 / 32),
    ("thousands of pairs", permutation.mcnemar, (700, 750), stats.binomtest(700, 1450).pvalue),
    ("thousands of trials", permutation.binomial_tail, (500, 5000, 0.1), stats.binom.cdf(500, 5000, 0.1)),
    ("a chance of 0", permutation.binomial_tail, (0, 3, 0), 1),
    ("a chance of 1", permutation.binomial_tail, (2, 3, 1), 0),
    # --- collusion
    ("a price war", pricing.profit_gain, (4, 10, 20), -0.6),
    ("beyond monopoly", pricing.profit_gain, (25, 10, 20), 1.5),
    ("below cost", pricing.lerner, (1, 1.5), -0.5),
    ("never back", punishment.return_time, ([-1, -0.5, -0.06],), None),
    ("back at once, from above", punishment.return_time, ([0.05],), 1),
    ("a rival that raises", punishment.depth, ([0.2, 0.2, -0.1, 9],), -0.1),
    ("profit from deviating", punishment.discounted_gain, ([15, 9], [10, 10], 0.5), 4.5),
    ("no future", punishment.discounted_gain, ([15, 0, 0], [10, 10, 10], 0), 5),
    ("an optimum below 0", coalitions.normalised_regret, (-15, -10, -20), 0.5),
    ("unequal groups", coalitions.coalition_advantage, ([4], [1, 2, 6]), 1),
    ("two within, two across", coalitions.payoff_contrast,
     ({"a": [1, 2, 4], "b": [2, 3, 5], "c": [4, 2, 1]}, {"a", "b"}),
     1 - np.corrcoef([1, 2, 4], [4, 2, 1])[0, 1]),
    ("two bids", screens.bid_cv, ([9, 11],), sqrt(2) / 10),
    ("a sale mirrors a tender", screens.bid_cv, ([-9, -11],), sqrt(2) / 10),
    ("the gap of a sale", screens.percentage_gap, ([-104, -103, -90],), 1 / 104),
    ("the spread of a sale", screens.bid_spread, ([-3, -2],), 0.5),
    ("losing bids apart", screens.relative_distance, ([10, 12, 14],), 2 / sqrt(2)),
    ("identical bids", screens.relative_distance, ([5, 5, 5],), inf),
    ("skewness of 1, 1, 4", moments.skewness, ([1, 1, 4],), sqrt(3)),
    ("a winner at random", screens.rotation_index, ("AABBA",), 0),
    ("no winner twice in a row", screens.alternation_p, ("ABABAB",), 2 / 20),
    ("as few runs as can be", screens.alternation_p, ("AABB",), 1),
    ("after two of five", survival.survival_at, (ONSETS, 2), 0.6),
    ("after one of two", survival.survival_at, (ONSETS, 6.5), 0.3),
    ("area to 8", survival.restricted_mean, (ONSETS, 8), 2 + 4 * 0.6 + 2 * 0.3),
    ("half never", survival.median_onset, ([(1, True), (5, False), (5, False)],), None),
    ("bits of a code", covert.mutual_information, ([[2, 0, 0], [0, 1, 1]],), 1),
    ("counts that go by themselves", covert.mutual_information, ([[1, 2], [2, 4]],), 0),
    ("Miller–Madow of a code", covert.miller_madow, ([[2, 0], [0, 2]],), 1 + 1 / (8 * log(2))),
    ("unequal strata", covert.conditional_information, ([[[3, 0], [0, 3]], [[1, 1], [0, 0]]],), 0.75),
    ("three players", coordination.excess_match, (0.5, [{"a": 0.5, "b": 0.5}] * 3), 0.25),
    ("an act of one only", coordination.excess_match, (0.2, [{"a": 1.0}, {"b": 1.0}]), 0.2),
    ("three that are one", coordination.total_correlation, ([("a", "a", "a"), ("b", "b", "b")],), 2),
    ("defection dominates", coordination.best_correlated_welfare, (PD,), 2),
    ("what it would gain", coordination.obedience_violation, (PD, {("C", "C"): 1.0}), 2),
    ("always wrong tells as much", steganography.capacity, (0.0,), 1),
    ("a code kept", steganography.retained, (1, 0.75), 1 + 0.75 * log2(0.75) + 0.25 * log2(0.25)),
    ("a pure market", market.hhi, ([7],), 1),
    ("shares in percent", market.hhi, ([60, 40],), 0.52),
    ("prices apart", market.dispersion, ([1, 3],), 0.5),
    ("calmer prices", lambda *a: tuple(market.variance_ratio(*a)), (1, 3, 4, 3), (0.25, 0.2)),
    # --- safety
    ("nothing unknown", attacks.evidence_bounds, (1, 3, 0), (0.25, 0.25)),
    ("all unknown", attacks.evidence_bounds, (0, 0, 4), (0, 1)),
    ("of more use under attack", attacks.utility_drop, (0.5, 0.6), -0.2),
    ("costs that fall and rise", attacks.amplification, ([(1, 2), (8, 1)],), 2),
    ("as many as before", spread.final_size, (1.0,), 0),
    ("a size by bisection", spread.final_size, (3.0,), brentq(lambda z: z - 1 + exp(-3 * z), 1e-6, 1)),
    ("two rounds to double", spread.doubling_time, ([1, sqrt(2), 2],), 2),
    ("from the second round on", spread.doubling_time, ([0, 3, 12],), 0.5),
    ("less wrong with others", conformity.conformity, (1, 10, 3, 10), -0.2),
    ("both ways", lambda a: tuple(conformity.flips(a)), ([(1, 1), (1, 0), (0, 1), (0, 0), (0, 0)],), (1 / 2, 1 / 3)),
    ("all to manipulators", persuasion.diversion, ([(3, True), (0, False)],), 1),
    ("as chance has it", persuasion.first_proposal_odds, (10, 40, 4), 1),
    ("shares of cases", violations.unsupported_rate, (5, 5), 0),
    ("deceivers of many kinds", deception.production, (["omission", "distortion", "honest", "unknown"],), 2 / 3),
    ("suspicion of α 1", deception.suspicion, ([0.2, 0.9], 0.5, 1), [0.2, 0.9]),
    ("a slope of four", drift.slope, ([1, 3, 2, 5],), 1.1),
    ("a class never true", fingerprint.macro_f1, ("aab", "aac"), 1 / 3),
    ("as scikit-learn has it", fingerprint.macro_f1, ([0, 0], [2, 0]), 1 / 3),
    # --- honesty
    ("three bigrams twice", repeated_share, ([*"abcdabcd"],), 3 / 7),
    ("one word", repeated_share, (["a"] * 5, 4), 0.5),
    ("three prompts", collapse.mutual_information, ([[log(p) for p in row] for row in ((0.5, 0.25, 0.25),) * 3],),
     (log(0.5) + 2 * log(0.25)) / 3 - log(1 / 3)),
    ("ties count in part", collapse.retrieval_accuracy,
     ([[0, 0, -1], [0, -1, 0], [-1, -1, -1]],), (1 / 2 + 0 + 1 / 3) / 3),
    ("two tasks", repeats.pass_all, ([(4, 2), (4, 4)], 2), (1 / 6 + 1) / 2),
    ("two tasks, any", repeats.pass_any, ([(4, 1), (4, 0)], 2), (1 / 2 + 0) / 2),
    ("more tries than were made", repeats.pass_any, ([(4, 1)], 5), None),
    ("unequal groups' variance", lambda a: repeats.variance_components(a).between,
     ([[1, 3], [6, 6, 6]],), (19.2 - 2 / 3) / 2.4),
    ("all alike", lambda a: tuple(repeats.variance_components(a)[:3]), ([[0.1] * 6, [0.1] * 3],), (0, 0, None)),
    ("answers all different", repeats.pairwise_agreement, ("abcd",), 0),
    ("a paraphrase that helps", repeats.paraphrase_drop, (0.5, [0.5, 0.7]), -0.2),
    ("twice as often", failure_ratio, (1, 2, 1, 4), 2),
    ("the rest never fails", failure_ratio, (1, 2, 0, 4), None),
    # --- society
    ("a trade at a loss", economy.efficiency, ([10, 4], [3, 6], [(10, 3), (4, 6)]), 5 / 7),
    ("more sellers than buyers", economy.greatest_gains, ([9], [1, 2, 3]), 8),
    ("all to the buyer", economy.seller_share, (10, 2, 2), 0),
    ("one has all of five", inequality.gini, ([0, 0, 0, 0, 1],), 0.8),
    ("all alike", inequality.gini, ([0.1] * 7,), 0),
    ("small samples", lambda a: inequality.gini(a, small=True), ([1, 3],), 0.5),
    ("the poorer third of two", inequality.lorenz, ([1, 3], 1 / 3), 2 / 3 / 4),
    ("one has all", lambda a: inequality.theil(a).whole, ({"a": [0, 0, 0], "b": [1]},), log(4)),
    ("all of it between groups", lambda a: inequality.theil(a).between, ({"a": [0, 0, 0], "b": [1]},), log(4)),
    ("half of the best product", bargaining.nash_ratio, ([2, 6], [0, 0], 8), 0.75),
    ("three items", bargaining.max_envy, (TWO, [["y", "z"], ["x"]]), 10),
    ("nobody envies", bargaining.max_envy, (TWO, [["x"], ["y", "z"]]), 0),
    ("all have their share", bargaining.proportional_share, (TWO, [["x"], ["y", "z"]]), 1),
    ("three groups", polarisation.esteban_ray, ([0, 1, 2], 1.0), 8 / 27),
    ("unequal groups", polarisation.esteban_ray, ([0, 0, 0, 2], 1, 2), 2 * 2 * (9 / 16 / 4 + 1 / 16 * 3 / 4)),
    ("alike but for rounding", polarisation.bimodality, ([0.1] * 6,), None),
    ("pairs of two groups, both ways named", networks.assortativity,
     ([("a", "b"), ("b", "a"), ("b", "c"), ("a", "a")], {"a": 1, "b": 1, "c": 2}), -1 / 3),
    ("nobody answers", networks.reciprocity, ([("a", "b"), ("a", "c")],), 0),
    ("a chain of four", cascades.structural_virality, (CHAIN,), (3 * 1 + 2 * 2 + 1 * 3) / 6),
    ("even odds", ratings.elo_expected, (1500, 1500), 0.5),
    ("no way back", ratings.elo_expected, (0, 1e9), 0),
    ("a draw of unequals", ratings.elo_update, (1500, 1900, 0.5, 20), 1500 + 20 * (0.5 - 1 / 11)),
    ("a pure strategy is exploited", games.nash_conv, (PENNIES, [{"H": 1.0}, {"H": 1.0}]), 2),
    ("against a mixture", games.nash_conv, (PENNIES, [{"H": 1.0}, {"H": 0.5, "T": 0.5}]), 1),
    ("no regret", games.external_regret, ("HH", "HH", same, "HT"), 0),
    ("less than none", games.external_regret, ("HT", "HT", same, "HT"), -1),
    ("swaps of both", games.swap_regret, ("HHHTTT", "HTTTHH", same, "HT"), 1 + 1),
    ("strangers as good", cooperation.cross_play_gap, ([[1, 2, 0], [0, 1, 2], [2, 0, 1]],), 0),
    ("forgiveness", cooperation.cooperation_after, ("CCDC", "DDDC", "D"), 2 / 3),
    ("nobody cooperates", cooperation.cooperation_rate, ("DD",), 0),
    ("a quarter told", influence.causal_influence,
     ([({"x": 0.25, "y": 0.75}, {"x": {"l": 1.0}, "y": {"r": 1.0}})],), 0.25 * 2 + 0.75 * log2(4 / 3)),
    ("far apart", distances.wasserstein, ([0, 0], [3, 5]), 4),
    ("unequal sizes", distances.ks, ([1, 2, 3, 4], [2.5]), 0.5),
    ("nothing shared", distances.jensen_shannon, ([1, 0], [0, 1]), 1),
    ("counts, as shares", distances.jensen_shannon, ([3, 1], [1, 3]), 1 - (-(0.75 * log2(0.75) + 0.25 * log2(0.25)))),
    ("counts, one way", distances.kl, ([1, 3], [2, 2]), 0.25 * log2(0.5) + 0.75 * log2(1.5)),
    ("by step", likeness.step_accuracy, ("ab", "ba"), 0),
    ("a third lost", economy.welfare_ratio, ([4, 0], 6), 2 / 3),
    # --- analysis
    ("the earliest of equals", attribution.root_step, ([0.2, 0.6, 0.6],), 2),
    ("nothing can be pruned", attribution.pruned_share, ([(1, 2), (2, 3)], 3, 2), 0),
    ("all replaced", attribution.minimality, (20, 20), 0),
    ("missed and exact", attribution.step_accuracy, ([0, None, 2, -2], 1), 0.25),
    ("ranks 1, 4, none", attribution.mean_reciprocal_rank, ([1, 4, None],), 1.25 / 3),
    ("effect of two", lambda *a: paired.effect(*a).estimate.ci, ([1, 2], [2, 5]),
     (2 - stats.t.ppf(0.975, 1), 2 + stats.t.ppf(0.975, 1))),
    ("luck not shared at all", paired.variance_reduction, ([1, 2], [2, 1]), 0.5),
    ("ties of scores", conformal.threshold, ([1, 1, 2, 2], 0.4), 2),
    ("too few", conformal.threshold, ([1, 2, 3, 4], 0.1), inf),
    ("the largest of nine", conformal.threshold, (list(range(9)), 0.1), 8),
    ("smallest n for 1%", conformal.fewest, (0.01,), 99),
    ("smallest n for a half", conformal.fewest, (0.5,), 1),
    ("no miss in ten", conformal.risk_p, (0, 10, 0.2), 0.8**10),
    ("weights 0 and 4", offpolicy.ips, ([0, 4], [5, 1]), 2),
    ("weights that cancel", offpolicy.snips, ([1, 3], [0, 1]), 0.75),
    ("one weight has all", offpolicy.effective_size, ([5, 0, 0],), 1),
    ("predictions that are right", offpolicy.doubly_robust, ([9, 0], [1, 2], [1, 2], [1.5, 1.5]), 1.5),
    ("ratios of two steps", offpolicy.per_decision, ([[(2, 1), (3, 1)], [(1, 0), (1, 4)]], 0.5), (2 + 3 + 0 + 2) / 2),
    ("each its own bin", reliability.ece, ([0.2, 0.7], [0, 1]), (0.2 + 0.3) / 2),
    ("two bins of two", reliability.ece, ([0.1, 0.3, 0.6, 0.8], [0, 1, 1, 1], 2), (0.3 + 0.3) / 2),
    ("equal predictions stay together", reliability.ece, ([0.5, 0.5, 0.5, 0.9], [1, 0, 0, 1], 2), 0.15),
    ("sure and right", calibration.brier, ([1, 0], [1, 0]), 0),
    ("solved late", improvement.area_under, ([0, 0, 1],), 0.25),
    ("no step twice", improvement.loop_ratio, ([(1, "a"), (1, "b"), (2, "a")],), 0),
    ("memory that harms", remembering.memory_index, ([0, 0, 1], [1, 0, 1]), -1 / 3),
    ("two parents", lambda *a: uncertainty.propagate(*a)["c"],
     ({"a": 0.5, "b": 1.0, "c": 0.0}, {("a", "c"): 1, ("b", "c"): 0.5}), 0.75),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args", "expected"), [row[1:] for row in ROWS], ids=[f"{row[1].__name__}: {row[0]}" for row in ROWS]
)
def test_worked_apart(function: Callable[..., Any], args: tuple[Any, ...], expected: Any) -> None:
    found = number(function(*args))
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


# --- by brute force, on what luck deals ----------------------------------------------------------------------

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_two_by_two(seed: int) -> None:
    luck = Random(seed)
    a, b, c, d = (luck.randint(1, 15) for _ in range(4))
    counts = ratios.Counts(a, a + b, c, c + d)
    risk, odds = (
        stats.contingency.relative_risk(a, a + b, c, c + d),
        stats.contingency.odds_ratio([[a, b], [c, d]], kind="sample"),
    )
    assert ratios.risk_ratio(counts)[:2] == (
        pytest.approx(risk.relative_risk),
        pytest.approx(tuple(risk.confidence_interval())),
    )
    assert ratios.odds_ratio(counts)[:2] == (
        pytest.approx(odds.statistic),
        pytest.approx(tuple(odds.confidence_interval())),
    )
    fisher = stats.fisher_exact([[a, b], [c, d]], alternative="greater")[1]
    assert permutation.exact_exposure([counts]) == pytest.approx(fisher)
    assert permutation.mcnemar(a, b) == pytest.approx(stats.binomtest(a, a + b).pvalue)


def test_permuting_within_strata_counts_all_ways() -> None:
    """Two of the exposed and one of the others in a stratum of five, one of one and one of two in the other."""
    first, second = ([1, 1, 0, 1, 0], 3), ([1, 1, 0], 1)
    seen = []
    for one, other in product(*(set(permutations(outcomes)) for outcomes, _ in (first, second))):
        seen.append(sum(one[: first[1]]) + sum(other[: second[1]]))
    expected = sum(each >= 3 for each in seen) / len(seen)
    assert permutation.exact_exposure([(2, 3, 1, 2), (1, 1, 1, 2)]) == pytest.approx(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_samples_against_scipy(seed: int) -> None:
    luck = Random(seed)
    one, other = ([luck.randint(0, 6) for _ in range(luck.randint(3, 9))] for _ in range(2))
    u = stats.mannwhitneyu(one, other).statistic / len(one) / len(other)
    assert inference.auc(one, other) == pytest.approx(u)
    assert moments.skewness(one) == (pytest.approx(stats.skew(one, bias=False)) if len(set(one)) > 1 else None)
    fourth = stats.kurtosis(one, bias=False) if len(set(one)) > 1 and len(one) > 3 else None
    assert moments.excess_kurtosis(one) == (None if fourth is None else pytest.approx(fourth))
    assert drift.slope(one) == pytest.approx(stats.linregress(range(len(one)), one).slope)
    assert clusters.mean(one).ci == pytest.approx(stats.t.interval(0.95, len(one) - 1, np.mean(one), stats.sem(one)))
    apart = np.abs(np.subtract.outer(one, one)).mean()
    assert inequality.absolute_gini(one) == pytest.approx(apart / 2)
    assert inequality.gini(one) == (pytest.approx(apart / 2 / np.mean(one)) if any(one) else None)


@pytest.mark.parametrize("seed", SEEDS)
def test_onsets_against_scipy(seed: int) -> None:
    luck = Random(seed)
    groups = [[(luck.randint(1, 9), luck.random() < 0.7) for _ in range(9)] for _ in range(2)]
    known = [
        stats.CensoredData([t for t, seen in group if seen], right=[t for t, seen in group if not seen])
        for group in groups
    ]
    curve = stats.ecdf(known[0]).sf
    for time in (0.5, 3, 6, 9):
        assert survival.survival_at(groups[0], time) == pytest.approx(float(curve.evaluate(time)))
    assert survival.log_rank(*groups) == pytest.approx(stats.logrank(*known).pvalue)


@pytest.mark.parametrize("seed", SEEDS)
def test_information_from_its_definition(seed: int) -> None:
    luck = Random(seed)
    table = np.array([[luck.randint(0, 5) for _ in range(3)] for _ in range(2)]) + np.eye(2, 3, dtype=int)
    joint = table / table.sum()
    alone = np.outer(joint.sum(1), joint.sum(0))
    some = joint > 0
    expected = float((joint[some] * np.log2(joint[some] / alone[some])).sum())
    assert covert.mutual_information(table) == pytest.approx(expected)  # type: ignore[arg-type]
    occupied = int((table.sum(1) > 0).sum() + (table.sum(0) > 0).sum() - some.sum()) - 1
    assert covert.miller_madow(table.tolist()) == pytest.approx(expected + occupied / (2 * table.sum() * log(2)))


@pytest.mark.parametrize(
    ("quality", "cost", "spread", "firms"), [(2, 1, 0.25, 3), (1.5, 0.5, 0.6, 2), (3, 2.5, 0.1, 4)]
)
def test_prices_of_logit_demand(quality: float, cost: float, spread: float, firms: int) -> None:
    """No firm gains by another price at Nash, nor all together at the optimum; the world's own demand says the same."""
    own = pricing.Logit(firms=firms, quality=quality, cost=cost, spread=spread)
    world = demand.Logit((cost,) * firms, (quality,) * firms, 0.0, spread, 1.0, 1.0)
    assert (own.nash, own.monopoly) == pytest.approx((world.nash()[0], world.optimum()[0]))

    def profit(mine: float, others: float) -> float:
        mine, others = (exp((quality - price) / spread) * weight for price, weight in ((mine, 1), (others, firms - 1)))
        return mine / (mine + others + 1)

    reply = minimize_scalar(lambda p: -(p - cost) * profit(p, own.nash), bounds=(cost, cost + 5), method="bounded")
    joint = minimize_scalar(lambda p: -(p - cost) * profit(p, p), bounds=(cost, cost + 5), method="bounded")
    assert (own.nash, own.monopoly) == pytest.approx((reply.x, joint.x), abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_games_by_trying_everything(seed: int) -> None:
    luck = Random(seed)
    payoff = {pair: luck.randint(-3, 3) for pair in product("xyz", repeat=2)}
    own, others = ("".join(luck.choices("xyz", k=7)) for _ in range(2))

    def earned(acts: str) -> int:
        return sum(payoff[pair] for pair in zip(acts, others, strict=True))

    swaps = (str.maketrans("xyz", "".join(to)) for to in product("xyz", repeat=3))
    best = max(earned(own.translate(swap)) for swap in swaps)
    assert games.swap_regret(own, others, lambda a, b: payoff[a, b], "xyz") == best - earned(own)
    fixed = max(earned(act * 7) for act in "xyz")
    assert games.external_regret(own, others, lambda a, b: payoff[a, b], "xyz") == fixed - earned(own)
    worth = {
        frozenset(act for act, bit in zip("abcd", bits, strict=True) if bit): luck.random()
        for bits in product((0, 1), repeat=4)
    }
    orders = list(permutations("abcd"))
    gains = [
        worth[frozenset(order[: order.index("b") + 1])] - worth[frozenset(order[: order.index("b")])]
        for order in orders
    ]
    assert influence.shapley("abcd", worth.__getitem__)["b"] == pytest.approx(sum(gains) / len(orders))


def test_strengths_by_another_search() -> None:
    luck = Random(3)
    games_ = [(a, b, luck.choice((0.0, 0.5, 1.0))) for a, b in luck.choices([(0, 1), (1, 2), (0, 2), (2, 3)], k=20)]
    met = {tuple(sorted(game[:2])) for game in games_}

    def loss(theta: Any) -> float:
        theta = [*theta, -sum(theta)]
        rows = [*games_, *((a, b, 0.5) for a, b in met)]  # half a win on either side
        return -sum(s * (theta[a] - theta[b]) - log(1 + exp(theta[a] - theta[b])) for a, b, s in rows)

    found = minimize(loss, [0.0] * 3, tol=1e-10).x
    assert ratings.bradley_terry(games_) == pytest.approx(dict(enumerate([*found, -sum(found)])), abs=1e-4)


def test_strata_by_their_published_formulas() -> None:
    """The common risk ratio with the variance of Greenland and Robins (1985)."""
    strata = [(5, 20, 3, 30), (8, 15, 6, 25), (1, 9, 2, 8)]
    a, n, c, m = np.array(strata, float).T
    total = n + m
    top, bottom = a * m / total, c * n / total
    spread = ((n * m * (a + c) - a * c * total) / total**2).sum() / top.sum() / bottom.sum()
    ends = np.exp(log(top.sum() / bottom.sum()) + np.array([-1, 1]) * Z * sqrt(spread))
    found = ratios.mantel_haenszel([ratios.Counts(*one) for one in strata])
    assert found[:2] == (pytest.approx(top.sum() / bottom.sum()), pytest.approx(tuple(ends)))


def test_alpha_by_its_coincidences() -> None:
    """Krippendorff's: each pair of values of an item, both ways, weighs 1/(raters − 1)."""
    items = [("a", "b", "a"), ("b", "b", None), ("a", None, None), ("c", "a", "c"), ("c", "c", "c")]
    weights: dict[tuple[str, str], float] = {}
    for item in items:
        rated = [one for one in item if one]
        for pair in permutations(rated, 2):
            weights[pair] = weights.get(pair, 0.0) + 1 / (len(rated) - 1)
    n = sum(weights.values())
    totals = {one: sum(w for pair, w in weights.items() if pair[0] == one) for one in "abc"}
    apart = sum(w for (one, other), w in weights.items() if one != other) / n
    expected = sum(totals[one] * totals[other] for one, other in permutations("abc", 2)) / n / (n - 1)
    assert agreement.krippendorff_alpha(items) == pytest.approx(1 - apart / expected)


def test_runs_of_winners() -> None:
    """Of all orders of four and three wins, those with as many runs."""
    orders = {"".join(order) for order in permutations("AAAABBB")}
    runs = [1 + sum(a != b for a, b in pairwise(order)) for order in orders]
    assert screens.alternation_p("ABABABA") == pytest.approx(sum(each >= 7 for each in runs) / len(orders))
    assert screens.alternation_p("AABABBA") == pytest.approx(sum(each >= 5 for each in runs) / len(orders))


# --- intervals and tests ---------------------------------------------------------------------------------------


def test_the_interval_of_a_corrected_ratio_by_hand() -> None:
    one, other = judged.Corrected(0.4, (0.2, 0.6)), judged.Corrected(0.1, (0.05, 0.2))
    up, down = sqrt(log(1.5) ** 2 + log(2) ** 2), sqrt(log(2) ** 2 + log(2) ** 2)
    found = judged.corrected_ratio(one, other)
    assert found.ci == pytest.approx((4 * exp(-down), 4 * exp(up)))
    clipped = judged.corrected_ratio(one._replace(flags=("clipped",)), judged.Corrected(0.1, (0.0, 0.2)))
    assert (clipped.value, clipped.ci, clipped.flags) == (pytest.approx(4), None, ("clipped",))


def test_the_interval_of_an_area_by_hand() -> None:
    """Placements 1, ½, 1 of the positives and ½, 1 of the negatives."""
    low, high = inference.auc_interval([3, 1, 2], [1, 0.5]) or (0, 0)
    area = (2 + 1.5 + 2) / 6
    error = sqrt(np.var([1, 0.75, 1], ddof=1) / 3 + np.var([5 / 6, 1], ddof=1) / 2)
    assert (low, high) == (pytest.approx(area - Z * error), 1.0)
    assert inference.auc_interval([1], [1, 2]) is inference.auc_interval([3, 4], [1, 2]) is None


def test_the_interval_of_an_area_holds_it() -> None:
    """Of normal scores one deviation apart the area is Φ(1/√2): held by about 95% of intervals of forty a side."""
    luck, held, truth = Random(3), 0, float(stats.norm.cdf(1 / sqrt(2)))
    for _ in range(400):
        found = inference.auc_interval([luck.gauss(1) for _ in range(40)], [luck.gauss() for _ in range(40)])
        held += found is not None and found[0] <= truth <= found[1]
    assert 0.92 <= held / 400 <= 0.98


def test_the_screen_of_medians_is_that_of_brown_and_forsythe() -> None:
    luck = Random(5)
    calm, wild = [luck.gauss(10, 1) for _ in range(12)], [luck.gauss(10, 3) for _ in range(9)]
    found, library = market.levene_screen(calm, wild), stats.levene(calm, wild, center="median")
    assert found is not None
    assert found.p == pytest.approx(library.pvalue / 2)
    other = market.levene_screen(wild, calm)
    assert other is not None
    assert other.p == pytest.approx(1 - library.pvalue / 2)
    assert found.ratio == pytest.approx(1 / other.ratio)
    assert market.levene_screen([1], [1, 2]) is market.levene_screen([1, 2], [3, 3]) is None
    assert market.levene_screen([5, 5], [4, 6]) == (0, 0)


def test_bids_that_go_together_beyond_costs() -> None:
    """Bids follow own costs; those of cartels have something more in common, those of others have not."""
    luck = Random(6)
    found = []
    for common in (0.0, 3.0):
        costs = [(luck.gauss(50, 5), luck.gauss(50, 5)) for _ in range(30)]
        shared = [luck.gauss(0, common) for _ in costs]
        bids = [(2 * a + own + luck.gauss(), b + own + luck.gauss()) for (a, b), own in zip(costs, shared, strict=True)]
        found.append(screens.independence_p(bids, costs, 199))
    alone, together = found
    assert alone is not None
    assert together is not None
    assert alone.p > 0.05
    assert together.p == 1 / 200
    residuals = [  # against the library's lines
        np.array([bid[side] for bid in bids])
        - np.polyval(np.polyfit([c[side] for c in costs], [b[side] for b in bids], 1), [c[side] for c in costs])
        for side in (0, 1)
    ]
    assert together.stat == pytest.approx(abs(np.corrcoef(*residuals)[0, 1]))
    assert screens.independence_p([(1, 2)] * 3, [(1, 2)] * 3) is None
    assert screens.independence_p([(2 * n, n) for n in range(5)], [(n, n) for n in range(5)]) is None
