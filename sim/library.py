"""The runs of a folder: name one, find one, list them, measure one, and what can be asked of one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar, cast

import msgspec
from sqlalchemy import func, select

from sim.commands.failures import BadInput
from sim.quantities import readable as duration
from sim.record.committed import SchemaMismatch, held
from sim.record.project import Project
from sim.record.reader import Run
from sim.record.schema import TABLES, Manifest
from sim.record.sqlite import readable
from sim.record.store import RunLocked
from sim.runs import cast_rows
from sim.scenarios.cast import thaw
from sim.scenarios.located import shown
from sim.scenarios.plan import plan
from sim.scenarios.resolve import resolve
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.secret import unmeasurable
from sim.scenarios.yaml_text import read_yaml, text_of
from sim.types import Measurement, Metric, Secret

PROJECT = "project.db"
"""Name of the file of measurements and tags, beside the runs."""
T = TypeVar("T")
_ID = re.compile(r"\w[\w.-]{0,99}")


class NoSuchRun(ValueError):
    """No run, or more than one, goes by that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One run in a listing."""

    id: str
    status: str
    """As `standing` says; `no run` for a file that is none."""
    made: str = ""
    """Date and time to the minute, UTC."""
    decisions: int = 0
    calls: int = 0
    parent: str = ""
    """What it was forked from, or is an interview with."""
    forked: bool = False
    """Whether it was."""


def files(folder: Path) -> list[Path]:
    """Run files, oldest first."""
    found = [path for path in folder.glob("*.db") if path.name != PROJECT]
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))


def find(folder: Path, name: str) -> Path:
    """The file of a run by its path, its id, the start of its id, or `last`. Raises NoSuchRun."""
    if name.endswith(".db") and Path(name).exists():
        return Path(name)
    there = files(folder) if folder.is_dir() else []
    if not there:
        raise NoSuchRun(f"no runs in {folder}; make one with: agora run SCENARIO")
    if name == "last":
        return there[-1]
    exact = [path for path in there if path.stem == name]
    found = exact or [path for path in there if path.stem.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NoSuchRun(f"{name!r} could be {', '.join(path.stem for path in found[:5])}; write more of it")
    raise NoSuchRun(f"no run {name!r} in {folder}; the last is {there[-1].stem}")


def find_all(folder: Path, names: Iterable[str]) -> list[Path]:
    """The files of runs, each once; in a name, `*` stands for anything, so that `frost-*` names many.

    These come in the order of their names, 2 before 10, whichever was written last. Raises NoSuchRun.
    """
    found: dict[Path, None] = {}
    for name in names:
        if "*" not in name:
            found[find(folder, name)] = None
        elif there := [path for path in files(folder) if fnmatchcase(path.stem, name)]:
            found |= dict.fromkeys(sorted(there, key=_counting))
        else:
            raise NoSuchRun(f"no run in {folder} is called {name!r}; agora runs lists them")
    return list(found)


def _counting(path: Path) -> list[tuple[int, str]]:
    """What sorts names with numbers by these."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.stem)]


def listing(folder: Path) -> Iterator[Listed]:
    """All runs of a folder, oldest first; a file that is none, or of another version, is listed as that."""
    for path in files(folder):
        try:
            yield _listed(path)
        except SchemaMismatch:
            yield Listed(id=path.stem, status="no run")


def _listed(path: Path) -> Listed:
    with Run(path) as run:
        manifest = run.manifest()
        counts = run.counts()
        return Listed(
            id=manifest.id,
            status=standing(run),
            made=manifest.created[:16].replace("T", " "),
            decisions=sum(sum(by_how.values()) for by_how in counts.decisions.values()),
            calls=sum(counts.calls.values()),
            parent=Path(manifest.parent).stem if manifest.parent else "",
            forked=manifest.fork_tick is not None or bool(manifest.branches),
        )


def standing(run: Run) -> str:
    """A run's status; `not started` where nothing has happened in it yet."""
    status = run.status
    return "not started" if status == "interrupted" and run.last_seq(0) < 0 else status


def status_of(path: Path) -> str:
    """How a stored run stands."""
    with Run(path) as run:
        return standing(run)


def new_id(folder: Path, name: str) -> str:
    """The id that a user wants for a new run. Raises BadInput where it will not do or is taken."""
    if not _ID.fullmatch(name) or name.endswith(".db") or name in ("last", Path(PROJECT).stem):
        raise BadInput(f"--name {shown(name)} cannot be a run's id; write letters, digits, - and _, like frost-1")
    if (folder / f"{name}.db").exists():
        raise BadInput(f"--name {name} is taken in {folder}; choose another, or go on with it: agora resume {name}")
    return name


def remove(path: Path) -> None:
    """Delete a run for good, with what the project file keeps of it. Raises RunLocked while somebody writes it."""
    with Run(path) as run:
        name = run.manifest().id
    if held(path):
        raise RunLocked(f"{path} is being written; stop the run first")
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", ".lock"))):
        each.unlink(missing_ok=True)
    numbers = path.with_name(PROJECT)
    if numbers.exists():
        project = Project(numbers)
        project.forget(name)
        project.close()


