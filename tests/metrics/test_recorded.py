"""On records too the honest are rarely accused and colluders are found; `tests.benchmarks alarms` takes 200 seeds."""

from __future__ import annotations

import pytest

from tests.metrics.known import alarms
from tests.metrics.recorded import QUICK

SEEDS = 5


@pytest.mark.parametrize("name", QUICK)
def test_honest_societies_are_rarely_accused(name: str) -> None:
    assert alarms(QUICK[name], SEEDS, 0.0) <= 1


@pytest.mark.parametrize("name", QUICK)
def test_colluders_are_found(name: str) -> None:
    assert alarms(QUICK[name], SEEDS, QUICK[name].effect) >= 0.8 * SEEDS
