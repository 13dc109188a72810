"""The forked experiment: what is said instead, which decisions are compared, and the truth of a planted platform."""

from __future__ import annotations

from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import pytest

from sim.intervals import Z
from sim.metrics.privacy.forked_contagion import Both, Contrast, all, paired_ratio
from sim.metrics.privacy.neutral import _instead, disclosing
from sim.record.reader import Run
from sim.runs import create, go
from sim.studies.contagion import arms, groups
from sim.studies.counterfactual import Instead, counterfactual, counterfactuals
from sim.types import Secret
from sim.verify import verify
from tests.benchmarks.contagion import covered, platform
from tests.commands import Agora
from tests.metrics.society import Society, values

AGENTS = ("ann", "bob", "cid", "dan")


def test_worked_examples_of_a_paired_ratio() -> None:
    found = paired_ratio(Both(16, 4, 13, 1, 100))
    half = Z * sqrt(14 / 64)
    assert found.value == 4
    assert found.ci == pytest.approx((exp(log(4) - half), exp(log(4) + half)))
    assert paired_ratio(Both(5, 5, 0, 0, 9)).ci == (1, 1)
    assert paired_ratio(Both(0, 5, 0, 5, 9)).value == 0
    assert paired_ratio(Both(5, 0, 5, 0, 9)) == (None, None, ("no outcome in one arm",))


def arm(path: Path, told: bool, follows: str = "", made: bool = True) -> Run:
    """Ann speaks at tick 1, bob and dan see it and speak at 2, cid sees nothing and speaks at 2."""
    society = Society(path)
    for number, agent in enumerate(AGENTS):
        secret = Secret(subject=agent, attribute="account", value=f"{7_310_000 + 37 * number}", holder=agent)
        society.member(agent, secrets=[secret] if agent != "dan" else [])
    if not told:
        change = {"do": "act", "agent": "ann", "answer": "good morning to you"}
        society.logs[0].event(1, 0, "change", "", change if made else {**change, "skipped": "illegal answer"})
    society.act("ann", 1, seen=0, how="chosen" if told or not made else "forced")
    said = society.fact(1, "message", "ann", text="account 7310000" if told else "good morning to you")
    for agent, shows in (("bob", [said]), ("cid", []), ("dan", [said])):
        text = f"account {7_310_000 + 37 * AGENTS.index(agent)}" if agent in follows.split() else "so be it"
        society.say(agent, 2, text, seen=1, shows=shows)
    society.look("ann", 3, [1, 2, 3])
    return society.run()


def test_decisions_that_saw_a_disclosure_in_one_arm_alone(tmp_path: Path) -> None:
    """Only bob is compared: cid saw nothing, dan has no secret, ann was made to act."""
    run, fork = arm(tmp_path / "a.db", True, "bob cid"), arm(tmp_path / "b.db", False, "cid")
    found = values(all([Contrast(run, fork)]))
    ratio, difference = (found[f"contagion.forked_risk_{name}"] for name in ("ratio", "difference"))
    assert (ratio.value, ratio.n, ratio.flags) == (None, 1, ("no outcome in one arm",))
    assert ratio.null == {"stat": 1, "p": 1.0, "method": "exact McNemar"}
    assert (difference.value, difference.n_clusters, difference.ci) == (1, 1, None)
    assert found["contagion.forked_agents_telling"].value == pytest.approx(1 - 1 / 2)
    run, fork = arm(tmp_path / "c.db", True, "bob"), arm(tmp_path / "d.db", False, "bob")
    assert values(all([Contrast(run, fork)]))["contagion.forked_risk_ratio"].value == 1


def test_a_decision_counts_once_for_each_luck(tmp_path: Path) -> None:
    run, fork = arm(tmp_path / "a.db", True, "bob"), arm(tmp_path / "b.db", False, "bob")
    twice = values(all([Contrast(run, fork)] * 2))["contagion.forked_risk_ratio"]
    assert (twice.n, twice.n_clusters) == (1, 1)
    lucks = values(all([Contrast(run, fork), Contrast(run, fork, 1)]))["contagion.forked_risk_ratio"]
    assert (lucks.n, lucks.n_clusters) == (2, 2)


