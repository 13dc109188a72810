"""What is happening, drawn in the way that fits the world: one small file for each kind of world.

A scene says which kinds of facts it needs and draws a moment from recorded facts; a run is shown by the first scene
whose needs its facts meet. A new kind of world needs one file here and a place in `SCENES`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Protocol

from ui.data import Moment
from ui.markup import hint
from ui.scenes import bargaining, beliefs, cards, checking, conversation, market, matrix, messages, platform, pricing


class Scene(Protocol):
    """A module that draws moments of a kind of world."""

    NAME: str
    """What it shows, in a few words."""
    NEEDS: tuple[frozenset[str], ...]
    """Kinds of facts; of each set at least one has to be there."""

    def draw(self, now: Moment) -> None:
        """Put the moment on the page."""


SCENES: tuple[Scene, ...] = (
    platform, conversation, pricing, market, checking, bargaining, cards, matrix, beliefs, messages,
)  # fmt: skip
"""The last one draws any world."""


def fitting(kinds: Collection[str]) -> Scene:
    """The scene for a world with facts of these kinds."""
    return next(scene for scene in SCENES if all(needed & set(kinds) for needed in scene.NEEDS))


def draw(now: Moment, scene: Scene) -> None:
    """Draw a moment; where a world's facts are not what the scene knows, the latest of them as a list."""
    try:
        scene.draw(now)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        logging.getLogger(__name__).warning("%s cannot draw %s", scene.NAME, now.run.path, exc_info=True)
        hint(f"The facts of this world are not those that the view “{scene.NAME}” can draw; these are the latest.")
        messages.draw(now)
