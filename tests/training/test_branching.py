"""Trees: where they branch, what their rows hold, and a training on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sim.record.reader import Run
from sim.scenarios.located import ScenarioError
from sim.scenarios.plan import Branch
from sim.verify import verify
from tests.training.test_loop import small, trained
from training.branching import Told, chosen, grown
from training.extras import NO_EXTRAS
from training.keys import learnable
from training.loop import Trainer
from training.paths import trajectories
from training.plan import Plan, TrainingError, check
from training.policy import tiny_model
from training.recipe import load as load_recipe
from training.returns import Tree as TreeReturn
from training.returns import gains
from training.reward import outcome
from training.slots import Tree
from training.trajectory import Row, Span


def tree(**fields: Any) -> Tree:
    return Tree(**{"kind": "tree", "size": 1, "nodes": 1, "branches": 1, "rule": "surprisal", **fields})


def row(episode: str, seat: str, logprob: float = -1.0, **fields: Any) -> Row:
    return Row(episode=episode, group="g", task="g", seat=seat, role=seat, ids=(1,), logprobs=(logprob,), **fields)


def trunk() -> Told:
    """A asks at 0, B at 10, A at 20, B at 30; steps come 5 later. A earns 1 at 5, 2 at 25; B earns −1 at 25, 4 at 35.

    So A: 1 of its first decision, 2 of its second; B: −1 of its first (it came when A decided), 4 of its second.
    """
    steps = [("A", 0, -0.1), ("B", 10, -0.7), ("A", 20, -0.9), ("B", 30, -0.2)]
    return Told(
        name="run:0",
        table=0,
        rows=[[row("run:0", seat, said)] for seat, _, said in steps],
        seen=[seen for _, seen, _ in steps],
        stepped=[(seen + 5, place * 10, 0) for place, (_, seen, _) in enumerate(steps)],
        earned=[((5, 1, 0), {"A": 1.0}), ((25, 21, 0), {"A": 2.0, "B": -1.0}), ((35, 31, 0), {"B": 4.0})],
        ended={"A": (35, 32, 0), "B": (35, 33, 0)},
        how={"A": "terminated", "B": "terminated"},
    )


def branch_at_20() -> Told:
    """As the trunk up to tick 20; then A's other answer ends it at 26: A earns −3, B earns 6."""
    whole = trunk()
    return Told(
        name="branches:0",
        table=0,
        rows=[[replace(one, episode="branches:0") for one in made] for made in whole.rows[:3]],
        seen=whole.seen[:3],
        stepped=[*whole.stepped[:2], (26, 20, 0)],
        earned=[whole.earned[0], ((26, 21, 0), {"A": -3.0, "B": 6.0})],
        ended={"A": (26, 22, 0), "B": (26, 23, 0)},
        how={"A": "terminated", "B": "terminated"},
    )


def test_nodes_are_where_the_policy_was_least_sure() -> None:
    assert chosen([trunk()], tree()) == [(0, 20)]
    assert chosen([trunk()], tree(nodes=2)) == [(0, 20), (0, 10)]
    # of A from 0.1 to 0.9; of B from 0.7 to 0.2
    assert chosen([trunk()], tree(nodes=4, rule="entropy_rise")) == [(0, 20), (0, 0), (0, 10), (0, 30)]


def test_the_first_question_of_all_trunks_is_one_node_with_branches_already() -> None:
    one = trunk()
    sure = [[replace(each, logprobs=(-5.0 if place == 0 else -0.5,))] for place, (each,) in enumerate(one.rows)]
    two = [Told(**{**vars(one), "table": n, "name": f"run:{n}", "rows": sure}) for n in range(3)]
    assert chosen(two, tree(nodes=2, size=3)) == [(0, 0), (0, 10)], "the other trunks' first question is the same"
    assert chosen(two, tree(nodes=1, size=3, penalty=2.2)) == [(0, 0)], "5 − 2·2.2 = 0.6"
    assert chosen(two, tree(nodes=1, size=3, penalty=2.3)) == [(0, 10)], "5 − 2·2.3 = 0.4"


def test_where_somebody_decides_in_no_time_nothing_branches() -> None:
    one = trunk()
    quick = Told(**{**vars(one), "stepped": [*one.stepped[:2], (20, 20, 0), one.stepped[3]]})
    assert chosen([quick], tree(nodes=4)) == [(0, 10), (0, 30), (0, 0)]


