"""What a run would cost, from what others have cost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.estimate import Estimate, estimate, mean_think
from sim.record.browse import Browse
from sim.record.store import Store
from sim.runs import create, go
from sim.scenarios.plan import plan
from sim.scenarios.scenario import load
from sim.simulate import player
from tests.sim.rows import manifest

SCENARIO = Path(__file__).parents[2] / "scenarios" / "negotiation" / "bargaining_llm.yaml"
SYNTHETIC = "models.small.engine=synthetic"


def told(folder: Path, *sets: str) -> Estimate:
    return estimate(plan(load(SCENARIO, [SYNTHETIC, *sets])), folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs of one scenario with different luck, and one that has not begun."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        go(create(load(SCENARIO, [SYNTHETIC, f"seed={seed}"]), folder, f"run-{seed}"))
    create(load(SCENARIO, [SYNTHETIC]), folder, "waiting")
    for name, text in (("other", "name: no world"), ("broken", "a: [")):
        Store.create(folder / f"{name}.db", manifest(id=name, status="finished", scenario=text)).close()
    (folder / "nothing.db").write_text("no run at all")
    return folder


def spent(runs: Path) -> list[tuple[int, int]]:
    """Decisions and tokens of both."""
    found = []
    for name in ("run-1", "run-2"):
        with Browse(runs / f"{name}.db") as run:
            cost = run.spent()
            found.append((cost.decisions, cost.prompt_tokens + cost.completion_tokens))
    return found


def test_an_equal_scenario_costs_what_its_runs_did_in_the_mean(runs: Path) -> None:
    found, both = told(runs, "seed=3", "name=other"), spent(runs)
    assert found.decisions == round(sum(decisions for decisions, _ in both) / 2)
    assert found.tokens == round(sum(tokens for _, tokens in both) / 2)
    assert found.seconds is not None
    assert not found.bound
    assert "2 runs, the last run-2, of this scenario" in found.words


def test_another_size_costs_as_much_by_decision(runs: Path) -> None:
    """Of the most decisions that there can be, each at the mean of the runs' tokens by decision."""
    found = told(runs, "stop.after=10 decisions")
    assert (found.decisions, found.bound) == (10, True)
    assert found.tokens == round(10 * sum(tokens / decisions for decisions, tokens in spent(runs)) / 2)
    assert "at most 10 decisions" in found.words
    assert "of this world with these models" in found.words


def test_what_nobody_knows_is_said_to_be_unknown(runs: Path, tmp_path: Path) -> None:
    for found in (told(tmp_path / "none"), told(runs, "models.small.model=another")):
        assert (found.tokens, found.seconds) == (None, None)
        assert "tokens unknown, time unknown" in found.words


def test_a_file_that_was_changed_later_says_nothing_about_time(runs: Path) -> None:
    for name in ("run-1", "run-2"):
        path = runs / f"{name}.db"
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 86_400))
    assert told(runs).seconds is None


def test_rules_cost_no_tokens(tmp_path: Path) -> None:
    found = estimate(plan(load(SCENARIO.with_name("bargaining_rubinstein.yaml"))), tmp_path)
    assert found.tokens == 0
    assert "no model is asked" in found.words


def test_a_mean_think_time() -> None:
    """Whole ticks from 1 to 9, all as likely: 5."""
    assert mean_think(player(object(), "a", "uniform(1s, 9s)").think) == pytest.approx(5, abs=0.1)  # type: ignore[arg-type]
