"""Fork: a new run that is another one up to a tick, and live after it; or branches of its tables, each from a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as change

from sim.lineage import Lineage
from sim.record.reader import Run
from sim.runs import cast_rows, policies_of, stored
from sim.scenarios.cast import Frozen, freeze, thaw
from sim.scenarios.located import nearest
from sim.scenarios.plan import Branch, plan
from sim.scenarios.scenario import extended, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import read_yaml


def fork(
    path: Path,
    folder: Path,
    at: int | str,
    *,
    sets: Sequence[str] = (),
    edits: Sequence[Mapping[str, Any]] = (),
    minds: Sequence[str] = (),
    replicate: int = 0,
    run_id: str = "",
) -> Path:
    """A new run file, not started; the old run is only read. `at`: a duration or a tick.

    `sets`: `key=value` for a world parameter that may change while running, or `models.NAME.key=value` for the calls
    from then on. `edits`: interventions as in a scenario file, at or after `at`. `minds`: who decides instead from the
    start, `module:Name` for everybody, `NAME=module:Name` for an agent or a cast entry. `run_id`: instead of one that
    says when it was forked. Raises ScenarioError.
    """
    with Run(path) as run, Lineage(run.manifest()) as lineage:
        manifest = run.manifest()
        parent = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        tick = parent.ticks(("fork", "at"), at)
        before = [earlier for earlier, _ in lineage.branches if tick < earlier]
        if before and any(each.startswith("models.") for each in sets):
            message = f"{manifest.id} was forked at tick {before[-1]}; to change models before that, fork its parent"
            raise parent.error(("models",), message)
        if minds and tick:
            raise parent.error(("fork", "at"), "other minds decide from the start: fork at 0")
        overrides = [each for each in sets if each.startswith("models.")] + _seated(parent, minds)
        scenario = _edited(parent, tick, [each for each in sets if each not in overrides], edits, overrides)
        planned = plan(scenario, _kept(freeze(scenario), thaw(cast_rows(run), parent)), manifest.branches)
        policies = policies_of(run)
        if planned.until is not None and tick > planned.until:
            raise parent.error(("fork", "at"), f"tick {tick} is after the end of the run at tick {planned.until}")
    return stored(
        folder,
        run_id or f"{manifest.id}-at{tick}" + (f"-r{replicate}" if replicate else ""),
        planned,
        policies,
        parent=str(path.resolve()),
        fork_tick=tick,
        replicate=replicate,
        branches=manifest.branches,
        source=manifest.source,
    )


def branch(path: Path, folder: Path, branches: Sequence[Branch], run_id: str = "") -> Path:
    """A new run file, not started, with one table for each of the branches; the old run is only read.

    A branch is its table up to its tick, what is seen at that tick included. From then on the minds have luck of their
    own; the world keeps its luck, as in a group. Raises ScenarioError, and ValueError for tables that there are not.
    """
    with Run(path) as run:
        manifest = run.manifest()
        if wrong := [one.table for one in branches if not 0 <= one.table < run.tables]:
            raise ValueError(f"{manifest.id} has {run.tables} tables, no table {wrong[0]}")
        if manifest.branches or manifest.fork_tick is not None:
            raise ValueError(f"{manifest.id} is a fork; branches are made of the run that it comes from")
        parent = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        if any(getattr(one, "table", None) is not None for one in parent.interventions):
            raise ValueError(f"{manifest.id} has interventions on single tables, which branches do not take over")
        scenario = loads(manifest.scenario, manifest.base, file="branch", overrides=[f"tables={len(branches)}"])
        stored_cast = thaw(cast_rows(run), parent)
    cast = [[replace(one, table=table) for one in stored_cast[taken.table]] for table, taken in enumerate(branches)]
    return stored(
        folder,
        run_id or f"{manifest.id}-branches",
        plan(scenario, cast, branches),
        parent=str(path.resolve()),
        branches=[list(one) for one in branches],
        source=manifest.source,
    )


def read_edit(text: str, at: int | str) -> dict[str, Any]:
    """An intervention from its YAML text; where it says no time, the fork's. Raises ScenarioError."""
    located = read_yaml(text, "--edit")
    if not isinstance(located.data, dict):
        raise located.error((), "not an intervention; write one like '{do: say, text: Hello}'")
    return {"at": at, **located.data}


def _seated(parent: Scenario, minds: Sequence[str]) -> list[str]:
    """Overrides that seat other minds."""
    entries = {entry.name: entry.agents for _, entry in parent.entries}
    everybody = [agent for agents in entries.values() for agent in agents]
    named = {**{agent: [agent] for agent in everybody}, **entries, "": everybody}
    found = []
    for each in minds:
        name, _, mind = each.rpartition("=")
        if name not in named:
            known = nearest(name, [*everybody, *entries])
            raise parent.error(("cast",), f"{name!r} is no agent and no cast entry; {known}")
        found += [f"seats.{agent}={{agent: {mind!r}}}" for agent in named[name]]
    return found


def _edited(
    parent: Scenario, at: int, sets: Sequence[str], edits: Sequence[Mapping[str, Any]], overrides: Sequence[str]
) -> Scenario:
    """The parent's scenario with interventions added, models changed and minds seated."""
    added = [dict(edit) for edit in edits]
    for each in sets:
        key, _, value = each.partition("=")
        added.append(
            {"at": at, "do": "set", "key": key.removeprefix("world."), "value": read_yaml(value, f"--set {key}").data}
        )
    scenario = extended(parent, added, "fork", overrides)
    for index in range(len(parent.interventions), len(scenario.interventions)):
        keys = ("interventions", index, "at")
        tick = scenario.ticks(keys, scenario.interventions[index].at)
        if tick < at:
            raise scenario.error(keys, f"tick {tick} is before the fork at tick {at}; an edit comes at or after it")
    return scenario


def _kept(fresh: list[list[Frozen]], stored_cast: list[list[Frozen]]) -> list[list[Frozen]]:
    """The stored cast, with the models that it speaks with now, and whoever joins anew."""
    kept = {(table, one.member.seat.agent): one for table, ones in enumerate(stored_cast) for one in ones}
    return [
        [_seat(kept.get((table, one.member.seat.agent), one), one) for one in ones] for table, ones in enumerate(fresh)
    ]


def _seat(stored_one: Frozen, fresh: Frozen) -> Frozen:
    member = change(stored_one.member, model=fresh.member.model, context=fresh.member.context)
    return replace(stored_one, member=member, place=fresh.place)
