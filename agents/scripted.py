"""Agents without a model: random legal play and a constant answer. The baselines of a world live beside the world."""

from __future__ import annotations

from sim.answers import illegal, sample
from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn


class RandomLegal:
    """Answers at random among what is legal: choices alike likely, forms field by field."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw one legal answer."""
        return _decided(turn, sample(turn.format, streams.generator("answer")), "no legal answer was drawn")


class Constant:
    """Gives one answer for ever, and the turn's default whenever that answer is not legal."""

    def __init__(self, member: Member, *, answer: JSON) -> None:
        self.member = member
        self.answer = answer
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Give the answer."""
        return _decided(turn, self.answer, "")


def _decided(turn: Turn, answer: JSON, why: str) -> Mind:
    """The answer, or the turn's default if it is not legal."""
    if (reason := illegal(turn.format, answer)) is not None:
        return Action(answer=turn.default, how="defaulted", reason=why or reason)
    return Action(answer=answer)
    yield  # a mind is a generator, also one that asks nothing
