"""Critics: what heads read, what they are taught, and that they learn what states are worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan, nan
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from tests.training.tiny import MASK, mask, model, row
from training.critic import Critic, Valuer, explained, following, read_states, read_values, state_samples, value_samples
from training.estimate import estimate
from training.extras import Extras, Values
from training.learner import Learner
from training.policy import Base
from training.recipe import Recipe, load
from training.trajectory import Row

HEADS = ("low", "high")
OPTIONS = ("ab", "ac", "d")


def shaken(size: int = 32, seed: int = 0, heads: tuple[str, ...] = HEADS) -> Critic:
    """A critic that says something else of every state."""
    critic = Critic(heads, size, seed=seed)
    state = critic.state()
    for number, (name, value) in enumerate(sorted(state["heads"].items())):
        if name.endswith("3.weight"):
            value.copy_(torch.linspace(-1, 1, value.numel()).view_as(value) * (number + 1))
    critic.restore(state)
    return critic


def valuer(llama: Any, critic: Critic) -> Valuer:
    @contextmanager
    def weights() -> Iterator[Any]:
        yield llama

    return Valuer(weights, critic)


def slowly(llama: Any, critic: Critic, prompt: tuple[int, ...], ids: tuple[int, ...]) -> dict[str, Tensor]:
    """V before each token of the answer and after it, by the model's own forward."""
    with torch.no_grad():
        hidden_th = llama.model(torch.tensor([[*prompt, *ids]])).last_hidden_state[0]
        return critic.values(hidden_th[len(prompt) - 1 :])


def test_heads_start_at_nothing_are_their_seed_s_and_pull_on_no_state() -> None:
    hidden_nh = torch.randn(5, 8, requires_grad=True, generator=torch.Generator().manual_seed(0))
    one = Critic(HEADS, 8, seed=3, name="kuhn")
    assert {name: each.tolist() for name, each in one.values(hidden_nh).items()} == dict.fromkeys(HEADS, [0.0] * 5)
    again, other = Critic(HEADS, 8, seed=3, name="kuhn").state(), Critic(HEADS, 8, seed=4, name="kuhn").state()
    assert all(torch.equal(value, again["heads"][name]) for name, value in one.state()["heads"].items())
    assert not all(torch.equal(value, other["heads"][name]) for name, value in one.state()["heads"].items())
    shaken(8).values(hidden_nh)["low"].sum().backward()
    assert hidden_nh.grad is None


def test_every_state_of_a_row_is_read_and_the_one_after_it() -> None:
    llama, critic = model(), shaken()
    rows = [
        row((5, 6, 7), MASK.sequences[0], policy="duel@2", options=OPTIONS, answer="ab"),
        row((5, 6, 7), MASK.sequences[1], policy="duel@1", episode="run:1", options=OPTIONS, answer="ac"),
        row((5, 6, 7), MASK.sequences[0], policy="duel@2", episode="run:2", options=OPTIONS, answer="ab"),
        row((9, 3), (), policy="duel@2", episode="run:0", turn=1, how="defaulted"),
    ]
    found = read_values(rows, {"duel": valuer(llama, critic)}, HEADS)
    for head in HEADS:
        for index, one in enumerate(rows):
            wanted = slowly(llama, critic, one.prompt, one.ids)[head]
            inside = wanted[:-1] if one.ids else wanted
            assert found[head].rows[index] == pytest.approx(inside.tolist(), abs=1e-4)
            assert found[head].after[index] == pytest.approx(wanted[-1].item(), abs=1e-4)
    assert found["low"].rows[0] == found["low"].rows[2], "equal rows are read once"
    assert found["low"].rows[0] != found["high"].rows[0]


def test_a_seat_s_decisions_are_valued_by_its_own_policy_and_frozen_seats_by_none() -> None:
    llama = model()
    rows = [
        row((5, 6), (7,), policy="teacher@3", seat="a", trained=False),
        row((5, 6), (7,), policy="duel@2", seat="a", turn=1),
        row((5, 6), (7,), policy="other@1", seat="b", trained=False),
        row((), (), policy="", seat="a", turn=2, how="faulted", trained=False),
    ]
    critics = {"duel": shaken(seed=1), "other": shaken(seed=2)}
    found = read_values(rows, {name: valuer(llama, one) for name, one in critics.items()}, ("low",))["low"]
    wanted = slowly(llama, critics["duel"], (5, 6), (7,))["low"].tolist()
    assert found.rows[0] == found.rows[1] == pytest.approx(wanted[:1], abs=1e-4)
    assert found.rows[2] == (), "nobody learns there"
    assert found.rows[3] == (0.0,), "nothing was asked there"


