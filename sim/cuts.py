"""How a text says that its middle was left out, so that whoever reads a record can see it."""

from __future__ import annotations

CUT = r"\[… \d+ characters left out …\]"
"""What stands in place of a middle, as a regular expression."""


def cut(text: str, kept: int) -> str:
    """So many of the text's characters, from both ends, and how many are missing in between."""
    head = kept - kept // 2
    return f"{text[:head]} [… {len(text) - kept} characters left out …] {text[len(text) - kept // 2 :]}"
