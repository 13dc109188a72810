"""What the page asks of the runs of a folder. Everything is read, nothing is written, no code of a run's world is run.

What does not change with the moment is remembered for as long as the file stays as it is, within bounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from sim.library import PROJECT, files, standing
from sim.quantities import UNITS, readable, ticks
from sim.record.browse import Browse, Filter
from sim.record.committed import SchemaMismatch
from sim.record.project import Numbers
from sim.record.schema import Manifest
from sim.record.sqlite import FileFailure
from sim.scenarios.yaml_text import read_yaml
from sim.types import AgentId, Measurement, Member, RecordedFact
from sim.wording import audience as audience
from sim.wording import so_far
from sim.wording import told as told

WORDS = {"interrupted": "stopped, resumable", "paused": "paused, resumable", "no run": "not readable"}
"""What standings are called on the page, where they are called otherwise."""
LOOKED_AT = 20
"""Tables of a run that are asked how far they are."""
KEPT = 512
"""Runs of which the head is remembered."""
CAST = 2_000
"""Most members that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One run in a few numbers."""

    id: str
    path: Path
    status: str
    """As `sim.library.standing` says; for a file that cannot be read what it is instead."""
    cause: str = ""
    """Why it is paused or failed, or cannot be read."""
    readable: bool = True
    name: str = ""
    """Of the scenario."""
    models: str = ""
    made: str = ""
    """Date and time to the minute, UTC."""
    seed: int = 0
    tables: int = 0
    tick_ms: float = 1000.0
    now: int = 0
    """Tick of the table that is furthest behind, of the first few."""
    until: int | None = None
    """Last tick, where the scenario says one."""
    decisions: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    parent: str = ""
    """Id of the run it was forked from."""
    fork_tick: int | None = None
    replicate: int = 0
    pid: int | None = None

    @property
    def words(self) -> str:
        """Its status in words."""
        return WORDS.get(self.status, self.status)

    @property
    def progress(self) -> float | None:
        """Share of the simulated time that is over; None where nobody knows."""
        if self.status == "finished":
            return 1.0
        return min(1.0, self.now / self.until) if self.until else None

    def time(self, tick: int) -> str:
        """A tick as a duration from the start."""
        return readable(tick, self.tick_ms)


def axis(longest: float) -> tuple[float, str]:
    """For an axis of simulated time over so many milliseconds: milliseconds of its unit, and its title."""
    words = {"d": "days", "h": "hours", "m": "minutes"}
    unit = next((one for one in words if longest >= 3 * UNITS[one]), "s")
    return UNITS[unit], f"simulated time ({words.get(unit, 'seconds')})"


def folder() -> Path:
    """The folder whose runs are shown."""
    return Path(os.environ.get("AGORA_RUNS", "runs"))


def run_ids(where: Path) -> list[str]:
    """Names of the run files, newest first."""
    return [path.stem for path in reversed(files(where))] if where.is_dir() else []


def stamp(path: Path) -> tuple[int, ...]:
    """What changes when a file, or what is beside it in its log, does."""
    found: list[int] = []
    for each in (path, path.with_name(path.name + "-wal")):
        try:
            stat = each.stat()
        except FileNotFoundError:
            continue
        found += [stat.st_mtime_ns, stat.st_size]
    return tuple(found)


def head(where: Path, name: str) -> Head:
    """A run in a few numbers, also one that cannot be read."""
    path = where / f"{name}.db"
    found = _head(path, stamp(path))
    if found.status != "running":  # only whoever holds the file tells the two apart
        return found
    with Browse(path) as run:
        return replace(found, status=standing(run))


@lru_cache(maxsize=KEPT)
def _head(path: Path, _stamp: tuple[int, ...]) -> Head:
    try:
        with Browse(path) as run:
            return _read_head(run, run.manifest())
    except SchemaMismatch as problem:
        return Head(id=path.stem, path=path, status=problem.standing, cause=str(problem), readable=False)
    except (FileFailure, FileNotFoundError) as problem:
        return Head(id=path.stem, path=path, status="damaged", cause=str(problem), readable=False)


def _read_head(run: Browse, manifest: Manifest) -> Head:
    spent = run.spent()
    tables = run.tables
    scenario = scenario_of(manifest)
    return Head(
        id=manifest.id,
        path=run.path,
        status=standing(run),
        cause=manifest.cause,
        name=manifest.name,
        models=_models(scenario),
        made=manifest.created[:16].replace("T", " "),
        seed=manifest.seed,
        tables=tables,
        tick_ms=manifest.tick_ms,
        now=min((run.end(table)[1] for table in range(min(tables, LOOKED_AT))), default=0),
        until=_until(scenario, manifest.tick_ms),
        decisions=spent.decisions,
        calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        parent=Path(manifest.parent).stem if manifest.parent else "",
        fork_tick=manifest.fork_tick,
        replicate=manifest.replicate,
        pid=manifest.pid,
    )


def scenario_of(manifest: Manifest) -> dict[str, Any]:
    """The scenario as plain data; empty where it is none."""
    try:
        found = read_yaml(manifest.scenario, "scenario").data
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _models(scenario: dict[str, Any]) -> str:
    models = scenario.get("models")
    if not isinstance(models, dict) or not models:
        return "scripted"
    known = [one for one in models.values() if isinstance(one, dict)]
    return ", ".join(dict.fromkeys(f"{one.get('model') or '?'} ({one.get('engine', '?')})" for one in known))


def _until(scenario: dict[str, Any], tick_ms: float) -> int | None:
    clock = scenario.get("clock")
    until = clock.get("until") if isinstance(clock, dict) else None
    try:
        return None if until is None else ticks(until, tick_ms)
    except ValueError:
        return None


# --- numbers and tags -----------------------------------------------------------------------------------


@contextmanager
def numbers(where: Path) -> Iterator[Numbers | None]:
    """What the project file holds; None where there is none yet."""
    path = where / PROJECT
    if not path.exists():
        yield None
        return
    with Numbers(path) as found:
        yield found


def measured(where: Path, run: str) -> list[Measurement]:
    """All measurements of a run."""
    with numbers(where) as found:
        return [one for _, one in found.measurements(run=run)] if found else []


def measured_so_far(where: Path, head: Head) -> tuple[list[Measurement], str]:
    """What was measured on a run that has not ended, and up to when it holds in words; nothing of one that has."""
    if head.status == "finished":
        return [], ""
    with numbers(where) as found:
        held = found.so_far(head.id) if found else []
    return [one for _, one in held], so_far([tick for tick, _ in held], head.tick_ms) if held else ""


HONESTY = "honesty"
"""The family of what says how far the others can be trusted."""


def unfit(found: Iterable[Measurement]) -> tuple[str, ...]:
    """Why a run is not fit for claims; nothing where it is, or where that is not measured."""
    verdicts = (one for one in found if one.metric == f"{HONESTY}.fit_for_claims" and not one.of)
    return next((one.flags for one in verdicts if one.value == 0), ())


def family(metric: str) -> str:
    """What a metric is about, by the first part of its name."""
    first, dot, _ = metric.partition(".")
    return first if dot else "general"


# --- one run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A run at a moment of one of its tables: all that a scene is drawn from."""

    run: Browse
    head: Head
    table: int
    tick: int
    seq: int
    """Of the last row that has happened."""
    viewer: AgentId = ""
    """Whose eyes; empty: a watcher sees all."""

    def last(self, count: int, *kinds: str, wanted: Filter | None = None) -> list[RecordedFact]:
        """The last facts of some kinds that the viewer may see, newest first."""
        found = self.run.last_facts(self.table, self.seq, count, wanted or Filter(kinds=kinds))
        return [one for one in found if self.sees(one)]

    def sees(self, fact: RecordedFact) -> bool:
        """Whether the viewer is in a fact's audience; whoever reads a channel is not asked.

        Who did something sees it too, but for what the record keeps and nobody sees.
        """
        audience = fact.fact.audience
        if not self.viewer or isinstance(audience, str):
            return True
        return self.viewer in audience or (bool(audience) and fact.fact.actor == self.viewer)

    def time(self, tick: int) -> str:
        """A tick as a duration from the start."""
        return self.head.time(tick)


