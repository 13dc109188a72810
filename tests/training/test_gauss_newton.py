"""Gauss–Newton on what a model says: closed forms, and a fit that gradients alone take hundreds of steps for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from sim.scenarios.located import ScenarioError
from sim.types import Tokens
from training.constraint import Masks, choice_masks
from training.credit import START
from training.estimate import Estimate
from training.filtering import Kept
from training.forward import option_logprobs, predict
from training.gauss_newton import Equations, direction
from training.learner import Learner
from training.packing import pack
from training.policy import Base, Policy
from training.recipe import load as load_recipe
from training.rows import question
from training.trajectory import Row
from training.trunk import above, computed, lowest

OPTIONS = ("pass", "bet", "bet more")
CARDS = ("jack", "queen", "king")
ADVANTAGES = ((1.0, -0.5, 0.0), (-1.0, 0.5, 0.5), (0.0, 0.0, 2.0))
"""Of the options in each of three questions."""


def test_the_direction_solves_what_is_linear_with_the_smallest_change() -> None:
    """J = (1 0 0; 1 1 0), r = (1, 3): J·d = r has d = (1, 2, 0), and nothing smaller."""
    jacobian = torch.tensor([[1.0, 0, 0], [1, 1, 0]])
    found = direction(jacobian, torch.tensor([1.0, 3.0]), damping=1e-9, reach=10.0)
    assert found.tolist() == pytest.approx([1, 2, 0], abs=1e-5)


def test_damping_is_a_share_of_the_mean_curvature() -> None:
    """JJᵀ = diag(4, 16), mean 10, λ = 5: d = (2·1/9, 4·1/21)."""
    jacobian = torch.tensor([[2.0, 0], [0, 4]])
    found = direction(jacobian, torch.tensor([1.0, 1.0]), damping=0.5, reach=1.0)
    assert found.tolist() == pytest.approx([2 / 9, 4 / 21])


def test_a_residual_beyond_reach_is_scaled_as_a_whole() -> None:
    found = direction(torch.eye(2), torch.tensor([4.0, -2.0]), damping=1e-9, reach=1.0)
    assert found.tolist() == pytest.approx([1, -0.5], abs=1e-5)


def test_the_jacobian_is_that_of_each_output() -> None:
    first, second = (torch.nn.Parameter(torch.tensor(value)) for value in ([2.0, 3.0], 5.0))
    equations = Equations([first, second])
    equations.add(torch.stack([first.prod(), second.square()]))
    equations.add(torch.stack([first.sum() * second]))
    assert equations.jacobian_rp.tolist() == [[3, 2, 0], [0, 0, 10], [5, 5, 5]]


def test_equations_are_solved_once_and_begin_anew() -> None:
    """The second time, 2d = 6 alone is left: d = 3."""
    weight = torch.nn.Parameter(torch.tensor(3.0))
    equations = Equations([weight])
    for _ in range(20):
        equations.add((weight * 5).reshape(1))
    equations.solved(damping=1.0, reach=100.0)
    equations.add((weight * 2).reshape(1))
    assert equations.solved(damping=1e-9, reach=100.0).tolist() == pytest.approx([3.0])


@pytest.fixture(scope="module")
def base(tiny_folder: Path) -> Base:
    return Base(str(tiny_folder))


@pytest.fixture(scope="module")
def masks(base: Base) -> Masks:
    tokenizer = base.tokenizer
    return choice_masks(lambda text: tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id)


@pytest.fixture
def policy(base: Base) -> Iterator[Policy]:
    made = base.create("kuhn", layers=1)
    made.shake(0, 0.05)
    yield made
    base.drop(made)


def prompts(base: Base) -> list[Tokens]:
    return [tuple(base.tokenizer(f"You hold the {card}. Speak now.")["input_ids"]) for card in CARDS]


def centred(policy: Policy, base: Base, masks: Masks) -> torch.Tensor:
    """Centred logits of the options, [questions, options]."""
    with policy.active() as model:
        found = torch.tensor(option_logprobs(model, [(prompt, masks(OPTIONS)) for prompt in prompts(base)]))
    return found - found.mean(1, keepdim=True)


def test_the_learner_makes_the_table_s_step(base: Base, masks: Masks, policy: Policy) -> None:
    """Questions that differ in one token get advantages of their own: y ends at y + alpha·(A - mean A)."""
    rows = [
        Row(episode=f"run:{i}", prompt=prompt, ids=masks(OPTIONS).sequences[0], options=OPTIONS, policy="kuhn@1")
        for i, prompt in enumerate(prompts(base))
    ]
    found = Estimate(
        advantages=((0.0,),) * 3, mask=((True,),) * 3, options=ADVANTAGES, targets={}, rewards=(0.0,) * 3,
        kept=Kept(indices=(0, 1, 2), dropped=()), state=START,
    )  # fmt: skip
    recipe = load_recipe("neurd_fit_like", ["trust.alpha=0.5", "optimiser.epochs=12"])
    advantages = torch.tensor(ADVANTAGES)
    wanted = centred(policy, base, masks) + 0.5 * (advantages - advantages.mean(1, keepdim=True))
    numbers = Learner(policy, recipe, masks).learn(rows, found, 0)
    assert (centred(policy, base, masks) - wanted).abs().max() < 0.02
    assert numbers["last_loss"] < 1e-4
    assert numbers["steps"] < 12


def test_a_single_option_is_nothing_to_fit(base: Base, masks: Masks, policy: Policy) -> None:
    (first, *_) = prompts(base)
    row = Row(episode="run:0", prompt=first, ids=masks(("pass",)).sequences[0], options=("pass",), policy="kuhn@1")
    found = Estimate(
        advantages=((0.0,),), mask=((True,),), options=((0.0,),), targets={}, rewards=(0.0,),
        kept=Kept(indices=(0,), dropped=()), state=START,
    )  # fmt: skip
    numbers = Learner(policy, load_recipe("neurd_fit_like"), masks).learn([row], found, 0)
    assert (numbers["steps"], numbers["rows"]) == (0, 0)


def test_steps_above_the_trunk_are_those_of_the_whole_model(base: Base, masks: Masks, policy: Policy) -> None:
    batches = pack([one for prompt in prompts(base) for one in question(prompt, masks(OPTIONS), 1.0, "x")], 64)
    with policy.active() as model:
        first = lowest(model, policy.parameters())
        whole = torch.cat([predict(model, batch).logprobs_n for batch in batches])
        gradient = torch.autograd.grad(whole.square().sum(), policy.parameters())
        kept = computed(model, batches, first)
        with above(model, first):
            upper = torch.cat([predict(model, batch).logprobs_n for batch in kept])
        assert len(model.model.layers) == 2
    assert first == 1
    assert torch.equal(upper, whole)
    for a, b in zip(torch.autograd.grad(upper.square().sum(), policy.parameters()), gradient, strict=True):
        assert torch.equal(a, b)


def test_a_model_trained_whole_has_no_trunk(base: Base) -> None:
    whole = base.create_full("whole")
    with whole.active() as model:
        assert lowest(model, whole.parameters()) == 0
    base.drop(whole)


def test_gauss_newton_is_for_least_squares_only() -> None:
    with pytest.raises(
        ScenarioError, match="gauss_newton solves least squares; expected the trust region neurd_fit alone"
    ):
        load_recipe("grpo", ["optimiser.kind=gauss_newton"])
