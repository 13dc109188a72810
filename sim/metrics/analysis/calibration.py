"""Whether probabilities are right. With fewer than 50 predictions only the Brier score says something."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from statistics import fmean
from typing import NamedTuple


class Murphy(NamedTuple):
    """Brier = reliability − resolution + uncertainty, over groups of equal predictions (Murphy 1973)."""

    reliability: float
    resolution: float
    uncertainty: float


def brier(given: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean squared distance of probabilities and outcomes (Brier 1950)."""
    return fmean((p - y) ** 2 for p, y in zip(given, happened, strict=True)) if given else None


def log_loss(given: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean −log probability of what happened, in nats; None where it was ruled out."""
    right = [p if y else 1 - p for p, y in zip(given, happened, strict=True)]
    return -fmean(map(log, right)) if right and min(right) > 0 else None


def ece(given: Sequence[float], happened: Sequence[bool], bins: int = 15) -> float | None:
    """Σ of bins' shares × |mean prediction − share that happened|, bins of equal mass; equal predictions stay together.

    Always say how many bins (Naeini et al. 2015).
    """
    n = len(given)
    groups = _bins(given, happened, bins)
    return sum(len(group) / n * abs(_mean(group, 0) - _mean(group, 1)) for group in groups) if n else None


def murphy(given: Sequence[float], happened: Sequence[bool]) -> Murphy | None:
    """The parts of the Brier score."""
    n = len(given)
    if not n:
        return None
    groups: dict[float, list[bool]] = {}
    for p, y in zip(given, happened, strict=True):
        groups.setdefault(p, []).append(y)
    base = sum(happened) / n
    return Murphy(
        sum(len(ys) * (p - fmean(ys)) ** 2 for p, ys in groups.items()) / n,
        sum(len(ys) * (fmean(ys) - base) ** 2 for ys in groups.values()) / n,
        base * (1 - base),
    )


def _bins(given: Sequence[float], happened: Sequence[bool], bins: int) -> list[list[tuple[float, bool]]]:
    ordered = sorted(zip(given, happened, strict=True), key=lambda pair: pair[0])
    groups: list[list[tuple[float, bool]]] = []
    for place, pair in enumerate(ordered):
        begins = place * bins // len(ordered) != (place - 1) * bins // len(ordered)
        if groups and (not begins or pair[0] == groups[-1][-1][0]):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _mean(group: Sequence[tuple[float, bool]], side: int) -> float:
    return fmean(float(pair[side]) for pair in group)
