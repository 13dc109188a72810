"""A scenario as a plan that the host can run: fresh worlds and agents for every table.

Nothing heavy is imported: engines are named, not built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace as change

from sim.kernel import Player
from sim.scenarios.becoming import became
from sim.scenarios.binding import Bound, bind
from sim.scenarios.cast import Frozen, cast_hash, context, freeze
from sim.scenarios.draws import think_time
from sim.scenarios.located import Keys
from sim.scenarios.resolve import source_hash
from sim.scenarios.scenario_schema import CastEntry, ModelSettings, Scenario, Taken
from sim.scenarios.timeline import Move, timeline
from sim.streams import Key, Root, Streams
from sim.types import JSON, Agent, AgentId, Become, Intervention, Join, Member, Metric, World


class Branch(NamedTuple):
    """What a table takes over: the start of another one, with luck of its minds' own from a tick on."""

    table: int
    """Whose cast, world and luck it has: a table of the run that it branches from."""
    tick: int
    luck: int
    """Sets it apart from the other table (0) and from further branches of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """One table, ready to start. It is run once: worlds and agents change as they run."""

    table: int
    world: World
    players: tuple[Player, ...]
    """Those seated from the start, in cast order."""
    interventions: tuple[tuple[int, Intervention, Player | None], ...]
    """Tick, change and who joins by it, or what an agent becomes; by tick, then in file order."""
    streams: Streams
    """All luck of this table; its root is shared with no other."""
    mind_path: tuple[Key, ...]
    """What sets the minds' luck apart from that of other tables of the group."""
    branch: tuple[int, int] | None = None
    """Tick from which on the minds have luck of their own, and its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole run, ready to start."""

    scenario: Scenario
    tick_ms: float
    until: int | None
    """Last tick; None: the world ends by itself, or a stop rule ends it."""
    stops: tuple[tuple[str, int], ...]
    """Kinds of facts and the number of them that ends a table."""
    models: Mapping[str, ModelSettings]
    metrics: tuple[Metric, ...]
    """The world's own, then the scenario's."""
    params: Mapping[str, JSON]
    """The world's parameters, durations in ticks."""
    cast: Sequence[Sequence[Frozen]]
    """The frozen cast of each table."""
    cast_hash: str
    code: Mapping[str, str]
    """Hash of the source file by dotted path, of the world and all agents."""
    tables: tuple[TablePlan, ...]


def plan(
    scenario: Scenario, frozen: Sequence[Sequence[Frozen]] | None = None, branches: Sequence[Sequence[int]] = ()
) -> Plan:
    """Build a run; a stored cast (`thaw`) is taken instead of drawing one. Raises ScenarioError.

    `branches`: what each table takes over, as `Branch` or the manifest has it.
    """
    taken = [Branch(*one) for one in branches] or [Branch(table, 0, 0) for table in range(scenario.tables)]
    bound = bind(scenario)
    moves = timeline(scenario, bound)
    cast = freeze(scenario) if frozen is None else frozen
    return Plan(
        scenario=scenario,
        tick_ms=scenario.clock.tick_ms,
        until=bound.until,
        stops=bound.stops,
        models=scenario.models,
        metrics=bound.metrics,
        params=bound.params.model_dump(mode="json"),
        cast=cast,
        cast_hash=cast_hash(cast),
        code=_code(scenario, bound),
        tables=tuple(
            _table(scenario, bound, moves, number, members, branch)
            for number, (members, branch) in enumerate(zip(cast, taken, strict=True))
        ),
    )


def _code(scenario: Scenario, bound: Bound) -> dict[str, str]:
    things: dict[str, Callable[..., object]] = {scenario.world.use: bound.world}
    things |= {entry.agent: bound.minds[entry.name] for _, entry in scenario.entries}
    things |= {taken.agent: bound.seats[agent] for agent, taken in scenario.seats.items()}
    things |= {became(scenario, index)[0].agent: mind for index, mind in bound.becoming.items()}
    return {path: source_hash(things[path]) for path in sorted(things)}


def _table(
    scenario: Scenario, bound: Bound, moves: Sequence[Move], number: int, cast: Sequence[Frozen], branch: Branch
) -> TablePlan:
    entries = {entry.name: (path, entry) for path, entry in scenario.entries}
    there = {frozen.member.seat.agent: frozen for frozen in cast}
    players: list[Player] = []
    joiners: dict[AgentId, Player] = {}
    for frozen in cast:
        keys, entry = entries[frozen.entry]
        player = _player(scenario, bound, frozen, keys, entry)
        if keys[0] == "interventions":
            joiners[player.id] = player
        else:
            players.append(player)
    return TablePlan(
        table=number,
        world=_world(scenario, bound),
        players=tuple(players),
        interventions=tuple(
            (move.tick, *_intervention(scenario, bound, move, joiners, there))
            for move in moves
            if move.table in (None, number)
        ),
        streams=Streams(Root(scenario.seed), ("table", branch.table // scenario.group)),
        mind_path=("group", branch.table % scenario.group) if scenario.group > 1 else (),
        branch=(branch.tick, branch.luck) if branch.luck else None,
    )


def _world(scenario: Scenario, bound: Bound) -> World:
    try:
        return bound.world(bound.params)
    except Exception as error:
        raise scenario.error(("world",), f"{scenario.world.use} refuses its parameters: {_words(error)}") from error


def _player(scenario: Scenario, bound: Bound, frozen: Frozen, path: Keys, entry: CastEntry) -> Player:
    spec: CastEntry | Taken = entry
    make, agent_id = bound.minds[entry.name], frozen.member.seat.agent
    if agent_id in scenario.seats:
        spec, make, path = scenario.seats[agent_id], bound.seats[agent_id], ("seats", agent_id)
    think = bound.thinks[entry.name]
    if frozen.think != str(entry.think):
        think = think_time(frozen.think, scenario.clock.tick_ms)
    return Player(frozen.member, _agent(scenario, make, frozen.member, spec, path), think)


def _became(scenario: Scenario, bound: Bound, frozen: Frozen, index: int) -> Player:
    """What an agent becomes by an intervention; its think time stays."""
    mind, persona = became(scenario, index)
    member = change(
        frozen.member,
        persona={**frozen.member.persona, **persona},
        model=mind.model,
        context=context(scenario, mind.model),
    )
    agent = _agent(scenario, bound.becoming[index], member, mind, ("interventions", index))
    return Player(member, agent, bound.thinks[frozen.entry])


def _agent(
    scenario: Scenario, make: Callable[..., Agent], member: Member, spec: CastEntry | Taken, path: Keys
) -> Agent:
    try:
        return make(member, **deepcopy(spec.settings))
    except Exception as error:
        where = (*path, "with") if spec.settings else path
        raise scenario.error(where, f"{spec.agent} refuses its settings: {_words(error)}") from error


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: {error}"


def _intervention(
    scenario: Scenario,
    bound: Bound,
    move: Move,
    joiners: Mapping[AgentId, Player],
    there: Mapping[AgentId, Frozen],
) -> tuple[Intervention, Player | None]:
    """The change, and who joins by it or what an agent becomes."""
    if isinstance(move.change, Become):
        return move.change, _became(scenario, bound, there[move.change.agent], move.index)
    if move.change is not None:
        return move.change, None
    player = joiners[move.joins]
    return Join(seat=player.member.seat), player
