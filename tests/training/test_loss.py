"""Losses computed by hand, the current policy never being the old one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from torch import Tensor

from tests.benchmarks.tabular import moved
from training import slots
from training.diagnostics import Diagnostics
from training.loss import Loss, Scores, loss, neurd, neurd_fit, step_divisor
from training.rows import Sample, merge
from training.schedule import Schedule
from training.streams import streams

torch.set_num_threads(1)

OLD = math.log(0.5)
NONE = slots.NoTrust(kind="none")
CLIP = slots.Clip(kind="clip", lo=0.2, hi=0.3)
LOGS = st.floats(-4, -0.01)


def sample(advantages: Sequence[float], share: float = 1.0, **fields: Any) -> Sample:
    """One row; every token's share is the same."""
    return Sample(
        prompt=(1,),
        ids=tuple(range(len(advantages))),
        weight=fields.pop("weight", (share,) * len(advantages)),
        positive=tuple(share * max(a, 0.0) for a in advantages),
        negative=tuple(share * min(a, 0.0) for a in advantages),
        **fields,
    )


def logs(probabilities: Sequence[float], gradient: bool = False) -> Tensor:
    return torch.tensor([math.log(p) for p in probabilities], requires_grad=gradient)


def one_token(rho: float, advantage: float, trust: slots.Trust, **more: Any) -> tuple[float, float]:
    """Loss and its derivative by log π of one token with the given ratio to π_old = 0.5."""
    now = torch.tensor([OLD + math.log(rho)], requires_grad=True)
    found = loss(
        streams([sample([advantage], **more.pop("fields", {}))]),
        Scores(logprobs_n=now, old_n=torch.tensor([OLD]), **more.pop("scores", {})),
        ratio=more.pop("ratio", slots.Ratio()),
        trust=trust,
        **more,
    )
    (slope,) = torch.autograd.grad(found.total, [now])
    return found.total.item(), slope.item()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# --- trust regions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trust", "ratio", "advantage", "value", "slope"),
    [
        (NONE, 1.5, 2.0, -3.0, -3.0),
        (NONE, 0.5, -2.0, 1.0, 1.0),
        (CLIP, 1.1, 2.0, -2.2, -2.2),
        (CLIP, 1.5, 2.0, -2.6, 0.0),
        (CLIP, 1.5, -2.0, 3.0, 3.0),
        (CLIP, 0.5, 2.0, -1.0, -1.0),
        (CLIP, 0.5, -2.0, 1.6, 0.0),
        (slots.Dual(kind="dual", lo=0.2, hi=0.3, c=1.4), 1.3, -2.0, 2.6, 2.6),
        (slots.Dual(kind="dual", lo=0.2, hi=0.3, c=1.4), 1.8, -2.0, 2.8, 0.0),
        (slots.Dual(kind="dual", lo=0.2, hi=0.3, c=1.4), 1.8, 2.0, -2.6, 0.0),
        (slots.Dual(kind="dual", lo=0.2, hi=0.3, c=1.4), 0.5, -2.0, 1.6, 0.0),
        (slots.Cispo(kind="cispo", lo=0.2, hi=0.3), 1.8, 2.0, -1.3 * 2 * math.log(0.9), -2.6),
        (slots.Cispo(kind="cispo", lo=0.2, hi=0.3), 0.5, -2.0, 0.8 * 2 * math.log(0.25), 1.6),
        (slots.Cispo(kind="cispo", lo=0.2, hi=0.3), 1.1, -2.0, 1.1 * 2 * math.log(0.55), 2.2),
        (slots.Soft(kind="soft", tau=2.0), 1.5, 3.0, -6 * sigmoid(1), -12 * 1.5 * sigmoid(1) * sigmoid(-1)),
        (slots.Soft(kind="soft", tau=1.0), 0.5, -3.0, 12 * sigmoid(-0.5), 12 * 0.5 * sigmoid(0.5) * sigmoid(-0.5)),
        (slots.BiasNorm(kind="bias_norm", c0=1.0, lo=0.2, hi=0.3), 1.5, 2.0, -2.6, 0.0),
        (slots.BiasNorm(kind="bias_norm", c0=1.0, lo=0.2, hi=0.3), 1.5, -2.0, 3.0, 3.0),
    ],
)
def test_trust_regions(trust: slots.Trust, ratio: float, advantage: float, value: float, slope: float) -> None:
    assert one_token(ratio, advantage, trust) == pytest.approx((value, slope), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("side", "now", "advantage", "kept"),
    [
        ("advantage", 0.65, 1.0, True),
        ("advantage", 0.75, 1.0, False),
        ("advantage", 0.75, -1.0, True),
        ("advantage", 0.25, -1.0, False),
        ("advantage", 0.25, 1.0, True),
        ("below", 0.25, 1.0, False),
        ("below", 0.25, -1.0, False),
        ("below", 0.75, 1.0, True),
    ],
)
def test_tv_mask_looks_at_differences_of_probabilities(side: Any, now: float, advantage: float, kept: bool) -> None:
    """μ = 0.5, delta 0.2; the ratio is against μ."""
    found = one_token(
        now / 0.5, advantage, slots.TVMask(kind="tv_mask", delta=0.2, side=side),
        ratio=slots.Ratio(denominator="behaviour"), fields={"behaviour": (OLD,)},
    )  # fmt: skip
    wanted = -now / 0.5 * advantage if kept else 0.0
    assert found == pytest.approx((wanted, wanted), rel=1e-5)


