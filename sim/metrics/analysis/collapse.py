"""Whether a policy still answers its prompts, or gives all of them the same template (RAGEN-2, 2604.06268).

`scores[i][j]` is log p(zᵢ | xⱼ) of the i-th answer under the j-th prompt, in nats; the diagonal is each one's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import exp, fsum, inf, log
from typing import TypeAlias

from sim.metrics.statistics.given import alike, numbers, whole

Scores: TypeAlias = Sequence[Sequence[float]]


def mutual_information(scores: Scores) -> float | None:
    """Mean of `informations`, in nats, at most ln N: 0 says that answers ignore their prompts."""
    told = informations(scores)
    return fsum(told) / len(told) if len(told) > 1 else None


def informations(scores: Scores) -> list[float]:
    """ℓ(own) − log mean_j exp ℓ_ij of each answer: how much likelier its own prompt makes it than all do."""
    return [row[i] - _log_mean_exp(row) for i, row in enumerate(_square(scores))]


def conditional_entropy(scores: Scores) -> float | None:
    """−mean of ℓ(own): how free answers are where the prompt is given."""
    scores = _square(scores)
    return -fsum(row[i] for i, row in enumerate(scores)) / len(scores) if scores else None


def retrieval_accuracy(scores: Scores, top: int = 1, prompts: Sequence[Hashable] | None = None) -> float | None:
    """Share of answers whose own prompt is among the `top` likeliest; ties count in part, equal prompts as one."""
    scores, top = _square(scores), whole("top", top, 1)
    n = len(scores)
    names = list(range(n)) if prompts is None else list(prompts)
    alike(prompts=names, answers=scores)
    if n < 2:
        return None
    return fsum(_found(row, [name == names[i] for name in names], top) for i, row in enumerate(scores)) / n


def chance(n: int, top: int = 1, prompts: Sequence[Hashable] | None = None) -> float | None:
    """What retrieval finds if all prompts score alike."""
    return retrieval_accuracy([[0.0] * n] * n, top, prompts)


def _square(scores: Scores) -> list[list[float]]:
    """Log-probabilities, of an impossible prompt −inf, but not of all; as many prompts as answers."""
    alike(answers=scores, **{f"scores of answer {place}": row for place, row in enumerate(scores)})
    found = [numbers("scores", row, -inf) for row in scores]
    if any(max(row) == -inf for row in found):
        raise ValueError("scores: an answer is impossible under every prompt")
    return found


def _found(row: Sequence[float], own: Sequence[bool], top: int) -> float:
    """Chance that one of a row's own places is among its `top` best, ties in random order."""
    best = max(score for score, mine in zip(row, own, strict=True) if mine)
    above = sum(score > best for score in row)
    tied = sum(score == best for score in row)
    mine = sum(is_own and score == best for score, is_own in zip(row, own, strict=True))
    missed = 1.0
    for draw in range(min(max(top - above, 0), tied)):
        missed *= max(tied - mine - draw, 0) / (tied - draw)
    return 1 - missed


def _log_mean_exp(row: Sequence[float]) -> float:
    most = max(row)
    return most + log(fsum(exp(each - most) for each in row) / len(row))
