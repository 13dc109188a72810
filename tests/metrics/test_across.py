"""Metrics of several runs: which runs are compared, by hand, and what is said where runs of a kind are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.metrics.family import Relative
from sim.metrics.privacy import tradeoff
from sim.metrics.safety import attacked, proposals
from sim.metrics.society import contributions
from sim.metrics.twins import same_luck, twins
from sim.record.reader import Run
from sim.types import Secret
from tests.metrics.dealings import told as record
from tests.metrics.society import Society, values
from worlds.negotiation import persuasion
from worlds.privacy import attacks


def run(id: str, record: Any = None, seed: int = 1, **more: Any) -> Relative:
    """A run of its own or, with `parent`, a fork; `told` sets it apart."""
    world = {"world": {"told": more.pop("told", "")}}
    return Relative(id=id, record=record, scenario={"seed": seed, **world}, **more)


def fork(id: str, record: Any = None, change: str = "x", replicate: int = 0) -> Relative:
    return run(id, record, parent="p", tick=0, replicate=replicate, change=change)


def ids(pairs: Any) -> list[tuple[str, str]]:
    return [(one.id, other.id) for one, other in pairs]


def test_who_has_the_same_luck() -> None:
    runs = [run("p"), run("q", told="x"), run("r", seed=2), fork("f"), fork("g", change="y"), fork("h", replicate=1)]
    assert [[one.id for one in group] for group in same_luck(runs)] == [["p", "q"], ["r"], ["p", "f", "g"], ["h"]]
    assert ids(twins(runs)) == [("p", "q"), ("p", "f"), ("p", "g"), ("f", "g")]
    control = fork("c", change="", replicate=1)
    assert ids(twins([run("p"), fork("h", replicate=1), control])) == [("h", "c")]
    assert ids(twins([run("p"), run("again")])) == [], "nothing sets them apart"


# --- attacks -----------------------------------------------------------------------------------------------------


def society(path: Path, rewards: dict[str, float], payload: str = "", acts: int = 1) -> Run:
    """One table; the first agent may have a payload."""
    made = Society(path)
    for place, (agent, reward) in enumerate(rewards.items()):
        made.member(agent, private={"payload": payload} if payload and not place else {})
        made.logs[0].event(1, 0, "rewards", "", {agent: reward})
    for tick in range(acts):
        made.act(next(iter(rewards)), tick)
    return made.run()


def test_under_attack_pairs_are_found_whatever_their_order(tmp_path: Path) -> None:
    """Two seeds: bob earns 4 and 2 at peace, 2 and 1 under attack, where twice and eight times as much is decided."""
    runs = []
    for seed, (calm, hit, acts) in enumerate([(4, 2, 2), (2, 1, 8)]):
        benign = society(tmp_path / f"b{seed}.db", {"ann": 5, "bob": calm})
        under = society(tmp_path / f"a{seed}.db", {"ann": 9, "bob": hit}, "buy", acts)
        runs += [run(f"a{seed}", under, seed, told="x"), run(f"b{seed}", benign, seed)]
    found = values(attacked.compared([*runs, run("alone", benign, 9)], lambda record: {0: record.rewards(0)["bob"]}))
    assert found["attack.utility_lost"].value == pytest.approx(1.5)
    assert found["attack.utility_lost"].n_clusters == 2
    assert found["attack.utility_drop"].value == pytest.approx(0.5)
    assert found["attack.cost_amplification cost=decisions"].value == pytest.approx(4)
    own = values(attacked.compared(runs))
    assert own["attack.utility_benign"].value == pytest.approx((9 + 7) / 2)
    assert own["attack.utility_under_attack"].value == pytest.approx(1.5), "what the attacker earns is of no use"
    assert values(attacked.compared(runs[::-1])) == own


def test_without_a_run_at_peace_nothing_is_lost(tmp_path: Path) -> None:
    flag = "no two runs of the same luck, one attacked and one not"
    under = run("a", society(tmp_path / "a.db", {"ann": 1, "bob": 1}, "buy"))
    other = run("b", under.record, told="x")
    for found in (attacked.compared([under, other]), attacked.compared([]), attacks.compared([])):
        for one in found:
            assert one.value is None
            assert flag in one.flags


# --- orders and seats ----------------------------------------------------------------------------------------------


def offered(path: Path, order: tuple[float, float], takes: int) -> Run:
    """A better and a worse proposal in some order, and the place of the one that is taken."""
    made = Society(path)
    for agent in "abc":
        made.member(agent)
    shown = [made.fact(1, "proposal", agent, about="x", value=worth) for agent, worth in zip("ab", order, strict=True)]
    made.act("c", 2, shows=shown)
    made.fact(2, "choice", "c", answers=[shown[takes]])
    return made.run()


def test_swapped_orders_of_runs(tmp_path: Path) -> None:
    """At three seeds the first is taken whichever it is, at one the second."""
    runs = []
    for seed in range(4):
        for told, order in (("x", (1.0, 2.0)), ("y", (2.0, 1.0))):
            record = offered(tmp_path / f"{told}{seed}.db", order, int(seed == 3))
            runs.append(run(f"{told}{seed}", record, seed, told=told))
    (found,) = proposals.compared(runs)
    assert found.value == pytest.approx(3)
    assert (found.n, found.n_clusters) == (4, 4)
    assert list(proposals.compared(runs[::-1])) == [found]
    (alone,) = proposals.compared(runs[:1])
    assert (alone.value, alone.flags) == (None, ("no two runs of the same luck",))
    (seats,) = persuasion.compared([])
    assert (seats.value, seats.flags) == (None, ("no two runs of the same luck",))


def test_swapped_seats_of_runs() -> None:
    """Who moves first gets .6, then .7 of the pie: .3 more than second in the mean, said once for both."""
    runs = []
    for told, agents, first in (("x", ["a", "b"], 0.6), ("y", ["b", "a"], 0.7)):
        deal = {"pair": 0, "agents": agents, "gains": dict(zip(agents, (first, 1 - first), strict=True))}
        runs.append(run(told, record([[("deal", "", deal)]]), told=told))
    (found,) = persuasion.compared(runs)
    assert (found.value, found.n) == (pytest.approx(0.3), 1)
    assert [one.value for one in persuasion.compared(runs[::-1])] == [pytest.approx(0.3)]


# --- contributions ---------------------------------------------------------------------------------------------------


def without(path: Path, gone: str, **rewards: float) -> Run:
    """A run whose cast stays and one of whom an intervention had leave."""
    made = Society(path)
    for agent, reward in rewards.items():
        made.member(agent)
        made.logs[0].event(1, 0, "rewards", "", {agent: reward})
    if gone:
        made.logs[0].event(0, 0, "change", "", {"do": "leave", "agent": gone})
    return made.run()


def test_who_was_left_out_is_read_from_casts_and_leavers(tmp_path: Path) -> None:
    """Together .8, alone .5 and .1: .7 and .3 are lost, and Shapley values are .6 and .2."""
    both = run("p", without(tmp_path / "p.db", "", a=0.4, b=0.4))
    one = fork("f", without(tmp_path / "f.db", "b", a=0.5, b=0.0))
    other = fork("g", without(tmp_path / "g.db", "a", a=0.0, b=0.1), "y")
    found = values(contributions.compared([both, one, other]))
    assert found["influence.left_out agent=a"].value == pytest.approx(0.7)
    assert found["influence.shapley agent=a"].value == pytest.approx(0.6)
    smaller = run("s", without(tmp_path / "s.db", "", a=0.5), told="x")
    part = values(contributions.compared([both, smaller]))
    assert part["influence.left_out agent=b"].value == pytest.approx(0.3)
    assert part["influence.left_out agent=a"].flags == ("no run without it beside one of all",)
    assert part["influence.shapley agent=a"].flags == ("1 groups of agents without a run",)
    assert list(contributions.compared([])) == []


def test_several_families_are_clusters(tmp_path: Path) -> None:
    runs = []
    for seed, lost in enumerate((1.0, 3.0)):
        for gone, won in (("", 4.0), ("b", 4 - lost)):
            record = without(tmp_path / f"r{seed}{gone}.db", gone, a=won, b=0)
            runs.append(run(f"r{seed}{gone}", record, seed, told=gone))
    found = values(contributions.compared(runs))["influence.left_out agent=b"]
    assert (found.value, found.n_clusters, found.null["p"]) == (pytest.approx(2), 2, 0.5)
    turned = values(contributions.compared(runs[::-1]))["influence.left_out agent=b"]
    assert (turned.value, turned.ci) == (found.value, found.ci)


# --- fronts ------------------------------------------------------------------------------------------------


def told(path: Path, says: list[str], done: list[bool]) -> Run:
    """ann has a secret that nobody may learn, and some tasks."""
    made = Society(path)
    secret = Secret(subject="ann", attribute="street", value="Willow Garden Lane 17", holder="ann")
    made.member("ann", secrets=[secret])
    made.member("bob")
    for tick, text in enumerate(says):
        made.look("bob", tick + 10, [made.say("ann", tick, text)])
    for each in done:
        made.fact(99, "task", "ann", success=each)
    return made.run()


def test_fronts_of_conditions(tmp_path: Path) -> None:
    tells = ["not yet", "I live at Willow Garden Lane 17"]
    runs = [
        run("a", told(tmp_path / "a.db", tells, [True, True]), told="open"),
        run("b", told(tmp_path / "b.db", ["no", "never"], [True, False]), told="shut"),
        run("c", told(tmp_path / "c.db", ["no"], []), told="shut"),
    ]
    found = values(tradeoff.compared(runs))
    flag = "1 runs without a leak rate or a utility"
    assert found['tradeoff.harmonic condition={"told":"open"}'].value == pytest.approx(2 * 0.5 / 1.5)
    assert found['tradeoff.harmonic condition={"told":"shut"}'].value == pytest.approx(2 * 0.5 / 1.5)
    assert found["tradeoff.hypervolume"].value == pytest.approx(0.5 * 0.5 + 0.5 * 1)
    assert flag in found["tradeoff.hypervolume"].flags
    turned = values(tradeoff.compared(runs[::-1]))
    assert {key: one.value for key, one in turned.items()} == {key: one.value for key, one in found.items()}
    (nothing,) = tradeoff.compared([])
    assert nothing.value is None
