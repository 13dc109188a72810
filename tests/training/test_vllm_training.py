"""Training on vLLM with the embedded model: it says what the trainer and the torch engine say, and teaches the same.

All on the one engine of the model tests. A thousand tables ask the learner one and the same question; its prompt is
just longer than two blocks of 128 tokens, which vLLM remembers whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import exp, fsum, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from agents.engines.vllm import VLLMEngine
from sim.record.reader import Run
from sim.types import Choice, Engine, Logprobs, Request, Sampling, Tokens
from sim.voices import LateEngine
from training.estimate import estimate
from training.forward import option_logprobs
from training.learner import Learner
from training.loop import Trainer
from training.plan import Plan
from training.policy import Policy
from training.readout import read_tokens
from training.recipe import load as load_recipe
from training.sync import LEAST, Values, difference
from training.trajectory import Row, rows

pytestmark = pytest.mark.model

WAIT = 900
BETS = ("bet", "bet big", "bet bigger", "pass")
TRADES = ("buy 1 apple", "buy 2 apples", "buy 2 pears", "sell", "sell all", "wait")
SCENARIO = """\
name: bets
clock: {until: null}
world:
  use: worlds.games.matrix:Matrix
  rounds: 1
  continuation: 0
  talk: none
  actions: [[bet, bet big, bet bigger, pass], [wait]]
  payoffs: {"bet,wait": [2, 0], "bet big,wait": [-1, 0], "bet bigger,wait": [-3, 0], "pass,wait": [1, 0]}
models:
  better: {engine: torch, model: embedded, policy: bets, context: 1024}
cast:
  - name: better
    agent: agents.llm:LLMAgent
    model: better
    with: {memory_tokens: 0}
    think: 1s
    persona:
      background: You have played games like this one since you were a child, with your sisters in the kitchen and with
        strangers on long train rides, and you have won and lost about as often as anybody else. You like to think
        before you speak, you do not mind losing now and then, and you have never in your life told anybody what you
        were about to do.
  - {name: other, agent: worlds.games.strategies:Fixed, with: {action: wait}, think: 1s}
"""
GAMES = 1000


def plan(folder: Path, engine: str) -> Plan:
    """prime-rl's default: the gradient reads what the sampler said of its own samples."""
    scenario = folder / "bets.yaml"
    scenario.write_text(SCENARIO)
    changes = [f"rollout.episodes={GAMES}", "policy.rank=8", "optimiser.lr=1e-3"]
    return Plan(
        recipe=load_recipe("prime_rl", changes), scenario=scenario, sets=(f"models.better.engine={engine}",), seed=3
    )


class Learnt(NamedTuple):
    """A training after its first update."""

    trainer: Trainer
    rows: list[Row]
    gradient: Tensor
    """Of all weights, one after the other."""
    numbers: dict[str, float]


def learnt(folder: Path, engine: str, given: Engine | None = None) -> Learnt:
    """Learn once, stop, and take it up again."""
    asked = plan(folder, engine)
    asked.write(folder / "bets")
    engines = {"better": LateEngine("given", lambda: given)} if given else {}
    with Trainer(folder / "bets", asked, engines) as trainer:
        numbers = trainer.update()
        gradient = flat(trainer._team.policies["bets"])
    played = rows(folder / "bets" / "rollouts" / "update-000001-0.db", family="bets", trained={"bets@1"})
    return Learnt(Trainer(folder / "bets", asked, engines), played, gradient, numbers)


def flat(policy: Policy) -> Tensor:
    """The gradients of the last step."""
    found = [value.grad for value in policy.parameters()]
    return torch.cat([each.flatten() for each in found if each is not None])


@pytest.fixture(scope="module")
def on_vllm(embedded_engine: VLLMEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learnt]:
    found = learnt(tmp_path_factory.mktemp("vllm"), "vllm", embedded_engine)
    yield found
    found.trainer.close()


@pytest.fixture(scope="module")
def on_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learnt]:
    found = learnt(tmp_path_factory.mktemp("torch"), "torch")
    yield found
    found.trainer.close()


def learners(played: Sequence[Row]) -> list[Row]:
    return [row for row in played if row.trained]


