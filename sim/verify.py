"""Verify: replay a run from its record alone, with no engine, comparing event by event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.calls import Calls, Recorded
from sim.host import Host, RecordEnds
from sim.kernel import WorldError
from sim.lineage import Lineage
from sim.log import Divergence, Log, Row, checked
from sim.record.reader import Run
from sim.runs import cast_rows, run_hash, table_of
from sim.scenarios.cast import thaw
from sim.scenarios.plan import Plan, TablePlan, plan
from sim.scenarios.scenario import loads
from sim.voices import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What a replay found: no difference."""

    events: int
    """Log rows that were equal."""
    whole: bool
    """Whether the record reaches the end of the run; otherwise all that is there is right."""


def verify(path: Path) -> Verified:
    """Replay a run. Raises Divergence at the first difference, both sides in its text."""
    with Run(path) as run:
        manifest = run.manifest()
        logs = [run.log(table) for table in range(run.tables)]
        # Read after the logs: what was done to the run meanwhile stands in the scenario before it happens.
        scenario = loads(run.manifest().scenario, manifest.base, file=f"{path.name}: scenario")
        planned = plan(scenario, thaw(cast_rows(run), scenario), manifest.branches)
        finished = manifest.status == "finished"
        events, hashes = 0, []
        with Lineage(manifest) as lineage:
            for one in planned.tables:
                log, whole = _replayed(run, logs[one.table], planned, one, lineage)
                events += log.seq
                hashes.append(log.hash)
                if finished and not whole:
                    raise Divergence(f"table {one.table}: the record ends at seq {log.seq}, the replay goes on")
        if finished and run_hash(hashes) != manifest.hash:
            raise Divergence(f"the run's hash is {run_hash(hashes)}, recorded is {manifest.hash}")
        return Verified(events=events, whole=finished)


def _replayed(
    run: Run, recorded: Iterator[tuple[str, Row]], planned: Plan, one: TablePlan, lineage: Lineage
) -> tuple[Log, bool]:
    """One table replayed: its log, and whether it came to its end within the record."""
    log = Log(one.table, checked(recorded, _no_more))
    pool = Pool(planned.scenario.base)
    calls = Calls(
        pool.voices(planned.models),
        records=[Recorded(lookup=run.completion, request_text=run.request_text, complete=True)],
        one_table=len(planned.tables) == 1,
        eras=lineage.eras(pool),
    )
    host = Host(calls)
    try:
        host.run([table_of(planned, one, host, log, lineage.branches)])
    except (RecordEnds, WorldError) as end:
        _expect_no_more(recorded, one.table, str(end))
        return log, False
    _expect_no_more(recorded, one.table, "the replay ends")
    return log, True


def _expect_no_more(recorded: Iterator[tuple[str, Row]], table: int, end: str) -> None:
    rest = next(recorded, None)
    if rest is not None:
        raise Divergence(f"table {table}: {end}, where the record goes on with {rest[0]} {rest[1]}")


def _no_more(_rows: Sequence[tuple[str, Row]]) -> None:
    raise RecordEnds("the record ends here")
