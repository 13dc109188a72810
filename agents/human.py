"""A seat that a person takes: it asks once, shows what the seat sees, and the answer is the action."""

from __future__ import annotations

from typing import ClassVar

from agents.llm import judged
from agents.memory import MOST_FACTS
from agents.prompt import identity_text
from sim.streams import Streams
from sim.types import HUMAN, Action, FactId, Member, Message, Mind, Request, Turn


class Human:
    """A mind that asks a person, through a model whose engine is `human`. Its state: the facts shown so far.

    People remember by themselves; of what they were shown the newest `MOST_FACTS` count as recalled.
    """

    models: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state: object = ()
        self._identity = identity_text(member)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Ask."""
        known = self.state
        assert isinstance(known, tuple)
        about = "\n\n".join(part for part in (turn.rules.strip(), self._identity) if part)
        messages = Message(role="system", text=about), Message(role="user", text=turn.text)
        request = Request(messages=messages, format=turn.format, purpose=HUMAN, model=self.member.model)
        (completion,) = yield (request,)
        answer, reason = judged(turn.format, completion)
        return Action(
            answer=turn.default if reason else answer,
            how="defaulted" if reason else "chosen",
            reason=reason,
            state=_newest({*known, *turn.shows}),
            recalls=known,
        )


def _newest(facts: set[FactId]) -> tuple[FactId, ...]:
    return tuple(sorted(facts)[-MOST_FACTS:])
