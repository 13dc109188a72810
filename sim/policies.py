"""The policies that a scenario's models may speak with: where their weights lie, and which weights they are.

A run's record holds them by the hash of their content, so that a name that is given to other weights later deceives
nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from sim.fingerprint import fingerprint
from sim.log import Row
from sim.scenarios.scenario_schema import ModelSettings, Scenario

NOTE = "policy.json"
"""The file in which a trained version says of itself what it was made from; foreign adapters have none."""


def adapters(settings: ModelSettings, base: Path) -> dict[str, Path]:
    """Folders of a model's adapters by policy; `base` is the folder that relative paths start from."""
    found = settings.settings.get("adapters")
    return {label: base / str(folder) for label, folder in found.items()} if isinstance(found, dict) else {}


def policy_rows(scenario: Scenario, earlier: Iterable[Row] = ()) -> list[Row]:
    """Rows of the record's table of policies, one for each that a model may speak with, by name.

    An endpoint's own policies have no folder here, so no hash. `earlier`: rows that the new ones must not contradict.
    Raises ScenarioError for a folder without weights, or with others than it or an earlier row says.
    """
    found: dict[str, Row] = {row[0]: row for row in earlier}
    for name, model in scenario.models.items():
        for label, folder in adapters(model, scenario.base).items():
            keys = ("models", name, "adapters", label)
            try:
                row = _row(label, folder)
            except (OSError, ValueError) as error:
                raise scenario.error(keys, str(error)) from None
            if found.setdefault(label, row)[2] != row[2]:
                raise scenario.error(keys, f"{folder} holds other weights than {label} did before; give them a name")
        if "@" in model.policy:
            found.setdefault(model.policy, (model.policy, "", "", ""))
    return [found[label] for label in sorted(found)]


def _row(label: str, folder: Path) -> Row:
    content = fingerprint(folder)
    note = folder / NOTE
    said: dict[str, Any] = orjson.loads(note.read_bytes()) if note.is_file() else {}
    if said.get("hash", content) != content:
        raise ValueError(f"{folder} holds other weights than its {NOTE} says")
    return label, said.get("base", ""), content, said.get("parent", "")
