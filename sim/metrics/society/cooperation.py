"""Cooperation in repeated games, and how a policy plays with strangers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import fmean

from sim.metrics.statistics.given import alike, numbers


def cooperation_rate(own: Sequence[Hashable], cooperate: Hashable = "C") -> float | None:
    """Share of rounds with cooperation."""
    return sum(act == cooperate for act in own) / len(own) if len(own) else None


def cooperation_after(
    own: Sequence[Hashable], partner: Sequence[Hashable], act: Hashable, cooperate: Hashable = "C"
) -> float | None:
    """P(own cooperation | the partner's act in the round before): after C reciprocity, after D forgiveness."""
    alike(own=own, partner=partner)
    answers = [mine for mine, before in zip(own[1:], partner, strict=False) if before == act]
    return cooperation_rate(answers, cooperate)


def first_defection(own: Sequence[Hashable], cooperate: Hashable = "C") -> int | None:
    """Round, counted from 1, of the first act that is none; None for who never defects."""
    return next((turn for turn, act in enumerate(own, 1) if act != cooperate), None)


def cross_play_gap(scores: Sequence[Sequence[float]]) -> float | None:
    """Mean score of policies with themselves less that with each other (Hu et al. 2020); None for a single one."""
    n = len(scores)
    alike(policies=scores, **{f"scores of policy {place}": row for place, row in enumerate(scores)})
    scores = [numbers("scores", row) for row in scores]
    if n < 2:
        return None
    own = fmean(scores[i][i] for i in range(n))
    return own - fmean(scores[i][j] for i in range(n) for j in range(n) if i != j)
