"""Trials: each attempt knows of those before, at the same start, and returns run on through them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.record.reader import Run
from sim.verify import verify
from tests.training.test_loop import small, trained
from training.extras import NO_EXTRAS
from training.loop import Trainer
from training.paths import trajectories
from training.plan import Plan
from training.policy import tiny_model
from training.returns import CrossEpisode, gains
from training.rollout import RolloutError
from training.trajectory import earned


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def planned(model: Path, *sets: str, reflect: bool = True) -> Plan:
    """Two trials of two attempts from each of two starts."""
    changes = ("structure.size=2", "structure.attempts=2", f"structure.reflect={str(reflect).lower()}")
    plan = small(model, "lamer", *changes, "rollout.episodes=8", "optimiser.epochs=1")
    memory = tuple(f"cast.{seat}.with.memory_tokens=80" for seat in ("first", "second"))
    return Plan(recipe=plan.recipe, scenario=plan.scenario, sets=(*plan.sets, *memory, *sets), seed=plan.seed)


def test_every_attempt_knows_of_those_before_and_starts_like_them(model: Path, tmp_path: Path) -> None:
    with Trainer(tmp_path / "kuhn", planned(model)) as trainer:
        rows, _ = trainer._played()
    folder = tmp_path / "kuhn" / "rollouts"
    paths = [folder / f"update-000001-0-{attempt}.db" for attempt in (1, 2)]
    with Run(paths[0]) as first, Run(paths[1]) as second:
        assert (first.tables, second.tables) == (4, 4)
        seeds = {call.seed for call in first.calls()}
        assert not any(call.seed in seeds for call in second.calls())
        for table in range(4):
            one, two = (next(iter(run.decisions(table))) for run in (first, second))
            assert one.key == two.key, "the same cards"
            paid = first.rewards(table)
            for agent in ("first", "second"):
                decisions = list(second.decisions(table, agent))
                calls = second.calls_of(decisions[0])
                assert [call.purpose for call in calls][:2] == ["reflect", "act"]
                said = f"That was attempt 1: you earned {paid[agent]:g}."
                assert said in calls[0].messages[1].text
                assert "Your conclusion: " in calls[1].messages[1].text
                for later in decisions[1:]:
                    assert [call.purpose for call in second.calls_of(later)] != ["reflect"]
    assert verify(paths[1]).whole

    placed = {(row.trial, row.attempt, row.group) for row in rows}
    run = "update-000001-0"
    assert placed == {(f"{run}:{table}", n, f"{run}/{table // 2}") for table in range(4) for n in (0, 1)}
    reflections = [row for row in rows if row.has("summary")]
    assert {row.attempt for row in reflections} == {1}
    assert {row.turn for row in reflections} == {0}
    assert all(row.trained and row.ids and row.bounds for row in reflections)


def test_the_return_of_a_trial_is_the_sum_over_its_attempts(model: Path, tmp_path: Path) -> None:
    with Trainer(tmp_path / "kuhn", planned(model)) as trainer:
        rows, _ = trainer._played()
    whole = earned(rows)
    paths = trajectories(rows)
    found = gains(CrossEpisode(kind="xep", gamma_traj=1), rows, [row.reward for row in rows], NO_EXTRAS.values, paths)
    firsts = [path[0][0] for path in paths]
    for index in firsts:
        row = rows[index]
        later = row.episode.replace("-0-1:", "-0-2:")
        both = whole[row.episode, row.seat] + (whole[later, row.seat] if row.attempt == 0 else 0.0)
        assert found[index] == (pytest.approx(both),)


def test_trials_train_and_go_on_after_a_break(model: Path, tmp_path: Path) -> None:
    plan = planned(model)
    whole = trained(tmp_path / "whole" / "kuhn", plan, 2)
    trained(tmp_path / "kuhn", plan, 1)
    after = trained(tmp_path / "kuhn", plan, 2)
    assert all((whole["policies"]["kuhn"][key] == value).all() for key, value in after["policies"]["kuhn"].items())


def test_who_remembers_nothing_makes_no_second_attempt(model: Path, tmp_path: Path) -> None:
    plan = planned(model, "cast.second.with.memory_tokens=0", reflect=False)
    with (
        Trainer(tmp_path / "kuhn", plan) as trainer,
        pytest.raises(RolloutError, match="second remembers nothing of its attempt"),
    ):
        trainer.update()


def test_without_reflection_the_past_is_told_all_the_same(model: Path, tmp_path: Path) -> None:
    with Trainer(tmp_path / "kuhn", planned(model, reflect=False)) as trainer:
        rows, _ = trainer._played()
    assert not any(row.has("summary") for row in rows)
    with Run(tmp_path / "kuhn" / "rollouts" / "update-000001-0-2.db") as run:
        first = [call for call in run.calls() if call.key.agent == "first"]
        assert {call.purpose for call in first} <= {"act", "rethink", "memory"}
        assert all("That was attempt 1" in call.messages[1].text for call in first if call.key.tick == 0)
        assert all(member.past for table in range(4) for member in run.cast(table))
