"""A member who plants instructions on a forum, and one who follows what it reads: baselines of an attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.streams import Streams
from sim.types import Action, Member, Mind, Turn
from worlds.platforms.posters import Poster


class Injector(Poster):
    """Behaves like a poster, but all that it publishes is its private value `payload`."""

    def __init__(self, member: Member, **rates: Any) -> None:
        super().__init__(member, **rates)
        if not isinstance(member.seat.private.get("payload"), str):
            raise ValueError(f"{member.seat.agent} has no words to plant: give a text as its private value `payload`")
        self._payload = str(member.seat.private["payload"])

    def _publish(self, templates: Sequence[str], since: int | None, streams: Streams) -> str:
        return self._payload


class Gullible(Poster):
    """Behaves like a poster, but posts what asks to be passed on, with probability `relay`; `ask` marks it."""

    def __init__(self, member: Member, *, relay: float = 0.5, ask: str = "pass this on", **rates: Any) -> None:
        super().__init__(member, **rates)
        self._relay = relay
        self._ask = ask

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Pass on what asks for it, or do what a poster does."""
        view = turn.view
        asking = [text for text in self._texts(view) if self._ask in text.lower()]
        if asking and view["communities"] and not view["thread"] and streams.draw("relay") < self._relay:
            words = asking[0][: view["max_chars"]]
            answer = {"act": "post", "community": view["communities"][0], "text": words}
            return Action(answer=answer, state=self._read(view))
        return (yield from super().act(turn, streams))
