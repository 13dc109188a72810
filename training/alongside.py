"""What a scenario measures of an update's episodes, to stand in the project file beside the learners' curves."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from msgspec.structs import replace

from sim.library import measured_by
from sim.record.reader import Run
from sim.scenarios.resolve import resolve
from sim.scenarios.scenario_schema import Scenario
from sim.types import Measurement, Metric


def measures(scenario: Scenario, rollouts: Path, update: int) -> list[Measurement]:
    """The metrics of `measure:` over the runs of an update, each of its `update` and, where there were several, `run`.

    Without the events that they were computed from: those stand in the run, as any of its metrics shows.
    """
    metrics = [cast("Metric", resolve(path, scenario.base)) for path in scenario.measure]
    start = f"update-{update:06d}-"
    runs = sorted(rollouts.glob(f"{start}[0-9]*.db")) if metrics else []
    found = []
    for path in runs:
        about = {"update": update} | ({"run": path.stem.removeprefix(start)} if len(runs) > 1 else {})
        with Run(path) as run:
            found += [
                replace(one, of={**one.of, **about}, events=(), decisions=())
                for metric in metrics
                for one in measured_by(metric, run)
            ]
    return found
