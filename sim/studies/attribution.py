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
    path: Path, folder: Path, groups: Sequence[Sequence[Suspect]], success: Success, replays: int = REPLAYS
) -> Iterator[tuple[int, int, int]]:
    """Of each set of suspects how many of so many lucks come out well with all of it replaced, and with the first
    redone; and how many lucks. Where other luck has moved a later decision the agent's next one is replaced."""
    for group in groups:
        well, seen = [0, 0], min(one.decision.action.seen for one in group)
        for number in range(1, replays + 1):
            for place, instead in enumerate(([one.instead for one in group], [])):
                fork = counterfactual(path, folder, instead, at=seen, replicate=number)
                go(fork)
                with Run(fork) as run:
                    well[place] += success(run)
        yield well[0], well[1], replays


def attributed(
    path: Path, folder: Path, table: int, symptom: FactId, alternative: Alternative, success: Success,
    replays: int = REPLAYS, most: int = 1,
) -> list[Measurement]:  # fmt: skip
    """How much each suspect is to blame, and which is the root; with `most` 2 also which pairs matter only together.

    A pair costs as many forks as a suspect, and there are n(n − 1)/2 of them.
    """
    from sim.metrics.analysis.attribution import measured, sets_measured, sets_to_try

    with Run(path) as run:
        suspected = suspects(run, table, symptom, alternative)
        last = max((one.decision.seq for one in suspected), default=-1)
        earlier = sum(one.seq <= last for one in run.decisions(table))
    groups = sets_to_try(range(len(suspected)), most)
    tried = [[suspected[number] for number in sorted(group)] for group in groups]
    counts = list(replayed(path, folder, tried, success, replays))
    places = [(one.decision.seq, one.decision.action.agent) for one in suspected]
    found = list(measured(places, counts[: len(suspected)], earlier))
    return found + (list(sets_measured(places, groups, counts)) if most > 1 else [])
