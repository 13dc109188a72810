"""What the forum keeps of one member, all of it bounded: visits, memberships, unread lines, read-marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sim.types import JSON, AgentId, FactId
from worlds.platforms.feed import Line, Topic

MARKS = 500
"""Facts a member is known to have read; what was read longer ago counts as new again."""
UNREAD = 20
"""Messages, and replies, kept for a member until read; the oldest are lost first."""
CONTACTS = 4
"""Latest correspondents a member can write to whoever is in view."""


@dataclass(slots=True, eq=False)
class Account:
    """One member of the forum."""

    agent: AgentId
    activity: float
    """Visits relative to the forum's mean."""
    next: int = 0
    """Tick of the next visit of the rhythm."""
    visit: int = 0
    """Number of that visit, from 1."""
    communities: list[str] = field(default_factory=list)
    """In the order of joining; the first is home."""
    inbox: list[Line] = field(default_factory=list)
    """Unread direct messages, oldest first."""
    replies: list[Line] = field(default_factory=list)
    """Unread comments on own posts, oldest first."""
    read: dict[FactId, int] = field(default_factory=dict)
    """Facts shown, with the chain of turns in which they were shown last; oldest first."""
    noticed: FactId = -1
    """Latest notice read."""
    contacts: list[AgentId] = field(default_factory=list)
    """Latest correspondents, latest last."""
    chain: int = 0
    """Chains of turns finished: one visit with everything opened in it is one chain."""
    opens: int = 0
    """Posts opened in the current chain."""
    opened: str = ""
    """Post whose thread is in view."""
    karma: int = 0
    """Votes received, up less down."""
    note: str = ""
    """Why the last act came to nothing; empty if it did not."""

    def fresh(self, topic: Topic) -> bool:
        """Whether a post is new to this member; what the current chain has shown stays in place until it ends."""
        return self.read.get(topic.fact, self.chain) == self.chain

    def mark(self, shows: Sequence[FactId]) -> None:
        """Move the read-marks over what a turn displayed."""
        for fact in shows:
            self.read.pop(fact, None)
            self.read[fact] = self.chain
        while len(self.read) > MARKS:
            del self.read[next(iter(self.read))]
        if self.inbox:
            self.inbox = [line for line in self.inbox if line.fact not in self.read]
        if self.replies:
            self.replies = [line for line in self.replies if line.fact not in self.read]

    def receive(self, line: Line) -> None:
        """A direct message has come."""
        self.inbox = [*self.inbox[-UNREAD + 1 :], line]

    def answered(self, line: Line) -> None:
        """Somebody commented on a post of this member."""
        self.replies = [*self.replies[-UNREAD + 1 :], line]

    def meet(self, agent: AgentId) -> None:
        """Keep a correspondent."""
        self.contacts = [*(c for c in self.contacts if c != agent), agent][-CONTACTS:]

    def state(self) -> dict[str, JSON]:
        """Everything, as JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {
            "communities": list(self.communities),
            "inbox": [list(line) for line in self.inbox],
            "replies": [list(line) for line in self.replies],
            "read": [list(mark) for mark in self.read.items()],
            "contacts": list(self.contacts),
        }
