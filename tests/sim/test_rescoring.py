"""Rescoring: answers of a run scored by the model that gave them, by another, and what that one would have earned."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import exp, fsum
from pathlib import Path
from typing import Any

import pytest

from agents.engines.torch import TorchEngine
from sim.commands.failures import BadInput
from sim.metrics.analysis import offpolicy
from sim.metrics.analysis.sampled import sampled
from sim.metrics.family import conditions, measure, opened, trials
from sim.metrics.twins import twins
from sim.record.reader import Run
from sim.runs import Session, create, go
from sim.scenarios.scenario import loads
from sim.scenarios.yaml_text import write_yaml
from sim.studies.rescoring import rescoring
from sim.types import Choice, Message, Request, Sampling
from sim.verify import verify
from tests.commands import Agora
from tests.metrics.society import values
from training.policy import tiny_model

TABLES = 60
ACTIONS = ("dove", "hawk")
PAYOFFS = {"dove,dove": [3.0, 3.0], "dove,hawk": [1.0, 4.0], "hawk,dove": [4.0, 1.0], "hawk,hawk": [0.0, 0.0]}
COOL = "{engine: torch, model: %s, temperature: 0.2, threads: 1}"


def scenario(model: Path) -> dict[str, Any]:
    """Two players of one model play a game of two actions once."""
    cast = [
        {"name": name, "agent": "agents.llm:LLMAgent", "model": "small", "with": {"memory_tokens": 0}, "think": "1s"}
        for name in ("ann", "bob")
    ]
    world = {"use": "worlds.games.matrix:Matrix", "actions": [list(ACTIONS)] * 2, "payoffs": PAYOFFS, "rules": False}
    small = {"engine": "torch", "model": str(model), "temperature": 1.0, "context": 512, "threads": 1}
    return {
        "name": "doves", "seed": 5, "clock": {"until": None}, "world": world,
        "models": {"small": small}, "cast": cast, "tables": TABLES,
    }  # fmt: skip


def played(folder: Path, data: dict[str, Any], name: str = "doves") -> Path:
    path = create(loads(write_yaml(data), Path(), file="doves.yaml"), folder, name)
    assert go(path).status == "finished"
    return path


@pytest.fixture(scope="module")
def behaviour(tiny_folder: Path, one_thread: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("runs"), scenario(tiny_folder))


@pytest.fixture(scope="module")
def cool(behaviour: Path, tiny_folder: Path) -> Path:
    """Its answers scored at a low temperature, after a pause in the middle; what was scored is not scored again."""
    scored = rescoring(behaviour, behaviour.parent, model=COOL % tiny_folder)

    def half(session: Session) -> None:
        for _ in range(TABLES // 2):  # that many tables ask their two players, and the others wait
            session.pace.step()

    assert go(scored, budget=1, attach=half).status == "paused"
    with Run(scored) as run:
        before = sum(1 for _ in run.calls())
    assert 0 < before <= TABLES
    assert rescoring(behaviour, behaviour.parent, model=COOL % tiny_folder, of="small") == scored
    sessions: list[Session] = []
    assert go(scored, attach=sessions.append).status == "finished"
    assert sessions[0].calls is not None
    assert (sessions[0].calls.reused, sessions[0].calls.submitted) == (before, 2 * TABLES)
    return scored


def valued(path: Path, scored: Path) -> dict[str, Any]:
    with Run(path) as one, Run(scored) as other:
        return values(offpolicy.valued(one, other, {}))


def chances(model: Path, path: Path) -> list[dict[str, list[float]]]:
    """Of each agent the probability of each action, straight from an engine, at either temperature."""
    with Run(path) as run:
        asked = {one.key.agent: one.messages for one in run.calls()}
    engine = TorchEngine(str(model), max_model_len=512, threads=1)
    ids = engine.mask(ACTIONS).sequences
    found = []
    for temperature in (1.0, 0.2):
        requests = {
            agent: Request(
                messages=tuple(Message(role=one.role, text=one.text) for one in messages),
                format=Choice(options=ACTIONS),
                sampling=Sampling(temperature=temperature),
            )
            for agent, messages in asked.items()
        }
        scores = {agent: engine.score([request] * 2, ids).result() for agent, request in requests.items()}
        found.append({agent: [exp(fsum(each)) for each in own] for agent, own in scores.items()})
    engine.close()
    return found


def test_the_model_itself_has_weights_of_one(behaviour: Path, tmp_path: Path) -> None:
    """Its answers are scored as it drew them; so what it would have earned is what it earned."""
    scored = rescoring(behaviour, tmp_path)
    assert go(scored).status == "finished"
    with Run(behaviour) as one, Run(scored) as other:
        pairs = list(zip(sampled(one), sampled(other), strict=True))
        assert {call.source for call in other.calls()} == {"engine"}
        for call in other.calls():
            (known,) = (each for each in call.completion.option_logprobs if each is not None)
            assert known == pytest.approx(fsum(call.completion.logprobs)), "what others were thought of is not scored"
        earned = [fsum(one.rewards(table).values()) for table in range(TABLES)]
    assert all(theirs.logprob == pytest.approx(own.logprob, abs=1e-6) for own, theirs in pairs)
    found = valued(behaviour, scored)
    for name in ("value", "ips", "per_decision", "behaviour"):
        assert found[f"offpolicy.{name}"].value == pytest.approx(fsum(earned) / TABLES)
    assert found["offpolicy.effective_size"].value == pytest.approx(TABLES)
    assert found["offpolicy.largest_weight"].value == pytest.approx(1 / TABLES)


def test_another_policy_has_the_value_that_enumeration_gives(behaviour: Path, cool: Path, tiny_folder: Path) -> None:
    """Over all pairs of actions; and on the very sample, weights from probabilities of each action alone."""
    found = valued(behaviour, cool)
    own, other = chances(tiny_folder, behaviour)
    joint = {pair: ",".join(ACTIONS[at] for at in pair) for pair in product(range(2), repeat=2)}
    weight = {
        told: other["ann"][a] * other["bob"][b] / (own["ann"][a] * own["bob"][b]) for (a, b), told in joint.items()
    }
    exact = fsum(other["ann"][a] * other["bob"][b] * sum(PAYOFFS[told]) for (a, b), told in joint.items())
    with Run(behaviour) as run:
        did = Counter(",".join(row.fact.data["moves"][name] for name in ("ann", "bob")) for row in run.facts("round"))
    assert did.total() == TABLES
    total = fsum(count * weight[told] for told, count in did.items())
    value = found["offpolicy.value"]
    by_hand = fsum(count * weight[told] * sum(PAYOFFS[told]) for told, count in did.items()) / total
    assert value.value == pytest.approx(by_hand, rel=1e-4)
    assert found["offpolicy.ips"].value == pytest.approx(by_hand * total / TABLES, rel=1e-4)
    assert found["offpolicy.per_decision"].value == pytest.approx(found["offpolicy.ips"].value)
    assert value.ci[0] <= exact <= value.ci[1]
    assert abs(exact - found["offpolicy.behaviour"].value) > 0.05, "the other policy is another one"


def test_it_is_found_beside_its_parent_and_verified(behaviour: Path, cool: Path) -> None:
    assert verify(cool).whole
    found = measure([behaviour], [offpolicy.compared])
    assert found[0].of == {"behaviour": "doves", "target": cool.stem}
    assert found[0].value is not None


def test_it_is_no_treated_fork_and_no_condition(behaviour: Path, cool: Path) -> None:
    with opened([behaviour, cool]) as runs:
        assert [one.id for one in runs] == ["doves"]
        assert [one.id for one in runs[0].rescorings] == [cool.stem]
        assert (trials(runs), twins(runs), list(conditions(runs))) == ([], [], [""])


def test_the_command(behaviour: Path, tmp_path: Path, agora: Agora) -> None:
    words = ("rescore", str(behaviour), "--quiet")
    done = agora(*words, "--policy", f"low@1={tiny_model(tmp_path / 'low', seed=2)}")
    assert done.code == 0, done.err
    assert "offpolicy.effective_size" in done.out
    with Run(tmp_path / "runs" / "doves-rescored.db") as run:
        assert [row[0] for page in run.pages("policies") for row in page] == ["low@1"]
        assert {call.policy for call in run.calls()} == {"low@1"}
    own = "{engine: agents.engines.synthetic:SyntheticEngine}"  # as one of a user's own, of which nothing is known
    assert "cannot score" in agora(*words, "--model", own).out
    assert agora("resume", "doves-rescored-2", "--quiet").code == 3


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--of", "large"), "--of 'large' answered nothing in doves; there is only small"),
        (("--policy", "low"), "--policy 'low' is none; write name@v=FOLDER, like small@2=adapters/small"),
        (("--policy", "low@1=nowhere"), "--policy 'low@1=nowhere': there is no folder nowhere"),
        (("--model", "large"), "--model 'large' is none of the run's models; there is only small"),
        (("--model", "{engine: torch, temprature: 1, temperature: high}"), "--model:1: temperature: 'high' is wrong"),
        (("--model", "{engine: human}"), "--model: people give no log-probabilities; name a model"),
        (
            ("--model", "{engine: synthetic}"),
            "--model: the engine synthetic scores no given answer; choose vllm or torch",
        ),
        (("--model", "{temperature: 0, engine: torch}"), "--model: temperature 0 gives its one answer no probability"),
    ],
)
def test_bad_input(words: tuple[str, str], error: str, behaviour: Path, agora: Agora) -> None:
    done = agora("rescore", str(behaviour), *words)
    assert (done.code, error in done.line) == (2, True), done.line


def test_answers_without_tokens_or_without_luck_are_not_scored(tmp_path: Path) -> None:
    data = scenario(Path("nowhere")) | {"tables": 1}
    untold = played(tmp_path, {**data, "models": {"small": {"engine": "synthetic"}}}, "untold")
    with pytest.raises(BadInput, match="untold holds no tokens of what small answered"):
        rescoring(untold, tmp_path)
    speaking = {"engine": "tests.training.speaking:Speaking", "temperature": 0}
    greedy = played(tmp_path, {**data, "models": {"small": speaking}}, "greedy")
    with pytest.raises(BadInput, match="small answered greedily"):
        rescoring(greedy, tmp_path)
    begun = create(loads(write_yaml(data), Path(), file="doves.yaml"), tmp_path, "begun")
    with pytest.raises(BadInput, match="begun is interrupted; finish it first"):
        rescoring(begun, tmp_path)