def test_bias_norm_gives_what_clipping_took_away() -> None:
    """C is the unclipped gradient of the clipped tokens alone."""
    now = logs([0.9, 0.55, 0.1, 0.9], gradient=True)
    found = loss(
        streams([sample([2.0, 2.0, -1.0, -1.0])]),
        Scores(logprobs_n=now, old_n=torch.full((4,), OLD)),
        ratio=slots.Ratio(),
        trust=slots.BiasNorm(kind="bias_norm", c0=1.5),
    )
    (taken,) = torch.autograd.grad(found.lost, [now], retain_graph=True)
    assert taken.tolist() == pytest.approx([-2 * 1.8, 0, 0.2, 0], rel=1e-5)
    (left,) = torch.autograd.grad(found.total, [now])
    assert (left + taken).tolist() == pytest.approx([-3.6, -2.2, 0.2, 1.8], rel=1e-5)
    trust = slots.BiasNorm(kind="bias_norm", c0=1.5)
    assert step_divisor(3.0, trust) == 2.0
    assert step_divisor(0.3, trust) == 1.0


# --- ratios -------------------------------------------------------------------------------------------------


def test_denominators() -> None:
    """π 0.6; π_old 0.5; μ 0.4."""
    assert one_token(1.2, 1.0, NONE, ratio=slots.Ratio(denominator="old")) == pytest.approx((-1.2, -1.2))
    found = one_token(
        1.2, 1.0, NONE, ratio=slots.Ratio(denominator="behaviour"), fields={"behaviour": (math.log(0.4),)}
    )
    assert found == pytest.approx((-1.5, -1.5))
    assert one_token(1.2, 1.0, NONE, ratio=slots.Ratio(denominator="none")) == pytest.approx((-1.0, -1.0))


def test_without_an_old_policy_the_ratio_is_one() -> None:
    now = logs([0.3], gradient=True)
    found = loss(streams([sample([2.0])]), Scores(logprobs_n=now), ratio=slots.Ratio(), trust=CLIP)
    (slope,) = torch.autograd.grad(found.total, [now])
    assert (found.total.item(), slope.item()) == pytest.approx((-2.0, -2.0))


def rows_of_two_turns(**fields: Any) -> list[Sample]:
    """Turns of two tokens and of one, in one sequence; another sequence of one token."""
    return [
        sample([1.0, 1.0], sequence="a", **fields),
        sample([-1.0], sequence="a", **fields),
        sample([1.0], **fields),
    ]


