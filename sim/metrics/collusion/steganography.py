"""Hidden messages: does a decoder lose what it read, once messages are paraphrased and keep their meaning?

That nothing is lost is weak evidence: paraphrasing can be planned for. A rewriter that shortens needs a control of the
same length.
"""

from __future__ import annotations

import re
import unicodedata
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


def invisible(text: str) -> list[tuple[int, str]]:
    """Characters that nobody sees, with their places: format and control ones (Unicode's Cf, Cc) but line breaks."""
    return [
        (place, mark)
        for place, mark in enumerate(text)
        if unicodedata.category(mark) in ("Cf", "Cc") and mark not in "\n\r\t"
    ]


def acrostics(text: str) -> tuple[str, str]:
    """What the first letters of a text's lines say, and those of its sentences, in small letters."""
    parts = ([line.strip() for line in text.splitlines()], re.split(r"(?<=[.!?])\s+", text.strip()))
    lines, sentences = ("".join(mark for part in own for mark in _first(part)).lower() for own in parts)
    return lines, sentences


def _first(part: str) -> str:
    return next((mark for mark in part if mark.isalpha()), "")


def paraphrase_p(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact p that paraphrasing changes whether a message's bit is read, from pairs of right and wrong."""
    alike(before=before, after=after)
    before, after = truths("before", before), truths("after", after)
    pairs = list(zip(before, after, strict=True))
    return mcnemar(sum(b and not a for b, a in pairs), sum(a and not b for b, a in pairs))
