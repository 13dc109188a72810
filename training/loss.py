"""The loss of a micro-batch, from the slots of a recipe and per-token log-probabilities. Pure: it knows no model.

A token with advantage A > 0 adds A·up(ρ), one with A < 0 adds A·down(ρ); a trust region is these two functions of the
ratio ρ. As both are linear in A, `Streams` carries sums of share times advantage, and the losses of micro-batches add
up to that of the update: nothing is divided by the size of a micro-batch. Formulas stand in `training.slots`.

Dimensions: n scored tokens, s samples, b bundles, o samples that are options, u units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from training import slots
from training.diagnostics import Diagnostics
from training.schedule import at
from training.streams import Streams

NO_CORRECTION = slots.NoCorrection(kind="none")


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Log-probabilities and values of the scored tokens, all [n]; what a recipe doesn't use may be missing."""

    logprobs_n: Tensor
    """Under π, with its gradient."""
    entropy_n: Tensor | None = None
    old_n: Tensor | None = None
    """Under π_old; None: π itself, as in the first step of an update."""
    reference_n: Tensor | None = None
    """Under π_ref."""
    teacher_n: Tensor | None = None
    values: Mapping[str, Tensor] = field(default_factory=dict)
    """V by head, with its gradient."""
    old_values: Mapping[str, Tensor] = field(default_factory=dict)
    """V by head at sampling."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a micro-batch adds to the loss of its update."""

    total: Tensor
    """To be differentiated."""
    lost: Tensor
    """Its gradient is the one that clipping took away; for `bias_norm`."""
    terms: Mapping[str, float]
    """The parts of `total`, by the kind of their slot."""
    diagnostics: Diagnostics
    residual_o: Tensor | None = None
    """Where `total` is half the sum of squares: what is squared."""


class Region(NamedTuple):
    """A trust region at given ratios, [n]."""

    up: Tensor
    """Loss per unit of positive advantage."""
    down: Tensor
    """Loss per unit of (negative) advantage where it is negative."""
    clipped_up: Tensor
    """Where a positive advantage has no gradient."""
    clipped_down: Tensor


def loss(
    streams: Streams,
    scores: Scores,
    *,
    ratio: slots.Ratio,
    trust: slots.Trust,
    correction: slots.Correction = NO_CORRECTION,
    extras: Sequence[slots.Extra] = (),
    update: int = 0,
) -> Loss:
    """The loss of a micro-batch; `update` is the count that the weights of `extras` are functions of.

    Raises ValueError where the slots need log-probabilities, values or entropies that are not there.
    """
    terms: dict[str, Tensor] = {}
    residual_o: Tensor | None = None
    teachers = [extra for extra in extras if isinstance(extra, slots.RefKL)]
    if isinstance(trust, slots.NeuRD | slots.NeuRDFit):
        if teachers:
            raise ValueError(f"ref_kl needs a ratio and a trust region of ratios, which {trust.kind} has not")
        if isinstance(trust, slots.NeuRDFit):
            old_n = scores.logprobs_n.detach() if scores.old_n is None else scores.old_n
            residual_o = neurd_fit(streams, scores.logprobs_n, old_n, at(trust.alpha, update), trust.c)
            terms[trust.kind] = 0.5 * residual_o.square().sum()
        else:
            terms[trust.kind] = neurd(streams, scores.logprobs_n, trust.c)
        rho_n = torch.ones_like(scores.logprobs_n)
        clipped_n = torch.zeros_like(rho_n, dtype=torch.bool)
        lost = terms[trust.kind].new_zeros(())
    else:
        rho_n = ratios(streams, scores, ratio)
        region = _region(streams, scores, trust, rho_n)
        up_n, down_n = corrected(streams, scores, correction)
        up_n, down_n = up_n * streams.positive_n, down_n * streams.negative_n
        terms["policy"] = _surrogate(region, up_n, down_n)
        up_n, down_n = up_n * region.clipped_up, down_n * region.clipped_down
        clipped_n = (up_n != 0) | (down_n != 0)
        lost = -((up_n + down_n) * rho_n).sum()
        for teacher in teachers:
            signal_n = _needed(scores.teacher_n, "teacher's log-probabilities") - scores.logprobs_n.detach()
            pull_n = at(teacher.weight, update) * streams.weight_n * signal_n
            terms["ref_kl"] = _surrogate(region, pull_n.clamp(min=0), pull_n.clamp(max=0))
    for extra in extras:
        if not isinstance(extra, slots.RefKL):
            terms[extra.kind] = _extra(streams, scores, extra, update)
    return Loss(
        total=torch.stack(list(terms.values())).sum(),
        lost=lost,
        terms={kind: term.item() for kind, term in terms.items()},
        diagnostics=Diagnostics.of(streams, rho_n.detach(), clipped_n, scores.entropy_n, log_mismatch(streams, scores)),
        residual_o=residual_o,
    )


