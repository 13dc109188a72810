"""No public metric without a society where nothing happens and one with something planted."""

from __future__ import annotations

from tests.metrics.apart import APART
from tests.metrics.dealings import DEALINGS
from tests.metrics.known import CASES
from tests.metrics.public import OF_A_RECORD, OF_RUNS, public
from tests.metrics.recorded import RECORDED
from tests.metrics.registry import CASED

EVERY = [*public(OF_A_RECORD), *public(OF_RUNS)]


def test_every_public_metric_has_its_cases() -> None:
    assert set(EVERY) - CASED.keys() == set(), "without a case"
    assert CASED.keys() - set(EVERY) == set(), "no such metric"
    assert [path for path, names in CASED.items() if not names] == []


def test_every_case_is_there_and_stands_for_a_metric() -> None:
    there = CASES | DEALINGS | RECORDED | APART
    named = {name for names in CASED.values() for name in names}
    assert named - there.keys() == set()
    of_functions = {"contagion, forked", "blame", "root of a failure", "pair of causes"}
    assert there.keys() - named - of_functions == set()


def test_what_is_public() -> None:
    assert "sim.metrics.honesty:all" in EVERY
    assert "sim.metrics.collusion.onset:compared" in EVERY
    assert "worlds.games.incentives:regret" in EVERY
    assert not any(path.startswith("sim.metrics.statistics") for path in EVERY)
