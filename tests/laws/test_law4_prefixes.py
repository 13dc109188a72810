"""Law 4: what is committed is a prefix of what was put; from every prefix the run goes on to the same log.

Several tables, somebody who joins, somebody who leaves, calls that arrive out of order; then the same for a fork.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sim.fork import fork
from sim.log import Row
from sim.record.reader import Run
from sim.record.store import Store
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml
from sim.streams import Streams
from sim.verify import verify
from tests.laws.societies import MIND, society
from tests.laws.test_law4_kills import log_of

Put = list[tuple[str, Row]]
AT = {"matrix": 40, "forum": 8000}
COMINGS: dict[str, list[dict[str, Any]]] = {
    "matrix": [],
    "forum": [
        {"at": "1h", "do": "join", "entry": {**MIND, "name": "late", "think": "5m"}},
        {"at": "2h", "do": "leave", "agent": "slow-1"},
    ],
}


def several(world: str) -> Scenario:
    """The society of a world at two tables."""
    data = dict(society(world, latency="uniform(0ms, 1ms)").located.data)
    data |= {"tables": 2, "interventions": [*data["interventions"], *COMINGS[world]]}
    return loads(write_yaml(data), Path(), file=f"{world}.yaml")


def ran(path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Run it; the rows in the order in which they were put."""
    extend, rows = Store.extend, []

    def noting(store: Store, several: Put) -> None:
        rows.extend(several)
        extend(store, several)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "extend", noting)
        assert go(path).status == "finished"
    return rows


def cut_short(path: Path, rows: Sequence[tuple[str, Row]]) -> Path:
    """The run as a crash leaves it that comes after these rows."""
    with Store.open(path) as store:
        for table, row in rows:
            store.put(table, row)
    return path


@pytest.mark.parametrize("world", AT)
def test_from_every_prefix_to_the_same_log(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = create(several(world), tmp_path, "whole")
    rows = ran(whole, monkeypatch)
    child = fork(whole, tmp_path, AT[world], replicate=1)
    forked = ran(child, monkeypatch)
    streams = Streams(11).sub(world)
    for n in range(4):
        path = create(several(world), tmp_path, "cut") if n < 2 else fork(whole, tmp_path, AT[world], replicate=1)
        all_rows, original = (rows, whole) if n < 2 else (forked, child)
        cut_short(path, all_rows[: streams.integer(0, len(all_rows) - 1, n)])
        assert not verify(path).whole
        assert go(path).status == "finished"
        assert log_of(path) == log_of(original)
        assert verify(path).whole
        with Run(path) as run, Run(original) as expected:
            assert run.manifest().hash == expected.manifest().hash
