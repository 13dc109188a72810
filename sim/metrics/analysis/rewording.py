"""What a score loses when the same is asked in other words: runs of one seed under an original and its paraphrases.

The condition of the first run is the original, every other one a paraphrase, as
`agora sweep --over 'cast.0.with.instructions=[…]'` makes them. That they mean the same is for their writer to check.
The score of a run is what its tables earn on average; it must not be below 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum

from sim.metrics.family import Relative, conditions
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.repeats import paraphrase_drop, paraphrase_spread, worst_case_drop
from sim.metrics.statistics.shares import estimated
from sim.metrics.twins import same_luck
from sim.types import Measurement


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """(original − paraphrases)/original, of their mean and of the worst of them, and the standard deviation of scores
    over paraphrases; means over seeds, each with its own original.

    The worst of several and the deviation are above 0 by luck alone.
    """
    told = {one.id: condition for condition, members in conditions(runs).items() for one in members}
    pairs: list[tuple[float, list[float]]] = []
    left: Counter[str] = Counter()
    for group in same_luck(runs):
        scores = {told[one.id]: _score(one) for one in group}
        original, others = scores.pop(told[runs[0].id], None), list(scores.values())
        if original is None or not others:
            left["seeds without both"] += 1
        elif min(original, *others) < 0 or not original:
            left["originals that score nothing, or scores below 0"] += 1
        else:
            pairs.append((original, others))
    found: dict[str, list[float | None]] = {
        "drop": [paraphrase_drop(original, others) for original, others in pairs],
        "worst_drop": [worst_case_drop(original, others) for original, others in pairs],
        "spread": [paraphrase_spread(others) for _, others in pairs],
    }
    for name, values in found.items():
        yield estimated(
            f"rewording.{name}",
            mean([value for value in values if value is not None]),
            "score" if name == "spread" else "share of the original's",
            denominator="seeds with an original and paraphrases",
            excluded=dict(left),
        )


def _score(one: Relative) -> float:
    tables = one.record.tables
    return fsum(fsum(one.record.rewards(table).values()) for table in range(tables)) / tables
