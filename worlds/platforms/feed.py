"""Which posts can be read, and in which order: recency and score, with a bounded number of candidates.

Left out on purpose: any scan of all posts. A community keeps a shelf of bounded size, sorted by hot score;
a post that falls off it is archived, so a page costs the same with a hundred posts or a hundred thousand.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import NamedTuple

from sim.types import JSON, AgentId, FactId

SHELF = 60
"""Posts of one community that can still be read."""
NEWEST = 30
"""Of them, how many are there for being new, whatever their score."""


class Line(NamedTuple):
    """Something one person wrote: a comment, a reply or a direct message."""

    fact: FactId
    author: AgentId
    text: str
    topic: str = ""
    """Id of the post it is about; empty for a direct message."""


@dataclass(slots=True, eq=False)
class Topic:
    """A post with what became of it."""

    number: int
    """Counted from 1 over the forum."""
    fact: FactId
    community: str
    author: AgentId
    text: str
    created: int
    """Tick."""
    hot: float
    score: int = 0
    """Up-votes less down-votes."""
    comments: int = 0
    last: list[Line] = field(default_factory=list)
    """The latest comments, oldest first."""
    votes: dict[AgentId, int] = field(default_factory=dict)
    """Who voted, +1 or −1."""

    @property
    def id(self) -> str:
        """The short id that agents see."""
        return f"p{self.number}"

    def votable(self, agent: AgentId) -> bool:
        """Whether a member can vote on it: not its author, and once."""
        return agent != self.author and agent not in self.votes

    def state(self) -> dict[str, JSON]:
        """Everything, as JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"last": [list(line) for line in self.last], "votes": dict(self.votes)}


def hot(score: int, created: int, decade: int) -> float:
    """Hot score: sign(s)·log10(max(|s|, 1)) + t/decade; `decade` ticks of age weigh as much as ten times the votes.

    With 45,000 s per decade, the order of Reddit's published ranking.
    """
    return math.copysign(math.log10(max(abs(score), 1)), score) + created / decade


def _rank(topic: Topic) -> tuple[float, int]:
    return topic.hot, topic.number


@dataclass(slots=True)
class Shelf:
    """The posts of one community that can be read: its newest and its hottest."""

    topics: list[Topic] = field(default_factory=list)
    """By hot score, coolest first."""
    newest: list[int] = field(default_factory=list)
    """Numbers of the latest posts, oldest first."""

    def add(self, topic: Topic) -> Topic | None:
        """Put a new post on the shelf; gives the post that falls off: the coolest that is not among the newest."""
        insort(self.topics, topic, key=_rank)
        self.newest = [*self.newest[-NEWEST + 1 :], topic.number]
        if len(self.topics) <= SHELF:
            return None
        place = next(i for i, old in enumerate(self.topics) if old.number < self.newest[0])
        return self.topics.pop(place)

    def rerank(self, topic: Topic, score: float) -> None:
        """Move a post whose hot score has changed."""
        self.topics.remove(topic)
        topic.hot = score
        insort(self.topics, topic, key=_rank)

    def hottest(self) -> Iterator[Topic]:
        """Hottest first."""
        return reversed(self.topics)


def page(shelves: Iterable[Shelf], fresh: Callable[[Topic], bool], size: int) -> list[Topic]:
    """The `size` posts to show: those the reader has not seen, hottest first, then seen ones if there is room."""
    unread: list[Topic] = []
    read: list[Topic] = []
    for topic in merge(*(shelf.hottest() for shelf in shelves), key=_rank, reverse=True):
        (unread if fresh(topic) else read).append(topic)
        if len(unread) == size:
            break
    return list(islice((*unread, *read), size))
