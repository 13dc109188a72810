"""Law 1: the log is a function of scenario, seed and answers; never of how fast or in which order they came."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sim.kernel import Decision, Table
from tests.laws.societies import MORE, WORLDS, Played, played, society

LATENCIES = ["0s", "uniform(0ms, 2ms)", "lognormal(1ms, 1.0)", "exponential(1ms)", "1ms"]
RUNS = 20


def redrawn(world: str, run: int, table_class: type[Table] = Table) -> Played:
    """The society with another latency, slot count and order."""
    engine: dict[str, Any] = {
        "latency": LATENCIES[run % len(LATENCIES)],
        "slots": [1, 2, 7, 64][run % 4],
        "latency_seed": run,
        "order": ["priority", "submission", "shuffled"][run % 3],
    }
    return played(society(world, **engine), table_class)


class ArrivalTable(Table):
    """The fault that Law 1 forbids: a decision is committed when its mind has finished, not when it is due."""

    def _decide(self, decision: Decision, answer: object) -> None:
        super()._decide(decision, answer)
        due = self._slots[decision.due].due
        if decision in due and (soon := self._slot(self.now + 1)):
            due.remove(decision)
            soon.due.append(decision)
            decision.due = self.now + 1


@pytest.mark.parametrize("world", [*WORLDS, *MORE])
def test_twenty_latencies_one_log(world: str) -> None:
    runs = [redrawn(world, run) for run in range(RUNS)]
    assert len({run.hash for run in runs}) == 1
    first = runs[0]
    how = Counter(row[8] for row in first.decisions())
    purposes = first.tables[0].counts
    assert how["chosen"] > 10
    assert how["retried"] > 0
    assert first.calls.failed > 0
    assert purposes["decisions"] == sum(how.values())


def test_the_societies_hold_what_could_go_wrong() -> None:
    """Interrupts, zero-think rounds, stale answers and memory summaries all happen somewhere above."""
    seen: Counter[str] = Counter()
    for world in WORLDS:
        run = redrawn(world, 0)
        seen.update(run.tables[0].counts)
        seen["rounds"] += sum(row[3] > 0 for row in run.decisions())
        seen["summaries"] += sum(row[16] > 2 for row in run.decisions())
    assert seen["dropped"] > 0
    assert seen["defaulted"] > 0
    assert seen["stale"] > 0
    assert seen["rounds"] > 0
    assert seen["summaries"] > 0


@pytest.mark.parametrize("world", ["double auction", "forum"])
def test_committing_in_arrival_order_gives_several_logs(world: str) -> None:
    """So the test above can fail."""
    assert len({redrawn(world, run, ArrivalTable).hash for run in range(1, 6)}) > 1
