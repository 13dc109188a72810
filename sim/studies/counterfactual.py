"""Counterfactual runs: forks of a run, with its luck, in which agents do something else than they decided.

A fork says what it replaced by its interventions, so what was tried on a run is found again by lineage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sim.fork import fork
from sim.record.committed import SchemaMismatch
from sim.record.reader import Run
from sim.record.schema import Manifest
from sim.scenarios.yaml_text import read_yaml
from sim.types import JSON, AgentId


class Instead(NamedTuple):
    """One decision, and what its agent does instead."""

    table: int
    tick: int
    """At which the decision was performed."""
    agent: AgentId
    answer: JSON

    @property
    def edit(self) -> dict[str, JSON]:
        """The intervention that a scenario file would hold."""
        return {"at": self.tick, "do": "act", "table": self.table, "agent": self.agent, "answer": self.answer}


class Counterfactual(NamedTuple):
    """A fork that replaces decisions of its parent, or none: then it has only other luck."""

    path: Path
    tick: int
    replicate: int
    instead: tuple[Instead, ...]


def counterfactual(
    path: Path, folder: Path, instead: Sequence[Instead], *, at: int | None = None, replicate: int = 0
) -> Path:
    """A fork of the run, not started, or the one that is there already; the run at `path` is only read.

    `at`: its tick, at the latest that of the first decision replaced, which is what it is by default. Raises
    ScenarioError.
    """
    tick = min(one.tick for one in instead) if at is None else at
    wanted = sorted(instead)
    luck = f"-r{replicate}" if replicate else ""
    for one in counterfactuals(path, folder, f"{tick}{luck}"):
        if (one.tick, one.replicate, sorted(one.instead)) == (tick, replicate, wanted):
            return one.path
    return fork(path, folder, tick, edits=[one.edit for one in instead], replicate=replicate)


def counterfactuals(path: Path, folder: Path, begins: str = "") -> Iterator[Counterfactual]:
    """The forks of a run in a folder that differ by replaced decisions and luck alone, by tick and replicate.

    `begins`: only those whose tick, as their name has it, begins so.
    """
    with Run(path) as run:
        parent = run.manifest()
    found = [
        one for each in folder.glob(f"{parent.id}-at{begins}*.db") if (one := _read(each, path, parent)) is not None
    ]
    yield from sorted(found, key=lambda one: (one.tick, one.replicate, one.path.name))


def _read(path: Path, parent_path: Path, parent: Manifest) -> Counterfactual | None:
    """A fork of the parent, if it is one of these."""
    try:
        with Run(path) as run:
            manifest = run.manifest()
    except SchemaMismatch:
        return None
    if manifest.fork_tick is None or Path(manifest.parent) != parent_path.resolve():
        return None
    before, after = (read_yaml(one.scenario, one.id).data for one in (parent, manifest))
    done = len(before.get("interventions") or [])
    added = (after.pop("interventions", None) or [])[done:]
    before.pop("interventions", None)
    if before != after or any(one["do"] != "act" for one in added):
        return None
    instead = tuple(Instead(one["table"], one["at"], one["agent"], one["answer"]) for one in added if "table" in one)
    return Counterfactual(path, manifest.fork_tick, manifest.replicate, instead) if len(instead) == len(added) else None