def test_an_update_is_played_learnt_and_published(on_vllm: Learnt, embedded_engine: VLLMEngine) -> None:
    """The versions come back after a restart."""
    assert on_vllm.trainer.done == 1
    assert on_vllm.numbers["episodes"] == GAMES
    assert on_vllm.numbers["legal_rate"] == 1
    assert on_vllm.numbers["gradient_norm"] > 0
    with Run(on_vllm.trainer.folder / "rollouts" / "update-000001-0.db") as run:
        assert {call.policy for call in run.calls()} == {"bets@1"}
    assert on_vllm.trainer._publisher.served == ["bets@1", "bets@2"]
    assert {"bets@1", "bets@2"} <= set(embedded_engine._names())


def test_first_gradients_are_those_of_rollouts_on_torch(on_vllm: Learnt, on_torch: Learnt) -> None:
    """Samples are drawn otherwise, so they differ; a thousand games leave a cosine of about 0.99."""
    assert [row.prompt for row in learners(on_vllm.rows)] == [row.prompt for row in learners(on_torch.rows)]
    assert [row.ids for row in on_vllm.rows] != [row.ids for row in on_torch.rows]
    assert cosine(on_vllm.gradient, on_torch.gradient) >= 0.98


def test_the_same_samples_teach_the_same_whoever_drew_them(on_vllm: Learnt, on_torch: Learnt) -> None:
    """vLLM's rows, and the same rows with what the torch engine says of their tokens: no noise of sampling is left."""
    trainer = on_torch.trainer
    said = dict(zip(BETS, of_engine(trainer._engine, asked(on_vllm), "bets@1", 1.0), strict=True))
    again = [replace(row, logprobs=said[row.answer]) if row.trained else row for row in on_vllm.rows]
    assert again != on_vllm.rows
    assert cosine(gradient(trainer, on_vllm.rows), gradient(trainer, again)) > 0.9999


def gradient(trainer: Trainer, played: Sequence[Row]) -> Tensor:
    """Of the rows, at the first version's weights."""
    recipe = trainer.plan.recipe
    policy = trainer._base.load("again", trainer._policies_folder / "bets@1")
    Learner(policy, recipe, trainer._masks).learn(played, estimate(recipe, played, versions={"bets": 1}), 0)
    found = flat(policy)
    trainer._base.drop(policy)
    return found


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(one.double(), other.double(), dim=0))


# --- other structures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "changes", "sets"),
    [
        ("at2po", ("structure.size=2", "structure.nodes=1", "structure.branches=1", "rollout.episodes=4"), ()),
        (
            "lamer",
            ("structure.size=2", "structure.attempts=2", "rollout.episodes=4"),
            ("cast.better.with.memory_tokens=120",),
        ),
        (
            "hierarchical_grpo",
            ("structure.proposals=2", "structure.attempts=2", "rollout.episodes=2"),
            (
                "world={use: 'worlds.games.riddles:Riddles', operations: [plus]}",
                "cast.better.role=proposer",
                "cast.other={name: other, agent: 'agents.llm:LLMAgent', model: better, role: solver, think: 1s}",
            ),
        ),
    ],
)
def test_trees_trials_and_proposals_are_played_on_vllm(
    embedded_engine: VLLMEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    recipe: str,
    changes: tuple[str, ...],
    sets: tuple[str, ...],
) -> None:
    """Their choices are as likely to the trainer as vLLM says, and an update learns from all of them."""
    common = plan(tmp_path, "vllm")
    own = (*common.sets, f"models.better.policy={recipe.partition('_')[0]}", *sets)
    small = load_recipe(recipe, [*changes, "policy.rank=8", "optimiser.lr=1e-3", "optimiser.epochs=1"])
    asked = Plan(recipe=small, scenario=common.scenario, sets=own, seed=3)
    found: list[tuple[float, float]] = []
    with Trainer(tmp_path / "bets", asked, {"better": LateEngine("given", lambda: embedded_engine)}) as trainer:
        play = trainer._played

        def read() -> Any:
            """What was played, once the trainer has said how likely its choices are before it learns from them."""
            played = play()
            choices = [row for row in played[0] if row.trained and row.options]
            weights = {name: one.active for name, one in trainer._team.policies.items()}
            said = read_tokens(choices, weights, trainer._masks)
            found.extend((fsum(one.logprobs), fsum(row.logprobs)) for one, row in zip(said, choices, strict=True))
            return played

        monkeypatch.setattr(trainer, "_played", read)
        numbers = trainer.update()
    assert found
    assert difference([ours for ours, _ in found], [its for _, its in found]) <= trainer._publisher.tolerance
    assert numbers["legal_rate"] > 0.5
    assert numbers["rows"] > 0


