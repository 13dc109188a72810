"""A model reads prompts: one at a time, in blocks of fixed length whose keys and values are kept.

So what comes out depends on the weights, the prompt, the machine and the number of threads only: not on what was read
before, nor on what else waits. Left out: models with sliding-window attention.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import torch
from transformers import DynamicCache

from agents.engines.weights import Adapted
from sim.types import Tokens

Layers: TypeAlias = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, (rows, heads, tokens, width)."""


@dataclass(eq=False)
class Policy:
    """Weights that answer, and how many open calls name them."""

    name: str
    module: Any
    adapter: str = ""
    """Which of the adapters on the base model; empty: the module as it is."""
    open: int = 0
    removed: bool = False


class Reading(NamedTuple):
    """A prompt that was read, with a tree of tokens after it."""

    logits_nv: torch.Tensor
    """At the prompt's end and at each token of the tree, on the CPU."""
    layers: Layers
    cached: int
    """Prompt tokens that were not read for it."""


class Reader:
    """The passes through a base model, its adapters, and other models. For one thread."""

    def __init__(self, adapted: Adapted, device: torch.device, block: int, kept_tokens: int) -> None:
        self._adapted, self._device, self._block = adapted, device, block
        self.forwards = 0
        """Passes so far."""
        self._blocks: OrderedDict[tuple[Policy, Tokens], Layers] = OrderedDict()
        self._most = kept_tokens // block

    def read(self, policy: Policy, prompt: Tokens, tokens: Sequence[int] = (), parents: Sequence[int] = ()) -> Reading:
        """Read a prompt and a tree of tokens after it, each of which sees the prompt, its ancestors and itself.

        `parents`: places in `tokens`, −1 for the prompt's end; a parent stands before its children.
        """
        cache, cached = self._prefix(policy, prompt)
        start = cache.get_seq_length()
        tail = prompt[start:]
        size = len(tail) + len(tokens)
        seen_qk = torch.ones(size, start + size, dtype=torch.bool).tril(start)
        positions = list(range(start, len(prompt)))
        for node, parent in enumerate(parents, start=len(tail)):
            above = len(tail) + parent if parent >= 0 else len(tail) - 1
            seen_qk[node] = seen_qk[above]
            seen_qk[node, start + node] = True
            positions.append(positions[above] + 1)
        logits_1nv = self.forward(
            policy,
            torch.tensor([[*tail, *tokens]], device=self._device),
            cache,
            seen_qk[None, None].to(self._device),
            torch.tensor([positions], device=self._device),
            keep=len(tokens) + 1,
        )
        return Reading(logits_1nv[0].cpu(), [(layer.keys, layer.values) for layer in cache.layers], cached)

    def forward(
        self,
        policy: Policy,
        tokens_bt: torch.Tensor,
        cache: Any,
        mask: torch.Tensor | None,
        positions_bt: torch.Tensor,
        keep: int = 1,
    ) -> torch.Tensor:
        """One pass: logits (rows, keep, vocabulary) at the last positions. The cache grows by the tokens."""
        self.forwards += 1
        if policy.module is self._adapted.model:
            self._adapted.activate(policy.adapter)
        logits_bkv: torch.Tensor = policy.module(
            input_ids=tokens_bt,
            attention_mask=mask,
            position_ids=positions_bt,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=keep,
        ).logits
        return logits_bkv

    def forget(self, policy: Policy) -> None:
        """Drop what is kept for a policy."""
        for key in [key for key in self._blocks if key[0] is policy]:
            del self._blocks[key]

    def _prefix(self, policy: Policy, prompt: Tokens) -> tuple[Any, int]:
        """A cache of the whole blocks before the prompt's last token, and how many tokens of it were remembered.

        A block is always read in a pass of its own after the same blocks, so its bits don't depend on the memory.
        """
        stops = range(self._block, len(prompt), self._block)
        known: list[Layers] = []
        for stop in stops:
            if (policy, prompt[:stop]) not in self._blocks:
                break
            self._blocks.move_to_end((policy, prompt[:stop]))
            known.append(self._blocks[policy, prompt[:stop]])
        cache = joined(known)
        for stop in stops[len(known) :]:
            start = stop - self._block
            tokens_1t = torch.tensor([prompt[start:stop]], device=self._device)
            self.forward(policy, tokens_1t, cache, None, torch.arange(start, stop, device=self._device)[None])
            # Copies: a view would keep the whole cache in memory.
            self._blocks[policy, prompt[:stop]] = [
                (layer.keys[:, :, start:].clone(), layer.values[:, :, start:].clone()) for layer in cache.layers
            ]
            if len(self._blocks) > self._most:
                self._blocks.popitem(last=False)
        return cache, len(known) * self._block


def joined(blocks: Sequence[Layers]) -> Any:
    """A cache of blocks that follow each other."""
    layers = [
        (torch.cat([keys for keys, _ in layer], dim=2), torch.cat([values for _, values in layer], dim=2))
        for layer in zip(*blocks, strict=True)
    ]
    return DynamicCache(ddp_cache_data=layers or None)


def stacked(rows: Sequence[Layers]) -> tuple[Any, torch.Tensor]:
    """A cache of several prompts, padded in front, and which places hold something (rows, tokens; 0 or 1)."""
    lengths = [layers[0][0].shape[2] for layers in rows]
    longest = max(lengths)

    def padded(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        pad = torch.nn.functional.pad
        return torch.cat([pad(part, (0, 0, longest - part.shape[2], 0)) for part in parts])

    layers = [
        (padded([keys for keys, _ in layer]), padded([values for _, values in layer]))
        for layer in zip(*rows, strict=True)
    ]
    seen = [[0] * (longest - length) + [1] * length for length in lengths]
    return DynamicCache(ddp_cache_data=layers), torch.tensor(seen, device=layers[0][0].device)
