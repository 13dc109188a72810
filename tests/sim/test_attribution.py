"""Blame by counterfactual replay: a planted fault is found among all that the failure could depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.metrics.analysis.attribution import blame, measured, sets_measured, sets_to_try
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.studies.attribution import Alternative, attributed, suspects
from sim.types import JSON, Record, RecordedDecision
from tests.metrics.society import values

PLANTED = 2


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """The third of four passes the word on wrongly."""
    cast = [
        {"name": f"a{place}", "agent": "tests.sim.relay:Passer", "with": {"wrong": 0.9 if place == PLANTED else 0.0}}
        for place in range(4)
    ]
    world = {"use": "tests.sim.relay:Relay"}
    data = {"name": "relay", "seed": 1, "clock": {"until": "1h"}, "world": world, "cast": cast}
    path = create(loads(write_yaml(data), Path(), file="relay.yaml"), tmp_path, "relay")
    assert go(path).status == "finished"
    with Run(path) as run:
        assert not well(run)
    return path


def well(record: Record) -> bool:
    """Whether the last word is the right one."""
    said = [str(row.fact.data["text"]) for row in record.facts("said")]
    return said[-1] == "right"


def faithful(said: list[str]) -> Alternative:
    """What each would have said on without a slip of its own."""

    def alternative(decision: RecordedDecision) -> JSON | None:
        place = int(decision.action.agent.removeprefix("a"))
        return said[place - 1] if place else "right"

    return alternative


def test_a_planted_fault_is_the_root(parent: Path) -> None:
    with Run(parent) as run:
        said = [row.fact.data["text"] for row in run.facts("said")]
        places = {one.action.agent: one.seq for one in run.decisions()}
        names = [one.decision.action.agent for one in suspects(run, 0, 3, faithful(said))]
    assert said == ["right", "right", "wrong", "wrong"]
    assert names == ["a0", "a1", "a2", "a3"]
    found = values(attributed(parent, parent.parent, 0, 3, faithful(said), well, replays=4))
    root = found["attribution.root"]
    assert (root.value, root.decisions) == (places["a2"], (places["a2"],))
    for agent, seq in places.items():
        blame = found[f"attribution.blame agent={agent} decision={seq}"]
        assert (blame.ci[0] > 0) == (agent == "a2")
        assert (blame.value == 0) == (agent != "a2")
    assert found["attribution.pruned"].value == 0
    assert (found["attribution.consensus"].value, found["attribution.consensus"].n) == (1, 4)
    assert root.flags == ("fewer than 20 replays",)


def test_two_causes_that_have_to_be_mended_both_are_one_set(tmp_path: Path) -> None:
    """The last two of three say it wrong whatever they hear, and all have to be right."""
    cast = [
        {"name": f"a{place}", "agent": "tests.sim.relay:Passer", "with": {"wrong": float(place > 0)}}
        for place in range(3)
    ]
    data = {"name": "relay", "clock": {"until": "1h"}, "world": {"use": "tests.sim.relay:Relay"}, "cast": cast}
    path = create(loads(write_yaml(data), Path(), file="relay.yaml"), tmp_path, "relay")
    go(path)

    def flawless(record: Record) -> bool:
        return all(row.fact.data["text"] == "right" for row in record.facts("said"))

    found = values(attributed(path, tmp_path, 0, 2, lambda _one: "right", flawless, replays=6, most=2))
    assert found["attribution.root"].value is None
    assert found["attribution.root"].flags == ("fewer than 20 replays", "no decision surely matters")
    assert (found["attribution.consensus"].value, found["attribution.consensus"].n) == (None, 0)
    with Run(path) as run:
        seqs = [one.seq for one in run.decisions()]
    (name,) = [name for name in found if name.startswith("attribution.minimal_set")]
    assert (found[name].value, found[name].decisions) == (1, tuple(seqs[1:]))


def test_minimal_sets_by_hand() -> None:
    """Of three suspects the first mends alone, the others only together; 10 of 10 against none are sure of six sets."""
    groups = sets_to_try(range(3))
    alone, none = (10, 0, 10), (0, 0, 10)
    found = list(sets_measured([(3, "a"), (5, "b"), (9, "c")], groups, [alone, none, none, alone, alone, alone]))
    assert [one.decisions for one in found] == [(3,), (5, 9)]
    assert all(one.value == 1 for one in found)
    assert found[0].ci == blame(0, (10, 10), (0, 10)).ci
    (nothing,) = sets_measured([(3, "a")], sets_to_try([0]), [(5, 5, 10)])
    assert (nothing.value, nothing.flags) == (None, ("no set surely matters",))


def test_who_is_not_suspected_is_not_replayed(parent: Path) -> None:
    found = values(attributed(parent, parent.parent, 0, 3, lambda _decision: None, well, replays=1))
    assert found["attribution.root"].value is None
    assert found["attribution.root"].flags == ("nobody suspected",)
    assert [path.name for path in parent.parent.glob("*.db")] == ["relay.db"]


def test_worked_examples_of_blame() -> None:
    found = values(measured([(3, "ann"), (9, "bob")], [(8, 2, 10), (3, 3, 10)], 4))
    assert found["attribution.blame agent=ann decision=3"].value == pytest.approx(0.6)
    assert found["attribution.blame agent=bob decision=9"].value == 0
    assert found["attribution.root"].value == 3
    assert found["attribution.pruned"].value == pytest.approx(0.5)
    nothing = values(measured([(9, "bob")], [(3, 3, 10)], 0))
    assert nothing["attribution.root"].flags == ("fewer than 20 replays", "no decision surely matters")
    assert nothing["attribution.pruned"].value is None