# --- three readers of a choice ---------------------------------------------------------------------------


def asked(found: Learnt, options: tuple[str, ...] = BETS) -> Request:
    """What every table asks of the learner."""
    with Run(found.trainer.folder / "rollouts" / "update-000001-0.db") as run:
        call = next(iter(run.calls()))
    return Request(messages=call.messages, format=Choice(options=options))


def of_engine(engine: Any, request: Request, label: str, temperature: float) -> Sequence[Logprobs]:
    """What an engine says of each option's tokens."""
    assert isinstance(request.format, Choice)
    sequences = engine.mask(request.format.options).sequences
    one = replace(request, policy=label, sampling=Sampling(temperature=temperature))
    found: Sequence[Logprobs] = engine.score([one] * len(sequences), sequences).result(WAIT)
    return found


def of_trainer(trainer: Trainer, prompt: Tokens, options: tuple[str, ...], label: str, temperature: float) -> Values:
    """log P of each option under the trainer's own weights."""
    weights = trainer._base.policies[label.partition("@")[0]].active if label else trainer._base.plain
    with weights() as model:
        return option_logprobs(model, [(prompt, trainer._masks(options))], temperature)[0]


@pytest.fixture(scope="module")
def large(on_vllm: Learnt, on_torch: Learnt) -> str:
    """An adapter with weights that change a lot, in all three."""
    trainer = on_vllm.trainer
    policy = trainer._base.create("large", rank=8, seed=5)
    policy.shake(5, 0.05)
    published = trainer._publisher.publish(policy)
    assert published.moved > 10 * trainer._publisher.tolerance
    on_torch.trainer._engine.add_policy(policy.label, published.folder)
    return policy.label


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("adapted", [False, True])
@pytest.mark.parametrize("options", [BETS, TRADES])
def test_vllm_torch_and_the_trainer_say_the_same_of_every_option(
    on_vllm: Learnt, on_torch: Learnt, large: str, adapted: bool, temperature: float, options: tuple[str, ...]
) -> None:
    trainer = on_vllm.trainer
    label = large if adapted else ""
    request = asked(on_vllm, options)
    prompt = trainer._engine.submit(request).result(WAIT).prompt_ids
    assert prompt == on_torch.trainer._engine.submit(request).result(WAIT).prompt_ids
    said = of_trainer(trainer, prompt, options, label, temperature)
    assert fsum(map(exp, said)) == pytest.approx(1)
    exact = [fsum(each) for each in of_engine(on_torch.trainer._engine, request, label, temperature)]
    assert difference(said, exact) < LEAST
    served = [fsum(each) for each in of_engine(trainer._engine, request, label, temperature)]
    assert difference(said, served) <= trainer._publisher.tolerance


def test_a_thousand_equal_questions_are_answered_alike(on_vllm: Learnt, on_torch: Learnt) -> None:
    """Sampled as often as they should be (four standard deviations), and scored alike every time."""
    for found, most in ((on_vllm, on_vllm.trainer._publisher.tolerance), (on_torch, LEAST)):
        played = learners(found.rows)
        (prompt,) = {row.prompt for row in played}
        assert len(played) == GAMES
        chances = dict(zip(BETS, of_trainer(found.trainer, prompt, BETS, "", 1.0), strict=True))
        counts = Counter(row.answer for row in played)
        for option, logprob in chances.items():
            p = exp(logprob)
            assert abs(counts[option] - GAMES * p) <= 4 * sqrt(GAMES * p * (1 - p)) + 1
        assert difference([fsum(row.logprobs) for row in played], [chances[row.answer] for row in played]) <= most
    scores = {row.answer: row.logprobs for row in on_torch.rows}
    assert all(row.logprobs == scores[row.answer] for row in on_torch.rows), "one pass answers all of them"
