"""How fast simulated time may pass, against a clock that the test moves."""

from __future__ import annotations

from math import inf

import pytest

import sim.steering.pace
from sim.steering.pace import Pace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The wall's time in its only place."""
    now = [100.0]
    monkeypatch.setattr(sim.steering.pace, "monotonic", lambda: now[0])
    return now


def test_nothing_is_held_back_at_first(clock: list[float]) -> None:
    pace = Pace()
    assert not pace.slows
    assert pace.wait(0, 1_000) == 0
    assert pace.reached(7) == 7


def test_while_paused_only_steps_happen(clock: list[float]) -> None:
    pace = Pace()
    pace.pause()
    assert pace.slows
    assert pace.wait(0, 5) == inf
    pace.step()
    pace.step()
    assert [pace.wait(0, 5), pace.wait(5, 5), pace.wait(5, 6)] == [0, 0, inf]
    pace.step(through=6)
    assert [pace.wait(5, 6), pace.wait(6, 6), pace.wait(6, 7)] == [0, 0, inf]
    pace.go()
    assert pace.wait(6, 7) == 0
    assert not pace.slows


def test_a_step_pauses_what_was_going_and_a_pause_takes_steps_back(clock: list[float]) -> None:
    pace = Pace()
    pace.step(through=9)
    assert pace.paused
    pace.pause()
    assert pace.wait(0, 1) == inf


def test_ticks_a_second(clock: list[float]) -> None:
    pace = Pace()
    pace.set_speed(10)
    assert pace.wait(20, 25) == pytest.approx(0.5)
    clock[0] += 0.35
    assert pace.wait(20, 25) == pytest.approx(0.15)
    assert pace.reached(20) == 23
    clock[0] += 0.2  # a little late is made up
    assert pace.wait(20, 25) == 0
    assert pace.wait(25, 30) == pytest.approx(0.45)


def test_the_time_a_slow_model_took_is_not_made_up(clock: list[float]) -> None:
    pace = Pace()
    pace.set_speed(10)
    pace.wait(0, 5)
    clock[0] += 60
    assert pace.wait(0, 5) == 0
    assert pace.wait(5, 15) == pytest.approx(1.0)


def test_a_pause_between_two_events_stops_the_clock_there(clock: list[float]) -> None:
    pace = Pace()
    pace.set_speed(10)
    pace.wait(0, 10)
    clock[0] += 0.4
    pace.pause()
    clock[0] += 1_000
    assert pace.reached(0) == 4
    pace.go()
    assert pace.wait(0, 10) == pytest.approx(0.6)
    pace.set_speed(1)
    assert pace.wait(0, 10) == pytest.approx(6.0)
    pace.set_speed(inf)
    assert pace.wait(0, 10) == 0
    assert not pace.slows


def test_after_a_rush_the_clock_starts_where_time_is(clock: list[float]) -> None:
    pace = Pace()
    assert pace.wait(0, 500) == 0
    pace.set_speed(10)
    assert pace.wait(500, 510) == pytest.approx(1.0)
