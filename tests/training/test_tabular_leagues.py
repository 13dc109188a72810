"""Ways to choose opponents with tables for policies: best responses come near Kuhn's equilibrium, budgets are kept."""

from __future__ import annotations

import pytest

from sim.types import Seat
from tests.benchmarks import leagues
from tests.benchmarks.leagues import WAYS, Training, main, measured
from tests.benchmarks.tabular import spiel
from training.extensive import Tree, tree


@pytest.fixture(scope="module")
def kuhn() -> Tree:
    return tree(spiel("kuhn_poker"), [Seat(agent="ann"), Seat(agent="bob")])


def test_best_responses_come_near_the_equilibrium(kuhn: Tree) -> None:
    psro = next(way for way in WAYS if way.name == "psro")
    assert measured(kuhn, psro, seed=0, games=20_000).average <= 0.2


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_same_seed_gives_the_same_training_and_games_are_counted(kuhn: Tree, way: leagues.Way) -> None:
    first, again = Training(kuhn, way, seed=1), Training(kuhn, way, seed=1)
    for one in (first, again):
        for _ in range(5):
            one.update()
    assert first.found() == again.found()
    assert first.league == again.league
    members = len(first.league.members)
    between = members * (members - 1) * 100 if way.name == "psro" else 0
    assert first.games == 5 * way.settings.games + between


def test_the_table_has_a_line_for_every_way() -> None:
    lines = main(seeds=1, games=500)
    assert [line.split("  ")[0] for line in lines[2:]] == [way.name for way in WAYS]
