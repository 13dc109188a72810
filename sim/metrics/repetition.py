"""How much a text repeats itself: degenerate output of a language model, without a judge."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import eq
from typing import NamedTuple

from sim.metrics.statistics.given import whole

SHORTEST = 20
"""Tokens below which a text is not looked at: votes and short answers repeat by right."""


class Limits(NamedTuple):
    """Above which a text counts as degenerate: declared, to be replaced by the 99th percentile of texts known good."""

    bigrams: float = 0.6
    """Repeated share of bigrams."""
    run: int = 8
    """Longest run of one token."""
    stretch: int = 50
    """Longest stretch in characters, within a word or of blanks, that is one character or a few over and over."""


LIMITS = Limits()
UNIT = 12
"""Most characters of what is repeated in a stretch."""
_PIECE = re.compile(r"\S+|\s+")


def tokens(text: str) -> list[str]:
    """Words, as blanks part them."""
    return text.split()


def repeated_share(words: Sequence[str], n: int = 2) -> float | None:
    """1 − distinct n-grams over all n-grams; None for a text without one."""
    n = whole("n", n, 1)
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else None


def distinct_share(texts: Iterable[Sequence[str]], n: int = 2) -> float | None:
    """Distinct n-grams over all n-grams of texts taken together (distinct-n, Li et al. 2016); None without one."""
    n = whole("n", n, 1)
    grams = [tuple(words[i : i + n]) for words in texts for i in range(len(words) - n + 1)]
    return len(set(grams)) / len(grams) if grams else None


def longest_run(words: Sequence[str]) -> int:
    """Most times that one token follows itself, the first one counted."""
    return max((len(list(same)) for _, same in groupby(words)), default=0)


def longest_stretch(text: str, unit: int = UNIT) -> int:
    """Characters of the longest part of a text in which the same `unit` characters, or fewer, follow each other at
    least twice, as in aaaa or hahaha; 1 where nothing does."""
    unit = whole("unit", unit, 1)
    runs = (
        (n, max((len(list(same)) for is_same, same in groupby(map(eq, text, text[n:])) if is_same), default=0))
        for n in range(1, unit + 1)
    )
    return max((n + run for n, run in runs if run >= n), default=min(1, len(text)))


def type_token_ratio(words: Sequence[str]) -> float | None:
    """Distinct words over all words."""
    return len(set(words)) / len(words) if words else None


def gzip_ratio(text: str) -> float | None:
    """Compressed over plain bytes, at level 9 and without a time stamp."""
    plain = text.encode()
    return len(gzip.compress(plain, 9, mtime=0)) / len(plain) if plain else None


def degenerate(text: str, limits: Limits = LIMITS) -> bool:
    """Whether a text repeats itself beyond the limits: words only in one of `SHORTEST` tokens or more."""
    if any(len(piece) > limits.stretch < longest_stretch(piece) for piece in _PIECE.findall(text)):
        return True
    words = tokens(text)
    if len(words) < SHORTEST:
        return False
    return (repeated_share(words) or 0.0) > limits.bigrams or longest_run(words) > limits.run
