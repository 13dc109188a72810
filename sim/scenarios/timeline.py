"""Interventions in time: each with its tick and the change it makes, checked against the cast and the world."""

from __future__ import annotations

from dataclasses import dataclass

from sim.scenarios.becoming import what
from sim.scenarios.binding import Bound, agents_named, nobody, world_params
from sim.scenarios.located import Keys, ScenarioError, nearest, shown
from sim.scenarios.scenario_schema import ActAt, BecomeAt, JoinAt, LeaveAt, SayAt, Scenario, SetAt
from sim.types import ALL, Act, AgentId, Audience, Become, Leave, Say, Set


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One intervention at its tick."""

    tick: int
    change: Say | Set | Leave | Act | Become | None
    """None: somebody joins."""
    joins: AgentId = ""
    """Who."""
    table: int | None = None
    """The only table that it reaches; None: all."""
    index: int = 0
    """Where it stands in the scenario."""


def timeline(scenario: Scenario, bound: Bound) -> list[Move]:
    """All interventions by tick, those of one tick in file order. Raises ScenarioError."""
    moves: list[tuple[Keys, Move]] = [
        (("interventions", index), move_of(scenario, bound, index)) for index in range(len(scenario.interventions))
    ]
    moves.sort(key=lambda item: item[1].tick)
    _check_presence(scenario, moves)
    return [move for _, move in moves]


def move_of(scenario: Scenario, bound: Bound, index: int) -> Move:
    """The intervention that stands at an index. Raises ScenarioError."""
    keys, spec = ("interventions", index), scenario.interventions[index]
    tick = scenario.ticks((*keys, "at"), spec.at)
    if isinstance(spec, JoinAt):
        return Move(tick=tick, change=None, joins=spec.entry.name, index=index)
    if spec.table is not None and spec.table >= scenario.tables:
        raise scenario.error((*keys, "table"), f"there is no table {spec.table}; the last is {scenario.tables - 1}")
    return Move(tick=tick, change=_change(scenario, bound, keys, spec), table=spec.table, index=index)


def _change(
    scenario: Scenario, bound: Bound, keys: Keys, spec: SayAt | SetAt | LeaveAt | ActAt | BecomeAt
) -> Say | Set | Leave | Act | Become:
    if isinstance(spec, BecomeAt):
        return Become(agent=spec.agent, what=what(spec))
    if isinstance(spec, SayAt):
        return Say(text=spec.text, to=_audience(scenario, keys, spec.to))
    if isinstance(spec, SetAt):
        return _setting(scenario, bound, keys, spec)
    if agents_named(scenario, spec.agent) != [spec.agent]:
        raise nobody(scenario, (*keys, "agent"), spec.agent)
    if isinstance(spec, ActAt):
        return Act(agent=spec.agent, answer=spec.answer)
    return Leave(agent=spec.agent)


def _audience(scenario: Scenario, keys: Keys, to: str | tuple[str, ...]) -> Audience:
    if isinstance(to, str) and (to == ALL or to.startswith("#")):
        return to
    agents: dict[AgentId, None] = {}
    for name in (to,) if isinstance(to, str) else to:
        found = agents_named(scenario, name)
        if not found:
            raise nobody(scenario, (*keys, "to"), name)
        agents.update(dict.fromkeys(found))
    return tuple(agents)


def _setting(scenario: Scenario, bound: Bound, keys: Keys, spec: SetAt) -> Set:
    """The new value in the world's own terms: checked by its `Params`, durations in ticks."""
    if spec.key not in bound.changeable:
        hint = nearest(spec.key, bound.changeable)
        raise scenario.error((*keys, "key"), f"{scenario.world.use} lets nobody change {shown(spec.key)}; {hint}")
    if spec.key not in type(bound.params).model_fields:
        return Set(key=spec.key, value=spec.value)
    try:
        params = world_params(scenario, type(bound.params), {**scenario.world.params, spec.key: spec.value})
    except ScenarioError as error:
        raise scenario.error((*keys, "value"), error.message) from None
    return Set(key=spec.key, value=params.model_dump(mode="json")[spec.key])


def _check_presence(scenario: Scenario, moves: list[tuple[Keys, Move]]) -> None:
    """Nobody leaves or acts before joining, or after leaving."""
    absent = {move.joins for _, move in moves if move.joins}
    gone: set[tuple[AgentId, int | None]] = set()
    for keys, move in moves:
        absent.discard(move.joins)
        if not isinstance(move.change, Leave | Act):
            continue
        agent = move.change.agent
        if agent in absent or gone & {(agent, None), (agent, move.table)}:
            when = "has not joined yet" if agent in absent else "has left before"
            raise scenario.error((*keys, "agent"), f"{agent!r} {when} at that time; change the times or drop one")
        if isinstance(move.change, Leave):
            gone.add((agent, move.table))
