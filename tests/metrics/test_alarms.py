"""Tests keep their level where nothing happens, and see what is planted; `tests.benchmarks.alarms` takes 200 seeds."""

from __future__ import annotations

import pytest

from tests.metrics.apart import QUICK as APART
from tests.metrics.dealings import DEALINGS
from tests.metrics.known import CASES, alarms

SEEDS = 40
QUICK = CASES | DEALINGS | APART


@pytest.mark.parametrize("name", QUICK)
def test_a_null_society_is_rarely_accused(name: str) -> None:
    assert alarms(QUICK[name], SEEDS, 0.0) <= 5


@pytest.mark.parametrize("name", QUICK)
def test_what_is_planted_is_found(name: str) -> None:
    assert alarms(QUICK[name], SEEDS, QUICK[name].effect) >= 0.8 * SEEDS
