"""A scenario's world and cast, ready to be tried out by the conformance checks; no models, no interventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from pydantic import BaseModel

from sim.check import turns_of, world_findings
from sim.conformance.agent_rules import agent_findings
from sim.conformance.findings import Finding
from sim.scenarios.binding import bind
from sim.scenarios.cast import freeze
from sim.scenarios.scenario import dump, loads
from sim.scenarios.scenario_schema import Scenario
from sim.types import Agent, AgentId, Member, World

LARGE = 24
"""Agents above which a cast is made smaller."""
FEW = 4
"""Agents then left of each entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What a scenario uses."""

    kind: Callable[[BaseModel], World]
    """The world's class."""
    params: BaseModel
    members: Sequence[Member]
    """Who sits there from the start."""
    agents: Mapping[AgentId, str]
    """Dotted path of each member's agent class."""
    make: Callable[[Member], Agent]
    """Builds the agent of a member."""

    def world(self) -> list[Finding]:
        """What is wrong with the world, played at random and by the scenario's own cast."""
        return world_findings(self.kind, self.members, self.params, self.make)

    def agent(self, path: str) -> list[Finding]:
        """What is wrong with the agents of a class, on turns of the first member that has one."""
        turns = turns_of(self.kind, self.members, self.params)
        mine = [member for member in self.members if self.agents[member.seat.agent] == path]
        seen = [(member, turns[member.seat.agent]) for member in mine if member.seat.agent in turns]
        if not seen:
            return [Finding(rule="it is asked", message="the world asks nothing of it in random play")]
        member, its = max(seen, key=lambda pair: len(pair[1]))
        return agent_findings(lambda: self.make(member), its)


def stand(scenario: Scenario) -> Stand:
    """The world and cast of a scenario, of a large cast a part. Raises ScenarioError."""
    if sum(entry.count for entry in scenario.cast) > LARGE:
        fewer = [f"cast.{entry.name}.count={min(FEW, entry.count)}" for entry in scenario.cast]
        scenario = loads(dump(scenario), scenario.base, scenario.located.file, fewer)
    bound = bind(scenario)
    entries = {agent: entry for entry in scenario.cast for agent in entry.agents}
    members = [frozen.member for frozen in freeze(scenario)[0] if frozen.member.seat.agent in entries]

    def make(member: Member) -> Agent:
        entry = entries[member.seat.agent]
        return bound.minds[entry.name](member, **deepcopy(entry.settings))

    return Stand(
        kind=bound.world,
        params=bound.params,
        members=members,
        agents={agent: entry.agent for agent, entry in entries.items()},
        make=make,
    )
