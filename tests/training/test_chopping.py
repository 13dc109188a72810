"""Summaries that are learnt from: episodes cut by them, and a writer of memories for a player that stands still."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sim.record.reader import Run
from tests.training.test_loop import small, trained
from training.chopping import capped
from training.credit import credit
from training.loop import Trainer
from training.plan import Plan
from training.policy import tiny_model
from training.reward import rewards
from training.trajectory import Row, Span

HANDS = ("world.hands=10",)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


def chopped(model: Path) -> Plan:
    changes = ("structure.size=2", "structure.context=60", "structure.summaries=1", "rollout.episodes=2")
    plan = small(model, "supo_like", *changes, "optimiser.epochs=1", "filter=[]")
    return Plan(recipe=plan.recipe, scenario=plan.scenario, sets=(*plan.sets, *HANDS), seed=plan.seed)


def test_pieces_hold_every_decision_once_and_all_have_their_episodes_advantage(model: Path, tmp_path: Path) -> None:
    plan = chopped(model)
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        rows, _ = trainer._played()
        recipe = plan.recipe
        found = credit(rows, rewards(recipe.reward, rows), recipe.credit)
        numbers = trainer.update()
    assert numbers["gradient_norm"] > 0
    (path,) = (tmp_path / "kuhn" / "rollouts").glob("update-000001-0.db")
    with Run(path) as run:
        decided = Counter((f"update-000001-0:{one.table}", one.action.agent) for one in run.decisions())
        calls = [call for call in run.calls() if call.purpose == "memory"]
    acts = [row for row in rows if row.has("action")]
    assert Counter((row.episode, row.seat) for row in acts) == decided
    assert len({(row.episode, row.seat, row.turn) for row in acts}) == len(acts)
    summaries = [row for row in rows if row.has("summary")]
    assert sorted(row.ids for row in summaries) == sorted(call.completion.ids for call in calls)
    assert summaries
    for row in summaries:
        (act,) = [one for one in acts if (one.episode, one.seat, one.turn) == (row.episode, row.seat, row.turn)]
        assert (row.reward, row.ended) == (act.reward, act.ended)
    by_seat: dict[tuple[str, str], set[float]] = {}
    for row, advantages in zip(rows, found.tokens, strict=True):
        if row.valid:
            by_seat.setdefault((row.episode, row.seat), set()).update(advantages)
    assert all(len(each) == 1 for each in by_seat.values())


def test_who_needed_more_summaries_counts_as_truncated() -> None:
    span = (Span(kind="summary", start=0, stop=1),)
    rows = [
        Row(episode="run:0", seat="a", turn=0),
        Row(episode="run:0", seat="a", turn=1, spans=span),
        Row(episode="run:0", seat="a", turn=1),
        Row(episode="run:0", seat="a", turn=2, spans=span, ended="terminated"),
        Row(episode="run:0", seat="a", turn=2, ended="terminated"),
        Row(episode="run:0", seat="b", turn=0, spans=span),
        Row(episode="run:0", seat="b", turn=0, ended="terminated"),
    ]
    assert [row.ended for row in capped(rows, 1)] == ["", "", "", "truncated", "truncated", "", "terminated"]
    assert capped(rows, 2) == rows


def written(model: Path) -> Plan:
    """A player that nobody trains, and a writer of its memory that learns."""
    plan = small(model, "memopilot_like", "structure.size=2", "rollout.episodes=2", "optimiser.epochs=1")
    player = f"engine: torch, model: '{model}', context: 1024"
    sets = [f"models={{player: {{{player}}}, writer: {{{player}, policy: scribe}}}}", *HANDS]
    for seat in ("first", "second"):
        sets += [f"cast.{seat}.model=player", f"cast.{seat}.with={{memory_tokens: 60, writer: writer}}"]
    return Plan(recipe=plan.recipe, scenario=plan.scenario, sets=tuple(sets), seed=3)


def test_a_writer_of_memories_learns_and_its_player_does_not(model: Path, tmp_path: Path) -> None:
    plan = written(model)
    whole = trained(tmp_path / "whole" / "kuhn", plan, 2)
    with Trainer(tmp_path / "kuhn", plan) as trainer:
        rows, _ = trainer._played()
        numbers = trainer.update()
        assert trainer._current() == {"writer": "scribe@2"}
    for row in rows:
        assert row.trained == row.has("summary")
        assert row.policy == ("scribe@1" if row.has("summary") else "")
    assert any(row.trained for row in rows)
    assert numbers["sampled_tokens"] == sum(len(row.ids) for row in rows if row.has("summary"))
    assert numbers["gradient_norm"] > 0
    after = trained(tmp_path / "kuhn", plan, 2)
    assert all((whole["policies"]["scribe"][key] == value).all() for key, value in after["policies"]["scribe"].items())
