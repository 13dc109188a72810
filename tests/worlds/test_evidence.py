"""Facts behind numbers: with their tables where there are several."""

from __future__ import annotations

from pathlib import Path

from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from worlds.evidence import cited, places
from worlds.verification.outcomes import violations

SCENARIO = Path(__file__).parents[2] / "scenarios" / "verification" / "verification.yaml"


def test_facts_of_several_tables_have_them(tmp_path: Path) -> None:
    """A fact's id is counted by table, so that alone it names none."""
    for tables in (1, 2):
        path = create(load(SCENARIO, [f"tables={tables}", "world.episodes=1"]), tmp_path, f"run-{tables}")
        go(path)
        with Run(path) as run:
            outcomes = list(run.facts("outcome"))
            found = cited(run, places(outcomes))
            hits = next(iter(violations(run)))
        ids = [(one.table, one.fact.id) for one in outcomes]
        assert found == tuple(ids if tables > 1 else (fact for _, fact in ids))
        assert hits.events
        assert all(isinstance(one, tuple) for one in hits.events) is (tables > 1)
