"""Scenario files: read, overridden, checked, written out again.

Everything that can be wrong is one line of the form `file:line: key: what is wrong; what would be right`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.scenarios.binding import bind
from sim.scenarios.located import Located, shown
from sim.scenarios.overrides import overridden
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.strict import checked
from sim.scenarios.timeline import timeline
from sim.scenarios.yaml_text import read_yaml, text_of, write_yaml
from sim.types import JSON


def load(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file and check it; `overrides` are `dotted.key=value`. Raises ScenarioError."""
    path = Path(path)
    return _scenario(overridden(_root(text_of(path), str(path)), overrides), path.parent)


def loads(text: str, base: str | Path, file: str = "scenario.yaml", overrides: Sequence[str] = ()) -> Scenario:
    """As `load`, from the text of a scenario; `base` is the folder that its relative paths start from."""
    return _scenario(overridden(_root(text, file), overrides), Path(base))


def extended(
    scenario: Scenario, interventions: Sequence[Mapping[str, JSON]], file: str, overrides: Sequence[str] = ()
) -> Scenario:
    """The scenario with more interventions after its own; `file` is what errors name. Raises ScenarioError."""
    before = list(scenario.located.data.get("interventions") or [])
    data = {**scenario.located.data, "interventions": [*before, *map(dict, interventions)]}
    return loads(write_yaml(data), scenario.base, file=file, overrides=overrides)


def dump(scenario: Scenario) -> str:
    """The scenario with all overrides in it, as YAML that `loads` reads back to the same scenario."""
    return write_yaml(scenario.located.data)


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file, for editors. Keys of the world and of engines are left open."""
    schema = Scenario.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _root(text: str, file: str) -> Located:
    located = read_yaml(text, file)
    if not isinstance(located.data, dict):
        found = "is empty" if located.data is None else f"holds {shown(located.data)}"
        raise located.error((), f"{found}; expected a mapping with name, world and cast")
    return located


def _scenario(located: Located, base: Path) -> Scenario:
    scenario = checked(Scenario, located.data, located)
    scenario._located = located
    scenario._base = base
    timeline(scenario, bind(scenario))
    return scenario
