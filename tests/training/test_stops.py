"""Stops with their reasons, and the monitor slot that holds them."""

from __future__ import annotations

from math import exp, nan

import msgspec
import pytest
from pydantic import ValidationError

from sim.scenarios.located import ScenarioError
from training.recipe import load
from training.stops import BROKEN, RAGEN2, Monitor, Stop, Watch, watch


def run(stops: tuple[Stop, ...], series: list[dict[str, float]]) -> tuple[int, str]:
    """When and why it stops, each state having been through JSON; −1: never."""
    state = Watch()
    for update, found in enumerate(series):
        state, reason = watch(stops, found, state)
        state = msgspec.json.decode(msgspec.json.encode(state), type=Watch)
        if reason:
            return update, reason
    return -1, ""


def test_collapsed_rewards_stop_after_ten_updates_below_a_tenth_of_the_first_ten() -> None:
    healthy = [{"reward_std": 0.5}] * 10
    update, reason = run(RAGEN2, [*healthy, *[{"reward_std": 0.04}] * 20])
    assert update == 19
    assert reason == "reward_std was below 0.05 10 times in a row, last 0.04"
    recovers = [*[{"reward_std": 0.04}] * 9, {"reward_std": 0.06}]
    assert run(RAGEN2, [*healthy, *recovers * 5]) == (-1, "")


def test_failed_validations_count_only_where_there_was_one() -> None:
    fails = [{"success": 0.0}, {}, {}] * 5
    assert run(RAGEN2, fails)[0] == 12
    assert run(RAGEN2, [*fails[:12], {"success": 0.5}, *fails[:12]])[0] == -1


def test_empty_updates_stop() -> None:
    assert run(RAGEN2, [{"kept": 3.0}, *[{"kept": 0.0}] * 5]) == (5, "kept was below 1 5 times in a row, last 0")


def test_a_bound_above_and_a_number_that_is_none() -> None:
    stops = (Stop(reading="kl", above=0.5),)
    assert run(stops, [{"kl": 0.1}, {"kl": 0.7}]) == (1, "kl was above 0.5 once, last 0.7")
    assert run(stops, [{"kl": float("nan")}])[0] == 0


def test_all_reasons_are_given() -> None:
    stops = (Stop(reading="kl", above=exp(0)), Stop(reading="entropy", below=0.1, above=9))
    _, reason = watch(stops, {"kl": 2, "entropy": 0}, Watch())
    assert reason == "kl was above 1 once, last 2; entropy was below 0.1 or above 9 once, last 0"


def test_a_stop_has_a_bound() -> None:
    with pytest.raises(ValidationError, match="below, above or both"):
        Stop(reading="kl")


def test_a_misspelt_reading_is_told() -> None:
    with pytest.raises(ScenarioError, match=r"'entrop' is no reading; did you mean entropy"):
        load("reinforce", ["monitor.stop=[{reading: entrop, below: 1}]"])


def test_one_answer_has_no_other_prompt() -> None:
    with pytest.raises(ValidationError, match="expected 0, or 2 and more"):
        Monitor(pairs=1)


def test_what_is_broken_stops_without_being_asked_for() -> None:
    assert load("reinforce").monitor.stop == BROKEN
    assert run(BROKEN, [{"gradient_norm": 3.0}, {"gradient_norm": nan}])[0] == 1
    assert run(BROKEN, [{"first_legal_rate": 0.0}] * 5)[0] == 4
    assert run(BROKEN, [{"first_legal_rate": 0.4, "kept": 7.0, "gradient_norm": 50.0}] * 9) == (-1, "")
