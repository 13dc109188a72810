"""A run in memory: no scenario file, no store. For tests, benchmarks and notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.calls import Calls, Voice
from sim.host import Host
from sim.kernel import Player, Table
from sim.log import Log, NoLog, Row
from sim.quantities import distribution
from sim.streams import Root, Streams
from sim.types import DEFAULT_SAMPLING, Agent, Engine, Intervention, Member, Sampling, Seat, World


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a run in memory leaves behind."""

    rows: list[tuple[str, Row]]
    """The log (and the calls are not in it)."""
    hash: str
    table: Table
    calls: Calls


def player(agent: Agent, member: Member | Seat | str, think: object = 1, tick_ms: float = 1000) -> Player:
    """One member of the cast, from as little as its id; `think` as in a scenario file."""
    if isinstance(member, str):
        member = Seat(agent=member)
    if isinstance(member, Seat):
        member = Member(seat=member)
    return Player(member, agent, distribution(think, tick_ms))


def simulate(
    world: World,
    players: Sequence[Player],
    *,
    seed: int = 0,
    until: int | None = None,
    stops: Sequence[tuple[str, int]] = (),
    interventions: Sequence[tuple[int, Intervention, Player | None]] = (),
    engines: Mapping[str, Engine] | None = None,
    sampling: Sampling = DEFAULT_SAMPLING,
    record: bool = True,
    table_class: type[Table] = Table,
) -> Simulation:
    """Run one table to its end; `engines` by the model names that the agents ask for."""
    rows: list[tuple[str, Row]] = []
    log = Log(0, rows.extend) if record else NoLog()
    voices = {name: Voice(engine=engine, model=name, sampling=sampling) for name, engine in (engines or {}).items()}
    calls = Calls(voices)
    host = Host(calls)
    table = table_class(
        world,
        players,
        streams=Streams(Root(seed), ("table", 0)),
        log=log,
        submit=calls.submit,
        pump=host.pump,
        until=until,
        stops=stops,
        interventions=interventions,
    )
    host.run([table])
    return Simulation(rows, log.hash, table, calls)
