"""What weights say of the rows' choices: log-probabilities of every option, each distinct question asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace

from sim.types import Tokens
from training.constraint import Distribution, Masks, Texts, distribution
from training.forward import Weights, option_logprobs, predict
from training.packing import pack
from training.rows import Sample
from training.trajectory import Row

BUDGET = 8192
"""Padded tokens of a micro-batch."""
LEAST = 1e-30
"""Probability below which none is told apart from it."""


def read_options(rows: Sequence[Row], weights: Mapping[str, Weights], masks: Masks) -> list[tuple[float, ...]]:
    """log P of each row's options at its temperature, under the weights of its policy's name; () where there are none.

    Rows that do not learn, or are no choices, have none.
    """
    places: dict[tuple[str, float], dict[tuple[Tokens, tuple[str, ...]], list[int]]] = {}
    for index, row in enumerate(rows):
        if row.trained and row.options and row.ids:
            name = row.policy.partition("@")[0]
            asked = places.setdefault((name, row.temperature), {})
            asked.setdefault((row.prompt, row.options), []).append(index)
    found: list[tuple[float, ...]] = [()] * len(rows)
    for (name, temperature), asked in places.items():
        with weights[name]() as model:
            said = option_logprobs(model, [(prompt, masks(options)) for prompt, options in asked], temperature)
        for logprobs, indices in zip(said, asked.values(), strict=True):
            for index in indices:
                found[index] = logprobs
    return found


class Said(NamedTuple):
    """What weights say of a row's tokens; both empty where it was not read."""

    logprobs: tuple[float, ...] = ()
    entropies: tuple[float, ...] = ()
    """Of the distributions that the tokens are from, in nats."""


def read_tokens(
    rows: Sequence[Row], weights: Mapping[str, Weights], masks: Masks, texts: Texts | None = None
) -> list[Said]:
    """What the weights of its policy's name say of each row that learns; each distinct answer is read once."""
    places: dict[str, dict[tuple[Tokens, Tokens, Distribution], list[int]]] = {}
    for index, row in enumerate(rows):
        name = row.policy.partition("@")[0]
        if row.trained and row.ids and name in weights:
            asked = (row.prompt, row.ids, distribution(row, masks, texts))
            places.setdefault(name, {}).setdefault(asked, []).append(index)
    found = [Said()] * len(rows)
    for name, asked in places.items():
        samples = [Sample(prompt=prompt, ids=ids, **support._asdict()) for prompt, ids, support in asked]
        with weights[name]() as model, torch.no_grad():
            said = _said(model, samples)
        for one, indices in zip(said, asked.values(), strict=True):
            for index in indices:
                found[index] = one
    return found


def _said(model: Any, samples: Sequence[Sample]) -> list[Said]:
    found = [Said()] * len(samples)
    for batch in pack(samples, BUDGET):
        read = predict(model, batch.to(model.device))
        sizes = [len(samples[place].ids) for place in batch.places]
        both = zip(read.logprobs_n.split(sizes), read.entropy_n.split(sizes), strict=True)
        for place, (logprobs, entropies) in zip(batch.places, both, strict=True):
            found[place] = Said(tuple(logprobs.tolist()), tuple(entropies.tolist()))
    return found


def explored(rows: Sequence[Row], options: Sequence[tuple[float, ...]], epsilon: float) -> list[Row]:
    """The rows with the behaviour that sampled them: μ = (1−ε)π + ε/n over whole options."""
    return [
        replace(row, explored=epsilon, option_logprobs=tuple(_mixed(one, len(each), epsilon) for one in each))
        if each
        else row
        for row, each in zip(rows, options, strict=True)
    ]


def _mixed(logprob: float, options: int, epsilon: float) -> float:
    return log(max(LEAST, (1 - epsilon) * exp(logprob) + epsilon / options))