def moment(run: Browse, head: Head, table: int, tick: int | None = None, viewer: AgentId = "") -> Moment:
    """A run at a tick, or as far as it is."""
    if tick is None:
        seq, tick = run.end(table)
    else:
        seq = run.moment(table, tick)
    return Moment(run=run, head=head, table=table, tick=tick, seq=seq, viewer=viewer)


def members(run: Browse, table: int = 0) -> Sequence[Member]:
    """The cast, as far as it is listed; remembered while the file stays as it is."""
    return _members(run.path, stamp(run.path), table)


@lru_cache(maxsize=64)
def _members(path: Path, _stamp: tuple[int, ...], table: int) -> Sequence[Member]:
    with Browse(path) as run:
        return tuple(run.cast(table)[:CAST])


def kinds(run: Browse, table: int = 0) -> dict[str, int]:
    """Facts by kind over a whole table; remembered while the file stays as it is."""
    return _kinds(run.path, stamp(run.path), table)


@lru_cache(maxsize=64)
def _kinds(path: Path, _stamp: tuple[int, ...], table: int) -> dict[str, int]:
    with Browse(path) as run:
        return run.kinds(table)


def over_time(now: Moment, bins: int) -> list[tuple[str, int, int]]:
    """Facts by kind in bins of time so far; remembered while the file stays as it is."""
    return _over_time(now.run.path, stamp(now.run.path), now.table, now.seq, bins)


@lru_cache(maxsize=64)
def _over_time(path: Path, _stamp: tuple[int, ...], table: int, upto: int, bins: int) -> list[tuple[str, int, int]]:
    with Browse(path) as run:
        return run.over_time(table, upto, bins)
