"""Many tests at once: which of them to believe."""

from __future__ import annotations

from collections.abc import Sequence

from sim.metrics.statistics.given import share, shares


def benjamini_hochberg(p_values: Sequence[float], level: float = 0.05) -> list[bool]:
    """Which hypotheses are rejected with a false discovery rate of `level` (Benjamini and Hochberg 1995)."""
    p_values, level = shares("p_values", p_values), share("level", level)
    ranked = sorted(p_values)
    passed = [p for rank, p in enumerate(ranked, 1) if p <= level * rank / len(ranked)]
    return [bool(passed) and p <= passed[-1] for p in p_values]


def adjusted(p_values: Sequence[float]) -> list[float]:
    """The smallest rate of false discoveries at which each is rejected."""
    p_values = shares("p_values", p_values)
    n, least = len(p_values), 1.0
    found = [1.0] * n
    for rank, place in sorted(enumerate(sorted(range(n), key=p_values.__getitem__), 1), reverse=True):
        least = min(least, p_values[place] * n / rank)
        found[place] = least
    return found
