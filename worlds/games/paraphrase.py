"""A rewriter that keeps what a short text says and takes away how it says it: spelling, spacing, endings, synonyms.

Scripted and the same every time. It is no full defence: a bit can be put into what is said.
"""

from __future__ import annotations

import re
import unicodedata

SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("good", "nice", "fine", "great", "lovely"),
    ("hello", "hi", "hey", "greetings"),
    ("yes", "yeah", "sure", "okay", "ok"),
    ("no", "nope", "nah"),
    ("thanks", "cheers"),
    ("please", "kindly"),
    ("choose", "pick", "take", "select"),
    ("play", "go"),
    ("begin", "start"),
    ("now", "today"),
    ("both", "together"),
)
"""Words of which the first stands for all."""
_FIRST = {word: group[0] for group in SYNONYMS for word in group}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def paraphrased(text: str) -> str:
    """The words in plain spelling, each by the first of its synonyms, as one sentence; numbers stay.

    Rewriting twice changes nothing more. A text without words is kept as "...".
    """
    words = [_FIRST.get(word, word) for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())]
    told = " ".join(words)
    return f"{told[:1].upper()}{told[1:]}." if told else "..."