def test_critics_that_see_the_state_tell_equal_prompts_apart() -> None:
    """Both seats were asked the same; what is hidden from them differs. A = G − V(state), by hand."""
    llama, critic = model(), shaken(heads=("value",))
    common = {"policy": "duel@1", "logprobs": (-1.0,), "distribution": "raw"}
    rows = [
        row((5, 6), (7,), reward=2.0, turn=0, **common),
        row((5, 6), (8,), reward=1.0, turn=1, ended="truncated", **common),
        row((5, 6), (7,), reward=2.0, episode="run:1", ended="terminated", **common),
        row((5, 6), (7,), seat="frozen", policy="", trained=False),
    ]
    before, after = ((5, 6, 20), (5, 6, 21), (5, 6, 30), ()), ((5, 6, 21), (5, 6, 22), (5, 6, 31), ())
    found = read_states(rows, before, after, {"duel": valuer(llama, critic)}, ("value",))["value"]
    wanted = [slowly(llama, critic, state, ())["value"].tolist() for state in before[:3]]
    cut = slowly(llama, critic, (5, 6, 22), ())["value"].item()
    assert found.rows == (*(pytest.approx(each, abs=1e-4) for each in wanted), ())
    assert found.after[1] == pytest.approx(cut, abs=1e-4)
    assert found.rows[0] != pytest.approx(found.rows[2], abs=1e-3)
    (first,), (second,), (other,) = wanted
    exact = recipe(
        **{"credit.0.returns.gamma": "1", "credit.0.returns.lam": "1", "extra": "[{kind: value, sees: state}]"}
    )
    estimated = estimate(exact, rows, Extras(values={"value": found}))
    expected = (2 + 1 + cut - first, 1 + cut - second, 2 - other)
    assert [each[0] for each in estimated.advantages[:3]] == pytest.approx(expected, abs=1e-4)
    samples = state_samples(before, (0, 1, 2), estimated.targets)
    assert [(one.prompt, one.worth) for one in samples] == [(state, (1 / 3,)) for state in before[:3]]
    assert [one.targets["value"][0] for one in samples] == pytest.approx([3 + cut, 1 + cut, 2], abs=1e-4)


def test_states_are_taken_in_deviations_of_the_first_ones_met() -> None:
    critic = Critic(HEADS, 8)
    assert critic.new(HEADS) == list(HEADS)
    states = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)) / 100 + torch.arange(8.0)
    critic.meet(("low",), [states[:20], states[20:]])
    assert critic.new(HEADS) == ["high"]
    standard = critic._heads["low"][0]
    assert torch.allclose(standard(states).mean(0), torch.zeros(8), atol=1e-3)
    assert torch.allclose(standard(states).std(0, correction=0), torch.ones(8), atol=1e-3)
    again = Critic(HEADS, 8)
    again.restore(critic.state())
    assert again.new(HEADS) == ["high"]


def test_what_a_state_is_taught() -> None:
    rows = [
        row((5,), (6, 7), turn=0),
        row((5, 6, 7, 8), (9,), turn=1, ended="terminated"),
        row((5,), (6,), episode="run:1", ended="terminated"),
    ]
    assert following(rows) == {0: 1}
    found = value_samples(rows, (0, 1, 2), {"value": ((2.0,), (4.0,), ())})
    # one number is that of all tokens; after the first answer comes the state worth 4, after the last nothing
    assert [one.targets["value"][:3] for one in found] == [(2.0, 2.0, 4.0), (4.0, nan)]
    assert isnan(found[1].targets["value"][1])
    assert [one.worth for one in found] == [(1 / 5,) * 3, (1 / 5,) * 2]
    assert [one.ids for one in found] == [(6, 7, 7), (9, 9)]
    assert all(one.allowed is not None and not one.weight and one.count == 0 for one in found)
    by_token = value_samples(rows, (0,), {"value": ((2.0, 3.0), (4.0,), ())})
    assert by_token[0].targets["value"] == (2.0, 3.0, 4.0)


def test_after_a_decision_in_several_rows_comes_the_next_one() -> None:
    rows = [
        row((5,), (6, 7), turn=0),
        row((5, 6), (7, 8), turn=0),
        row((8,), (9,), turn=1, ended="terminated"),
        row((8, 9), (9, 5), turn=1, ended="terminated"),
    ]
    whole = value_samples(rows, range(4), {"value": ((2.0,), (2.0,), (4.0,), (4.0, 3.0))})
    found = [[None if isnan(aim) else aim for aim in one.targets["value"]] for one in whole]
    assert found == [[2, 2, None], [2, 2, 4], [4, None], [4, 3, None]]
    answers = value_samples(rows, range(4), {"value": ((2.0,), (), (), (4.0,)), "other": ((), (), (5.0,), ())})
    found = [[None if isnan(aim) else aim for aim in one.targets.get("value", ())] for one in answers]
    assert found == [[2, 2, None], [None, None, 4], [4, 4, None], []], "who has no credit may end where another begins"
    assert [None if isnan(aim) else aim for aim in answers[1].targets["other"]] == [None, None, 5]