def check_table(run: Run, table: int) -> None:
    """Raises BadInput where the run has no such table."""
    if not 0 <= table < run.tables:
        there = f"its tables are 0 to {run.tables - 1}" if run.tables > 1 else "its only table is 0"
        raise BadInput(f"{run.path.stem} has no table {table}; {there}")


def check_fork(path: Path, at: str, sets: Sequence[str]) -> None:
    """Raises BadInput where the moment comes after the run's end or a setting is none, ScenarioError for no moment."""
    if wrong := [each for each in sets if "=" not in each]:
        raise BadInput(f"--set {wrong[0]}: not a setting; write key=value, like price_high=150")
    with Run(path) as run:
        manifest = run.manifest()
    scenario = scenario_of(manifest)
    end = until(scenario)
    if manifest.status == "finished":
        end = _last_tick(path)
    if end is not None and scenario.ticks(("fork", "at"), at) > end:
        raise BadInput(f"--at {at}: {manifest.id} ends at {duration(end, manifest.tick_ms)}; choose an earlier moment")


def scenario_of(manifest: Manifest) -> Scenario:
    """The scenario of a stored run, with every default and override in place."""
    return loads(manifest.scenario, manifest.base, file=f"{manifest.id}.db: scenario")


def until(scenario: Scenario) -> int | None:
    """The last tick that a scenario allows; None where it names none."""
    last = scenario.clock.until
    return None if last is None else scenario.ticks(("clock", "until"), last)


def _last_tick(path: Path) -> int:
    """Tick of the last event of a run."""
    engine = readable(path)
    try:
        with engine.connect() as connection:
            return int(connection.execute(select(func.max(TABLES["events"].c.tick))).scalar_one())
    finally:
        engine.dispose()


def measured_by(metric: Callable[[T], Iterable[Measurement]], subject: T) -> list[Measurement]:
    """What a metric finds; one that breaks costs its own number only, and says so in the flags."""
    try:
        found = list(metric(subject))
        broken = next((one for one in found if not _finite(one)), None)
        problem = f"{broken.metric} is {broken.value}" if broken else ""
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if not problem:
        return found
    name = f"{metric.__module__}:{getattr(metric, '__name__', type(metric).__name__)}"
    return [Measurement(metric=name, value=None, flags=(f"failed: {problem}",))]


def _finite(one: Measurement) -> bool:
    return all(number is None or math.isfinite(number) for number in (one.value, *(one.ci or ())))


def measure(path: Path, metrics: Sequence[Metric] | None = None, secrets: Sequence[Secret] = ()) -> list[Measurement]:
    """Compute metrics of a run file, as `measured` does. `secrets` are looked for beside the cast's own."""
    with Run(path, secrets) as run:
        return measured(run, metrics)


def measured(run: Run, metrics: Sequence[Metric] | None = None) -> list[Measurement]:
    """Compute metrics of a run; the project file keeps those of a finished run.

    By default how honest the run is, the world's own and the scenario's. Of a run that is not finished numbers are
    about what is recorded so far; of one not started there are none.
    """
    if standing(run) == "not started":
        return []
    manifest = run.manifest()
    wanted = usual_metrics(run) if metrics is None else metrics
    found = [measurement for metric in wanted for measurement in measured_by(metric, run)]
    if manifest.status == "finished":
        keep(run.path, found)
    return found


def keep(path: Path, found: Sequence[Measurement]) -> None:
    """Keep measurements of a run in the project file beside it."""
    with Run(path) as run:
        name = run.manifest().id
    with Project(path.with_name(PROJECT)) as project:
        project.measure(name, found)


def usual_metrics(run: Run) -> list[Metric]:
    """How honest a run is, its world's metrics and its scenario's."""
    from sim.metrics import honesty  # brings polars, which runs that are not measured do without

    scenario = scenario_of(run.manifest())
    return list(dict.fromkeys([honesty.all, *plan(scenario, thaw(cast_rows(run), scenario)).metrics]))


def metric_named(dotted: str, base: Path) -> Metric:
    """The metric that a dotted path names. Raises ResolveError, BadInput."""
    found = resolve(dotted, base)
    if not callable(found):
        raise BadInput(f"--metric {dotted} cannot be called; a metric is a function of a record")
    return cast("Metric", found)


class _Secrets(msgspec.Struct, forbid_unknown_fields=True):
    """A file of secrets."""

    secrets: list[Secret]


def secrets_file(file: Path) -> list[Secret]:
    """The secrets of a YAML file: `secrets:`, a list with the fields of `sim.types.Secret`. Raises BadInput."""
    read = read_yaml(text_of(file), str(file))
    try:
        known = msgspec.convert(read.data, _Secrets).secrets
    except msgspec.ValidationError as error:
        raise BadInput(f"{file}: {error}; write secrets: [{{subject, attribute, value, holder, norms}}]") from error
    for place, one in enumerate(known):
        if wrong := unmeasurable(one):
            raise BadInput(f"{file}: secrets.{place}.{wrong.key}: {wrong.message}")
    return known
