"""Any world: the latest that was said or done, as a list."""

from __future__ import annotations

from ui.data import Moment
from ui.facts import fact_line
from ui.markup import hint, show

NAME = "Latest"
NEEDS: tuple[frozenset[str], ...] = ()
SHOWN = 15
"""Facts."""


def draw(now: Moment) -> None:
    """The last facts, newest first."""
    found = now.last(SHOWN)
    if not found:
        hint("Nothing has happened yet.")
    show(*(fact_line(now, one) for one in found))
