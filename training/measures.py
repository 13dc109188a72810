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
from training.rollout import run_name


def measures(scenario: Scenario, rollouts: Path, update: int) -> list[Measurement]:
    """The metrics of `measure:` over the runs of an update, each about its `update` and, where it had several, `matchup`.

    Which events they are about is left out: those of a run that was thrown together for one update.
    """
    metrics = [cast("Metric", resolve(path, scenario.base)) for path in scenario.measure]
    runs = sorted(rollouts.glob(f"{run_name(update)}.db"), key=_matchup) if metrics else []
    found = []
    for path in runs:
        about = {"update": update} | ({"matchup": _matchup(path)} if len(runs) > 1 else {})
        with Run(path) as run:
            found += [
                replace(one, of={**one.of, **about}, events=())
                for metric in metrics
                for one in measured_by(metric, run)
            ]
    return found


def _matchup(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])
