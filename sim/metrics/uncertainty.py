"""Uncertainty of a trajectory: of each step by itself, passed on to what depends on it.

U_v = 1 − (1 − u_v)·Π_p (1 − w_pv·U_p), a noisy or over the steps it depends on: one of several choices, not learned.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import exp
from statistics import fmean


def local(logprobs: Sequence[float]) -> float | None:
    """1 − mean probability of the tokens that were sampled."""
    return 1 - fmean(map(exp, logprobs)) if logprobs else None


def propagate(own: Mapping[Hashable, float], edges: Mapping[tuple[Hashable, Hashable], float]) -> dict[Hashable, float]:
    """U of every step; `own` in the order of time, edges from earlier to later steps with their weights.

    Raises ValueError for an edge that goes back.
    """
    found: dict[Hashable, float] = {}
    places = {step: place for place, step in enumerate(own)}
    for (before, after), _ in edges.items():
        if places[before] >= places[after]:
            raise ValueError(f"the edge from {before} to {after} goes back in time")
    for step, alone in own.items():
        sure = 1 - alone
        for (before, after), weight in edges.items():
            if after == step:
                sure *= 1 - weight * found[before]
        found[step] = 1 - sure
    return found


def earliness(aurocs: Sequence[float], level: float = 0.75) -> int | None:
    """First round, from 1, at which failures are told from successes that well."""
    return next((round_ for round_, each in enumerate(aurocs, 1) if each >= level), None)
