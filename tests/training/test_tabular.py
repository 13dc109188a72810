"""The tabular estimator that the recipes are tuned with: it learns, and a step ends at the threshold."""

from __future__ import annotations

import pytest

from sim.types import Seat
from tests.benchmarks.tabular import EXPERIMENTS, NeuRD, main, moved
from training.evaluate import nash_conv
from training.extensive import tree


def test_the_average_comes_near_kuhn_s_equilibrium() -> None:
    kuhn = EXPERIMENTS[0]
    game = tree(kuhn.world(), [Seat(agent="ann"), Seat(agent="bob")])
    learner = NeuRD(game, kuhn.settings, seed=0)
    for _ in range(40):
        learner.update()
    assert nash_conv(game, learner.average.table(game)) <= 0.10


@pytest.mark.parametrize(
    ("y", "by", "wanted"),
    [(0, 1, 1), (2.5, 1, 3), (-2.5, -1, -3), (5, 1, 5), (5, -1, 4), (-5, -1, -5), (-5, 1, -4), (3, 0, 3)],
)
def test_a_step_ends_at_the_threshold_and_pulls_nothing_back(y: float, by: float, wanted: float) -> None:
    assert moved(y, by, c=3) == wanted


def test_a_quick_look_tells_every_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.benchmarks.tabular.EXPERIMENTS", (EXPERIMENTS[0], *EXPERIMENTS[2:]))
    lines = main(seeds=2, most=3)
    assert len(lines) == 6
    assert all("after 3 updates: average" in line for line in lines[1::2])
