"""A run measured while it goes on: all of its numbers so far, of one moment after the other.

Only rows committed since the moment before are read into frames; metrics are computed from the whole. The run is only
read, and between two moments its file is not even open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.library import PROJECT, keep, measured_by, metric_named, standing, usual_metrics
from sim.metrics.frames import grown
from sim.record.prefix import Mark, Prefix
from sim.record.project import Project
from sim.record.reader import Run
from sim.types import Measurement, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a run comes to, as far as it is."""

    run: str
    status: str
    """As `sim.library.standing` says."""
    mark: Mark
    found: Sequence[Measurement]
    """Empty where nothing has happened yet."""


def moments(path: Path, metrics: Sequence[str] = (), secrets: Sequence[Secret] = ()) -> Iterator[Moment]:
    """Measure a run each time the next moment is asked for; the last is the first at which it is not running.

    `metrics`: dotted paths, by default the usual ones. The project file keeps the numbers so far in place of those of
    the moment before, and the final ones of a finished run. What is not measured anew, for nothing has happened, is as
    it was. Raises BadInput, ResolveError.
    """
    wanted = [metric_named(dotted, Path()) for dotted in metrics]
    before: Prefix | None = None
    found: Sequence[Measurement] = ()
    status, fresh = "running", False
    while status == "running":
        with Run(path) as run:  # how it stands, then how far it is: a finished run is seen to its end
            name = run.manifest().id
            status = run.manifest().status if fresh else standing(run)  # whoever holds one that grows is not looked for
        with Prefix(path, secrets) as now:
            fresh = now.mark.rows > 0 and (before is None or now.mark != before.mark)
            if fresh:
                wanted = wanted or usual_metrics(now)
                if before is not None:
                    grown(now, before)
                found = [one for metric in wanted for one in measured_by(metric, now)]
            if status == "finished":
                keep(path, found)
            elif fresh:
                with Project(path.with_name(PROJECT)) as project:
                    project.measure_so_far(name, found, now.mark.tick, now.mark.rows, " ".join(metrics))
        before = now
        yield Moment(run=name, status=status, mark=now.mark, found=found)
