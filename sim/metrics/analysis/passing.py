"""How reliably tasks are solved: in each of k trials (pass^k), or in any of k (pass@k).

Read are facts with a `success`, true or false, that name an `item`: a task. A trial is what one agent of one table made
of it, solved or not, in however many attempts. Tasks are the units: they are drawn anew for the intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from sim.metrics.analysis.improvement import ALIKE, tasks
from sim.metrics.statistics.bootstrap import bootstrap
from sim.metrics.statistics.clusters import Estimate
from sim.metrics.statistics.given import varies
from sim.metrics.statistics.repeats import pass_all, pass_any
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.types import Event, Measurement, Record

NAMELESS = repr(None)
"""Of attempts at nothing that has a name."""


def passed(record: Record) -> Iterator[Measurement]:
    """pass^k and pass@k for 1, 2, 4, … trials, as long as two tasks have so many: the chance that k trials of a task,
    drawn from those there were, are all solved, and that one of them is; means over tasks."""
    trials: dict[str, list[tuple[bool, Event]]] = {}
    nameless = 0
    for one in tasks(record):
        if one.item == NAMELESS:
            nameless += 1
        else:
            last = one.events[-1 if one.solved_at is None else one.solved_at]
            event = last if record.tables == 1 else (one.table, last)
            trials.setdefault(one.item, []).append((one.solved_at is not None, event))
    k = 1
    while k == 1 or sum(len(tried) >= k for tried in trials.values()) > 1:
        kept = [tried for tried in trials.values() if len(tried) >= k]
        left = {"tasks with fewer trials": len(trials) - len(kept), "trials of nothing with a name": nameless}
        for name, value in (("all", pass_all), ("any", pass_any)):
            each = [value([(len(tried), sum(done for done, _ in tried))], k) for tried in kept]
            yield estimated(
                f"passing.{name}",
                _over(sorted(float(one or 0) for one in each)),
                "share",
                events=tuple(event for tried in kept for done, event in tried if done)[:EVIDENCE],
                denominator="sets of k trials of a task, mean over tasks",
                excluded={reason: count for reason, count in left.items() if count},
                of={"k": k},
            )
        k *= 2


def _over(tasks_passed: Sequence[float]) -> Estimate:
    """Mean over tasks; without an interval where all of several are alike, as drawing these anew says nothing."""
    found = bootstrap(tasks_passed, fmean, "tasks")
    return found if varies(tasks_passed) or not found.ci else found._replace(ci=None, method="", flags=(ALIKE,))
