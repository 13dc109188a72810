"""What an outcome is made of, gathered while a step goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sim.types import AgentId, Fact, Outcome, Result, Wake


@dataclass(slots=True)
class Happened:
    """The fields of one `Outcome`, as lists to add to."""

    facts: list[Fact] = field(default_factory=list)
    wakes: list[Wake] = field(default_factory=list)
    timers: list[int] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    rewards: dict[AgentId, float] = field(default_factory=dict)
    ended: dict[AgentId, Literal["terminated", "truncated"]] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """As the kernel takes it."""
        return Outcome(
            facts=self.facts,
            wakes=self.wakes,
            timers=self.timers,
            results=self.results,
            rewards=self.rewards,
            ended=self.ended,
        )
