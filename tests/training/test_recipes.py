"""Shipped recipes give the numbers worked out by hand, and a change of any slot changes one of them."""

from __future__ import annotations

import pytest

from tests.training.by_hand import BY_HAND, RAE_STATE, ByHand
from tests.training.records import NEWEST
from training.estimate import Estimate, estimate
from training.recipe import FOLDER, Recipe, load, loads, shipped

UPDATE = 50
"""Updates done; schedules are read there."""


def estimated(recipe: Recipe, case: ByHand) -> Estimate:
    return estimate(recipe, case.rows, case.extras, update=UPDATE, versions=NEWEST)


def agrees(found: Estimate, case: ByHand) -> bool:
    """Whether an estimate is the one worked out by hand."""
    for each, expected in zip(found.advantages, case.advantages, strict=True):
        wide = [expected] * len(each) if isinstance(expected, int | float) else list(expected)
        if list(each) != pytest.approx(wide, rel=2e-6, abs=1e-9):
            return False
    options = case.options or [()] * len(case.rows)
    same = all(list(a) == pytest.approx(list(b)) for a, b in zip(found.options, options, strict=True))
    return same and found.kept.indices == tuple(case.kept)


def test_every_recipe_is_worked_out_by_hand() -> None:
    assert sorted(BY_HAND) == shipped()


@pytest.mark.parametrize("name", BY_HAND)
def test_recipe(name: str) -> None:
    case = BY_HAND[name]
    found = estimated(load(name), case)
    for each, expected in zip(found.advantages, case.advantages, strict=True):
        wide = [expected] * len(each) if isinstance(expected, int | float) else list(expected)
        # eps = 1e-6 beside a std of 0.6 to 6
        assert list(each) == pytest.approx(wide, rel=2e-6, abs=1e-9)
    assert agrees(found, case)
    assert sorted([*found.kept.indices, *(one.index for one in found.kept.dropped)]) == list(range(len(case.rows)))


