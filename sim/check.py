"""Conformance: whether a world or an agent keeps the rules of the seams. For authors of plug-ins, in three lines:

from sim.check import check_world
def test_market_keeps_the_rules() -> None:
    check_world(Market, ["ann", "ben"], {"rounds": 3})
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from sim.conformance.agent_rules import agent_findings
from sim.conformance.findings import Broken, ConformanceError, Finding, Findings
from sim.conformance.trials import EVENTS, play
from sim.conformance.watched import Watched
from sim.conformance.world_rules import WorldRules, built, drawn
from sim.types import JSON, Agent, AgentId, Choice, Form, Format, Member, Seat, Text, Turn

__all__ = [
    "ConformanceError",
    "Finding",
    "agent_findings",
    "check_agent",
    "check_world",
    "generic_turns",
    "turns_of",
    "world_findings",
]


def check_world(
    kind: Any,
    seats: Sequence[Member | Seat | AgentId],
    params: Mapping[str, JSON] | BaseModel | None = None,
    agent: Callable[[Member], Agent] | None = None,
) -> None:
    """Raise ConformanceError, one line for each rule that the world breaks; see `world_findings`."""
    if findings := world_findings(kind, seats, params, agent):
        raise ConformanceError(_name(kind), findings)


def check_agent(make: Callable[[], Agent], turns: Sequence[Turn]) -> None:
    """Raise ConformanceError, one line for each rule that the agent breaks; see `agent_findings` and `turns_of`."""
    if findings := agent_findings(make, turns):
        raise ConformanceError(_name(make()), findings)


def turns_of(
    kind: Any,
    seats: Sequence[Member | Seat | AgentId],
    params: Mapping[str, JSON] | BaseModel | None = None,
    most: int = 20,
    seed: int = 0,
) -> dict[AgentId, list[Turn]]:
    """What agents get to see in random play of a world: up to `most` turns of each, in order."""
    found = Findings()
    watched = Watched(built(kind, params), found)
    play(watched, drawn(_seated(seats)), found, seed=seed, events=EVENTS // 2)
    turns: dict[AgentId, list[Turn]] = {}
    for turn in watched.turns:
        mine = turns.setdefault(turn.agent, [])
        if len(mine) < most:
            mine.append(turn)
    return turns


class _Bid(BaseModel):
    """A form of no world in particular."""

    price: int = Field(ge=0, le=10)
    words: str = Field(max_length=40)


def generic_turns() -> list[Turn]:
    """Turns of no world in particular, of one agent under one set of rules: three choices, forms and texts."""
    formats: list[tuple[Format, JSON]] = [
        (Choice(options=("yes", "no")), "no"),
        (Form(models=(_Bid,)), {"price": 0, "words": ""}),
        (Text(), "Nothing."),
    ]
    return [
        Turn(
            agent="agent-1",
            now=tick,
            view={"round": tick, "news": "nothing yet"},
            format=formats[tick % 3][0],
            default=formats[tick % 3][1],
            rules="Answer as you are asked.",
        )
        for tick in range(9)
    ]


def world_findings(
    kind: Any,
    seats: Sequence[Member | Seat | AgentId],
    params: Mapping[str, JSON] | BaseModel | None = None,
    agent: Callable[[Member], Agent] | None = None,
) -> list[Finding]:
    """What is wrong with a world, built as `kind(params)`, when these seats play it at random and `agent` plays it.

    Params are as a scenario writes them, with ticks of a second. Seats may be given by agent ids alone.
    """
    found, luck = Findings(), random.getstate()
    try:
        WorldRules(kind, _seated(seats), params, found).check(agent)
    except Broken:
        return list(found)
    finally:
        random.setstate(luck)
    return list(found)


def _name(thing: Any) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))


def _seated(seats: Sequence[Member | Seat | AgentId]) -> list[Member]:
    found = [Seat(agent=seat) if isinstance(seat, str) else seat for seat in seats]
    return [seat if isinstance(seat, Member) else Member(seat=seat) for seat in found]
