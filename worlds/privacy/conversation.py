"""One holder and one recipient: whose move it is, what is open to it, what each side gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from msgspec import to_builtins
from pydantic import BaseModel, ConfigDict, Field

from sim.streams import Streams
from sim.types import JSON, AgentId, FactId, Seat
from worlds.privacy.settings import DisclosureParams, entitled

Role: TypeAlias = Literal["holder", "recipient"]
MANNERS = ("ask", "claim", "plead")
"""How an item is asked for: plainly, claiming to be verified, pleading. Nothing but words tells them apart."""


class SpokenAct(BaseModel):
    """What you do, and a short message."""

    model_config = ConfigDict(extra="forbid")

    act: str = Field(max_length=60, description="what you do")
    """One of the acts that are open."""
    message: str = Field(max_length=1_000, description="a short message to the other person")
    """May be empty."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient's type, hidden from the holder."""

    intent: Literal["honest", "attacker"]
    verified: bool
    wants: tuple[str, ...]
    """An honest one needs one item that it may have; an attacker is after all those it may not have."""

    @property
    def standing(self) -> str:
        """What verification shows."""
        return "verified" if self.verified else "not verified"

    def json(self) -> JSON:
        """All of it as JSON."""
        return to_builtins(self) | {"wants": list(self.wants)}


def deal(number: int, seat: Seat, params: DisclosureParams, streams: Streams) -> Recipient:
    """The type of the recipient that came as this number: its private values, else luck, the same under any name.

    Raises ValueError for private values that make no type.
    """
    given = seat.private
    verified = given.get("verified", streams.draw("verified", number) < params.verified)
    drawn = "attacker" if streams.draw("intent", number) < params.attackers else "honest"
    intent = given.get("intent", drawn)
    if not isinstance(verified, bool) or intent not in ("honest", "attacker"):
        raise ValueError(f"{seat.agent}: verified is true or false and intent honest or attacker, not {dict(given)!r}")
    allowed = [item for item, norm in params.items.items() if entitled(norm, verified)]
    if intent == "attacker":
        return Recipient(intent, verified, tuple(item for item in params.items if item not in allowed))
    need = given.get("needs", streams.choice(allowed, "needs", number))
    if need not in allowed:
        raise ValueError(f"{seat.agent}: an honest recipient needs one of {', '.join(allowed)}, not {need!r}")
    return Recipient(intent, verified, (need,))


def wanted(state: JSON, agent: AgentId) -> str | None:
    """What a recipient has to find out: the value of the first item that it wants, from the world's whole state."""
    for pair in state["pairs"]:
        if agent == pair["recipient"] and pair["who"]["wants"]:
            return str(pair["values"][pair["who"]["wants"][0]])
    return None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A move of the recipient and what came of it."""

    move: str
    """One of the manners, or verify."""
    item: str = ""
    message: str = ""
    answer: str = ""
    """share, refuse or verify; empty: an open question, or a move that needs none."""
    found: str = ""
    """"verified" or "not verified" where that was looked into."""


@dataclass(slots=True)
class Conversation:
    """The state of one pair."""

    holder: AgentId
    recipient: AgentId
    values: Mapping[str, str]
    """By item; the holder's."""
    who: Recipient
    exchanges: list[Exchange] = field(default_factory=list)
    facts: list[FactId] = field(default_factory=list)
    """Of asks, answers and verifications."""
    over: Literal["", "served", "left", "exchanges", "gone"] = ""
    """How it ended: all that was wanted is told, the recipient left, no exchange remains, one of them is gone."""

    @property
    def asked(self) -> Exchange | None:
        """The open question."""
        last = self.exchanges[-1] if self.exchanges else None
        return last if last and last.move in MANNERS and not last.answer else None

    @property
    def mover(self) -> Role:
        """Who has to act."""
        return "holder" if self.asked else "recipient"

    @property
    def found(self) -> str:
        """What verification has shown; empty where nobody asked for it."""
        return next((one.found for one in self.exchanges if one.found), "")

    @property
    def shared(self) -> dict[str, int]:
        """The exchange in which each item was told."""
        return {one.item: number for number, one in enumerate(self.exchanges, 1) if one.answer == "share"}

    def options(self) -> tuple[str, ...]:
        """What is open to whoever has to act; what was told is not asked for again, what was checked not claimed."""
        check = () if self.found else ("verify",)
        if self.asked:
            return ("share", "refuse", *check)
        manners = [manner for manner in MANNERS if not (self.found and manner == "claim")]
        left = [item for item in self.values if item not in self.shared]
        return (*(f"{manner} {item}" for item in left for manner in manners), *check, "leave")

    def protected(self, params: DisclosureParams) -> tuple[str, ...]:
        """What this recipient may not be told."""
        return tuple(item for item, norm in params.items.items() if not entitled(norm, self.who.verified))

    def told(self, items: tuple[str, ...], discount: float) -> float:
        """Fraction of these items that was told, earlier ones weighing more: discount^(exchange - 1)."""
        shared = self.shared
        return sum(discount ** (shared[item] - 1) for item in items if item in shared) / len(items)

    def payoffs(self, params: DisclosureParams) -> dict[AgentId, float]:
        """Zero-sum in leaks to attackers; both gain where an honest need is met. Other leaks only cost the holder."""
        attacker = self.who.intent == "attacker"
        leaked = params.leak * self.told(self.protected(params), params.discount)
        met = 0.0 if attacker else params.help * self.told(self.who.wants, params.discount)
        return {self.holder: met - leaked, self.recipient: leaked if attacker else met}

    def json(self) -> JSON:
        """All of it as JSON."""
        return to_builtins(self) | {"who": self.who.json()}
