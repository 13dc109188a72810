"""Attacker and defender train each other from one scenario file: who learns gains, who does not stands still."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from sim.record.project import Project
from sim.record.reader import Run
from tests.benchmarks.duel import DISCLOSURE, Gain, answered, fight
from training.policy import saved_in
from worlds.privacy.outcomes import leak_rate

PHASE = DISCLOSURE.phase


@pytest.fixture(scope="module")
def fought(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[Path, dict[str, Gain]]:
    folder = tmp_path_factory.mktemp("duel")
    gains = fight(DISCLOSURE, folder, episodes=256, games=500)
    return folder / DISCLOSURE.name, {gain.side: gain for gain in gains}


def test_each_side_beats_its_starting_self_against_the_other_as_it_stood(fought: tuple[Path, dict[str, Gain]]) -> None:
    for gain in fought[1].values():
        assert gain.shown, f"{gain.side}: {gain.before} at the start, {gain.after} trained"


def test_the_defender_still_answers_who_may_be_told(fought: tuple[Path, dict[str, Gain]]) -> None:
    before, after = (answered(run).value for run in fought[1]["holder"].runs)
    assert before is not None
    assert after is not None
    assert after >= 0.9 * before


def test_who_does_not_learn_stands_still(fought: tuple[Path, dict[str, Gain]]) -> None:
    folder, _ = fought
    weights = {
        name: [saved_in(folder / "policies" / f"{name}@{version}").hash for version in range(1, 2 * PHASE + 2)]
        for name in ("attacker", "defender")
    }
    moved = {name: [a != b for a, b in pairwise(each)] for name, each in weights.items()}
    assert moved == {"attacker": [True] * PHASE + [False] * PHASE, "defender": [False] * PHASE + [True] * PHASE}


def test_what_the_scenario_measures_stands_beside_the_curves(fought: tuple[Path, dict[str, Gain]]) -> None:
    folder, _ = fought
    project = Project(folder / "project.db")
    found = [one for _, one in project.measurements(folder.name, "disclosure.leak_rate") if "holder" not in one.of]
    returns = [one for _, one in project.measurements(folder.name, "train.return")]
    project.close()
    assert [one.of for one in found] == [one.of for one in returns] == [{"update": n} for n in range(1, 2 * PHASE + 1)]
    for one in found:
        with Run(folder / "rollouts" / f"update-{one.of['update']:06d}-0.db") as run:
            same = next(iter(leak_rate(run)))
        assert (one.value, one.n, one.ci) == (same.value, same.n, same.ci)
