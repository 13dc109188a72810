"""Runs that are measured together: forks beside the forks that are their controls, twins with other minds, conditions.

A metric of several runs is a function of `Relative`s. The runs that it is given are those named and all finished forks
of them that lie in their folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson
from msgspec.structs import replace

from sim.intervals import HEADLINE, UNDER
from sim.library import PROJECT, files, measured_by
from sim.record.committed import SchemaMismatch
from sim.record.project import Project
from sim.record.reader import Run
from sim.record.schema import Manifest
from sim.record.sqlite import FileFailure
from sim.scenarios.yaml_text import read_yaml
from sim.types import JSON, Measurement, Record, Secret

BESIDE = ("name", "seed", "measure", "record", "limits", "tables")
"""Keys of a scenario in which runs of one condition may differ."""
RESCORER = "sim.studies.rescoring:Rescorer"
"""Engine of a fork in which nothing is done anew: the answers of its parent are scored by another model."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Relative:
    """One of several runs that are measured together."""

    id: str
    record: Record
    scenario: Mapping[str, JSON]
    """As it was run, with all overrides."""
    parent: str = ""
    """Id of the run it was forked from; empty where that is none or not among these."""
    tick: int | None = None
    """Tick of that fork."""
    replicate: int = 0
    """Which luck it had after it."""
    change: str = ""
    """What its scenario has that its parent's has not, as JSON; empty: nothing."""
    rescorings: list[Relative] = field(default_factory=list)
    """Forks in which its answers are scored by others; they are among its runs by this alone."""

    @property
    def condition(self) -> Mapping[str, JSON]:
        """All of its scenario that may set its outcome apart, but for luck and size."""
        return {key: value for key, value in self.scenario.items() if key not in BESIDE}


Across: TypeAlias = Callable[[Sequence[Relative]], Iterable[Measurement]]
"""A metric of several runs."""


class Trial(NamedTuple):
    """One change of one run at one tick: treated forks, each with the untreated run of the same luck."""

    parent: str
    tick: int
    change: str
    pairs: list[tuple[Relative, Relative]]
    """Treated and control, by replicate."""
    missing: int
    """Treated forks without a control."""


def trials(runs: Sequence[Relative]) -> list[Trial]:
    """What was tried on runs, from their forks. A run is itself the control of its forks with unchanged luck."""
    whole = {one.id: one for one in runs}
    forks: dict[tuple[str, int], list[Relative]] = {}
    for one in runs:
        if one.parent and one.tick is not None:
            forks.setdefault((one.parent, one.tick), []).append(one)
    found = []
    for (parent, tick), there in sorted(forks.items()):
        controls = {0: whole[parent], **{one.replicate: one for one in there if not one.change}}
        for change in sorted({one.change for one in there} - {""}):
            treated = sorted((one for one in there if one.change == change), key=lambda one: one.replicate)
            pairs = [(one, controls[one.replicate]) for one in treated if one.replicate in controls]
            found.append(Trial(parent, tick, change, pairs, len(treated) - len(pairs)))
    return found


def conditions(runs: Sequence[Relative]) -> dict[str, list[Relative]]:
    """Runs by what sets them apart, as JSON: the keys, within `world` the parameters, in which not all are alike."""
    flat = {one.id: _flat(one.condition) for one in runs}
    keys = sorted({key for each in flat.values() for key in each})
    apart = [key for key in keys if len({orjson.dumps(each.get(key)) for each in flat.values()}) > 1]
    found: dict[str, list[Relative]] = {}
    for one in runs:
        told = {key: flat[one.id].get(key) for key in apart}
        found.setdefault(orjson.dumps(told).decode() if told else "", []).append(one)
    return dict(sorted(found.items()))


def _flat(scenario: Mapping[str, JSON]) -> dict[str, JSON]:
    world = scenario.get("world") or {}
    return {key: value for key, value in scenario.items() if key != "world"} | dict(world)


def changed(parent: Mapping[str, object], child: Mapping[str, object]) -> str:
    """What a fork's scenario has that its parent's has not, as JSON; empty: nothing."""
    more: dict[str, object] = {}
    before, after = (list(one.get("interventions") or []) for one in (parent, child))  # type: ignore[call-overload]
    if added := after[len(before) :]:
        more["interventions"] = added
    for key in sorted({*parent, *child} - {"interventions"}):
        if parent.get(key) != child.get(key):
            more[key] = child.get(key)
    return orjson.dumps(more).decode() if more else ""


def rescored(scenario: Mapping[str, Any]) -> bool:
    """Whether a run holds another one's answers, scored: it shows nothing of what a change does."""
    return any(model.get("engine") == RESCORER for model in (scenario.get("models") or {}).values())


@contextmanager
def opened(paths: Sequence[Path], secrets: Sequence[Secret] = ()) -> Iterator[list[Relative]]:
    """Finished runs and the finished forks of them, and of these, in the same folders; closed at the end."""
    manifests = _finished({path.resolve() for path in paths})
    with ExitStack() as stack:
        found: dict[Path, Relative] = {}
        for path in _kin(manifests, {path.resolve() for path in paths}):
            manifest = manifests[path]
            scenario: dict[str, Any] = read_yaml(manifest.scenario, path.name).data
            parent = found.get(Path(manifest.parent)) if manifest.fork_tick is not None else None
            one = Relative(
                id=manifest.id,
                record=stack.enter_context(Run(path, secrets)),
                scenario=scenario,
                parent=parent.id if parent else "",
                tick=manifest.fork_tick if parent else None,
                replicate=manifest.replicate if parent else 0,
                change=changed(parent.scenario, scenario) if parent else "",
            )
            if parent and rescored(scenario):
                parent.rescorings.append(one)
            else:
                found[path] = one
        yield list(found.values())


def _finished(named: Set[Path]) -> dict[Path, Manifest]:
    """Manifests of all finished runs of the folders of some."""
    found = {}
    for path in sorted({*named, *(one for folder in {path.parent for path in named} for one in files(folder))}):
        try:
            with Run(path) as run:
                if run.status == "finished":
                    found[path] = run.manifest()
        except (SchemaMismatch, FileFailure, FileNotFoundError):
            continue
    return found


def _kin(manifests: Mapping[Path, Manifest], named: Set[Path]) -> list[Path]:
    """Runs that are named and all that come from them by forks, each after what it was forked from."""
    kept: list[Path] = []

    def add(path: Path) -> None:
        if path in kept:
            return
        kept.append(path)
        for child, manifest in manifests.items():
            if manifest.fork_tick is not None and Path(manifest.parent) == path:
                add(child)

    there = named & manifests.keys()
    roots = [
        one for one in sorted(there) if manifests[one].fork_tick is None or Path(manifests[one].parent) not in there
    ]
    for path in roots:
        add(path)
    return kept


def measure(paths: Sequence[Path], metrics: Sequence[Across], secrets: Sequence[Secret] = ()) -> list[Measurement]:
    """What metrics of several runs find; the project file keeps it of a run and its forks, with that run.

    What has an interval from fewer than `HEADLINE` clusters is flagged.
    """
    with opened(paths, secrets) as runs:
        found = [_marked(one) for metric in metrics for one in measured_by(metric, runs)]
        kept = [one for one in runs if not one.parent]
        if len(kept) == 1:
            project = Project(paths[0].with_name(PROJECT))
            project.measure(kept[0].id, found)
            project.close()
    return found


def _marked(one: Measurement) -> Measurement:
    return replace(one, flags=(*one.flags, UNDER)) if one.ci and one.n_clusters < HEADLINE else one
