"""No public metric without a society where nothing happens and one with something planted, or a reason in words."""

from __future__ import annotations

from collections import Counter

from tests.metrics.dealings import DEALINGS
from tests.metrics.known import CASES
from tests.metrics.public import OF_A_RECORD, OF_RUNS, public
from tests.metrics.recorded import RECORDED
from tests.metrics.registry import CASED, UNCASED

EVERY = [*public(OF_A_RECORD), *public(OF_RUNS)]


def test_every_public_metric_has_its_cases_or_a_reason() -> None:
    told = Counter([*CASED, *(path for paths in UNCASED.values() for path in paths)])
    assert set(EVERY) - told.keys() == set(), "without a case"
    assert told.keys() - set(EVERY) == set(), "no such metric"
    assert [path for path, times in told.items() if times > 1] == []


def test_every_case_is_there_and_stands_for_a_metric() -> None:
    there = CASES | DEALINGS | RECORDED
    named = {name for names in CASED.values() for name in names}
    assert named - there.keys() == set()
    of_functions = {"contagion, forked", "blame", "root of a failure"}
    assert there.keys() - named - of_functions == set()


def test_what_is_public() -> None:
    assert "sim.metrics.honesty:all" in EVERY
    assert "sim.metrics.collusion.onset:compared" in EVERY
    assert "worlds.games.incentives:regret" in EVERY
    assert not any(path.startswith("sim.metrics.statistics") for path in EVERY)