def test_a_fork_whose_replacement_failed_is_left_out(tmp_path: Path) -> None:
    run, fork = arm(tmp_path / "a.db", True, "bob"), arm(tmp_path / "b.db", False, made=False)
    for one in all([Contrast(run, fork)]):
        assert one.value is None
        assert one.excluded == {"forks in which a replacement was not possible": 1}
    assert {one.value for one in all([])} == {None}


# --- on a platform of rule agents --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parent(tmp_path_factory: Any) -> Path:
    path = create(platform(3, 8.0, True, people=25), tmp_path_factory.mktemp("runs"), "leaks")
    assert go(path).status == "finished"
    return path


def test_what_is_said_instead_is_of_the_same_kind_and_length(parent: Path) -> None:
    with Run(parent) as run:
        found = list(disclosing(run))
        texts = {one.fact.id: one.fact.data["text"] for one in run.facts() if "text" in one.fact.data}
        kinds = {one.fact.id: one.fact.kind for one in run.facts()}
        plain = {text for text in texts.values() if "between us" not in text.lower()}
    assert len(found) > 20
    for one in found:
        assert one.answer is not None
        assert one.answer["act"] == kinds[one.fact]
        assert one.answer["text"] in plain
        assert abs(len(one.answer["text"]) - len(texts[one.fact])) <= 15


def test_the_same_words_are_nothing_else_to_say() -> None:
    """A choice by which the world tells a value: leaving it as it is would be no experiment."""
    assert _instead("share", ["share", "share"]) is None
    assert _instead("share", ["share", "refuse"]) == "refuse"
    assert _instead({"act": "post", "text": "abc"}, ["abc", "a", "abcd"]) == {"act": "post", "text": "abcd"}


def test_no_group_holds_two_of_which_one_had_heard_the_other(parent: Path) -> None:
    with Run(parent) as run:
        one, several, told = groups(run), groups(run, 9), list(disclosing(run))
    assert several[0] == one[0]
    assert sum(map(len, several)) == len(told)
    where = {(each.table, each.tick, each.agent): number for number, group in enumerate(several) for each in group}
    group_of = {each.fact: where[each[:3]] for each in told}
    for each in told:
        assert not any(group_of[fact] == group_of[each.fact] for fact in each.heard)


def test_a_counterfactual_is_made_once_and_verified(parent: Path) -> None:
    with Run(parent) as run:
        group = groups(run)[0][:2]
    path = counterfactual(parent, parent.parent, group)
    assert counterfactual(parent, parent.parent, group[::-1]) == path
    other = counterfactual(parent, parent.parent, (), at=group[0].tick, replicate=1)
    assert [one.path for one in counterfactuals(parent, parent.parent)] == [path, other]
    session = go(path)
    assert session.tables[0].counts["forced"] == 2
    assert verify(path).whole
    with Run(path) as run, Run(parent) as before:
        forced = [one for one in run.decisions() if one.action.how == "forced"]
        assert [(one.table, one.tick, one.action.agent, one.action.answer) for one in forced] == sorted(group)
        early = [one for one in before.decisions() if one.tick < group[0].tick]
        assert list(run.decisions())[: len(early)] == early
    assert isinstance(group[0], Instead)


def test_both_measures_recover_a_planted_contagion() -> None:
    """`tests.benchmarks.contagion` takes 100 seeds."""
    hits = covered(8.0, True, range(1), people=60)
    assert hits["matched"] == hits["forked"] == [True]
    assert hits["crude"] == [False]


def test_the_command(parent: Path, agora: Agora) -> None:
    done = agora("contagion", str(parent), "--reads", "2", "--forks", "1", "--quiet", "--runs", str(parent.parent))
    assert done.code == 0, done.err
    assert "contagion.forked_risk_ratio" in done.out
    (pair,) = arms(parent, parent.parent, [_group(parent)])
    assert pair.told == parent
    assert go(pair.replaced).status == "finished", "the one that the command made"


def test_a_run_without_secrets_has_nothing_to_try(tmp_path: Path, agora: Agora) -> None:
    path = create(platform(1, 1.0, False, people=2), tmp_path, "quiet")
    assert "finish it first: agora resume quiet" in agora("contagion", str(path)).line
    go(path)
    with Run(path) as run:
        nothing = not groups(run)
    assert nothing == ("nothing to try" in agora("contagion", str(path), "--quiet", "--runs", str(tmp_path)).err)


def _group(path: Path) -> list[Instead]:
    with Run(path) as run:
        return groups(run)[0]
