"""Merged and packed rows learn what the rows themselves would, and packing attends to the prompt."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.training.tiny import END, MASK, mask, model, row, slowly
from training.constraint import distribution
from training.forward import option_logprobs, predict
from training.loss import Scores, loss
from training.packing import Batch, pack
from training.rows import (
    Sample,
    merge,
    observed_samples,
    option_samples,
    pair_samples,
    question,
    ratio_units,
    samples,
    token_shares,
    units_looked_at,
)
from training.slots import Clip, Const, DropNegKL, PerRollout, Ratio, SeqMean, TokenMean, Trunc
from training.trajectory import Row, Span

CLIP = Clip(kind="clip", lo=0.2, hi=0.2)
OPTIONS = ("ab", "ac", "d")


@pytest.fixture(scope="module")
def llama() -> Any:
    return model()


def support(one: Row) -> Any:
    return distribution(one, mask)


def population(seed: int = 0) -> tuple[list[Row], list[tuple[float, ...]]]:
    """Choices and free text on three prompts (two of them begin alike), many rows equal, advantages of both signs."""
    rng = random.Random(seed)
    common = [rng.randrange(2, 60) for _ in range(20)]
    prompts = [[*common, 5, 6], [*common, 7], [9, 8, 7, 6, 5]]
    rows, advantages = [], []
    for _ in range(40):
        prompt = rng.choice(prompts)
        if rng.random() < 0.6:
            ids = rng.choice(MASK.sequences)
            kind: dict[str, Any] = {"options": OPTIONS, "distribution": "processed", "temperature": 0.8}
        else:
            ids = rng.choice([(3, 4, 5, 1), (3, 4, 9, 9, 1), (20, 1)])
            kind = {"distribution": "raw"}
        # Far from what the model says, so that ratios leave the clip range on both sides.
        rows.append(row(prompt, ids, logprobs=tuple(-1.0 - 0.3 * i for i in range(len(ids))), **kind))
        advantages.append(tuple(rng.choice([-1.5, -0.5, 0.0, 1.0, 2.0]) for _ in ids))
    return rows, advantages


def learner_rows(rows: Sequence[Row], advantages: Sequence[tuple[float, ...]]) -> list[Sample]:
    return samples(rows, advantages, token_shares(rows, TokenMean(kind="token")), support)


def gradient(llama: Any, total: Tensor) -> Tensor:
    return torch.cat([each.flatten() for each in torch.autograd.grad(total, list(llama.parameters()))])


def naive(llama: Any, rows: Sequence[Row], advantages: Sequence[tuple[float, ...]]) -> Tensor:
    """PPO-clip against the behaviour, row by row, token mean, with none of the code under test but `slowly`."""
    total = torch.zeros(())
    for one, each in zip(rows, advantages, strict=True):
        limits = distribution(one, mask)
        logprobs_t, _ = slowly(
            llama,
            Sample(prompt=one.prompt, ids=one.ids, allowed=limits.allowed, temperature=limits.temperature),
        )
        ratio_t = (logprobs_t - torch.tensor(one.logprobs)).exp()
        advantage_t = torch.tensor(each)
        total = total - torch.minimum(ratio_t * advantage_t, ratio_t.clamp(0.8, 1.2) * advantage_t).sum()
    return total / sum(len(one.ids) for one in rows)


def ours(llama: Any, batches: Iterable[Batch], ratio: Ratio | None = None) -> tuple[Tensor, Any]:
    """Total of the micro-batches' losses, and their diagnostics."""
    ratio = ratio or Ratio(denominator="behaviour")
    found = [loss(b.streams, Scores(logprobs_n=predict(llama, b).logprobs_n), ratio=ratio, trust=CLIP) for b in batches]
    diagnostics = found[0].diagnostics
    for each in found[1:]:
        diagnostics = diagnostics + each.diagnostics
    return torch.stack([each.total for each in found]).sum(), diagnostics


