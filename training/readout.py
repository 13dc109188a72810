"""What weights say of the rows' choices: log-probabilities of every option, each distinct question asked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from math import exp, log
from typing import Any

from msgspec.structs import replace

from sim.types import Tokens
from training.constraint import Masks
from training.forward import option_logprobs
from training.trajectory import Row

LEAST = 1e-30
"""Probability below which none is told apart from it."""


def read_options(
    rows: Sequence[Row], weights: Mapping[str, Callable[[], AbstractContextManager[Any]]], masks: Masks
) -> list[tuple[float, ...]]:
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
