"""`agora check`: what a scenario would run, or whether a world or an agent keeps the rules of the seams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from sim.check import generic_turns
from sim.commands.failures import BadInput, scenario_file
from sim.commands.terminal import plain
from sim.conformance.agent_rules import agent_findings
from sim.conformance.findings import ConformanceError
from sim.conformance.stand import Stand, stand
from sim.estimate import estimate
from sim.quantities import readable
from sim.runs import check_cast
from sim.scenarios.located import ScenarioError, shown
from sim.scenarios.plan import Plan, plan
from sim.scenarios.resolve import is_file, resolve, split
from sim.scenarios.scenario import load, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.types import Member, Seat

SHIPPED = Path(__file__).parents[2] / "scenarios"
GENERIC = 4
"""Seats of a world that no scenario shows how to fill."""


def checked(what: str, sets: Sequence[str], scenario: Path | None, runs: Path) -> list[Any]:
    """Check it and say what was found; `runs`: where what such runs cost is looked up.

    Raises ScenarioError, ResolveError, BadInput, and ConformanceError with a line for each rule broken.
    """
    if not what:
        raise BadInput("nothing to check; name a scenario file, or module:Name of a world or an agent")
    if ":" not in what or what.endswith((".yaml", ".yml")):
        planned = plan(load(scenario_file(Path(what)), sets))
        check_cast(planned)
        return list(scenario_report(planned, runs))
    thing = resolve(what, Path())
    if hasattr(thing, "act"):
        return _agent(what, thing, sets, scenario)
    if hasattr(thing, "reset") and hasattr(thing, "observe"):
        return _world(what, thing, sets, scenario)
    raise BadInput(f"{what} is no world (it has no reset and observe) and no agent (it has no act)")


# --- scenarios ------------------------------------------------------------------------------------


def scenario_report(planned: Plan, runs: Path) -> Iterator[Any]:
    """What a scenario would run, and what that would cost."""
    scenario = planned.scenario
    yield plain(f"{scenario.name}: {scenario.world.use}, seed {scenario.seed}, {_ends(planned)}", "bold")
    cast = Table("cast", "agents", "class", "model", "think", box=None)
    for keys, entry in scenario.entries:
        name = entry.name if keys[0] == "cast" else f"{entry.name} (joins)"
        cast.add_row(*map(plain, (name, entry.count, entry.agent, entry.model or "none", entry.think)))
    for agent, taken in scenario.seats.items():
        cast.add_row(*map(plain, (f"{agent} (seat)", 1, taken.agent, taken.model or "none", "")))
    yield cast
    if scenario.models:
        models = Table("models", "engine", "weights", "temperature", "context", box=None)
        for name, one in scenario.models.items():
            models.add_row(*map(plain, (name, one.engine, one.model, one.temperature, f"{one.context:,} tokens")))
        yield models
    counts = {"tables": scenario.tables, "interventions": len(scenario.interventions), "measures": len(planned.metrics)}
    yield Text("   ".join(f"{name} {count:,}" for name, count in counts.items()))
    yield plain(estimate(planned, runs).words)


def _ends(planned: Plan) -> str:
    """When a run ends."""
    after = planned.scenario.stop.after if planned.scenario.stop else ()
    rules = [f"after {rule}" for rule in ((after,) if isinstance(after, str) else after)]
    if planned.until is not None:
        rules.append(f"at {readable(planned.until, planned.tick_ms)}")
    return "ends " + (" or ".join(rules) if rules else "when the world does")


# --- worlds and agents ------------------------------------------------------------------------------


def _world(what: str, kind: object, sets: Sequence[str], given: Path | None) -> list[Any]:
    path, tried = _found(what, kind, _prefixed(sets), given) or (None, _generic(what, sets))
    if findings := tried.world():
        raise ConformanceError(what, findings)
    where = f"as {path} sets it up" if path else "with seats that have no roles or values"
    return [plain(f"{what} keeps the rules of a world (played {where}, {len(tried.members)} agents)", "green")]


def _agent(what: str, kind: Any, sets: Sequence[str], given: Path | None) -> list[Any]:
    if found := _found(what, kind, _prefixed(sets), given):
        path, tried = found
        names = {agent: use for agent, use in tried.agents.items() if _is(use, path.parent, kind)}
        findings, where = tried.agent(next(iter(names.values()))), f"on turns of {path}"
    else:
        member = Member(seat=Seat(agent="agent-1"), model="model")
        findings, where = agent_findings(lambda: kind(member), generic_turns()), "on a choice, a form and a text"
    if findings:
        raise ConformanceError(what, findings)
    return [plain(f"{what} keeps the rules of an agent (tried {where})", "green")]


def _prefixed(sets: Sequence[str]) -> list[str]:
    """Settings of a world may be written without `world.` before them."""
    roots = tuple(f"{key}." for key in Scenario.model_fields)
    return [each if each.startswith(roots) else f"world.{each}" for each in sets]


def _found(what: str, kind: object, sets: Sequence[str], given: Path | None) -> tuple[Path, Stand] | None:
    """The scenario named, or the first beside the file or among those shipped that uses the class."""
    if given is not None:
        scenario = load(scenario_file(given), sets)
        if not _uses(scenario, kind):
            raise BadInput(f"{given} does not use {what}")
        return given, stand(scenario)
    where, name = split(what)
    folders = [Path(where).parent] if is_file(where) else [Path("scenarios"), SHIPPED]
    for path in (path for folder in folders for path in sorted(folder.glob("**/*.yaml"))):
        if name in path.read_text(encoding="utf-8", errors="replace"):
            try:
                scenario = load(path)
            except ScenarioError:
                continue
            if _uses(scenario, kind):
                return path, stand(load(path, sets))
    return None


def _uses(scenario: Scenario, kind: object) -> bool:
    used = (scenario.world.use, *(entry.agent for entry in scenario.cast))
    return any(_is(use, scenario.base, kind) for use in used)


def _is(use: str, base: Path, kind: object) -> bool:
    return resolve(use, base) is kind


def _generic(what: str, sets: Sequence[str]) -> Stand:
    data = {
        "name": "check",
        "clock": {"until": None},
        "world": {"use": what},
        "cast": [{"name": "agent", "count": GENERIC, "agent": "sim.conformance.trials:Drawn"}],
    }
    return stand(loads(write_yaml(data), Path(), shown(what)[1:-1], _prefixed(sets)))
