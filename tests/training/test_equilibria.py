"""A tiny Llama trained from scratch, as `agora train` does it, comes near the equilibria of small games."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.scenarios.scenario import load
from tests.benchmarks.equilibria import BIASED, GAMES, kept, last_defection, told, trained, variation
from tests.benchmarks.tiny import SCENARIOS
from training.evaluate import nash_conv, uniform
from training.extensive import Tree
from training.tabulate import questions


def tree_of(name: str) -> Tree:
    return questions(load(SCENARIOS / GAMES[name].scenario)).tree


def test_kuhn_poker_within_twenty_four_updates(tmp_path: Path, one_thread: None) -> None:
    found = trained("kuhn", tmp_path)
    assert GAMES["kuhn"].updates == 24
    assert found.average <= 0.10, told("kuhn", found)


def test_defection_in_the_last_round(tmp_path: Path, one_thread: None) -> None:
    found = trained("dilemma", tmp_path)
    assert found.last >= 0.9, told("dilemma", found)


# --- what is measured, where it is known ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "conv"), [("kuhn", 11 / 12), ("leduc", 4.747)])
def test_uniform_play(name: str, conv: float) -> None:
    game = tree_of(name)
    assert nash_conv(game, uniform(game)) == pytest.approx(conv, abs=1e-3)


def test_of_biased_rock_paper_scissors() -> None:
    game = tree_of("rps")
    assert variation(game, dict.fromkeys(game.options, BIASED)) == 0
    assert nash_conv(game, dict.fromkeys(game.options, BIASED)) == pytest.approx(0)
    assert variation(game, uniform(game)) == pytest.approx(1 / 6)


def test_of_the_dilemma() -> None:
    game = tree_of("dilemma")
    assert last_defection(game, uniform(game)) == pytest.approx(0.5)
    last = {key: {"cooperate": 1.0, "defect": 0.0} for key in game.options} | {
        key: {"cooperate": 0.0, "defect": 1.0}
        for key, before in game.before.items()
        if before is not None and game.before[before[0]] is not None
    }
    assert last_defection(game, last) == pytest.approx(1)


def test_of_bargaining() -> None:
    game = tree_of("bargaining")
    assert kept(game, uniform(game)) == pytest.approx(0.15)
    sixty = {
        key: {option: float(option in ("60", "accept")) for option in options} for key, options in game.options.items()
    }
    assert kept(game, sixty) == pytest.approx(0.05)