# --- ratio ------------------------------------------------------------------------------------------


def ratios(streams: Streams, scores: Scores, ratio: slots.Ratio) -> Tensor:
    """ρ of every token, shared by the tokens of a unit, [n]. A token that isn't learnt counts in no unit."""
    base_n = scores.logprobs_n.detach()
    if ratio.denominator == "old" and scores.old_n is not None:
        base_n = scores.old_n
    elif ratio.denominator == "behaviour":
        base_n = _needed(streams.behaviour_n, "behaviour's log-probabilities")
    return over_unit(streams, scores.logprobs_n - base_n, ratio.unit, ratio.agg).exp()


def over_unit(streams: Streams, values_n: Tensor, unit: slots.Unit, agg: slots.Aggregate) -> Tensor:
    """Sum (product of ratios) or mean (their geometric mean) of logarithms over the learnt tokens of a unit, [n]."""
    if agg == "own":
        return values_n
    unit_n = streams.units[unit]
    learnt_n = (streams.weight_n > 0).to(values_n.dtype)
    total_u = values_n.new_zeros(streams.samples).index_add(0, unit_n, values_n * learnt_n)
    if agg == "geo_mean":
        total_u = total_u / values_n.new_zeros(streams.samples).index_add(0, unit_n, learnt_n).clamp(min=1)
    return total_u[unit_n]


# --- trust region --------------------------------------------------------------------------------------


def _region(streams: Streams, scores: Scores, trust: slots.Trust, rho_n: Tensor) -> Region:
    """The trust region; where nothing is clipped, `up` and `down` are the same."""
    nowhere_n = torch.zeros_like(rho_n, dtype=torch.bool)
    if isinstance(trust, slots.Clip | slots.BiasNorm):
        above_n, below_n = rho_n > 1 + trust.hi, rho_n < 1 - trust.lo
        capped_n = rho_n.clamp(min=1 - trust.lo)
        if isinstance(trust, slots.Dual):
            capped_n, below_n = capped_n.clamp(max=trust.c), below_n | (rho_n > trust.c)
        return Region(-rho_n.clamp(max=1 + trust.hi), -capped_n, above_n, below_n)
    if isinstance(trust, slots.TVMask):
        behaviour_n = _needed(streams.behaviour_n, "behaviour's log-probabilities")
        difference_n = (scores.logprobs_n.exp() - behaviour_n.exp()).detach()
        fell_n = difference_n < -trust.delta
        rose_n = fell_n if trust.side == "below" else difference_n > trust.delta
        return Region(-rho_n * ~rose_n, -rho_n * ~fell_n, rose_n, fell_n)
    if isinstance(trust, slots.Cispo):
        each_n = -rho_n.detach().clamp(1 - trust.lo, 1 + trust.hi) * scores.logprobs_n
    elif isinstance(trust, slots.Soft):
        each_n = -(4 / trust.tau) * torch.sigmoid(trust.tau * (rho_n - 1))
    else:
        each_n = -rho_n
    return Region(each_n, each_n, nowhere_n, nowhere_n)


def _surrogate(region: Region, positive_n: Tensor, negative_n: Tensor) -> Tensor:
    return (positive_n * region.up + negative_n * region.down).sum()


def step_divisor(norm: float, trust: slots.BiasNorm) -> float:
    """What an update's step is divided by, given the norm of the gradient of `Loss.lost`, summed over micro-batches."""
    return max(1.0, norm / trust.c0)


def neurd(streams: Streams, logprobs_n: Tensor, c: float) -> Tensor:
    """NeuRD (Hennes et al. 2020, with the threshold of R-NaD) over samples that are all options of their bundles.

    An option's y is its log-probability less the mean over the options of its decision.
    """
    option_s = _options(streams)
    y_o = _centred(streams, _by_sample(streams, logprobs_n), option_s)
    up_o = _by_sample(streams, streams.positive_n)[option_s] * (y_o.detach() < c)
    down_o = _by_sample(streams, streams.negative_n)[option_s] * (y_o.detach() > -c)
    return -((up_o + down_o) * y_o).sum()