@pytest.mark.parametrize("name", BY_HAND)
def test_recipe_file(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    recipe = load(name)
    assert recipe.name == name
    assert Recipe.model_validate(recipe.resolved()) == recipe


def test_moving_baselines_go_on_from_where_they_were() -> None:
    case = BY_HAND["spiral"]
    state = estimated(load("spiral"), case).state
    assert state.ema == pytest.approx({f'0 ["duel", "{role}"]': b for role, b in RAE_STATE.items()})
    again = estimate(load("spiral"), case.rows, case.extras, state)
    # .421 meets 8, and −.01 meets 4
    assert again.advantages[0][0] == pytest.approx(8 - 0.421)
    assert again.advantages[1][0] == pytest.approx(4 + 0.01)


# --- mutations: every setting of the slots that make advantages, changed in one place -----------------------------

MUTATIONS = [
    ("reinforce", "reward.0.kind", "step"),
    ("reinforce", "reward.0.weight", "2"),
    ("reinforce", "credit.0.weight", "0.5"),
    ("reinforce", "credit.0.returns.gamma", "0.9"),
    ("reinforce", "credit.0.only", "{role: first}"),
    ("reinforce", "credit.0.baseline", "{kind: ema}"),
    ("reinforce", "credit.0.span", "{kind: tag, tags: [action]}"),
    ("neurd_like", "reward.0.eta", "0.1"),
    ("neurd_like", "reward", "[{kind: step}]"),
    ("neurd_like", "credit.0.baseline.alpha", "0.9"),
    ("neurd_like", "credit.0.baseline", "{kind: zero}"),
    ("neurd_like", "credit.0.key", "[family]"),
    ("grpo", "credit.0.key", "[group, role]"),
    ("grpo", "credit.0.key", "[family]"),
    ("grpo", "credit.0.unit", "turn"),
    ("grpo", "credit.0.unit", "row"),
    ("grpo", "credit.0.baseline", "{kind: loo}"),
    ("grpo", "credit.0.baseline", "{kind: zero}"),
    ("grpo", "credit.0.scale.ddof", "0"),
    ("grpo", "credit.0.scale.eps", "0.1"),
    ("grpo", "credit.0.scale", "{kind: one}"),
    ("grpo", "credit.0.scale", "{kind: mean}"),
    ("grpo", "credit.0.scale", "{kind: family_std}"),
    ("grpo", "credit.0.returns", "{kind: rtg, gamma: 0.9}"),
    ("grpo", "filter", "[{kind: best_k, k: 1}]"),
    ("dapo_like", "filter.0", "{kind: range_gate, lo: 0.2, hi: 1}"),
    ("dapo_like", "filter.1", "{kind: overlong, tokens: 2}"),
    ("prime_rl", "filter", "[{kind: stale, most: 8}]"),
    ("prime_rl", "filter.0.most", "0"),
    ("spiral", "credit.0.key", "[family]"),
    ("spiral", "credit.0.unit", "turn"),
    ("spiral", "credit.0.baseline.alpha", "0.9"),
    ("spiral", "credit.0.scale", "{kind: family_std}"),
    ("marshal", "credit.0.unit", "row"),
    ("marshal", "credit.0.unit", "episode"),
    ("marshal", "credit.0.returns", "{kind: ep}"),
    ("marshal", "modulation", "[]"),
    ("marshal", "modulation.0.ddof", "0"),
    ("marshal", "modulation.0.eps", "0.1"),
    ("marshal", "modulation.0.by", "[role]"),
    ("marshal", "modulation.0.unit", "row"),
    ("marshal", "modulation.0.centre", "false"),
    ("hierarchical_grpo", "credit.0.only.role", "proposer"),
    ("hierarchical_grpo", "credit.0.key", "[role, task]"),
    ("hierarchical_grpo", "credit.1.key", "[role, episode]"),
    ("ssp_like", "credit.1.baseline", "{kind: ema}"),
    ("magic_like", "reward", "[{kind: outcome}]"),
    ("gigpo", "credit.1.weight", "0.5"),
    ("gigpo", "credit.1.returns.gamma", "1"),
    ("gigpo", "credit.1.key", "[anchor]"),
    ("gigpo", "credit.1.key", "[group]"),
    ("gigpo", "credit.1.unit", "row"),
    ("gigpo", "credit.0.span", "{kind: suffix}"),
    ("memopilot_like", "credit.0.key", "[group]"),
    ("memopilot_like", "credit.0.unit", "row"),
    ("memopilot_like", "credit.0.span", "{kind: all}"),
    ("igpo", "credit.0.span.gamma", "0.9"),
    ("igpo", "credit.0.span", "{kind: all}"),
    ("igpo", "credit.0.rewards", "[outcome]"),
    ("igpo", "reward.0.weight", "2"),
    ("agentrl_like", "filter.0.most", "3"),
    ("starpo", "reward.1.invalid", "-1"),
    ("starpo", "reward.1.valid", "1"),
    ("starpo", "credit.0.returns.gamma", "0.9"),
    ("starpo", "credit.0.returns.lam", "0.9"),
    ("starpo_s", "filter.0.share", "1"),
    ("ragen2", "modulation", "[{kind: kept_ratio}]"),
    ("ragen2", "modulation", "[{kind: clip, most: 0.5}]"),
    ("ragen2", "filter", "[]"),
    ("bi_level_gae", "credit.0.returns.lam", "0.5"),
    ("bi_level_gae", "credit.0.returns.gamma", "1"),
    ("turn_ppo", "credit.0.returns.gamma", "1"),
    ("turn_ppo", "credit.0.returns.lam", "1"),
    ("hiper", "reward.1.penalty", "0"),
    ("hiper", "credit.0.returns.lam", "1"),
    ("hiper", "credit.0.returns.level", "termination"),
    ("hiper", "credit.0.span.tags", "[action, think, switch]"),
    ("hiper", "credit.1.returns.lam", "1"),
    ("hiper", "credit.1.returns.gamma", "1"),
    ("hiper", "credit.2.returns.gamma", "1"),
    ("hiper", "credit.2.returns.high", "low"),
    ("at2po", "credit.0.returns.gamma", "0.5"),
    ("at2po", "credit.0.key", "[parent]"),
    ("at2po", "credit.0.unit", "episode"),
    ("arpo_like", "credit.0.unit", "turn"),
    ("lamer", "credit.0.returns.gamma", "0.5"),
    ("lamer", "credit.0.returns.gamma_traj", "1"),
    ("lamer", "credit.0.unit", "turn"),
    ("supo_like", "filter", "[]"),
    ("aem_like", "modulation.0.power", "2"),
    ("progress_advantage", "reward.0.agg", "mean"),
    ("progress_advantage", "reward.0.beta", "2"),
    ("progress_advantage", "credit.0.returns.gamma", "1"),
    ("rmft", "reward", "[{kind: outcome}]"),
    ("rmft", "filter.0.k", "3"),
    ("atod_like", "credit.0.weight", "1"),
    ("sft", "filter.0.value", "5"),
    ("unstable_baselines", "credit.0.rewards", "[]"),
    ("unstable_baselines", "credit.1.returns.gamma", "1"),
    ("unstable_baselines", "modulation.0.unit", "token"),
]
"""Recipe, key, other value."""


@pytest.mark.parametrize(("name", "key", "value"), MUTATIONS)
def test_a_changed_slot_is_noticed(name: str, key: str, value: str) -> None:
    recipe = loads((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml", [f"{key}={value}"])
    assert not agrees(estimated(recipe, BY_HAND[name]), BY_HAND[name])