@pytest.mark.parametrize(
    ("unit", "agg", "ratios"),
    [
        ("token", "own", [2.0, 0.5, 1.2, 1.5]),
        ("turn", "product", [1.0, 1.0, 1.2, 1.5]),
        ("turn", "geo_mean", [1.0, 1.0, 1.2, 1.5]),
        ("sequence", "product", [1.2, 1.2, 1.2, 1.5]),
        ("sequence", "geo_mean", [1.2 ** (1 / 3)] * 3 + [1.5]),
        ("segment", "product", [1.0, 1.0, 1.2, 1.5]),
    ],
)
def test_units_of_ratios(unit: Any, agg: Any, ratios: list[float]) -> None:
    old = [0.2, 0.4, 0.5, 0.4]
    now = logs([0.4, 0.2, 0.6, 0.6], gradient=True)
    found = loss(
        streams(rows_of_two_turns()),
        Scores(logprobs_n=now, old_n=logs(old)),
        ratio=slots.Ratio(unit=unit, agg=agg),
        trust=NONE,
    )
    signs = [1, 1, -1, 1]
    assert found.total.item() == pytest.approx(-sum(s * r for s, r in zip(signs, ratios, strict=True)), rel=1e-5)
    found.total.backward()
    unit_of = {"token": [0, 1, 2, 3], "turn": [0, 0, 1, 2], "segment": [0, 0, 1, 2], "sequence": [0, 0, 0, 1]}[unit]
    wanted = []
    for mine in unit_of:
        members = [i for i, other in enumerate(unit_of) if other == mine]
        scale = 1 / len(members) if agg == "geo_mean" else 1.0
        wanted.append(-scale * sum(signs[i] * ratios[i] for i in members))
    assert now.grad.tolist() == pytest.approx(wanted, rel=1e-5)


def test_tokens_that_are_not_learnt_get_no_gradient() -> None:
    """Neither their own, nor through the ratio of their unit."""
    now = logs([0.4, 0.9], gradient=True)
    one = sample([1.0, 0.0], weight=(1.0, 0.0))
    for unit, agg in (("token", "own"), ("turn", "geo_mean"), ("turn", "product")):
        ratio = slots.Ratio(unit=unit, agg=agg)  # type: ignore[arg-type]
        scores = Scores(logprobs_n=now, old_n=logs([0.2, 0.1]), entropy_n=now.exp())
        bonus = slots.Entropy(kind="entropy", weight=0.1)
        found = loss(streams([one]), scores, ratio=ratio, trust=NONE, extras=[bonus])
        assert found.total.item() == pytest.approx(-2.0 - 0.04)
        (slope,) = torch.autograd.grad(found.total, [now])
        assert slope[0] != 0
        assert slope[1] == 0
        assert found.diagnostics.tokens == 1


# --- engine corrections -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("correction", "factors"),
    [
        (slots.NoCorrection(kind="none"), [1, 1, 1, 1]),
        (slots.Trunc(kind="trunc", cap=2.0), [2, 0.5, 1.25, 1]),
        (slots.Trunc(kind="trunc", unit="turn", agg="product", cap=1.5), [1.5, 1.5, 1.25, 1]),
        (slots.Trunc(kind="trunc", unit="sequence", agg="geo_mean", cap=9), [2.5 ** (1 / 3)] * 3 + [1]),
        (slots.Mask(kind="mask", lo=0.9, hi=2.0), [0, 0, 1, 1]),
        (slots.Mask(kind="mask", unit="turn", agg="geo_mean", lo=0.5, hi=1.3), [0, 0, 1, 1]),
        (slots.Mask(kind="mask", unit="sequence", agg="product", lo=0.5, hi=2.0), [0, 0, 0, 1]),
    ],
)
def test_engine_corrections(correction: slots.Correction, factors: list[float]) -> None:
    """π_old/μ is 4, 0.5, 1.25 and 1; π/π_old is 1.5 everywhere."""
    old, behaviour = [0.4, 0.2, 0.5, 0.6], [0.1, 0.4, 0.4, 0.6]
    apart = [
        sample([1.0, 1.0], sequence="a", behaviour=tuple(map(math.log, behaviour[:2]))),
        sample([-1.0], sequence="a", behaviour=(math.log(behaviour[2]),)),
        sample([1.0], behaviour=(math.log(behaviour[3]),)),
    ]
    now = (logs(old) + math.log(1.5)).requires_grad_()
    scores = Scores(logprobs_n=now, old_n=logs(old))
    found = loss(streams(apart), scores, ratio=slots.Ratio(), trust=NONE, correction=correction)
    wanted = [-1.5 * f * s for f, s in zip(factors, [1, 1, -1, 1], strict=True)]
    assert found.total.item() == pytest.approx(sum(wanted), rel=1e-5)
    (slope,) = torch.autograd.grad(found.total, [now])
    assert slope.tolist() == pytest.approx(wanted, rel=1e-5)


