"""How much answers depend on what was asked: each of a few answers under the prompts of all of them (RAGEN-2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.types import Tokens
from training.forward import sequence_logprobs
from training.keys import learnable
from training.monitors import MutualInformation, mutual_information
from training.trajectory import Row


def examples(rows: Sequence[Row], pairs: int) -> list[tuple[Tokens, Tokens]]:
    """Up to so many prompts with what was answered to them, no prompt twice, evenly over the rows in their order."""
    found: dict[Tokens, Tokens] = {}
    for row in rows:
        if learnable(row) and row.prompt:
            found.setdefault(row.prompt, row.ids)
    every = list(found.items())
    count = min(pairs, len(every))
    return [every[place * len(every) // count] for place in range(count)]


def dependence(model: Any, rows: Sequence[Row], pairs: int) -> MutualInformation | None:
    """Of the learner's answers under the model; None where there are not two prompts to compare.

    Log-probabilities are the model's own: no mask, temperature 1.
    """
    asked = examples(rows, pairs)
    if len(asked) < 2:
        return None
    scored = sequence_logprobs(model, [(prompt, ids) for _, ids in asked for prompt, _ in asked])
    n = len(asked)
    cross = [scored[i * n : (i + 1) * n] for i in range(n)]
    return mutual_information(cross, [len(ids) for _, ids in asked])
