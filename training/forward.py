"""Log-probabilities of the scored tokens of a micro-batch under a causal language model of transformers.

The decoder runs on the packed trees; its head runs only where a scored token was chosen, and for a choice only over the
tokens of its support. Models whose layers don't all attend to everything before, or that change logits after the head,
are refused: the numbers would be wrong without a sign of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from agents.engines.choices import ChoiceMask
from sim.types import Tokens
from training.packing import Batch, Queries, pack
from training.rows import Sample, question

Weights: TypeAlias = Callable[[], AbstractContextManager[Any]]
"""Entered, the model that computes with some weights, as `Policy.active` is."""
_BANNED = -1e30
"""Logit of a token that cannot be sampled: its probability is exactly 0, and so is its part in an entropy."""
_CHANGED = ("final_logit_softcapping", "logits_scaling", "logit_scale")
"""Settings of a model that change its logits after the head."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model says of the scored tokens of a micro-batch, in the order of its streams."""

    logprobs_n: Tensor
    """float32, natural logarithms."""
    entropy_n: Tensor
    """Of the distribution that each token is from, in nats."""
    hidden_nh: Tensor
    """Last hidden state before each token, for value heads; zeros where it was not fed, as without targets."""


def predict(model: Any, batch: Batch, *, entropy: bool = False) -> Prediction:
    """Score a micro-batch; with `entropy` that has a gradient too, which costs memory over the whole vocabulary.

    `model` is a causal language model of transformers with SDPA attention, or a LoRA of peft on one. Raises ValueError
    for a model whose numbers would be wrong.
    """
    hidden_th = hidden(model, batch).flatten(0, 1)
    head = causal(model).get_output_embeddings()
    # A number of the model's times 0: micro-batches in which nothing was chosen can be differentiated like any other.
    logprobs_n = 0.0 * hidden_th[0, 0].float().expand(batch.streams.tokens)
    entropy_n = torch.zeros_like(logprobs_n)
    for queries, score in ((batch.choices, _score_choices), (batch.open, _score_open)):
        if len(queries.at_q):
            logprobs_m, entropy_q = score(head, hidden_th[queries.at_q], queries, entropy)
            logprobs_n = logprobs_n.index_copy(0, queries.token_m, logprobs_m)
            entropy_n = entropy_n.index_copy(0, queries.token_m, entropy_q[queries.query_m])
    hidden_nh = hidden_th[batch.at_n.clamp(min=0)] * (batch.at_n >= 0)[:, None]
    return Prediction(logprobs_n=logprobs_n, entropy_n=entropy_n, hidden_nh=hidden_nh)


def hidden(model: Any, batch: Batch) -> Tensor:
    """The decoder's last hidden states [b, l, h]. Raises ValueError for a model whose numbers would be wrong."""
    decoder = causal(model).base_model
    _refuse(decoder.config)
    fed = {"input_ids": batch.ids_bl} if batch.below_blh is None else {"inputs_embeds": batch.below_blh}
    states: Tensor = decoder(
        **fed, attention_mask=batch.mask(), position_ids=batch.position_bl, use_cache=False
    ).last_hidden_state
    return states


def causal(model: Any) -> Any:
    """The causal language model itself, where `model` is a LoRA of peft on it."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def option_logprobs(
    model: Any, questions: Sequence[tuple[Tokens, ChoiceMask]], temperature: float = 1.0, budget: int = 8192
) -> list[tuple[float, ...]]:
    """log P of every option of every question (a prompt and its choices); those of a question sum to probability 1."""
    options = [
        option
        for number, (prompt, choices) in enumerate(questions)
        for option in question(prompt, choices, temperature, str(number))
    ]
    each = iter(_scored(model, options, budget))
    return [tuple(next(each) for _ in choices.sequences) for _, choices in questions]


def sequence_logprobs(model: Any, pairs: Sequence[tuple[Tokens, Tokens]], budget: int = 8192) -> list[float]:
    """log P of each answer after its prompt, given as `(prompt, ids)`: the model's own, over its whole vocabulary."""
    return _scored(model, [Sample(prompt=prompt, ids=ids) for prompt, ids in pairs], budget)