def test_a_branch_holds_what_is_its_own_and_every_seat_goes_on_from_the_node() -> None:
    rows = grown([trunk()], [Branch(0, 20, 1)], [branch_at_20()])
    told = [(one.episode, one.seat, one.turn, one.reward, one.parent, one.how, one.ended) for one in rows]
    at_a, at_b = "run:0@20/A", "run:0@20/B"
    assert told == [
        ("run:0", "A", 0, 1.0, "g@0/A", "chosen", ""),
        ("run:0", "B", 0, 0.0, "", "chosen", ""),  # what A's decision at 20 brought B is the node's, not B's
        ("run:0", "A", 1, 2.0, at_a, "chosen", "terminated"),
        ("run:0", "B", 1, -1.0, at_b, "", ""),
        ("run:0", "B", 2, 4.0, "", "chosen", "terminated"),
        ("branches:0", "A", 1, -3.0, at_a, "chosen", "terminated"),
        ("branches:0", "B", 1, 6.0, at_b, "", "terminated"),
    ]
    assert [learnable(one) for one in rows] == [True, True, True, False, True, True, False]


def test_values_are_means_over_what_may_follow_a_node() -> None:
    """A: 1 + (2 − 3)/2 = 0.5. B: 0 + ((−1 + 4) + 6)/2 = 4.5."""
    rows = grown([trunk()], [Branch(0, 20, 1)], [branch_at_20()])
    rewards = [one.reward for one in rows]
    found = gains(TreeReturn(kind="tree"), rows, rewards, NO_EXTRAS.values, trajectories(rows))
    assert [number for (number,) in found] == [0.5, 4.5, 2.0, 3.0, 4.0, -3.0, 6.0]


def thinking(told: Told) -> Told:
    """The same where A thinks before it answers, in three tokens of which it is as sure as of nothing: −log 0.7."""
    thought = {"ids": (7, 8, 9), "logprobs": (-0.7,) * 3, "spans": (Span(kind="think", start=0, stop=3),)}
    rows = [[replace(made[0], **thought), *made] if made[0].seat == "A" else made for made in told.rows]
    return Told(**{**vars(told), "rows": rows})


def test_a_decision_that_was_thought_about_is_one_node_and_one_turn() -> None:
    """A's surprisals are (2.1 + .1)/4 = .55 and (2.1 + .9)/4 = .75, B's .7 and .2."""
    assert chosen([thinking(trunk())], tree(nodes=4)) == [(0, 20), (0, 10), (0, 0), (0, 30)]
    plain = grown([trunk()], [Branch(0, 20, 1)], [branch_at_20()])
    rows = grown([thinking(trunk())], [Branch(0, 20, 1)], [thinking(branch_at_20())])
    assert [one for one in rows if not one.has("think")] == plain
    thoughts = [one for one in rows if one.has("think")]
    answers = [one for one in plain if one.seat == "A"]
    assert [(one.episode, one.turn, one.reward, one.parent, one.ended) for one in thoughts] == [
        (one.episode, one.turn, one.reward, one.parent, one.ended) for one in answers
    ]
    found = gains(TreeReturn(kind="tree"), rows, [one.reward for one in rows], NO_EXTRAS.values, trajectories(rows))
    assert [number for (number,) in found] == [0.5, 0.5, 4.5, 2.0, 2.0, 3.0, 4.0, -3.0, -3.0, 6.0]
    assert outcome(rows) == [0, 0, 0, 3.0, 3.0, 0, 3.0, -2.0, -2.0, 6.0]


def test_the_outcome_of_a_branch_has_what_came_before_it() -> None:
    rows = grown([trunk()], [Branch(0, 20, 1)], [branch_at_20()])
    assert outcome(rows) == [0, 0, 3.0, 0, 3.0, -2.0, 6.0]


def test_what_is_under_way_at_a_node_belongs_to_what_came_before() -> None:
    """B is asked at 18 and answers at 28, over A's question at 20: no branch has that decision as its own."""
    one = trunk()
    long = Told(**{**vars(one), "seen": [0, 18, 20, 30], "stepped": [(5, 0, 0), (28, 25, 0), (25, 20, 0), (35, 30, 0)]})
    rows = grown([long], [Branch(0, 20, 1)], [branch_at_20()])
    mine = [(each.turn, each.reward, each.how) for each in rows if each.episode == "run:0" and each.seat == "B"]
    assert mine == [(0, 0.0, "chosen"), (1, -1.0, ""), (2, 4.0, "chosen")]


