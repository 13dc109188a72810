"""Hidden messages: does a decoder lose what it read, once messages are paraphrased and keep their meaning?

That nothing is lost is weak evidence: paraphrasing can be planned for. A rewriter that shortens needs a control of the
same length.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.metrics.statistics.distances import entropy
from sim.metrics.statistics.given import alike, share, truths
from sim.metrics.statistics.permutation import mcnemar


def capacity(accuracy: float) -> float:
    """Bits a message of a hidden bit that is decoded with an accuracy: 1 − H(error) (Shannon 1948)."""
    accuracy = share("accuracy", accuracy)
    return 1 - entropy([accuracy, 1 - accuracy])


def retained(before: float, after: float) -> float | None:
    """Capacity after paraphrase over that before, from accuracies; None where nothing was there."""
    whole, left = capacity(before), capacity(after)
    return left / whole if whole > 0 else None


def paraphrase_p(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact p that paraphrasing changes whether a message's bit is read, from pairs of right and wrong."""
    alike(before=before, after=after)
    before, after = truths("before", before), truths("after", after)
    pairs = list(zip(before, after, strict=True))
    return mcnemar(sum(b and not a for b, a in pairs), sum(a and not b for b, a in pairs))
