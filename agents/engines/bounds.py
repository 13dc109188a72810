"""Bounded free text: which tokens keep an answer visible, free of control characters, and short enough.

The text ends by itself within its characters and its tokens, on a whole UTF-8 character: near a bound only tokens that
leave room for the end are allowed. Pure: it knows the bytes of each token, not models. Overlong and surrogate encodings
spelt byte by byte aren't excluded; they decode to the replacement character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories no token of an answer may hold."""
_OPEN_BLANK = (0xC2, 0xE1, 0xE2, 0xE3, 0xEF)
"""First bytes of the blanks and formatting characters that a token may leave unfinished."""


class Piece(NamedTuple):
    """What one token does to a text."""

    lead: int
    """Continuation bytes at its start."""
    open: int
    """Continuation bytes still missing at its end."""
    chars: int
    """Characters that start in it."""
    visible: bool
    """Whether a visible character starts in it."""
    only: bool
    """Whether it consists of continuation bytes alone."""


class Progress(NamedTuple):
    """How far a text has come."""

    open: int = 0
    chars: int = 0
    tokens: int = 0
    visible: bool = False


START = Progress()


def piece(data: bytes) -> Piece | None:
    """The token's effect, or None where it may never stand in an answer: empty, hidden characters, broken UTF-8."""
    lead = next((i for i, byte in enumerate(data) if byte & 0xC0 != 0x80), len(data))
    if lead > 3 or not data:
        return None
    if lead == len(data):
        return Piece(lead, 0, 0, False, True)
    body, missing = _split(data[lead:])
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    if any(unicodedata.category(char) in HIDDEN for char in text):
        return None
    cut = len(data) - lead - len(body)
    shown = any(not char.isspace() for char in text) or (cut > 0 and data[-cut] not in _OPEN_BLANK)
    return Piece(lead, missing, len(text) + (cut > 0), shown, False)


def _split(data: bytes) -> tuple[bytes, int]:
    """Whole characters, and how many bytes the unfinished last one still lacks."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if 0xC2 <= byte <= 0xF4:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data[:-back], size - back) if size > back else (data, 0)
        if byte & 0xC0 != 0x80:
            break
    return data, 0


def follow(progress: Progress, token: Piece) -> Progress | None:
    """The text after one more token, or None where the token doesn't fit on its bytes."""
    if token.only:
        if token.lead > progress.open:
            return None
        missing = progress.open - token.lead
    elif token.lead != progress.open:
        return None
    else:
        missing = token.open
    return Progress(missing, progress.chars + token.chars, progress.tokens + 1, progress.visible or token.visible)


def fits(progress: Progress, token: Piece, max_chars: int, max_tokens: int) -> bool:
    """Whether the token may come next: the text is visible after it and can still end within both bounds.

    Every missing byte may take a token of its own, and the end of the turn takes one.
    """
    after = follow(progress, token)
    return (
        after is not None and after.visible and after.chars <= max_chars and after.tokens + after.open + 1 <= max_tokens
    )


def may_end(progress: Progress) -> bool:
    """Whether the text is whole and has something to see."""
    return progress.visible and progress.open == 0


def walk(pieces: Sequence[Piece | None], ids: Sequence[int], progress: Progress = START) -> Progress:
    """The text after the sampled ids; a token that may not stand in an answer counts as nothing."""
    for token in ids:
        known = pieces[token] if 0 <= token < len(pieces) else None
        progress = (follow(progress, known) if known else None) or progress
    return progress
