"""What a sweep came to: how its runs ended, and the means of what was measured under each setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from sim.commands.options import EXITS
from sim.commands.show import HONESTY, VERDICT
from sim.commands.terminal import columns, number, plain
from sim.intervals import TOO_FEW, UNDER
from sim.library import PROJECT, status_of
from sim.metrics.pooling import pooled
from sim.record.project import Numbers
from sim.record.reader import Run
from sim.sweep import Cell
from sim.types import Measurement

STATUSES = (*EXITS, "running", "not started")
CAUSES = 3
"""Most reasons told why runs did not come to their ends."""


def swept(cells: Sequence[Cell], names: str) -> Iterator[Any]:
    """Tables of both, and what to do next with the runs, which go by these names on the command line."""
    statuses = {path: status_of(path) for cell in cells for path in cell.runs}
    ended = [_ended(place, cell, statuses, len(cells)) for place, cell in enumerate(cells, 1)]
    yield columns(("setting", "", *STATUSES), ended)
    yield from _measured(cells, statuses)
    yield from _causes(statuses)
    if all(status == "finished" for status in statuses.values()):
        yield plain(f"All finished. Look: agora report {names}   agora measure {names}", "green")
    elif "failed" in statuses.values():
        yield plain(f"Mend it, then: agora resume {names}", "red")
    else:
        yield plain(f"Nothing is lost. Go on: agora resume {names}", "yellow")


def worst(cells: Sequence[Cell]) -> int:
    """The exit code: that of the run that ended worst."""
    found = {status_of(path) for cell in cells for path in cell.runs}
    for status in ("failed", "paused"):
        if status in found:
            return EXITS[status]
    return EXITS["finished" if found == {"finished"} else "interrupted"]


def _ended(place: int, cell: Cell, statuses: Mapping[Path, str], cells: int) -> tuple[object, ...]:
    counts = Counter(statuses[path] for path in cell.runs)
    return place if cells > 1 else "", "  ".join(cell.sets), *(counts[status] or "" for status in STATUSES)


def _measured(cells: Sequence[Cell], statuses: Mapping[Path, str]) -> Iterator[Any]:
    """A row for each number about a whole run, and each setting that has it: the mean over the finished runs."""
    kept = _kept(statuses)
    unfit = sum(map(_unfit, kept.values()))
    if unfit:
        yield plain(f"{unfit} of {len(statuses)} runs are not fit for claims: agora measure RUN says why", "red")
    rows: list[tuple[str, ...]] = []
    under = False
    for place, cell in enumerate(cells, 1):
        done = {str(path): _own(kept.get(path, ())) for path in cell.runs if statuses[path] == "finished"}
        means = [one for one in pooled(done) if one.value is not None]
        rows += [_row(one, str(place) if len(cells) > 1 else "") for one in means]
        under |= any(UNDER in one.flags for one in means)
    if rows:
        yield columns(("measure", "setting", "mean", "unit", "runs", "interval"), sorted(rows, key=itemgetter(0)))
    if under:
        yield plain(f" {TOO_FEW}", "dim")


def _causes(statuses: Mapping[Path, str]) -> Iterator[Any]:
    """Why runs failed or paused: each reason once, a few of them."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, status in statuses.items():
        if status in ("failed", "paused"):
            with Run(path) as run:
                found.setdefault((status, run.manifest().cause), []).append(path.stem)
    for (status, cause), (first, *more) in list(found.items())[:CAUSES]:
        yield plain(f"{first}{f' and {len(more)} more' if more else ''} {status}: {cause}", "red")
    if len(found) > CAUSES:
        yield plain(f"… and {len(found) - CAUSES} more reasons: agora show RUN", "red")


def _kept(paths: Iterable[Path]) -> dict[Path, list[Measurement]]:
    """What was measured about each run as a whole, by the project file beside it; none where nothing was."""
    found: dict[Path, list[Measurement]] = {}
    for project, own in groupby(sorted(paths), key=lambda path: path.with_name(PROJECT)):
        if project.exists():
            with Numbers(project) as numbers:
                overall = numbers.overall()
            found |= {path: overall.get(path.stem, []) for path in own}
    return found


def _unfit(found: Sequence[Measurement]) -> bool:
    return any(one.metric == VERDICT and one.value == 0 for one in found)


def _own(found: Sequence[Measurement]) -> list[Measurement]:
    return [one for one in found if not one.metric.startswith(HONESTY)]


def _row(one: Measurement, setting: str) -> tuple[str, ...]:
    mean = "" if one.value is None else number(one.value)
    interval = f"[{number(one.ci[0])}, {number(one.ci[1])}]" if one.ci else ""
    return one.metric, setting, mean, one.unit, str(one.n_clusters), interval
