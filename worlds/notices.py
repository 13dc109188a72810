"""Messages to the agents of a world from outside it, each kept until a view of its reader has shown it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from sim.types import ALL, JSON, AgentId, FactId, Say

AT_ONCE = 5
"""Most notices that one view shows; the others wait for the next."""


class Notice(NamedTuple):
    """A message and the fact that it was sent."""

    fact: FactId
    text: str


class Notices:
    """What each agent has not read yet. Whoever was here once is known for ever."""

    def __init__(self, world: str, agents: Iterable[AgentId] = ()) -> None:
        self._world = world
        """As its errors name it."""
        self._unread: dict[AgentId, list[Notice]] = {agent: [] for agent in agents}

    def admit(self, agent: AgentId) -> None:
        """Somebody who comes. Raises ValueError for one who was here before."""
        if agent in self._unread:
            raise ValueError(f"{agent} has been here before")
        self._unread[agent] = []

    def known(self, agents: Collection[AgentId]) -> None:
        """Raises ValueError for those who never were here."""
        if unknown := [agent for agent in agents if agent not in self._unread]:
            raise ValueError(f"nobody here is called {', '.join(unknown)}")

    def readers(self, say: Say) -> tuple[AgentId, ...]:
        """Whom a message reaches: all, or those it names. Raises ValueError for a channel and for strangers."""
        if isinstance(say.to, str) and say.to != ALL:
            raise ValueError(f"{self._world} has no channel {say.to!r}: say it to all or to a list of agents")
        readers = tuple(self._unread) if say.to == ALL else tuple(say.to)
        self.known(readers)
        return readers

    def post(self, readers: Iterable[AgentId], fact: FactId, text: str) -> None:
        """A message for the next views of its readers."""
        for agent in readers:
            self._unread[agent].append(Notice(fact, text))

    def next(self, agent: AgentId) -> list[Notice]:
        """What the agent's next view is to show, the oldest first."""
        return self._unread[agent][:AT_ONCE]

    def read(self, agent: AgentId, shown: Collection[FactId]) -> None:
        """A view has shown these facts."""
        self._unread[agent] = [notice for notice in self._unread[agent] if notice.fact not in shown]

    def state(self) -> JSON:
        """By agent, [fact, text] each."""
        return {agent: [list(notice) for notice in notices] for agent, notices in self._unread.items()}
