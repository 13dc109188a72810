"""A two-layer Llama from scratch, and log-probabilities and rows for it made the long way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from agents.engines.choices import ChoiceMask
from training.rows import Sample
from training.trajectory import Row

torch.set_num_threads(1)

END = 1
VOCAB = 64
MASK = ChoiceMask(("ab", "ac", "d"), lambda text: [ord(char) - ord("a") + 10 for char in text], END)
"""ab and ac share a token; d is one token; all end with END."""


def model(seed: int = 0, **changes: Any) -> Any:
    """Hidden size 32, float32; weights large enough for distributions that differ."""
    torch.manual_seed(seed)
    settings: dict[str, Any] = {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "initializer_range": 0.3,
        "tie_word_embeddings": False, "attn_implementation": "sdpa", **changes,
    }  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**settings))


def mask(options: tuple[str, ...]) -> ChoiceMask:
    return ChoiceMask(options, lambda text: [ord(char) - ord("a") + 10 for char in text], END)


def row(prompt: Sequence[int], ids: Sequence[int], **fields: Any) -> Row:
    return Row(episode=fields.pop("episode", "run:0"), prompt=tuple(prompt), ids=tuple(ids), **fields)


def slowly(llama: Any, sample: Sample) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies of one sample: the model's own forward, full logits, disallowed ones at -inf."""
    logits_tv = llama(input_ids=torch.tensor([[*sample.prompt, *sample.ids]])).logits[0, len(sample.prompt) - 1 : -1]
    logits_tv = logits_tv / sample.temperature
    if sample.allowed is not None:
        banned_tv = torch.ones_like(logits_tv, dtype=torch.bool)
        for position, allowed in enumerate(sample.allowed):
            banned_tv[position, list(allowed)] = False
        logits_tv = logits_tv.masked_fill(banned_tv, -torch.inf)
    logprobs_tv = logits_tv.log_softmax(-1)
    entropy_t = -(logprobs_tv.exp() * logprobs_tv.masked_fill(logprobs_tv == -torch.inf, 0.0)).sum(-1)
    return logprobs_tv.gather(1, torch.tensor(sample.ids)[:, None])[:, 0], entropy_t