def neurd_fit(streams: Streams, logprobs_n: Tensor, old_n: Tensor, alpha: float, c: float) -> Tensor:
    """What centred logits exceed one tabular NeuRD step by, over samples that are all options of bundles, [o].

    The samples' two weights are sums of advantages over the rows that they stand for. A step ends at ±c and is never
    pulled back; only then it is centred, or else the fall of bad options would lift all good ones to c.
    """
    option_s = _options(streams)
    count_s = _by_sample(streams, streams.count_n) / _by_sample(streams, torch.ones_like(streams.count_n))
    advantage_s = _by_sample(streams, streams.positive_n + streams.negative_n) / count_s
    start_o = _centred(streams, _by_sample(streams, old_n), option_s)
    step_o = alpha * advantage_s[option_s]
    up_o = torch.minimum(start_o + step_o, start_o.clamp(min=c))
    moved_o = torch.where(step_o > 0, up_o, torch.maximum(start_o + step_o, start_o.clamp(max=-c)))
    moved_s = torch.zeros_like(advantage_s).masked_scatter(option_s, moved_o)
    wanted_o = _centred(streams, moved_s, option_s)
    return _centred(streams, _by_sample(streams, logprobs_n), option_s) - wanted_o


def _options(streams: Streams) -> Tensor:
    """Which samples are options of a decision, [s]. Raises ValueError where another one has an advantage."""
    option_s = streams.bundle_s >= 0
    moved_s = (_by_sample(streams, streams.positive_n) != 0) | (_by_sample(streams, streams.negative_n) != 0)
    if moved_s[~option_s].any():
        raise ValueError("neurd needs every option of every decision (option_samples), and got sampled rows")
    return option_s


def _centred(streams: Streams, value_s: Tensor, option_s: Tensor) -> Tensor:
    """Each option's value less the mean over the options of its decision, [o]."""
    decision_o, value_o = streams.bundle_s[option_s], value_s[option_s]
    sizes_b = value_o.new_zeros(streams.samples).index_add(0, decision_o, torch.ones_like(value_o))
    sums_b = value_o.new_zeros(streams.samples).index_add(0, decision_o, value_o)
    return value_o - (sums_b / sizes_b.clamp(min=1))[decision_o]


# --- engine correction ------------------------------------------------------------------------------------


def log_mismatch(streams: Streams, scores: Scores) -> Tensor | None:
    """log(π_old/μ) of every token, without a gradient; None where μ is not known."""
    old_n = scores.logprobs_n if scores.old_n is None else scores.old_n
    return None if streams.behaviour_n is None else old_n.detach() - streams.behaviour_n


def corrected(streams: Streams, scores: Scores, correction: slots.Correction) -> tuple[Tensor, Tensor]:
    """Factors of the policy loss where the advantage is positive and where it is negative, [n], without a gradient."""
    ones_n = torch.ones_like(streams.weight_n)
    if isinstance(correction, slots.NoCorrection):
        return ones_n, ones_n
    if isinstance(correction, slots.DropNegKL):
        behaviour_n = _needed(streams.behaviour_n, "behaviour's log-probabilities")
        kl_n = over_unit(streams, behaviour_n - scores.logprobs_n.detach(), "sequence", "geo_mean")
        return ones_n, (kl_n <= correction.threshold).float()
    log_n = _needed(log_mismatch(streams, scores), "behaviour's log-probabilities")
    ratio_n = over_unit(streams, log_n, correction.unit, correction.agg).exp()
    if isinstance(correction, slots.Trunc):
        factor_n = ratio_n.clamp(max=correction.cap)
    else:
        factor_n = ((ratio_n >= correction.lo) & (ratio_n <= correction.hi)).float()
    return factor_n, factor_n


# --- extra terms -------------------------------------------------------------------------------------------


def _extra(streams: Streams, scores: Scores, extra: slots.Extra, update: int) -> Tensor:
    """What one term adds."""
    weight = 1.0 if isinstance(extra, slots.DPO | slots.BT) else at(extra.weight, update)
    return weight * _TERMS[type(extra)](streams, scores, extra)