# --- the same numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [True, False])
def test_packed_log_probabilities_are_the_models_own(llama: Any, share: bool) -> None:
    apart = merge(learner_rows(*population()))
    batches = pack(apart, 120, share=share)
    assert sorted(place for batch in batches for place in batch.places) == list(range(len(apart)))
    for batch in batches:
        said = predict(llama, batch)
        wanted = [slowly(llama, apart[place]) for place in batch.places]
        torch.testing.assert_close(said.logprobs_n, torch.cat([x for x, _ in wanted]), rtol=1e-5, atol=2e-6)
        torch.testing.assert_close(said.entropy_n, torch.cat([x for _, x in wanted]), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("budget", [60, 10_000])
def test_merged_and_packed_gradients_are_the_naive_ones(llama: Any, share: bool, budget: int) -> None:
    rows, advantages = population()
    wanted = naive(llama, rows, advantages)
    apart = learner_rows(rows, advantages)
    merged = merge(apart)
    assert len(merged) < len(apart) / 2
    assert any(p > 0 > n for one in merged for p, n in zip(one.positive, one.negative, strict=True)), (
        "both signs in one row"
    )
    total, diagnostics = ours(llama, pack(merged, budget, share=share))
    assert total.item() == pytest.approx(wanted.item(), rel=1e-5)
    assert 0.1 < diagnostics.means()["clip_fraction"] < 0.9, "ratios within the clip range and outside it"
    assert diagnostics.tokens == sum(len(one.ids) for one in rows)
    exact = gradient(llama, wanted)
    error = (gradient(llama, total) - exact).norm() / exact.norm()
    assert error < 1e-5


def test_merging_alone_changes_no_loss(llama: Any) -> None:
    apart = learner_rows(*population(1))
    one, two = (ours(llama, pack(each, 10_000)) for each in (apart, merge(apart)))
    assert one[0].item() == pytest.approx(two[0].item(), rel=1e-5)
    assert one[1].tokens == two[1].tokens
    assert one[1].kl == pytest.approx(two[1].kl, rel=1e-4)


def test_packing_attends_to_the_prompt(llama: Any) -> None:
    """With the prompts swapped the log-probabilities change, and are those of the other prompt."""
    first, second = (2, 30, 31, 32, 33), (2, 40, 41, 42, 43)
    pair = [Sample(prompt=first, ids=(5, 6, 1)), Sample(prompt=first, ids=(7, 6, 1)), Sample(prompt=second, ids=(5, 1))]
    swapped = [Sample(prompt=second if one.prompt == first else first, ids=one.ids) for one in pair]
    (before,), (after,) = pack(pair, 1000), pack(swapped, 1000)
    said = dict(zip(before.places, predict(llama, before).logprobs_n.split(sizes(pair, before)), strict=True))
    then = dict(zip(after.places, predict(llama, after).logprobs_n.split(sizes(pair, after)), strict=True))
    for place, one in enumerate(swapped):
        assert (said[place] - then[place]).abs().max() > 0.05
        torch.testing.assert_close(then[place], slowly(llama, one)[0], rtol=1e-5, atol=2e-6)


def sizes(apart: Sequence[Sample], batch: Batch) -> list[int]:
    return [len(apart[place].ids) for place in batch.places]


def test_what_is_shared_is_fed_once() -> None:
    prompt = tuple(range(2, 42))
    options = question(prompt, MASK, 1.0, "q")
    (batch,) = pack(options, 1000)
    # All of the prompt, and the one token after which there is still a choice.
    assert batch.ids_bl.shape == (1, len(prompt) + 1)
    assert len(batch.choices.at_q) == 2
    assert not len(batch.open.at_q)
    wide = pack(options, 1000, share=False)[0]
    assert wide.ids_bl.shape == (3, len(prompt) + 1)


def test_a_choice_reads_few_rows_of_the_head(llama: Any) -> None:
    """No gradient reaches the head's rows of tokens that were not allowed."""
    (batch,) = pack(question((3, 4, 5), MASK, 1.0, "q"), 1000)
    (grad_vh,) = torch.autograd.grad(predict(llama, batch).logprobs_n.sum(), [llama.lm_head.weight])
    assert set(grad_vh.abs().sum(1).nonzero()[:, 0].tolist()) == {10, 11, 12, 13}


def test_options_of_a_question_have_probability_one(llama: Any) -> None:
    prompts = [(3, 4, 5), (3, 4, 6), (30, 31)]
    found = option_logprobs(llama, [(prompt, MASK) for prompt in prompts], temperature=0.7, budget=20)
    for prompt, logprobs in zip(prompts, found, strict=True):
        assert math.fsum(map(math.exp, logprobs)) == pytest.approx(1, abs=1e-5)
        wanted = [float(slowly(llama, one)[0].sum().detach()) for one in question(prompt, MASK, 0.7, "")]
        assert list(logprobs) == pytest.approx(wanted, abs=1e-5)


def test_a_lora_and_its_head_are_seen(llama: Any) -> None:
    """An adapter on the head too: the head is no plain matrix then."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    tuned = get_peft_model(model(), LoraConfig(r=2, target_modules=["q_proj", "lm_head"], init_lora_weights=False))
    apart = merge(learner_rows(*population()))
    for batch in pack(apart, 500):
        wanted = torch.cat([slowly(tuned, apart[place])[0] for place in batch.places])
        said = predict(tuned, batch).logprobs_n
        torch.testing.assert_close(said, wanted, rtol=1e-5, atol=2e-6)
        assert (said - predict(llama, batch).logprobs_n).abs().max() > 0.1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"attn_implementation": "eager"}, "sdpa"), ({"final_logit_softcapping": 30.0}, "after its head")],
)
def test_models_that_would_be_scored_wrongly_are_refused(changes: dict[str, Any], reason: str) -> None:
    (batch,) = pack([Sample(prompt=(3,), ids=(4,))], 100)
    with pytest.raises(ValueError, match=reason):
        predict(model(**changes), batch)


def test_entropy_has_a_gradient_where_wanted(llama: Any) -> None:
    one = Sample(prompt=(3, 4), ids=(5, 1))
    (batch,) = pack([one], 100)
    assert not predict(llama, batch).entropy_n.requires_grad
    packed = gradient(llama, predict(llama, batch, entropy=True).entropy_n.sum())
    exact = gradient(llama, slowly(llama, one)[1].sum())
    assert (packed - exact).norm() < 1e-5 * exact.norm()


def test_hidden_states_are_those_before_each_token(llama: Any) -> None:
    one = Sample(prompt=(3, 4), ids=(5, 6, 1))
    (batch,) = pack([one], 100)
    plain = llama.model(input_ids=torch.tensor([[3, 4, 5, 6]])).last_hidden_state[0, 1:]
    torch.testing.assert_close(predict(llama, batch).hidden_nh, plain, rtol=1e-5, atol=1e-5)


def test_a_critic_sees_forced_tokens_too(llama: Any) -> None:
    ids = MASK.sequences[0]
    bare = Sample(prompt=(3, 4), ids=ids, allowed=MASK.along(ids))
    aimed = Sample(prompt=(3, 4), ids=ids, allowed=MASK.along(ids), targets={"value": (1.0,) * len(ids)})
    plain = llama.model(input_ids=torch.tensor([[3, 4, *ids]])).last_hidden_state[0, 1:-1]
    for one, fed in ((bare, 2), (aimed, 3)):
        (batch,) = pack([one], 100)
        hidden = predict(llama, batch).hidden_nh
        torch.testing.assert_close(hidden[:fed], plain[:fed], rtol=1e-5, atol=1e-5)
        assert not hidden[fed:].any()


def test_a_decision_without_an_alternative_teaches_nothing(llama: Any) -> None:
    only = row((3, 4), (13, END), options=("d",), distribution="processed", logprobs=(0.0, 0.0))
    total, diagnostics = ours(llama, pack(learner_rows([only], [(1.0, 1.0)]), 100))
    assert total.item() == -1
    assert not any(grad.any() for grad in torch.autograd.grad(total, list(llama.model.parameters()), allow_unused=True))
    assert diagnostics.means()["kl"] == 0


# --- packing -------------------------------------------------------------------------------------------

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)
FREE = st.builds(Sample, prompt=TOKENS, ids=TOKENS, sequence=st.sampled_from(["", "", "s", "t"]))
CHOSEN = st.sampled_from(MASK.sequences).flatmap(
    lambda ids: st.builds(Sample, prompt=TOKENS, ids=st.just(ids), allowed=st.just(MASK.along(ids)))
)


@settings(max_examples=80, deadline=None)
@given(st.lists(FREE | CHOSEN, min_size=1, max_size=12), st.integers(1, 60), st.booleans())
def test_every_token_sees_its_own_past(apart: list[Sample], budget: int, share: bool) -> None:
    batches = pack(apart, budget, share=share)
    assert sorted(place for batch in batches for place in batch.places) == list(range(len(apart)))
    homes: dict[str, set[int]] = {}
    for number, batch in enumerate(batches):
        seen_tl, ids_t = batch.mask()[:, 0].flatten(0, 1), batch.ids_bl.flatten()
        width = batch.ids_bl.shape[1]
        position_t = batch.position_bl.flatten()
        past = {}
        for at in range(len(ids_t)):
            start = at - at % width
            past[at] = tuple(ids_t[start : start + width][seen_tl[at]].tolist())
        scored = [(place, i) for place in batch.places for i in range(len(apart[place].ids))]
        asked = set()
        for queries in (batch.choices, batch.open):
            for token, query in zip(queries.token_m.tolist(), queries.query_m.tolist(), strict=True):
                place, i = scored[token]
                one, at = apart[place], int(queries.at_q[query])
                assert past[at] == (*one.prompt, *one.ids[:i])
                assert int(position_t[at]) == len(one.prompt) + i - 1
                asked.add(token)
        for token, (place, i) in enumerate(scored):
            allowed = apart[place].allowed
            assert (token in asked) == (allowed is None or len(allowed[i]) > 1)
        for place in batch.places:
            homes.setdefault(apart[place].sequence or f"own {place}", set()).add(number)
        whole = len({apart[place].sequence or place for place in batch.places}) > 1
        assert batch.ids_bl.numel() <= budget or not whole
    assert all(len(home) == 1 for home in homes.values())


def test_equal_samples_make_equal_batches() -> None:
    apart = learner_rows(*population())
    for one, two in zip(pack(apart, 100), pack(apart, 100), strict=True):
        assert torch.equal(one.ids_bl, two.ids_bl)
        assert one.places == two.places


# --- rows ------------------------------------------------------------------------------------------------


def test_rows_that_differ_are_not_merged() -> None:
    base = {"logprobs": (-1.0, 0.0), "options": OPTIONS, "distribution": "processed", "policy_hash": "p"}
    variants = [{}, {}, {"policy_hash": "q"}, {"temperature": 0.5}, {"logprobs": (-1.1, 0.0)}, {"options": ("d", "ab")}]
    rows = [row((3,), (13, END), **{**base, **each}) for each in variants]
    merged = merge(learner_rows(rows, [(1.0, 1.0), (-2.0, 1.0)] + [(1.0, 0.0)] * 4))
    assert [one.count for one in merged] == [2, 1, 1, 1, 1]
    assert merged[0].positive == pytest.approx((1 / 12, 2 / 12))
    assert merged[0].negative == pytest.approx((-2 / 12, 0.0))
    assert merged[0].weight == pytest.approx((2 / 12, 2 / 12))


def test_rows_of_wrong_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="row 0"):
        samples([row((3,), ())], [()], [()], support)
    with pytest.raises(ValueError, match="row 0"):
        samples([row((3,), (4, 1), logprobs=(-1.0,))], [(0.0, 0.0)], [(0.5, 0.5)], support)
    with pytest.raises(ValueError, match="argument 2"):
        samples([row((3,), (4, 1))], [(0.0,)], [(0.5, 0.5)], support)


def test_shares_by_hand() -> None:
    """Two rows of seat a (3 and 1 tokens), one of b (2 tokens, one of them not learnt)."""
    rows = [row((3,), (4, 5, 1), seat="a"), row((3,), (1,), seat="a"), row((3,), (6, 1), seat="b")]
    counted = [(True,) * 3, (True,), (True, False)]
    wanted = {
        TokenMean(kind="token"): [(1 / 5,) * 3, (1 / 5,), (1 / 5, 0)],
        SeqMean(kind="seq"): [(1 / 9,) * 3, (1 / 3,), (1 / 3, 0)],
        Const(kind="const", length=10): [(1 / 30,) * 3, (1 / 30,), (1 / 30, 0)],
        PerRollout(kind="per_rollout"): [(1 / 8,) * 3, (1 / 8,), (1 / 2, 0)],
    }
    for aggregation, shares in wanted.items():
        found = token_shares(rows, aggregation, counted)
        assert [pytest.approx(each) for each in shares] == found
    assert token_shares(rows, SeqMean(kind="seq"), [(False,) * 3, (True,), (True, True)])[0] == (0, 0, 0)
    assert token_shares(rows, SeqMean(kind="seq"), [(False,) * 3, (True,), (True, True)])[1] == (1 / 2,)


def test_units_of_ratios() -> None:
    goal = (Span(kind="subgoal", start=0, stop=1),)
    rows = [row((3,), (1,), seat="a", turn=t, spans=goal if t in (0, 2) else ()) for t in (3, 0, 1, 2)]
    rows.append(row((3,), (1,), seat="b"))
    assert ratio_units(rows, "turn") == ratio_units(rows, "token") == [""] * 5
    sequence = ratio_units(rows, "sequence")
    assert len(set(sequence[:4])) == 1
    assert sequence[4] == "", "one row alone is its own unit, and may merge"
    drop = DropNegKL(kind="drop_neg_kl", threshold=0.1)
    assert units_looked_at(Ratio(), drop) == {"token", "sequence"}
    assert units_looked_at(Ratio(unit="turn", agg="product"), Trunc(kind="trunc")) == {"turn", "token"}
    segment = ratio_units(rows, "segment")
    assert segment[1] == segment[2] != segment[3] == segment[0]


def test_options_of_equal_questions_are_one_bundle() -> None:
    rows = [
        row((3,), (13, END), options=OPTIONS),
        row((3,), (10, 11, END), options=OPTIONS),
        row((4,), (), options=("d",)),
    ]
    found = option_samples(rows, [(1.0, -1.0, 0.0), (0.5, 1.0, -2.0), (3.0,)], [0.5, 0.25, 0.25], mask)
    merged = merge(found)
    assert [one.ids for one in merged] == [*MASK.sequences, (13, END)]
    assert len({one.bundle for one in merged[:3]}) == 1
    assert merged[3].bundle != merged[0].bundle
    assert merged[1].positive == (0.25, 0.0, 0.0)
    assert merged[1].negative == (-0.5, 0.0, 0.0)


def test_pairs_share_their_mean() -> None:
    one, two = row((3,), (4, 1)), row((3,), (5, 1))
    found = pair_samples([((one,), (two,)), ((two, one), (one,))], support)
    assert [each.preference for each in found] == [0.5, -0.5, 0.5, 0.5, -0.5]
    assert [each.bundle for each in found] == ["pair 0"] * 2 + ["pair 1"] * 3


def test_what_the_environment_wrote() -> None:
    """The agent's own answer and what stood before it are not the environment's."""
    first = row((3, 4), (5, 1), seat="a", turn=0)
    second = row((3, 4, 5, 1, 7, 8), (6, 1), seat="a", turn=1)
    broken = row((3, 9, 9), (6, 1), seat="a", turn=2)
    other = row((3, 4, 5), (1,), seat="b", turn=0)
    found = observed_samples([second, broken, first, other])
    assert [(one.prompt, one.ids) for one in found] == [((3, 4, 5, 1), (7, 8)), ((3,), (9, 9))]
    assert all(one.observed == (0.25, 0.25) for one in found)