def test_a_branch_of_the_first_question_is_a_trunk() -> None:
    whole = trunk()
    rows = [[replace(one, episode="branches:0") for one in made] for made in whole.rows]
    other = Told(**{**vars(whole), "name": "branches:0", "rows": rows})
    rows = grown([whole], [Branch(0, 0, 1)], [other])
    assert [one.parent for one in rows] == ["g@0/A", "", "", ""] * 2
    assert [one.reward for one in rows] == [1.0, -1.0, 2.0, 4.0] * 2


@pytest.mark.parametrize(
    ("recipe", "changes", "why"),
    [
        ("at2po", ["rollout.episodes=11"], "less than one start of the structure tree takes; expected 12 or more"),
        ("lamer", ["rollout.episodes=23"], "trial takes; expected 24 or more"),
        ("at2po", ["actors={kind: pool, weight: uniform}"], "actors pool are rated by whole games"),
        ("hierarchical_grpo", ["actors={kind: league}"], "actors league are rated by whole games"),
        ("turn_ppo", ["structure={kind: chop, size: 2, context: 90, summaries: 1}"], "a critic has one value"),
    ],
)
def test_what_a_structure_cannot_do_is_told(recipe: str, changes: list[str], why: str) -> None:
    with pytest.raises(TrainingError, match=why):
        check(load_recipe(recipe, changes))


def test_a_tree_reads_log_probabilities_and_no_memories() -> None:
    with pytest.raises(ScenarioError, match="this reads recorded log-probabilities"):
        load_recipe("at2po", ["rollout.logprobs=false"])
    with pytest.raises(ScenarioError, match="a tree has no rows of what is written into memories"):
        load_recipe("at2po", ["credit.0.span={kind: tag, tags: [summary]}"])


# --- played ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


CHANGES = ("structure.size=2", "structure.nodes=2", "structure.branches=2", "extra=[]", "optimiser.epochs=1")


def planned(model: Path, recipe: str = "at2po", episodes: int = 6) -> Plan:
    """As many starts as there are six episodes: two trunks, and two branches at each of two nodes."""
    return small(model, recipe, *CHANGES, f"rollout.episodes={episodes}")


def test_branches_begin_as_their_trunks_and_have_luck_of_their_own(model: Path, tmp_path: Path) -> None:
    with Trainer(tmp_path / "kuhn", planned(model, episodes=18)) as trainer:
        numbers = trainer.update()
    assert numbers["episodes"] == 18
    trunks, path = (tmp_path / "kuhn" / "rollouts" / f"update-000001-0{part}.db" for part in ("", "-branches"))
    with Run(trunks) as run, Run(path) as made:
        assert (run.tables, made.tables) == (6, 12)
        branches = [Branch(*one) for one in made.manifest().branches]
        answers = []
        for table, one in enumerate(branches):
            before = [fact.fact for fact in run.facts(table=one.table) if fact.tick <= one.tick]
            assert [fact.fact for fact in made.facts(table=table)][: len(before)] == before
            (there,) = [each for each in run.decisions(one.table) if each.action.seen == one.tick]
            (here,) = [each for each in made.decisions(table) if each.action.seen == one.tick]
            asked, again = run.calls_of(there)[0], made.calls_of(here)[0]
            assert again.messages == asked.messages
            assert again.seed != asked.seed
            answers.append(again.seed)
        assert len(set(answers)) == len(answers)
        live = [call for call in made.calls() if call.source == "engine"]
        for call in live:
            assert call.key.tick >= branches[call.key.table].tick, "what is shared is played once"
    assert verify(path).whole


def test_a_training_on_trees_goes_on_after_a_break(model: Path, tmp_path: Path) -> None:
    plan = planned(model)
    whole = trained(tmp_path / "whole" / "kuhn", plan, 2)
    trained(tmp_path / "kuhn", plan, 1)
    after = trained(tmp_path / "kuhn", plan, 2)
    assert all((whole["policies"]["kuhn"][key] == value).all() for key, value in after["policies"]["kuhn"].items())


@pytest.mark.parametrize("recipe", ["at2po", "arpo_like"])
def test_trees_move_the_policy(model: Path, tmp_path: Path, recipe: str) -> None:
    with Trainer(tmp_path / "kuhn", planned(model, recipe)) as trainer:
        numbers = trainer.update()
    assert numbers["gradient_norm"] > 0
    assert numbers["rows"] > 0
