"""How well two raters agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from sim.metrics.statistics.given import whole

Pairs: TypeAlias = Sequence[tuple[Hashable, Hashable]]
"""What both raters said of each item."""


def crossed(both: int, first: int, second: int, neither: int) -> list[tuple[bool, bool]]:
    """The pairs of a two-by-two table: both yes, only the first, only the second, both no."""
    table = {(True, True): both, (True, False): first, (False, True): second, (False, False): neither}
    return [pair for pair, count in table.items() for _ in range(whole("counts", count))]


def observed_agreement(pairs: Pairs) -> float | None:
    """Share of items of which both say the same."""
    return sum(a == b for a, b in pairs) / len(pairs) if pairs else None


def cohen_kappa(pairs: Pairs) -> float | None:
    """(p_o − p_e)/(1 − p_e), chance from each rater's own shares (Cohen 1960); None where chance agrees always."""
    if not pairs:
        return None
    first, second = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    chance = sum(first[one] * second[one] for one in first) / len(pairs) ** 2
    return _beyond(observed_agreement(pairs), chance)


def weighted_kappa(pairs: Sequence[tuple[int, int]], grades: int) -> float | None:
    """Kappa with linear weights 1 − |i − j|/(grades − 1) of grades 0, 1, …, `grades` − 1 (Cohen 1968)."""
    for grade in (one for pair in pairs for one in pair):
        if not 0 <= grade < grades:
            raise ValueError(f"{grade} is no grade from 0 to {grades - 1}")
    if not pairs or grades < 2:
        return None

    def weight(a: int, b: int) -> float:
        return 1 - abs(a - b) / (grades - 1)

    n = len(pairs)
    first, second = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    agreed = sum(weight(a, b) for a, b in pairs) / n
    chance = sum(weight(a, b) * first[a] * second[b] for a in first for b in second) / n**2
    return _beyond(agreed, chance)


def gwet_ac1(pairs: Pairs) -> float | None:
    """AC1 = (p_o − p_e)/(1 − p_e), p_e = Σ π(1 − π)/(q − 1), π a category's mean share over raters (Gwet 2008)."""
    if not pairs:
        return None
    counts = Counter(one for pair in pairs for one in pair)
    q = max(2, len(counts))
    shares = [count / (2 * len(pairs)) for count in counts.values()]
    return _beyond(observed_agreement(pairs), sum(p * (1 - p) for p in shares) / (q - 1))


def krippendorff_alpha(items: Sequence[Sequence[Hashable | None]]) -> float | None:
    """1 − D_o/D_e of nominal ratings by any number of raters, None for a missing one (Krippendorff 2004)."""
    rated = [[one for one in item if one is not None] for item in items]
    rated = [item for item in rated if len(item) > 1]
    totals = Counter(one for item in rated for one in item)
    n = sum(totals.values())
    expected = sum(a * (n - a) for a in totals.values())
    if not expected:
        return None
    apart = sum(
        sum(count * (len(item) - count) for count in Counter(item).values()) / (len(item) - 1) for item in rated
    )
    return 1 - (n - 1) * apart / expected


def flip_rate(answers: Mapping[Hashable, Sequence[Hashable]]) -> float | None:
    """Share of items that were asked again and got another answer at least once."""
    asked = [each for each in answers.values() if len(each) > 1]
    return sum(len(set(each)) > 1 for each in asked) / len(asked) if asked else None


def _beyond(agreed: float | None, chance: float) -> float | None:
    """Agreement beyond chance, as a share of what was possible."""
    return None if agreed is None or chance >= 1 else (agreed - chance) / (1 - chance)
