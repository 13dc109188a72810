"""Interventions on a run that is going on: recorded with the tick at which they take effect, and committed at once.

One is kept as if the run's scenario had named it from the start. So to verify, to resume and to fork such a run is to
replay its scenario; nothing else has to know that somebody stepped in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sim.kernel import Table
from sim.log import change_json
from sim.runs import Session
from sim.scenarios.binding import bind
from sim.scenarios.located import ScenarioError, nearest, shown
from sim.scenarios.scenario import dump, extended
from sim.scenarios.timeline import move_of
from sim.types import JSON

KINDS = ("say", "set", "leave")
"""What can be done to a run that is going on; other interventions need a fork."""


class Refused(ValueError):
    """A command that cannot be followed as things are; the text says why, and what can be done."""


def intervene(session: Session, spec: Mapping[str, JSON], table: int | None = None) -> list[JSON]:
    """Let an intervention, written as in a scenario file without its time, happen at the next moment of every table.

    `table`: only there. Returns what will happen, with its tick and table. On the host's thread. Raises Refused.
    """
    assert session.plan is not None
    assert session.store is not None
    _check(spec)
    found = [(one, _moment(session, one)) for one in session.tables if table in (None, one.index) and not one.finished]
    going = [(one, tick) for one, tick in found if tick <= one.until]
    if not going:
        raise Refused("it is at its end" if table is None else f"no table {table} is going on")
    before = session.plan.scenario
    only = len(session.tables) > 1
    specs = [{"at": tick, **spec} | ({"table": one.index} if only else {}) for one, tick in going]
    try:
        scenario = extended(before, specs, "intervention")
        bound = bind(scenario)
        moves = [move_of(scenario, bound, len(before.interventions) + n) for n in range(len(specs))]
    except ScenarioError as error:
        key = error.key.split(".", 2)[-1] if error.key.startswith("interventions.") else error.key
        raise Refused(f"{key}: {error.message}") from error
    except Exception as error:  # nothing is changed yet, so the run goes on
        raise Refused(f"it cannot be read: {type(error).__name__}: {error}") from error
    session.store.update(scenario=dump(scenario))
    session.plan = replace(session.plan, scenario=scenario)
    effects = []
    for (one, tick), move in zip(going, moves, strict=True):
        assert move.change is not None
        one.intend(tick, move.change)
        effects.append({"table": one.index, "tick": tick, **change_json(move.change)})
    return effects


def _check(spec: Mapping[str, JSON]) -> None:
    kind = spec.get("do")
    if kind in ("join", "act", "become"):
        raise Refused(
            f"{kind}: not in a run that is going on; fork it: agora fork RUN --at TIME --edit '{{do: {kind}, …}}'"
        )
    if kind not in KINDS:
        raise Refused(f"do: {shown(kind)} is no intervention; {nearest(str(kind), KINDS)}")
    if given := {"at", "table"} & spec.keys():
        raise Refused(f"{min(given)}: an intervention on a run that is going on comes at its next moment")


def _moment(session: Session, table: Table) -> int:
    """The first tick after everything that has happened or is recorded, and where time is paced, that it has reached.

    A fork is a replay before its moment, a branch through it.
    """
    assert session.store is not None
    manifest = session.store.manifest()
    past = [table.now, session.store.last_tick(table.index), session.store.last_call(table.index)]
    if manifest.fork_tick is not None:
        past.append(manifest.fork_tick - 1)
    elif manifest.parent and manifest.branches:
        past.append(manifest.branches[table.index][1])
    return max(max(past) + 1, min(session.pace.reached(table.now), table.next))
