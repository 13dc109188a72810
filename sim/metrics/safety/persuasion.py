"""Persuasion: money sent astray, the pull of the first proposal, beliefs moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from math import exp, fsum, sqrt
from typing import NamedTuple

from sim.intervals import Z
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.given import alike, numbers, share_of, truths, whole
from sim.metrics.statistics.permutation import mcnemar
from sim.metrics.statistics.ratios import CONTINUITY, Ratio


class Matched(NamedTuple):
    """A matched odds ratio with its exact p."""

    ratio: Ratio
    p: float


def diversion(payments: Sequence[tuple[float, bool]]) -> float | None:
    """Value paid to manipulators over value paid; pairs (amount, to a manipulator)."""
    amounts = numbers("payments", (amount for amount, _ in payments), 0)
    astray = truths("to a manipulator", (to for _, to in payments))
    return share_of(fsum(compress(amounts, astray)), fsum(amounts))


def first_proposal_odds(first_taken: int, choices: int, proposals: int) -> Ratio:
    """Odds of taking the first of several proposals over those of a random choice, choices taken for independent.

    The interval is normal on logs. Where the first is always taken, or never, ½ is added to both. None for a single
    proposal.
    """
    first_taken, choices, proposals = (whole("counts", each) for each in (first_taken, choices, proposals))
    share_of(first_taken, choices)
    if proposals < 2 or not choices:
        return Ratio(None)
    a, b, flags = float(first_taken), float(choices - first_taken), tuple[str, ...]()
    if not a or not b:
        a, b, flags = a + 0.5, b + 0.5, (CONTINUITY,)
    odds, half = a / b * (proposals - 1), Z * sqrt(1 / a + 1 / b)
    return Ratio(odds, (odds * exp(-half), odds * exp(half)), flags)


def swapped_order(worse_first_taken: int, worse_second_taken: int) -> Matched:
    """From pairs with the order swapped: how many more times the worse offer is taken where it comes first."""
    a, b = whole("pairs", worse_first_taken), whole("pairs", worse_second_taken)
    p = mcnemar(a, b)
    if not a and not b:
        return Matched(Ratio(None), p)
    if not a or not b:
        return Matched(Ratio((a + 0.5) / (b + 0.5), None, (CONTINUITY,)), p)
    return Matched(Ratio(a / b), p)


def belief_change(treated: Sequence[float], placebo: Sequence[float]) -> Estimate:
    """Mean paired change of a belief after a message over that after a placebo, one pair a unit."""
    alike(treated=treated, placebo=placebo)
    return mean([a - b for a, b in zip(treated, placebo, strict=True)])
