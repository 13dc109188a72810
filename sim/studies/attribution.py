"""Blame by counterfactual replay: decisions that a failure could depend on are replaced, one a fork, and replayed.

A fork begins at the moment a decision was seen, so that its redo has other luck, which the fork with the replacement
shares; what plain luck mends is taken off. Scripted agents make it cheap, recorded models only ask what has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sim.record.reader import Run
from sim.runs import go
from sim.studies.counterfactual import Instead, counterfactual
from sim.types import JSON, FactId, Measurement, Record, RecordedDecision

REPLAYS = 20
"""Lucks in which each decision is redone and replaced."""


class Suspect(NamedTuple):
    """A decision that a failure could depend on, and what could have been done instead."""

    decision: RecordedDecision
    instead: Instead


Alternative = Callable[[RecordedDecision], JSON | None]
"""What could have been done instead of a decision, in the form that its turn asked for; None: it is not suspected."""
Success = Callable[[Record], bool]
"""Whether a run came out well."""


def suspects(record: Record, table: int, symptom: FactId, alternative: Alternative) -> list[Suspect]:
    """The decisions whose facts the symptom depends on by what was shown and recalled, by the place in the log."""
    from sim.metrics.frames import frames  # brings polars, which runs that are not measured do without
    from sim.metrics.provenance import ancestors, made

    read = frames(record)
    causes = ancestors(read, table, symptom) | {symptom}
    came = made(read).select("tbl", "seq", "fact").iter_rows()
    own = {seq for place, seq, fact in came if place == table and fact in causes}
    found = []
    for decision in record.decisions(table):
        if decision.seq in own and (answer := alternative(decision)) is not None:
            found.append(Suspect(decision, Instead(table, decision.tick, decision.action.agent, answer)))
    return found


def replayed(
    path: Path, folder: Path, suspected: Sequence[Suspect], success: Success, replays: int = REPLAYS
) -> Iterator[tuple[int, int, int]]:
    """Of each suspect how many of so many lucks come out well with it replaced, and redone; and how many lucks."""
    for one in suspected:
        well = [0, 0]
        for number in range(1, replays + 1):
            for place, instead in enumerate(((one.instead,), ())):
                fork = counterfactual(path, folder, instead, at=one.decision.action.seen, replicate=number)
                go(fork)
                with Run(fork) as run:
                    well[place] += success(run)
        yield well[0], well[1], replays


def attributed(
    path: Path, folder: Path, table: int, symptom: FactId, alternative: Alternative, success: Success,
    replays: int = REPLAYS,
) -> list[Measurement]:  # fmt: skip
    """How much each suspect is to blame, and which is the root."""
    from sim.metrics.analysis.attribution import measured

    with Run(path) as run:
        suspected = suspects(run, table, symptom, alternative)
        last = max((one.decision.seq for one in suspected), default=-1)
        earlier = sum(one.seq <= last for one in run.decisions(table))
    counts = list(replayed(path, folder, suspected, success, replays))
    places = [(one.decision.seq, one.decision.action.agent) for one in suspected]
    return list(measured(places, counts, earlier))
