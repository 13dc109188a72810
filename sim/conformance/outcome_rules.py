"""The rules of `sim.types:Outcome`, checked as a world gives one after the other."""

from __future__ import annotations

import math

from sim.conformance.findings import Broken, Findings, no_json
from sim.types import JSON, AgentId, Fact, Outcome, Result, Wake


class OutcomeRules:
    """What one world has told so far, and whether the next outcome fits."""

    def __init__(self, found: Findings) -> None:
        self.found = found
        self.facts: list[Fact] = []
        self.seated: set[AgentId] = set()
        """Agents seated from the start."""
        self.known: set[AgentId] = set()
        """They, and who has joined."""
        self.left: set[AgentId] = set()
        """Who was sent away."""
        self.gone: set[AgentId] = set()
        """Who has ended."""

    def check(self, verb: str, now: int, outcome: Outcome, actions: int) -> Outcome:
        """The outcome; raises `Broken` where the kernel could not go on with it."""
        where = f"tick {now}, {verb}"
        if not self.found.expect("calls return an Outcome", isinstance(outcome, Outcome), f"{where}: {outcome!r}"):
            raise Broken
        before = self.found.failures
        results = outcome.results
        fits = len(results) == actions and all(isinstance(result, Result) for result in results)
        self.found.expect("one result per action", fits, f"{where}: {len(results)} results for {actions} actions")
        for fact in outcome.facts:
            self._check_fact(fact, where)
        for tick in outcome.timers:
            later = type(tick) is int and tick > now
            self.found.expect("timers are later", later, f"{where}: a timer for tick {tick}")
        for wake in outcome.wakes:
            self._check_wake(now, wake, where)
        self._check_agents(outcome, where)
        self.gone |= outcome.ended.keys()
        if self.found.failures > before:
            raise Broken
        return outcome

    def _check_fact(self, fact: Fact, where: str) -> None:
        expect, number = self.found.expect, len(self.facts)
        expect("facts count up from 0", fact.id == number, f"{where}: fact {fact.id} where {number} is next")
        known = all(type(one) is int and 0 <= one < number for one in fact.answers)
        expect("facts answer earlier facts", known, f"{where}: fact {fact.id} answers {fact.answers}")
        named = {fact.actor} - {""} | (set() if isinstance(fact.audience, str) else set(fact.audience))
        strangers = named - self.known
        expect("only known agents are named", not strangers, f"{where}: fact {fact.id} names {sorted(strangers)}")
        wrong = "" if isinstance(fact.kind, str) and fact.kind else "it has no kind"
        wrong = wrong or no_json({key: _listed(value) for key, value in fact.data.items()})
        expect("facts are JSON", not wrong, f"{where}: fact {fact.id}: {wrong}")
        self.facts.append(fact)

    def _check_wake(self, now: int, wake: Wake, where: str) -> None:
        early = type(wake.tick) is not int or wake.tick < now
        self.found.expect("wakes are not in the past", not early, f"{where}: {wake.agent} at tick {wake.tick}")
        self.found.expect("only known agents are named", wake.agent in self.known, f"{where}: a wake of {wake.agent!r}")
        gone = wake.agent in self.left
        self.found.expect("who has left is not woken", not gone, f"{where}: {wake.agent} has left")

    def _check_agents(self, outcome: Outcome, where: str) -> None:
        named = {*outcome.rewards, *outcome.ended}
        strangers = named - self.known
        self.found.expect("only known agents are named", not strangers, f"{where}: {sorted(strangers)}")
        for agent, reward in outcome.rewards.items():
            number = isinstance(reward, int | float) and math.isfinite(reward)
            self.found.expect("rewards are finite", number, f"{where}: {agent} gets {reward!r}")
        for agent, how in outcome.ended.items():
            known = how in ("terminated", "truncated")
            self.found.expect("who ends is terminated or truncated", known, f"{where}: {agent} is {how!r}")


def _listed(value: JSON) -> JSON:
    """Tuples as lists: in a fact's data either will do."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value