def _scored(model: Any, samples: Sequence[Sample], budget: int) -> list[float]:
    """Sum of the log-probabilities of each sample's tokens."""
    found = [0.0] * len(samples)
    with torch.no_grad():
        for batch in pack(samples, budget):
            batch = batch.to(model.device)
            logprobs_n = predict(model, batch).logprobs_n
            logprobs_s = logprobs_n.new_zeros(batch.streams.samples).index_add(0, batch.streams.sample_n, logprobs_n)
            for place, logprob in zip(batch.places, logprobs_s.tolist(), strict=True):
                found[place] = logprob
    return found


def ragged_log_softmax(logits_k: Tensor, query_k: Tensor, queries: int) -> Tensor:
    """Log-softmax of each query over its own entries; entry k belongs to query `query_k[k]`. Shape [k]."""
    peak_q = logits_k.new_full((queries,), -torch.inf).scatter_reduce(0, query_k, logits_k.detach(), "amax")
    shifted_k = logits_k - peak_q[query_k]
    total_q = logits_k.new_zeros(queries).index_add(0, query_k, shifted_k.exp())
    return shifted_k - total_q.log()[query_k]


def ragged_entropy(logprobs_k: Tensor, query_k: Tensor, queries: int) -> Tensor:
    """Entropy in nats of each query's distribution, [q]."""
    return logprobs_k.new_zeros(queries).index_add(0, query_k, -logprobs_k.exp() * logprobs_k)


def _score_choices(head: Any, hidden_qh: Tensor, queries: Queries, entropy: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities [m] and entropies [q] over the given supports; the head's other rows are not touched."""
    ids_u, entry_k = queries.ids_k.unique(return_inverse=True)
    if type(head) is torch.nn.Linear:
        bias_u = None if head.bias is None else head.bias[ids_u].float()
        logits_qu = torch.nn.functional.linear(hidden_qh.float(), head.weight[ids_u].float(), bias_u)
    else:
        logits_qu = head(hidden_qh)[:, ids_u].float()
    logits_k = logits_qu[queries.query_k, entry_k] / queries.temperature_q[queries.query_k]
    logprobs_k = ragged_log_softmax(logits_k, queries.query_k, len(queries.at_q))
    weighed_k = logprobs_k if entropy else logprobs_k.detach()
    return logprobs_k[queries.pick_m], ragged_entropy(weighed_k, queries.query_k, len(queries.at_q))


def _score_open(head: Any, hidden_qh: Tensor, queries: Queries, entropy: bool) -> tuple[Tensor, Tensor]:
    """Log-probabilities [m] and entropies [q] over the whole vocabulary but for what is banned."""
    logits_qv = head(hidden_qh).float() / queries.temperature_q[:, None]
    if len(queries.ids_k):
        logits_qv = logits_qv.index_put((queries.query_k, queries.ids_k), logits_qv.new_tensor(_BANNED))
    total_q = logits_qv.logsumexp(-1)
    logprobs_m = logits_qv[queries.query_m, queries.pick_m] - total_q[queries.query_m]
    with torch.set_grad_enabled(entropy and torch.is_grad_enabled()):
        mean_q = torch.linalg.vecdot((logits_qv - total_q[:, None]).exp(), logits_qv)
        return logprobs_m, total_q - mean_q


def _refuse(config: Any) -> None:
    if config._attn_implementation != "sdpa":
        raise ValueError(f"attention {config._attn_implementation!r} reads a boolean mask otherwise; load with sdpa")
    if set(getattr(config, "layer_types", None) or ("full_attention",)) != {"full_attention"}:
        raise ValueError("a model with sliding or linear attention does not take a mask of its own for every layer")
    if getattr(config, "sliding_window", None) is not None:
        raise ValueError("a model with sliding-window attention would attend to less than its engine does, or more")
    changed = [name for name in _CHANGED if getattr(config, name, None) not in (None, 1, 1.0)]
    if changed:
        raise ValueError(f"the model changes logits after its head: {', '.join(changed)}")
