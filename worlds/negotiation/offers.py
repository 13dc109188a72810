"""One pair at one pie: what an offer is, whose move it is, what each side gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import to_builtins
from pydantic import BaseModel, ConfigDict, Field

from sim.types import JSON, AgentId, FactId


class Offer(BaseModel):
    """The points you keep."""

    model_config = ConfigDict(extra="forbid")

    gain: int = Field(ge=0, description="points you keep")
    """Units the proposer keeps; the partner gets the rest."""


class SpokenOffer(Offer):
    """The points you keep, and a short message."""

    message: str = Field(max_length=1_000, description="a short message to your partner")
    """May be empty."""


def gains(shares: Sequence[int], pie: int, discounts: Sequence[float], round: int) -> tuple[float, ...]:
    """Discounted gains as fractions of the pie: share * d^(round - 1)."""
    return tuple(share / pie * d ** (round - 1) for share, d in zip(shares, discounts, strict=True))


@dataclass(slots=True)
class Negotiation:
    """The state of one pair."""

    agents: tuple[AgentId, AgentId]
    """The first makes the offers of odd rounds."""
    discounts: tuple[float, float]
    """What one round of waiting leaves of a gain."""
    round: int = 1
    """Counted from 1."""
    gain: int | None = None
    """What the proposer keeps in the open offer; None: the offer is still to be made."""
    message: str = ""
    """Words of the open offer."""
    offer: FactId | None = None
    """The fact of the open offer."""
    refused: int | None = None
    """What the proposer would have kept in the round before."""
    before: tuple[FactId, ...] = ()
    """The facts of the round before: its offer and its refusal."""
    over: Literal["", "deal", "rounds", "left"] = ""
    """How it ended."""

    @property
    def mover(self) -> int:
        """Index of who has to act."""
        proposer = (self.round - 1) % 2
        return proposer if self.gain is None else 1 - proposer

    @property
    def facts(self) -> tuple[FactId, ...]:
        """What whoever moves is shown: the round before, and the open offer."""
        return self.before if self.offer is None else (*self.before, self.offer)

    def shares(self, pie: int) -> tuple[int, int]:
        """Units for each side if the open offer is accepted."""
        assert self.gain is not None
        rest = pie - self.gain
        return (self.gain, rest) if self.round % 2 else (rest, self.gain)

    def refuse(self, refusal: FactId) -> None:
        """On to the next round, in which the other side proposes."""
        assert self.offer is not None
        self.refused, self.before = self.gain, (self.offer, refusal)
        self.round, self.gain, self.message, self.offer = self.round + 1, None, "", None

    def json(self) -> JSON:
        """All of it as JSON."""
        fields = to_builtins(self)
        return fields | {key: list(fields[key]) for key in ("agents", "discounts", "before")}
