"""The shipped societies of language-model agents on the embedded model, served by vLLM on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.engines.vllm import VLLMEngine
from sim.fork import fork
from sim.library import measure
from sim.record.reader import Counts, Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.verify import verify
from tests.laws.test_law4_kills import log_of

pytestmark = pytest.mark.model

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHORTER = {
    "games/stag_hunt_llm.yaml": ["world.rounds=2", "world.continuation=0"],
    "negotiation/bargaining_llm.yaml": [],
    "markets/apple_market_llm.yaml": ["world.periods=1", "world.period=1m", "interventions=[]"],
    "platforms/forum_llm.yaml": ["clock.until=1h"],
}
"""The four societies, with settings that shorten them to about a minute on two cores."""
LIMITS = {"choice": 0.02, "form": 0.05, "text": 0.05}
"""Largest share of defaulted answers by format, those cut off at the length limit included."""


@pytest.fixture(scope="module")
def played(embedded_engine: VLLMEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every scenario for language-model agents, run to its end."""
    folder = tmp_path_factory.mktemp("runs")
    paths = {}
    for name, shorter in SHORTER.items():
        file = SCENARIOS / name
        paths[file.stem] = create(load(file, shorter), folder, file.stem)
        session = go(paths[file.stem], engines={"small": embedded_engine})
        assert (session.status, session.cause) == ("finished", "")
    return paths


def counted(path: Path) -> Counts:
    with Run(path) as run:
        return run.counts()


def test_societies_run_to_the_end_with_few_defaults(played: dict[str, Path]) -> None:
    totals: dict[str, dict[str, int]] = {}
    for path in played.values():
        counts = counted(path)
        assert counts.failed == 0
        for form, by_how in counts.decisions.items():
            total = totals.setdefault(form, {})
            for how, count in by_how.items():
                total[how] = total.get(how, 0) + count
            assert by_how.get("defaulted", 0) <= LIMITS[form] * sum(by_how.values())
    assert totals.keys() == LIMITS.keys()
    for form, total in totals.items():
        assert total.get("faulted", 0) == 0
        assert total.get("defaulted", 0) < LIMITS[form] * sum(total.values()), form


def test_what_the_model_said_is_recorded_token_by_token(played: dict[str, Path]) -> None:
    with Run(played["stag_hunt_llm"]) as run:
        for decision in run.decisions():
            for call in run.calls_of(decision):
                completion = call.completion
                assert len(completion.ids) == len(completion.logprobs) == completion.usage.completion > 0
                assert completion.distribution == "processed"


def test_outcomes_are_measured(played: dict[str, Path]) -> None:
    for path in played.values():
        assert any(one.value is not None for one in measure(path))


def test_the_record_alone_replays_the_run(played: dict[str, Path]) -> None:
    for path in played.values():
        assert verify(path).whole


def test_a_no_op_fork_is_identical_and_asks_nothing(played: dict[str, Path], tmp_path: Path) -> None:
    parent = played["stag_hunt_llm"]
    with Run(parent) as run:
        ticks = [decision.tick for decision in run.decisions()]
    asked: list[Any] = []
    child = fork(parent, tmp_path, sorted(ticks)[len(ticks) // 2])
    session = go(child, engines={"small": _Refuses(asked)})
    assert session.status == "finished"
    assert session.calls is not None
    assert session.calls.reused == session.calls.submitted > 0
    assert asked == []
    assert log_of(child) == log_of(parent)


class _Refuses:
    """An engine that must not be asked."""

    def __init__(self, asked: list[Any]) -> None:
        self.asked = asked

    def submit(self, request: Any) -> Any:
        self.asked.append(request)
        raise AssertionError("asked")

    def score(self, requests: Any, continuations: Any) -> Any:
        raise AssertionError("asked")

    def close(self) -> None:
        """Nothing to close."""
