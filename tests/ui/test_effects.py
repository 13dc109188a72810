"""Differences between runs, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.metrics.family import changed
from sim.types import Measurement
from ui.data import Head
from ui.effects import between, experiments, tabled, within


def number(metric: str, value: float | None, **of: object) -> Measurement:
    return Measurement(metric=metric, value=value, of=of, unit="points")


def head(name: str, replicate: int, tick: int = 5, parent: str = "p") -> Head:
    return Head(id=name, path=Path(name), status="finished", parent=parent, fork_tick=tick, replicate=replicate)


def test_two_runs_are_paired_by_what_numbers_are_about() -> None:
    """Differences 1, 2 and 3: mean 2, standard error 1/√3, t 4.302653 with two degrees of freedom."""
    one = [number("gain", 0, agent="a"), number("gain", 5, agent="b"), number("gain", 1, agent="c"), number("all", 4)]
    other = [number("gain", 1, agent="a"), number("gain", 7, agent="b"), number("gain", 4, agent="c"), number("all", 9)]
    (found,) = within(one, [*other, number("gain", 9, agent="only here")])
    assert (found.metric, found.pairs, found.base, found.treated, found.estimate.value) == ("gain", 3, 2, 4, 2)
    assert found.estimate.ci == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert not found.apart
    assert tabled([found])[0]["of"] == "all"


def test_an_effect_is_over_pairs_of_runs() -> None:
    """Differences 2 and 4: mean 3, standard error 1, t 12.706 with one degree of freedom."""
    pairs = [([number("x", 1)], [number("x", 3)]), ([number("x", 2)], [number("x", 6)])]
    (found,) = between(pairs)
    assert (found.estimate.value, found.pairs) == (3, 2)
    assert found.estimate.ci is not None
    assert found.estimate.ci == pytest.approx((3 - 12.7062, 3 + 12.7062))
    (row,) = tabled([found])
    assert (row["low"], row["apart"]) == (found.estimate.ci[0], False)
    assert between([]) == []
    assert between([([number("x", None)], [number("x", 3)])]) == [], "no number is no zero"


def test_treated_forks_are_paired_with_untreated_ones_of_the_same_luck() -> None:
    forks = [
        (head("u0", 0), ""),
        (head("u1", 1), ""),
        (head("t0", 0), "frost"),
        (head("t1", 1), "frost"),
        (head("t2", 2), "frost"),
        (head("later", 0, tick=9), "frost"),
        (head("stranger", 0, parent="q"), "frost"),
    ]
    found = experiments(Head(id="p", path=Path("p"), status="finished"), forks)
    assert [(one.tick, [(u.id, t.id) for u, t in one.pairs], one.missing) for one in found] == [
        (5, [("u0", "t0"), ("u1", "t1")], 1),
        (9, [], 1),
    ]


def test_what_a_fork_has_changed() -> None:
    said = {"at": 5, "do": "say", "text": "frost"}
    parent = {"name": "x", "interventions": [{"at": 1}], "models": {"m": {"temperature": 1}}}
    assert changed(parent, parent) == ""
    assert changed(parent, {**parent, "interventions": [{"at": 1}, said]}) == (
        '{"interventions":[{"at":5,"do":"say","text":"frost"}]}'
    )
    assert changed(parent, {**parent, "models": {"m": {"temperature": 0}}}) == '{"models":{"m":{"temperature":0}}}'
