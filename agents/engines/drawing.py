"""From masked logits to draws: temperature, top-p, inverse CDF. A draw is a function of (logits, seed, position)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch

from agents.engines.choices import ChoiceMask
from sim.streams import Streams
from sim.types import Logprobs, OptionLogprobs, Tokens


class Fork(NamedTuple):
    """A place in a trie of options where more than one token may follow."""

    allowed: Tokens
    logits_k: torch.Tensor
    """One per allowed token, float64."""


class Law(NamedTuple):
    """What is sampled from at one place."""

    logprobs_k: torch.Tensor
    """Natural logarithms, float64; −inf where a token may not come."""
    cumulative_k: torch.Tensor
    greedy: bool

    def draw(self, seed: int, position: int) -> int:
        """The place of the drawn token."""
        if self.greedy:
            return int(self.logprobs_k.argmax())
        total = float(self.cumulative_k[-1])
        # Below the total, so that what is found has a positive probability.
        level = min(Streams(seed).draw("token", position) * total, math.nextafter(total, 0.0))
        return int(torch.searchsorted(self.cumulative_k, level, right=True))


def law(logits_k: torch.Tensor, temperature: float, top_p: float) -> Law:
    """The distribution of masked logits (float64). At temperature 0 the likeliest is taken, with its chance at 1."""
    greedy = temperature <= 0
    logprobs_k = (logits_k if greedy else logits_k / temperature).log_softmax(-1)
    if not greedy and top_p < 1:
        logprobs_k = _nucleus(logprobs_k, top_p)
    return Law(logprobs_k, logprobs_k.exp().cumsum(0), greedy)


def _nucleus(logprobs_k: torch.Tensor, top_p: float) -> torch.Tensor:
    """The same over the fewest likeliest tokens that together have a probability of `top_p`."""
    ordered_k, order_k = logprobs_k.sort(descending=True, stable=True)
    before_k = ordered_k.exp().cumsum(0) - ordered_k.exp()
    kept_k = torch.zeros_like(before_k, dtype=torch.bool).scatter(0, order_k, before_k < top_p)
    return logprobs_k.masked_fill(~kept_k, -torch.inf).log_softmax(-1)


def forks_of(mask: ChoiceMask) -> list[Tokens]:
    """The prefixes after which more than one token may follow, each once."""
    return list(dict.fromkeys(prefix for forks in mask.forks for prefix, _ in forks))


def choose(mask: ChoiceMask, laws: Mapping[Tokens, Law], seed: int) -> Tokens:
    """An option's tokens, each drawn given those before it."""
    ids: Tokens = ()
    while allowed := mask.allowed(ids):
        at = laws[ids].draw(seed, len(ids)) if ids in laws else 0
        ids = (*ids, allowed[at])
    return ids


def along(mask: ChoiceMask, laws: Mapping[Tokens, Law], ids: Tokens) -> Logprobs:
    """Log-probabilities of an answer's tokens: 0 where only one could follow, −inf off the mask."""
    found = []
    for position, token in enumerate(ids):
        prefix = ids[:position]
        allowed = mask.allowed(prefix)
        if token not in allowed:
            found.append(-math.inf)
        else:
            found.append(float(laws[prefix].logprobs_k[allowed.index(token)]) if len(allowed) > 1 else 0.0)
    return tuple(found)


def of_options(mask: ChoiceMask, laws: Mapping[Tokens, Law]) -> OptionLogprobs:
    """Log-probabilities of all options."""
    known = {
        prefix: dict(zip(mask.allowed(prefix), law.logprobs_k.tolist(), strict=True)) for prefix, law in laws.items()
    }
    return mask.option_logprobs(known)
