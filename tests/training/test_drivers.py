"""Trees, trials, proposers and summaries on an engine that is not torch: rows are what it said, in whatever order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import fsum
from pathlib import Path

import pytest

from sim.record.reader import Run
from sim.scenarios.plan import Branch
from sim.types import Choice, Request
from sim.verify import verify
from tests.training.speaking import Speaking
from training.matchup import Matchup
from training.recipe import load
from training.rollout import Stage
from training.structures import rollout, start
from training.trajectory import Row

GAMES = Path(__file__).parents[2] / "scenarios" / "games"
MEMORY = ("cast.first.with.memory_tokens=80", "cast.second.with.memory_tokens=80")
SAYING = ("cast.first.with.subgoals=8", "cast.second.with.think=6")
CASES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "at2po": (("structure.size=2", "structure.nodes=2", "structure.branches=2"), SAYING),
    "arpo_like": (("structure.size=2", "structure.nodes=2", "structure.branches=1"), ()),
    "lamer": (("structure.size=2", "structure.attempts=2"), MEMORY),
    "supo_like": (("structure.size=2", "structure.context=60", "structure.summaries=2"), ("world.hands=6",)),
    "hierarchical_grpo": (("structure.proposals=2", "structure.attempts=3"), ("world.operations=[plus]",)),
}
"""By recipe, its changes and the scenario's."""


def stage(folder: Path, recipe: str, pace: int) -> Stage:
    """Two starts of a recipe's structure."""
    changes, sets = CASES[recipe]
    riddles = recipe == "hierarchical_grpo"
    entries = ("asking", "solving") if riddles else ("first", "second")
    label = folder / "policies" / "kuhn@1"
    label.mkdir(parents=True, exist_ok=True)
    (label / "model.safetensors").write_bytes(b"no weights")
    speakers = dict.fromkeys(entries, "kuhn@1")
    settings = load(recipe, changes)
    tables = 2 * start(settings.structure).tables
    return Stage(
        file=GAMES / ("riddles_train.yaml" if riddles else "kuhn_train.yaml"),
        sets=sets,
        recipe=settings,
        matchup=Matchup(speakers=speakers, players=speakers, learners=frozenset(entries), tables=tables),
        seed=7,
        folder=folder / f"runs-{pace}",
        run="run",
        policies=folder / "policies",
        engines=dict.fromkeys(entries, Speaking(pace)),
    )


@pytest.mark.parametrize("recipe", CASES)
def test_rows_are_what_the_engine_said_whatever_the_order(tmp_path: Path, recipe: str) -> None:
    """They are told apart by structure alone, verify, and the engine's score of them is what they were sampled with."""
    played = {pace: stage(tmp_path, recipe, pace) for pace in (0, 1)}
    rows = {pace: rollout(one) for pace, one in played.items()}
    assert rows[0] == rows[1], "no row depends on when answers come"
    spoken = [row for row in rows[0] if row.how]
    assert all(row.trained and row.policy == "kuhn@1" for row in spoken)
    for row in spoken:
        assert row.prompt
        assert len(row.ids) == len(row.logprobs)
        if row.options:
            (again,) = Speaking().score([Request(messages=(), format=Choice(options=row.options))], [row.ids]).result()
            assert row.logprobs == pytest.approx(again, rel=1e-6)
            assert fsum(row.logprobs) < 0 or len(row.options) == 1
    for path in sorted((tmp_path / "runs-0").glob("*.db")):
        assert verify(path).whole
    CHECKS[recipe](rows[0], tmp_path / "runs-0")


def trees(rows: list[Row], folder: Path) -> None:
    """Branches ask a node's question again, first call and all, and share what came before it with their trunk."""
    with Run(folder / "run-branches.db") as made, Run(folder / "run.db") as run:
        branches = [Branch(*one) for one in made.manifest().branches]
        assert "parent" in {call.source for call in made.calls()}, "what is shared is played once"
        for table, one in enumerate(branches):
            (there,) = [each for each in run.decisions(one.table) if each.action.seen == one.tick]
            (here,) = [each for each in made.decisions(table) if each.action.seen == one.tick]
            asked, again = run.calls_of(there), made.calls_of(here)
            assert again[0].messages == asked[0].messages
            assert again[0].seed != asked[0].seed
            assert {call.source for call in again} == {"engine"}
    assert len(branches) in (4, 8)
    parents = Counter(row.parent for row in rows if row.parent and row.how)
    assert max(parents.values()) > 1
    assert {row.group for row in rows} == {"run/0", "run/1"}


def trials(rows: list[Row], folder: Path) -> None:
    """The second attempt begins with a reflection."""
    assert {row.attempt for row in rows if row.has("summary")} == {1}
    assert len({(row.trial, row.attempt) for row in rows}) == 8


def chops(rows: list[Row], folder: Path) -> None:
    """Summaries are rows of the decision that they precede."""
    assert any(row.has("summary") for row in rows)


def proposals(rows: list[Row], folder: Path) -> None:
    """Solvers of one proposal, of two parts, are a group."""
    assert Counter(row.role for row in rows) == {"proposer": 8, "solver": 12}
    assert all(row.group == row.episode for row in rows)


CHECKS = {"at2po": trees, "arpo_like": trees, "lamer": trials, "supo_like": chops, "hierarchical_grpo": proposals}
