"""Which weights spoke: the record's table of policies, and what happens when a name changes its weights."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from sim.fork import fork
from sim.policies import policy_rows
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.located import ScenarioError
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import Scenario
from sim.scenarios.yaml_text import write_yaml

ENGINE = """
from pathlib import Path

from agents.engines.synthetic import SyntheticEngine

class Adapted(SyntheticEngine):
    def __init__(self, adapters=None):
        super().__init__()
        for folder in (adapters or {}).values():
            assert Path(folder, "adapter_model.safetensors").read_bytes(), "its path is one from anywhere"
"""


def weights(folder: Path, content: bytes, note: str = "") -> str:
    """A folder with weights; their hash."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_model.safetensors").write_bytes(content)
    if note:
        (folder / "policy.json").write_text(note)
    return hashlib.sha256(content).hexdigest()


def scenario(folder: Path, **model: Any) -> Scenario:
    (folder / "engine.py").write_text(ENGINE)
    data = {
        "name": "talk",
        "clock": {"until": "1m"},
        "world": {"use": "worlds.games.matrix:Matrix", "game": "pd", "rounds": 3},
        "models": {"m": {"engine": "./engine.py:Adapted", **model}},
        "cast": [{"name": "player", "count": 2, "agent": "agents.llm:LLMAgent", "model": "m", "think": "5s"}],
    }
    return loads(write_yaml(data), folder, file="talk.yaml")


def kept(path: Path) -> list[Any]:
    with Run(path) as run:
        return [row for page in run.pages("policies") for row in page]


def test_a_run_knows_its_policies_by_their_content(tmp_path: Path) -> None:
    first = weights(tmp_path / "a", b"one")
    second = weights(
        tmp_path / "b",
        b"two",
        f'{{"hash": "{hashlib.sha256(b"two").hexdigest()}", "base": "beef", "parent": "trader@1"}}',
    )
    adapters = {"trader@2": "b", "trader@1": str(tmp_path / "a")}
    path = create(scenario(tmp_path, policy="trader@2", adapters=adapters), tmp_path / "runs", "one")
    assert kept(path) == [("trader@1", "", first, ""), ("trader@2", "beef", second, "trader@1")]
    assert go(path).status == "finished"


def test_a_policy_of_an_endpoints_own_has_no_hash(tmp_path: Path) -> None:
    assert policy_rows(scenario(tmp_path, policy="judge@1")) == [("judge@1", "", "", "")]
    assert policy_rows(scenario(tmp_path, policy="learner")) == [], "a learner has no version yet"


def test_a_folder_without_weights_or_with_others_than_it_says_is_refused(tmp_path: Path) -> None:
    wanted = scenario(tmp_path, policy="trader@1", adapters={"trader@1": "a"})
    with pytest.raises(ScenarioError, match=r"models\.m\.adapters\.trader@1: .*a holds no safetensors file"):
        create(wanted, tmp_path / "runs")
    weights(tmp_path / "a", b"one", '{"hash": "0"}')
    with pytest.raises(ScenarioError, match=r"holds other weights than its policy\.json says"):
        create(wanted, tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("*.db"))


def test_who_goes_on_with_a_run_is_who_began_it(tmp_path: Path) -> None:
    weights(tmp_path / "a", b"one")
    path = create(scenario(tmp_path, policy="trader@1", adapters={"trader@1": "a"}), tmp_path / "runs", "one")
    assert go(path, budget=1).status == "paused"
    before = kept(path)
    weights(tmp_path / "a", b"other")
    with pytest.raises(ScenarioError, match="holds other weights than trader@1 did before"):
        go(path)
    weights(tmp_path / "a", b"one")
    assert go(path).status == "finished"
    assert kept(path) == before


def test_a_fork_knows_the_policies_of_its_parent_too(tmp_path: Path) -> None:
    weights(tmp_path / "a", b"one")
    weights(tmp_path / "b", b"two")
    path = create(scenario(tmp_path, policy="trader@1", adapters={"trader@1": "a"}), tmp_path / "runs", "one")
    assert go(path).status == "finished"
    sets = ["models.m.policy=trader@2", "models.m.adapters={trader@2: b}"]
    branch = fork(path, tmp_path / "runs", 6, sets=sets)
    assert [row[0] for row in kept(branch)] == ["trader@1", "trader@2"]
    assert go(branch).status == "finished"
    weights(tmp_path / "a", b"other")
    with pytest.raises(ScenarioError, match="holds other weights than trader@1 did before"):
        fork(path, tmp_path / "runs", 6)