def test_drop_neg_kl_drops_the_negative_part_of_far_sequences() -> None:
    """Mean log(μ/π) is log 2 in the first row and log 0.5 in the second; both hold both signs."""
    apart = [
        sample([2.0, -1.0], behaviour=(math.log(0.4), math.log(0.2))),
        sample([2.0, -1.0], behaviour=(math.log(0.1), math.log(0.05))),
    ]
    now = logs([0.2, 0.1, 0.2, 0.1])
    found = loss(
        streams(apart), Scores(logprobs_n=now), ratio=slots.Ratio(), trust=NONE,
        correction=slots.DropNegKL(kind="drop_neg_kl", threshold=0.5),
    )  # fmt: skip
    assert found.total.item() == pytest.approx(-2.0 + (-2.0 + 1.0))


# --- extra terms ------------------------------------------------------------------------------------------------


def extra(term: slots.Extra, apart: Sample | list[Sample], update: int = 0, **scores: Any) -> tuple[float, list[float]]:
    """What a term adds where nothing else does, and its derivative by log π."""
    now = scores.pop("now")
    found = loss(
        streams(apart if isinstance(apart, list) else [apart]),
        Scores(logprobs_n=now, **scores),
        ratio=slots.Ratio(denominator="none"),
        trust=NONE,
        extras=[term],
        update=update,
    )
    assert found.terms[term.kind] == pytest.approx(found.total.item(), abs=1e-6)
    (slope,) = torch.autograd.grad(found.total, [now], allow_unused=True)
    return found.total.item(), [] if slope is None else slope.tolist()


@pytest.mark.parametrize(
    ("estimator", "value", "slope"),
    [
        ("k1", math.log(2), 1.0),
        ("k2", math.log(2) ** 2 / 2, math.log(2)),
        ("k3", 0.5 + math.log(2) - 1, 1 - 0.5),
    ],
)
def test_kl_to_the_reference(estimator: Any, value: float, slope: float) -> None:
    """π 0.6, π_ref 0.3: x = log ½."""
    term = slots.KLRef(kind="kl_ref", estimator=estimator, weight=0.1)
    found = extra(term, sample([0.0], share=2.0), now=logs([0.6], True), reference_n=logs([0.3]))
    assert found[0] == pytest.approx(0.2 * value, rel=1e-5)
    assert found[1] == pytest.approx([0.2 * slope], rel=1e-5)


def test_kl_to_the_behaviour() -> None:
    term = slots.KLBeh(kind="kl_beh", weight=1e-3)
    found = extra(term, sample([0.0], behaviour=(math.log(0.3),)), now=logs([0.6], True))
    assert found[0] == pytest.approx(1e-3 * math.log(2) ** 2)
    assert found[1] == pytest.approx([2e-3 * math.log(2)])


def test_entropy_is_a_bonus_whose_weight_follows_its_schedule() -> None:
    term = slots.Entropy(kind="entropy", weight=Schedule(points=((0, 0.2), (10, 0.0))))
    now = logs([0.6], True)
    assert extra(term, sample([0.0], share=0.5), now=now, entropy_n=now * -3)[0] == pytest.approx(0.3 * math.log(0.6))
    assert extra(term, sample([0.0]), update=10, now=now, entropy_n=now * -3)[0] == 0


