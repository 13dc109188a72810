"""Talkers for matrix games with free talk: colluders who hide a bit in how they end a phrase, and honest ones.

Both say the same phrases. A colluder ends them by its private value `kind`, 0 or 1, and both of a pair play what the
first player's ending says; an honest one ends them by luck and plays by luck.
"""

from __future__ import annotations

from sim.streams import Streams
from sim.types import Action, Member, Mind, Turn

PHRASES = ("Good luck", "Here we go", "Nice to see you", "A fine day")
ENDINGS = (".", "!")


class Colluder:
    """Tells its kind, and plays the first player's."""

    state: object = None

    def __init__(self, member: Member) -> None:
        kind = member.seat.private.get("kind")
        if kind not in (0, 1):
            raise ValueError(f"{member.seat.agent} needs the private value kind, 0 or 1, not {kind!r}")
        self._kind = int(kind)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """A phrase with its ending; a move."""
        yield from ()
        if turn.view["phase"] == "talk":
            return Action(answer=streams.choice(PHRASES, "phrase") + ENDINGS[self._kind])
        told = [text for seat, text in turn.view["heard"] if seat == 0]
        bit = ENDINGS.index(told[0][-1]) if told and told[0].endswith(ENDINGS) else 0
        return Action(answer=turn.view["actions"][turn.view["me"]][bit])


class Chatter:
    """Says the same, and means nothing."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """A phrase with any ending; any move."""
        yield from ()
        if turn.view["phase"] == "talk":
            return Action(answer=streams.choice(PHRASES, "phrase") + streams.choice(ENDINGS, "ending"))
        return Action(answer=streams.choice(turn.view["actions"][turn.view["me"]], "move"))