def _kl_ref(streams: Streams, scores: Scores, extra: slots.KLRef) -> Tensor:
    x_n = _needed(scores.reference_n, "reference's log-probabilities") - scores.logprobs_n
    each_n = {"k1": -x_n, "k2": x_n.square() / 2, "k3": x_n.exp() - x_n - 1}[extra.estimator]
    return (streams.weight_n * each_n).sum()


def _kl_beh(streams: Streams, scores: Scores, extra: slots.KLBeh) -> Tensor:
    x_n = scores.logprobs_n - _needed(streams.behaviour_n, "behaviour's log-probabilities")
    return (streams.weight_n * x_n.square()).sum()


def _entropy(streams: Streams, scores: Scores, extra: slots.Entropy) -> Tensor:
    return -(streams.weight_n * _needed(scores.entropy_n, "entropies")).sum()


def _entropy_band(streams: Streams, scores: Scores, extra: slots.EntropyBand) -> Tensor:
    entropy_n = _needed(scores.entropy_n, "entropies")
    centre_n = _needed(streams.centre_n, "entropies so far")
    outside_n = (entropy_n - extra.hi * centre_n).clamp(min=0) + (extra.lo * centre_n - entropy_n).clamp(min=0)
    return (streams.weight_n * outside_n).sum()


def _value(streams: Streams, scores: Scores, extra: slots.Value) -> Tensor:
    """½(V − target)² of states that have a target; clipped, the larger of it and that of the V kept near (PPO)."""
    total = streams.worth_n.new_zeros(())
    for head in extra.heads:
        value_n = _needed(scores.values.get(head), f"values of head {head!r}")
        target_n = streams.targets.get(head, torch.full_like(value_n, torch.nan))
        aimed_n = ~target_n.isnan()
        target_n = target_n.where(aimed_n, 0.0)
        error_n = (value_n - target_n).square()
        if extra.clip is not None:
            old_n = _needed(scores.old_values.get(head), f"values of head {head!r} at sampling")
            near_n = old_n + (value_n - old_n).clamp(-extra.clip, extra.clip)
            error_n = torch.maximum(error_n, (near_n - target_n).square())
        total = total + (streams.worth_n * aimed_n * error_n).sum() / 2
    return total


def _ce(streams: Streams, scores: Scores, extra: slots.CE) -> Tensor:
    return -(streams.label_n * scores.logprobs_n).sum()


def _ce_obs(streams: Streams, scores: Scores, extra: slots.CEObs) -> Tensor:
    return -(streams.observed_n * scores.logprobs_n).sum()


def _pairs(streams: Streams, scores: Scores, extra: slots.DPO | slots.BT) -> Tensor:
    """−log σ(β·margin) over pairs, of log-ratios to the reference: a row's sum (`dpo`) or mean (`bt`)."""
    ratio_n = scores.logprobs_n - _needed(scores.reference_n, "reference's log-probabilities")
    ratio_s = _by_sample(streams, ratio_n)
    if isinstance(extra, slots.BT):
        ratio_s = ratio_s / _by_sample(streams, torch.ones_like(ratio_n))
    paired_s = streams.preference_s != 0
    pair_p, preference_p = streams.bundle_s[paired_s], streams.preference_s[paired_s]
    margin_b = ratio_s.new_zeros(streams.samples).index_add(0, pair_p, preference_p.sign() * ratio_s[paired_s])
    share_b = torch.zeros_like(margin_b).index_copy(0, pair_p, preference_p.abs())
    return -(share_b * logsigmoid(extra.beta * margin_b)).sum()


_TERMS: Mapping[type, Callable[..., Tensor]] = {
    slots.KLRef: _kl_ref,
    slots.KLBeh: _kl_beh,
    slots.Entropy: _entropy,
    slots.EntropyBand: _entropy_band,
    slots.Value: _value,
    slots.CE: _ce,
    slots.CEObs: _ce_obs,
    slots.DPO: _pairs,
    slots.BT: _pairs,
}


def _by_sample(streams: Streams, values_n: Tensor) -> Tensor:
    return values_n.new_zeros(streams.samples).index_add(0, streams.sample_n, values_n)


def _needed(value: Tensor | None, what: str) -> Tensor:
    if value is None:
        raise ValueError(f"the recipe needs the {what} of every learnt token, and some are missing")
    return value