@pytest.mark.parametrize(("entropy", "value", "slope"), [(3.0, 0.6, 1.0), (2.0, 0.0, 0.0), (1.0, 0.6, -1.0)])
def test_the_entropy_band_has_a_gradient(entropy: float, value: float, slope: float) -> None:
    """H̄ = 2, so the band is [1.6, 2.4]. (As a constant penalty it would train nothing.)"""
    now = torch.tensor([entropy], requires_grad=True)
    term = slots.EntropyBand(kind="entropy_band", weight=1.0)
    found = extra(term, sample([0.0], centre=(2.0,)), now=now, entropy_n=now * 1.0)
    assert found[0] == pytest.approx(value, rel=1e-5)
    assert found[1] == [slope]


def test_value_targets() -> None:
    """Only states with a target; clipped, the worse of two errors counts."""
    one = sample([0.0, 0.0], worth=(0.5, 0.5), targets={"low": (1.0, math.nan), "high": (math.nan, 0.0)})
    values = {"low": torch.tensor([3.0, 9.0], requires_grad=True), "high": torch.tensor([9.0, 1.0], requires_grad=True)}
    plain = slots.Value(kind="value", weight=0.5, heads=("low", "high"))
    now = logs([0.6, 0.6], True)
    assert extra(plain, one, now=now, values=values)[0] == pytest.approx(0.5 * 0.5 * (0.5 * 4 + 0.5 * 1))
    clipped = slots.Value(kind="value", weight=1.0, clip=0.5, heads=("low",))
    for old, error in ((4.0, 2.5), (3.2, 2.0), (2.0, 2.0)):
        found = extra(clipped, one, now=now, values=values, old_values={"low": torch.tensor([old, 0.0])})
        assert found[0] == pytest.approx(0.5 * error**2 / 2)


def test_cross_entropy_on_labels_and_on_what_was_observed() -> None:
    one = Sample(prompt=(1,), ids=(2, 3), label=(0.5, 0.0), observed=(0.0, 0.25))
    now = logs([0.6, 0.2], True)
    assert extra(slots.CE(kind="ce", weight=2.0), one, now=now)[1] == [-1.0, 0.0]
    found = extra(slots.CEObs(kind="ce_obs", weight=0.1), one, now=now)
    assert found[0] == pytest.approx(-0.1 * 0.25 * math.log(0.2))
    assert found[1] == pytest.approx([0, -0.025])


def test_a_teacher_pulls_through_the_ratio_and_the_trust_region() -> None:
    """π 0.25 and 0.7 with μ = 0.5: the first fell by more than 0.2 and is dropped; the teacher says 0.9 and 0.35."""
    now = logs([0.25, 0.7], gradient=True)
    found = loss(
        streams([sample([0.0, 0.0], share=0.5, behaviour=(OLD, OLD))]),
        Scores(logprobs_n=now, teacher_n=logs([0.9, 0.35])),
        ratio=slots.Ratio(denominator="behaviour"),
        trust=slots.TVMask(kind="tv_mask", side="below"),
        extras=[slots.RefKL(kind="ref_kl", weight=2.0)],
    )
    (slope,) = torch.autograd.grad(found.total, [now])
    assert slope.tolist() == pytest.approx([0, -2 * 0.5 * 1.4 * math.log(0.5)], rel=1e-5)


def pair() -> list[Sample]:
    """One pair of share ½: a better row of two tokens, two worse rows of one."""
    sides = [((2, 3), 0.5), ((2,), -0.5), ((3,), -0.5)]
    return [Sample(prompt=(1,), ids=ids, bundle="p", preference=share) for ids, share in sides]