def test_explained_variance_by_hand() -> None:
    values = Values(rows=((1.0, 2.0), (4.0,), (9.0,)))
    # targets 1, 3, 5: mean 3, spread 8; errors 0, 1, 1
    assert explained(values, ((1.0, 3.0), (5.0,), ())) == pytest.approx(1 - 2 / 8)
    assert explained(values, ((2.0, 2.0), (2.0,), ())) == 0
    assert explained(values, ((), (), ())) == 0


# --- learning ------------------------------------------------------------------------------------------------


def recipe(**changes: str) -> Recipe:
    sets = {"optimiser.lr": "0", "optimiser.critic_lr": "0.02", "optimiser.epochs": "20", **changes}
    return load("turn_ppo", [f"{key}={value}" for key, value in sets.items()])


def learner(folder: Path, settings: Recipe) -> Learner:
    return Learner(Base(str(folder)).create("duel", rank=2), settings, mask, seed=1)


def game(folder: Path) -> list[Row]:
    """A game of two moves, both forced: from the first state 1 + 3 is earned, from the second 3; from another −2."""
    first, second, other = (10, 11, 12), (10, 11, 12, 20, 21), (30, 31)
    common = {"policy": "duel@1", "logprobs": (-1.0,), "distribution": "raw"}
    return [
        row(first, (20,), turn=0, reward=1.0, **common),
        row(second, (22,), turn=1, reward=3.0, ended="terminated", **common),
        row(other, (20,), episode="run:1", turn=0, reward=-2.0, ended="terminated", **common),
    ]


def taught(one: Learner, rows: list[Row], updates: int) -> Extras:
    """Values after so many updates."""
    valuers = {"duel": Valuer(one.policy.active, one.critic)}
    for update in range(updates):
        extras = Extras(values=read_values(rows, valuers, ("value",)))
        one.learn(rows, estimate(one.recipe, rows, extras), update)
    return Extras(values=read_values(rows, valuers, ("value",)))


@pytest.mark.parametrize("clip", ["null", "0.5"])
def test_a_critic_learns_a_known_value_function(tiny_folder: Path, one_thread: None, clip: str) -> None:
    changes = {"credit.0.returns.gamma": "1", "extra": f"[{{kind: value, clip: {clip}}}]"}
    rows = game(tiny_folder)
    one = learner(tiny_folder, recipe(**changes))
    before = {name: value.clone() for name, value in one.policy.tensors().items()}
    found = taught(one, rows, 4).values["value"]
    assert [each[0] for each in found.rows] == pytest.approx([4, 3, -2], abs=0.15)
    assert found.after[0] == pytest.approx(3, abs=0.15), "what follows the first move is the second state"
    assert all(torch.equal(value, before[name]) for name, value in one.policy.tensors().items()), "at rate 0"


def test_a_trajectory_that_is_cut_short_goes_on_with_what_the_critic_says(tiny_folder: Path, one_thread: None) -> None:
    one = learner(tiny_folder, recipe(**{"credit.0.returns.gamma": "1", "credit.0.returns.lam": "1"}))
    extras = taught(one, game(tiny_folder), 4)
    first = replace(game(tiny_folder)[0], ended="truncated")
    values = read_values([first], {"duel": Valuer(one.policy.active, one.critic)}, ("value",))
    found = estimate(one.recipe, [first], Extras(values=values))
    assert values["value"].after[0] == pytest.approx(extras.values["value"].after[0], abs=1e-5)
    assert found.targets["value"][0][0] == pytest.approx(1 + 3, abs=0.2)


def test_critics_stand_under_all_legal_options_too(tiny_folder: Path, one_thread: None) -> None:
    settings = load(
        "neurd_like",
        [
            "reward=[{kind: step}]",
            "credit=[{returns: {kind: q}, baseline: {kind: critic}}]",
            "extra=[{kind: value}]",
            "optimiser.critic_lr=0.02",
            "optimiser.lr=0",
            "optimiser.epochs=20",
        ],
    )
    one = learner(tiny_folder, settings)
    said = {"policy": "duel@1", "options": OPTIONS, "answer": "d", "ended": "terminated"}
    known = {"option_logprobs": (-1.1,) * 3, "explored": 0.0}
    rows = [row((5, 6), MASK.sequences[2], reward=2.0, **said, **known)]
    found = taught(one, rows, 4).values["value"]
    assert found.rows[0][0] == pytest.approx(2, abs=0.15)
