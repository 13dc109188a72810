"""Blame by counterfactual replay: a planted fault is found among all that the failure could depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.metrics.analysis.attribution import measured
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
    assert nothing["attribution.root"].flags == ("no decision surely matters",)
    assert nothing["attribution.pruned"].value is None