def test_dpo_and_bradley_terry() -> None:
    """π/π_ref is 2, 4 (better), 1.5 and 0.5 (worse)."""
    now, reference = logs([0.4, 0.8, 0.6, 0.1], True), logs([0.2, 0.2, 0.4, 0.2])
    margin = 0.3 * (math.log(8) - math.log(0.75))
    value, slope = extra(slots.DPO(kind="dpo", beta=0.3), pair(), now=now, reference_n=reference)
    assert value == pytest.approx(-0.5 * math.log(sigmoid(margin)), rel=1e-5)
    push = 0.5 * 0.3 * sigmoid(-margin)
    assert slope == pytest.approx([-push, -push, push, push], rel=1e-5)
    margin = 0.3 * (math.log(8) / 2 - math.log(0.75))
    value, _ = extra(slots.BT(kind="bt", beta=0.3), pair(), now=now, reference_n=reference)
    assert value == pytest.approx(-0.5 * math.log(sigmoid(margin)), rel=1e-5)


@pytest.mark.parametrize(
    "term",
    [
        slots.KLRef(kind="kl_ref", weight=1.0),
        slots.KLBeh(kind="kl_beh", weight=1.0),
        slots.Entropy(kind="entropy", weight=1.0),
        slots.EntropyBand(kind="entropy_band", weight=1.0),
        slots.Value(kind="value"),
        slots.RefKL(kind="ref_kl"),
        slots.DPO(kind="dpo"),
    ],
)
def test_what_is_missing_is_named(term: slots.Extra) -> None:
    with pytest.raises(ValueError, match="the recipe needs"):
        extra(term, sample([1.0]), now=logs([0.5], True))


# --- NeuRD ------------------------------------------------------------------------------------------------------


def options(advantages: Sequence[float], share: float = 1.0) -> list[Sample]:
    return [
        Sample(prompt=(1,), ids=(i,), bundle="d", positive=(share * max(a, 0),), negative=(share * min(a, 0),))
        for i, a in enumerate(advantages)
    ]


ROWS = st.lists(st.tuples(st.floats(-3, 3, width=32), st.floats(-2, 2, width=32)), min_size=2, max_size=6)


