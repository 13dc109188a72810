"""Recorded runs of every kind of world, a training's numbers, and views as Streamlit's own tests see them."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Streamlit's own imports say
    from streamlit.components.v2 import manifest_scanner
    from streamlit.testing.v1 import AppTest

from sim.fork import fork
from sim.library import measure
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.studies.interview import interview
from sim.types import Measurement
from tests.ui.corpus import CORPUS, NAMES, hostile_interview, hostile_run
from training import ladder
from training.curves import Curves
from training.league import LeagueState
from training.loop import Trainer
from training.plan import Plan
from training.policy import tiny_model
from training.recipe import load as recipe
from training.standings import Rating, Score

SCENARIOS = Path(__file__).parents[2] / "scenarios"
WORLDS = {
    "market": "markets/apple_market_llm.yaml",
    "bargaining": "negotiation/bargaining_llm.yaml",
    "poker": "games/kuhn_llm.yaml",
    "hunt": "games/stag_hunt_llm.yaml",
    "forum": "platforms/forum_llm.yaml",
    "disclosure": "privacy/disclosure_llm.yaml",
    "prices": "pricing/oligopoly_llm.yaml",
    "checks": "verification/verification_llm.yaml",
    "beliefs": "opinions/opinions_llm.yaml",
}
"""A run of each, its models' places taken by the synthetic engine."""
SCRIPTED = {"rubinstein": "negotiation/bargaining_rubinstein.yaml"}
CLASS = "zz <img src=x onerror=hit()>"
"""Folder of a training whose names are hostile."""
SYNTHETIC = "models.small.engine=synthetic"

Seen: TypeAlias = Callable[..., AppTest]


def played(folder: Path, name: str, scenario: str, *sets: str) -> Path:
    """A recorded and measured run."""
    path = create(load(SCENARIOS / scenario, list(sets)), folder, name)
    go(path)
    measure(path)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all worlds, forks with and without a change, an interview, one not started, a hostile one; to be read."""
    where = tmp_path_factory.mktemp("page") / "runs"
    for name, scenario in WORLDS.items():
        played(where, name, scenario, SYNTHETIC)
    for name, scenario in SCRIPTED.items():
        played(where, name, scenario)
    for replicate in range(2):
        for sets in ([], ["max_rounds=1"]):
            path = fork(where / "bargaining.db", where, 10, sets=sets, replicate=replicate)
            go(path)
            measure(path)
    go(interview(where / "bargaining.db", where, "host-1", 60, ["Why did you offer that?"]))
    create(load(SCENARIOS / WORLDS["hunt"], [SYNTHETIC]), where, "waiting")
    hostile_interview(where, hostile_run(where))
    (where.parent / f"{CLASS}.yaml").write_text("world: {use: <img src=x onerror=hit()>}\n")
    (where / "broken <img src=x onerror=hit()>.db").write_text("no run at all")
    learned(where.parent / "lessons", where.parent / "tiny")
    trained(where.parent / CLASS, where / "poker.db")
    return where


def learned(folder: Path, weights: Path) -> None:
    """Three updates of a model of one layer at Kuhn poker, against its past."""
    small = ("policy.kind=full", "rollout.episodes=4", "threads=1", "actors={kind: pool, weight: pfsp_hard}")
    model = tiny_model(weights, seed=1, width=16, layers=1)
    sets = tuple(f"models.{seat}.model={model}" for seat in ("first", "second"))
    what = Plan(recipe=recipe("spiral", list(small)), scenario=SCENARIOS / "games/kuhn_train.yaml", sets=sets, seed=3)
    what.write(folder)
    with Trainer(folder, what) as trainer:
        trainer.run(updates=3)


def trained(folder: Path, games: Path) -> None:
    """A training's folder as the trainer leaves it, whose policies, numbers and reasons have hostile names."""
    (folder / "rollouts").mkdir(parents=True)
    (folder / "train.yaml").write_text("recipe: {}\n")
    shutil.copy(games, folder / "rollouts" / "update-000003-0.db")
    players = NAMES[:6]
    won = Score(wins=2, draws=1, losses=1, total=0.5, squares=1.0)
    payoffs = {one: {other: {"seat": won} for other in players if other != one} for one in players}
    league = LeagueState(ratings={one: Rating() for one in players}, payoffs=payoffs)
    curves = Curves(folder)
    for update in range(1, 4):
        numbers = {"return": 0.1 * update, **dict.fromkeys(NAMES, 1 / update)}
        further = [Measurement(metric=name, value=0.5, of={"update": update, name: name}) for name in NAMES]
        curves.add(update, numbers, [*further, *ladder.measurements(league, update)])
    curves.status(3, CORPUS[1])
    curves.close()


@pytest.fixture(scope="session", autouse=True)
def no_components() -> Iterator[None]:
    """Each of Streamlit's tests would look through all installed packages for components; we have none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


@pytest.fixture
def seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """Draws a view; keywords are what stands in the page's address."""
    monkeypatch.setenv("AGORA_RUNS", str(folder))
    monkeypatch.chdir(folder.parent)

    def draw(view: str, **address: object) -> AppTest:
        test = AppTest.from_function(_view, args=(view,), default_timeout=120)
        for key, value in address.items():
            test.query_params[key] = str(value)
        return test.run()

    return draw  # type: ignore[return-value]


def _view(view: str) -> None:
    import importlib

    importlib.import_module(f"ui.views.{view}").page()


def text_of(test: AppTest) -> str:
    """All markup of a view."""
    return "\n".join(one.proto.body for one in test.get("html"))