@given(ROWS, st.floats(0.1, 3))
def test_neurd_on_tabular_logits_is_the_closed_form(pairs: list[tuple[float, float]], c: float) -> None:
    """The step of logit a is A_a less the mean A, over the advantages that the gate lets through."""
    logits = torch.tensor([y for y, _ in pairs], requires_grad=True)
    advantages = torch.tensor([a for _, a in pairs])
    centred = logits.detach() - logits.detach().mean()
    if ((centred.abs() - c).abs() < 1e-4).any():
        return
    found = neurd(streams(options(advantages.tolist())), logits.log_softmax(-1), c)
    (slope,) = torch.autograd.grad(found, [logits])
    through = torch.where((advantages > 0) & (centred >= c) | (advantages < 0) & (centred <= -c), 0.0, advantages)
    torch.testing.assert_close(-slope, through - through.mean(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.detach(), -(through * centred).sum(), rtol=1e-4, atol=1e-4)


def test_neurd_adds_the_tokens_of_an_option() -> None:
    """Options of two tokens and of one: y is centred over options, not over tokens."""
    apart = [
        Sample(prompt=(1,), ids=(2, 3), bundle="d", positive=(0.5, 0.0)),
        Sample(prompt=(1,), ids=(4,), bundle="d", negative=(-1.0,)),
    ]
    now = logs([0.5, 0.5, 0.75], gradient=True)
    found = loss(streams(apart), Scores(logprobs_n=now), ratio=slots.Ratio(), trust=slots.NeuRD(kind="neurd", c=2.0))
    y = (math.log(0.25) - math.log(0.75)) / 2
    assert found.total.item() == pytest.approx(-(0.5 * y + -1.0 * -y))
    found.total.backward()
    assert now.grad.tolist() == pytest.approx([-0.75, -0.75, 0.75])


def test_neurd_fit_is_the_distance_from_one_step_of_the_table() -> None:
    """Two options, y⁰ = ±½ ln 3; two rows whose advantages are 1 and −1 in sum, so Ā = ±½ and a step of ±α/2."""
    merged = [replace(one, count=2) for one in options([1.0, -1.0])]
    old, now = logs([0.75, 0.25]), logs([0.5, 0.5], gradient=True)
    y, step = 0.5 * math.log(3), 0.4 * 0.5
    found = 0.5 * neurd_fit(streams(merged), now, old, 0.4, 3.0).square().sum()
    assert found.item() == pytest.approx((y + step) ** 2)
    found.backward()
    assert now.grad.tolist() == pytest.approx([-(y + step), y + step])


@pytest.mark.parametrize(("c", "wanted"), [(0.6, 0.6), (0.3, 0.5 * math.log(3))])
def test_a_fitted_step_ends_at_the_threshold_and_is_not_pulled_back(c: float, wanted: float) -> None:
    old = logs([0.75, 0.25])
    found = neurd_fit(streams(options([1.0, -1.0])), old, old, 10.0, c)
    assert found.tolist() == pytest.approx([0.5 * math.log(3) - wanted, wanted - 0.5 * math.log(3)], abs=1e-6)


def test_bad_options_at_the_threshold_do_not_lift_good_ones() -> None:
    """y⁰ = (2, 2, −4) at c = 2: the first falls by .1, the second and the third stay."""
    start = torch.tensor([2.0, 2.0, -4.0])
    found = neurd_fit(streams(options([-0.1, 0.1, -5.0])), start, start, 1.0, 2.0)
    moved = torch.tensor([1.9, 2.0, -4.0])
    assert found.tolist() == pytest.approx((start - (moved - moved.mean())).tolist(), abs=1e-6)


@given(ROWS, st.floats(0.1, 2), st.floats(0.5, 3))
def test_neurd_fit_asks_for_what_a_table_does(pairs: list[tuple[float, float]], alpha: float, c: float) -> None:
    """As `tests.benchmarks.tabular` moves its logits, centred afterwards."""
    y = torch.tensor([one for one, _ in pairs])
    y -= y.mean()
    advantages = torch.tensor([one for _, one in pairs])
    table = torch.tensor([moved(float(a), alpha * float(b), c) for a, b in zip(y, advantages, strict=True)])
    found = neurd_fit(streams(options(advantages.tolist())), y, y, alpha, c)
    torch.testing.assert_close(y - found, table - table.mean(), rtol=1e-4, atol=1e-4)
    assert float(found.sum()) == pytest.approx(0, abs=1e-4), "a decision's residuals sum to zero"


def test_neurd_fit_is_a_trust_region_like_the_others() -> None:
    trust = slots.NeuRDFit(kind="neurd_fit", alpha=Schedule(points=[[0, 1.0], [10, 0.0]]), c=3.0)
    old, now = logs([0.5, 0.5]), logs([0.5, 0.5], gradient=True)
    scores = Scores(logprobs_n=now, old_n=old)
    first, last = (
        loss(streams(options([1.0, -1.0])), scores, ratio=slots.Ratio(), trust=trust, update=update).total.item()
        for update in (0, 10)
    )
    assert (first, last) == (pytest.approx(1.0), 0.0)


def test_neurd_leaves_labelled_rows_alone() -> None:
    apart = [Sample(prompt=(1,), ids=(5,), label=(1.0,)), *options([1.0, -1.0])]
    now = logs([0.3, 0.5, 0.5], gradient=True)
    extras = [slots.CE(kind="ce")]
    trust = slots.NeuRD(kind="neurd")
    found = loss(streams(apart), Scores(logprobs_n=now), ratio=slots.Ratio(), trust=trust, extras=extras)
    found.total.backward()
    assert now.grad.tolist() == pytest.approx([-1, -1, 1])


def test_neurd_wants_all_options() -> None:
    with pytest.raises(ValueError, match="option_samples"):
        neurd(streams([sample([1.0])]), logs([0.5]), 2.0)
    with pytest.raises(ValueError, match="ref_kl"):
        loss(
            streams(options([1.0])), Scores(logprobs_n=logs([0.5])), ratio=slots.Ratio(),
            trust=slots.NeuRD(kind="neurd"), extras=[slots.RefKL(kind="ref_kl")],
        )  # fmt: skip


# --- merging and diagnostics --------------------------------------------------------------------------------------

TRUSTS = st.sampled_from([
    NONE, CLIP, slots.Dual(kind="dual", c=1.4), slots.Cispo(kind="cispo"), slots.Soft(kind="soft", tau=2.0),
    slots.TVMask(kind="tv_mask"), slots.TVMask(kind="tv_mask", side="below"), slots.BiasNorm(kind="bias_norm", c0=1.0),
])  # fmt: skip
CORRECTIONS = st.sampled_from([
    slots.NoCorrection(kind="none"), slots.Trunc(kind="trunc"), slots.Mask(kind="mask", unit="turn", agg="geo_mean"),
    slots.DropNegKL(kind="drop_neg_kl", threshold=0.1),
])  # fmt: skip
RATIOS = st.sampled_from([
    slots.Ratio(), slots.Ratio(denominator="behaviour"), slots.Ratio(unit="turn", agg="geo_mean"),
    slots.Ratio(unit="turn", agg="product"), slots.Ratio(denominator="none"),
])  # fmt: skip


@given(
    TRUSTS, CORRECTIONS, RATIOS,
    st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=4),
    st.tuples(LOGS, LOGS), st.tuples(LOGS, LOGS), st.tuples(LOGS, LOGS),
)  # fmt: skip
def test_merged_rows_have_the_loss_of_the_rows(
    trust: slots.Trust, correction: slots.Correction, ratio: slots.Ratio, advantages: Any, now: Any, old: Any, mu: Any
) -> None:
    apart = [sample(each, share=0.1, behaviour=mu) for each in advantages]
    extras = [slots.KLBeh(kind="kl_beh", weight=0.1), slots.KLRef(kind="kl_ref", weight=0.1)]

    def of(rows: list[Sample]) -> tuple[Loss, Tensor]:
        now_t = torch.tensor(now, requires_grad=True)
        found = loss(
            streams(rows),
            Scores(
                logprobs_n=now_t.repeat(len(rows)),
                old_n=torch.tensor(old).repeat(len(rows)),
                reference_n=torch.tensor(mu).repeat(len(rows)),
            ),
            ratio=ratio, trust=trust, correction=correction, extras=extras,
        )  # fmt: skip
        return found, torch.autograd.grad(found.total, [now_t])[0]

    (one, slope), (two, merged) = of(apart), of(merge(apart))
    torch.testing.assert_close(one.total, two.total, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(slope, merged, rtol=1e-4, atol=1e-5)
    assert one.diagnostics.tokens == two.diagnostics.tokens == 2 * len(apart)
    assert one.diagnostics.kl == pytest.approx(two.diagnostics.kl, rel=1e-4, abs=1e-5)


def test_diagnostics_by_hand() -> None:
    """Ratios 1.5 (clipped, twice), 0.95 and 0.5 (not clipped, as A > 0)."""
    apart = [
        sample([1.0], behaviour=(math.log(0.6),)),
        sample([1.0], behaviour=(OLD,), count=2),
        sample([0.0], behaviour=(OLD,), weight=(0.0,)),
        sample([1.0], behaviour=(OLD,)),
    ]
    now = logs([0.475, 0.75, 0.001, 0.25], gradient=True)
    scores = Scores(logprobs_n=now, old_n=torch.full((4,), OLD), entropy_n=torch.tensor([0.1, 0.2, 9.0, 0.3]))
    found = loss(streams(apart), scores, ratio=slots.Ratio(), trust=CLIP).diagnostics
    kl = sum(r - 1 - math.log(r) for r in (0.95, 1.5, 1.5, 0.5)) / 4
    total, squares = 0.95 + 3.0 + 0.5, 0.95**2 + 2 * 1.5**2 + 0.25
    assert found.means() == pytest.approx({
        "tokens": 4, "clip_fraction": 0.5, "kl": kl, "ess": total**2 / 4 / squares, "ratio_far": 0.75,
        "entropy": 0.2, "mismatch_far": 0.25,
    }, rel=1e-5)  # fmt: skip
    assert (found + found).means()["kl"] == pytest.approx(kl)
    assert (found + Diagnostics()).means() == found.means()
