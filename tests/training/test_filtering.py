"""Filters, modulation, pairs and curriculum: who is learnt from, how much, against whom and when."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter

from tests.training.records import NEWEST, game, tree
from training.curriculum import Curriculum, Pools, horizon, learning, next_pool
from training.curriculum import settings as curriculum_settings
from training.filtering import Dropped, Filter, Kept, select
from training.modulation import Modulation, modulated
from training.pairs import pairs
from training.schedule import Schedule
from training.trajectory import Row

LEARNT = (0, 1, 2, 4, 5, 6, 7, 8)


def a_filter(**fields: object) -> Filter:
    return TypeAdapter(Filter).validate_python(fields)


def groups(returns: dict[str, list[float]]) -> list[Row]:
    """One row an episode, by group."""
    return [
        Row(episode=f"{group}:{n}", group=group, seat="a", ids=(1,), reward=reward, ended="terminated")
        for group, each in returns.items()
        for n, reward in enumerate(each)
    ]


def left(rows: list[Row], **fields: object) -> list[str]:
    """Groups of which anything is kept."""
    return sorted({rows[index].group for index in select([a_filter(**fields)], rows).indices})


# --- filters --------------------------------------------------------------------------------------------------


def test_without_filters_only_what_cannot_be_learnt_goes() -> None:
    kept = select([], [*game(), replace(game()[0], ids=(), episode="run:9")])
    assert kept.indices == LEARNT
    assert kept.dropped == (Dropped(3, "defaulted"), Dropped(9, "frozen"), Dropped(10, "empty"))


def test_every_dropped_row_has_its_reason() -> None:
    kept = select([a_filter(kind="overlong", tokens=2), a_filter(kind="stale", most=0)], game(), versions=NEWEST)
    assert kept.indices == ()
    assert [one.reason for one in kept.dropped] == [
        *["stale: 1 versions old"] * 2,
        "overlong: 3 tokens",
        "defaulted",
        *["stale: 1 versions old"] * 4,
        "overlong: truncated",
        "frozen",
    ]


def test_zero_advantage_reads_the_advantages() -> None:
    zero = a_filter(kind="zero_advantage")
    assert select([zero], game(), advantages=[(0, 0)] * 4 + [(0, 1)] * 6).indices == (4, 5, 6, 7, 8)
    with pytest.raises(ValueError, match="needs the advantages"):
        select([zero], game())


def test_var_top_p_keeps_the_share_of_all_spread() -> None:
    # std (n − 1) 4√2, 2√2, √2, 0: sum 7√2; 4 of 7 is 0.571, 6 of 7 is 0.857
    rows = groups({"a": [0, 8], "b": [0, 4], "c": [0, 2], "d": [5, 5]})
    assert left(rows, kind="var_top_p", p=0.5) == ["a"]
    assert left(rows, kind="var_top_p", p=0.85) == ["a", "b"]
    assert left(rows, kind="var_top_p", p=0.86, eps=0) == ["a", "b", "c"]
    assert left(rows, kind="var_top_p", p=0.86, eps=0.1) == ["a", "b"]
    assert left(rows, kind="var_top_p", p=1) == ["a", "b", "c"]
    assert left(groups({"a": [1, 1], "b": [2, 2]}), kind="var_top_p") == []


def test_top_k_is_a_share_of_groups_rounded_up() -> None:
    rows = groups({"a": [0, 8], "b": [0, 4], "c": [0, 2], "d": [5, 5], "e": [3, 3]})
    assert left(rows, kind="top_k", share=0.2) == ["a"]
    assert left(rows, kind="top_k", share=0.25) == ["a", "b"]
    assert left(rows, kind="top_k", share=1.0) == ["a", "b", "c", "d", "e"]


def test_the_gate_is_open_between_its_bounds() -> None:
    rows = groups({"a": [0, 0], "b": [0, 1], "c": [1, 1]})
    assert left(rows, kind="range_gate") == ["b"]
    with pytest.raises(ValueError, match="not below"):
        a_filter(kind="range_gate", lo=1.0, hi=1.0)


def test_best_k_is_a_number_of_trajectories_of_each_group() -> None:
    kept = select([a_filter(kind="best_k", k=1)], game())
    assert kept.indices == (0, 2, 8)
    assert kept.dropped[0] == Dropped(1, "best_k: return 4")
    assert select([a_filter(kind="at_least", value=4.5)], game()).indices == (0, 2, 8)


def test_returns_are_of_the_rewards_given() -> None:
    kept = select([a_filter(kind="at_least", value=1)], game(), rewards=[0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    assert kept.indices == (1,), "B's trajectory earned it at its invalid turn"


def test_groups_age_together_by_their_oldest_row() -> None:
    stale = a_filter(kind="stale", most=1)
    assert select([stale], game(), versions=NEWEST).indices == (0, 1, 2, 4, 5, 6, 7)
    assert select([stale], game(), versions={"duelist": 6}).indices == ()
    base = [replace(row, policy="") for row in game()]
    assert select([stale], base, versions={}).indices == LEARNT
    with pytest.raises(ValueError, match="newest version of 'duelist' is not given"):
        select([stale], game(), versions={})
    with pytest.raises(ValueError, match="needs the newest version"):
        select([stale], game())


def test_later_filters_see_what_earlier_ones_left() -> None:
    rows = groups({"a": [0, 8], "b": [0, 4]})
    both = [a_filter(kind="at_least", value=4), a_filter(kind="top_k", share=0.5)]
    assert select(both, rows).indices == (1,)
    assert select(both[::-1], rows).indices == (1,)
    assert select(both[:1], rows).indices == (1, 3)


FILTERS = [
    a_filter(kind="var_top_p"),
    a_filter(kind="top_k"),
    a_filter(kind="range_gate", lo=-1.0),
    a_filter(kind="overlong", tokens=1),
    a_filter(kind="best_k", k=2),
    a_filter(kind="at_least", value=0),
]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(FILTERS)), st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 2)), max_size=8))
def test_every_row_is_either_kept_or_dropped(filters: list[Filter], made: list[tuple[str, int]]) -> None:
    rows = [*game(), *(replace(row, reward=float(r)) for g, r in made for row in groups({g: [0]}))]
    rows = [replace(row, episode=f"{row.episode}{n}") if n > 9 else row for n, row in enumerate(rows)]
    kept = select(filters, rows)
    assert sorted([*kept.indices, *(one.index for one in kept.dropped)]) == list(range(len(rows)))
    assert all(one.reason for one in kept.dropped)


# --- modulation --------------------------------------------------------------------------------------------------


def after(
    rows: list[Row], advantages: list[list[float]], *modulations: dict[str, object], kept: Kept | None = None
) -> list[list[float]]:
    mask = [[True] * len(each) for each in advantages]
    known = [TypeAdapter(Modulation).validate_python(one) for one in modulations]
    whole = Kept(indices=tuple(range(len(rows))), dropped=())
    return modulated(known, rows, [row.reward for row in rows], advantages, mask, kept or whole)


def test_group_std_weighs_by_the_largest() -> None:
    rows = groups({"a": [0, 8], "b": [0, 2], "c": [1]})
    assert after(rows, [[4.0]] * 5, {"kind": "group_std"}) == [[4], [4], [1], [1], [0]]
    assert after(groups({"a": [1, 1]}), [[4.0]] * 2, {"kind": "group_std"}) == [[0], [0]]


@pytest.mark.parametrize(("shape", "factor"), [("linear", 0.25), ("sqrt", 0.5)])
def test_kept_ratio_is_of_groups(shape: str, factor: float) -> None:
    rows = groups({"a": [0, 8], "b": [0], "c": [1], "d": [1]})
    kept = Kept(indices=(0, 1), dropped=())
    assert after(rows, [[4.0]] * 5, {"kind": "kept_ratio", "shape": shape}, kept=kept) == [[4 * factor]] * 5


def test_whitening_sees_learnt_tokens_only() -> None:
    rows = groups({"a": [0, 0]})
    whiten = TypeAdapter(Modulation).validate_python({"kind": "whiten"})
    kept = Kept(indices=(0, 1), dropped=())
    found = modulated([whiten], rows, [0, 0], [[1.0, 99.0], [3.0]], [[True, False], [True]], kept)
    assert [value for each in found for value in each] == pytest.approx([-1 / sqrt(2), 0, 1 / sqrt(2)])


def test_whitening_by_row_and_by_key() -> None:
    rows = groups({"a": [0, 0], "b": [0, 0]})
    by_group = after(rows, [[1.0], [3.0], [10.0], [30.0]], {"kind": "whiten", "by": ("group",), "ddof": 0})
    assert [x for each in by_group for x in each] == pytest.approx([-1, 1, -1, 1])
    wide = after(rows[:2], [[1.0, 1.0, 1.0], [3.0]], {"kind": "whiten", "unit": "row", "ddof": 0})
    assert [x for each in wide for x in each] == pytest.approx([-1, -1, -1, 1])
    plain = after(rows[:2], [[1.0], [3.0]], {"kind": "whiten", "centre": False, "ddof": 0})
    assert [x for each in plain for x in each] == pytest.approx([1, 3])
    with pytest.raises(ValueError, match="nothing that rows are keyed by"):
        after(rows, [[1.0]] * 4, {"kind": "whiten", "by": ("colour",)})


def test_modulations_go_in_order() -> None:
    rows = groups({"a": [0, 8], "b": [0, 2]})
    limit, weigh = {"kind": "clip", "most": 2.0}, {"kind": "group_std"}
    assert after(rows, [[4.0]] * 4, weigh, limit) == [[2], [2], [1], [1]]
    assert after(rows, [[-4.0]] * 4, limit, weigh) == [[-2], [-2], [-0.5], [-0.5]]


# --- pairs ---------------------------------------------------------------------------------------------------------


def test_pairs_of_trajectories_are_scored_by_their_sum() -> None:
    rows = game()
    scores = [row.reward for row in rows]
    # of g: A 8 (rows 0, 2), B 4 of which only row 1 is kept, so 1; −4 and −4 (A twice recorded)
    found = pairs(rows, scores, LEARNT, ["group"], "episode", "best_worst")
    assert [(one.better, one.worse) for one in found] == [((0, 2), (6,))]
    halves = pairs(rows, scores, LEARNT, ["group"], "episode", "halves")
    assert [(one.better, one.worse) for one in halves] == [((0, 2), (4, 5, 7)), ((1,), (6,))]


def test_pairs_of_decisions_at_one_node() -> None:
    rows = tree()
    found = pairs(rows, [0, 4, 1, 0, 9], range(5), ["parent"], "turn", "halves")
    assert [(one.better, one.worse) for one in found] == [((1,), (2,))], "equal scores make no pair"


# --- curriculum and schedules ---------------------------------------------------------------


def curriculum(**fields: object) -> Curriculum:
    return TypeAdapter(Curriculum).validate_python(fields)


def test_the_horizon_grows_by_stages() -> None:
    stages = curriculum(kind="horizon", stages=((0, 10), (100, 20), (200, 30)))
    assert [horizon([stages], update) for update in (0, 99, 100, 199, 200, 999)] == [10, 10, 20, 20, 30, 30]
    assert horizon([], 5) is None


def test_roles_learn_in_turns() -> None:
    phase = curriculum(kind="phase", length=10, learn=(("attacker",), ("defender",)))
    assert [learning([phase], update) for update in (0, 9, 10, 20)] == [
        *[("attacker",)] * 2,
        ("defender",),
        ("attacker",),
    ]
    assert learning([], 3) is None


def test_tasks_get_harder_with_success_and_easier_without() -> None:
    kinds = (("world.size=1",), ("world.size=2",), ("world.size=3", "tables=2"))
    pools = curriculum(kind="pools", pools=kinds, success=1.0)
    fifth, half, most = [2.0, 1.0, 1.0, 0.0, 0.5], [2.0, 1.0], [2.0, 2.0, 2.0, 2.0, 1.0]
    assert [next_pool([pools], 1, returns) for returns in (fifth, half, most)] == [0, 1, 2]
    assert (next_pool([pools], 0, [0.0]), next_pool([pools], 2, [5.0]), next_pool([], 1, [5.0])) == (0, 2, 1)
    assert curriculum_settings([pools], 0, 2) == ["world.size=3", "tables=2"]
    with pytest.raises(ValueError, match="not below"):
        Pools(kind="pools", pools=kinds, up=0.2, down=0.2)


def test_a_horizon_is_one_more_rule_that_ends_an_episode() -> None:
    stages = curriculum(kind="horizon", stages=((0, 10), (100, 20)))
    assert curriculum_settings([stages], 0, 0) == ['stop.after=["10 decisions"]']
    assert curriculum_settings([stages], 100, 0, ["40 trades"]) == ['stop.after=["40 trades","20 decisions"]']
    assert curriculum_settings([], 0, 0, ["40 trades"]) == []


@pytest.mark.parametrize(("shape", "halfway"), [("linear", 2.5), ("step", 4.0), ("cosine", 2.5), ("geometric", 2.0)])
def test_schedules(shape: str, halfway: float) -> None:
    schedule = Schedule.model_validate({"points": ((10, 4.0), (20, 1.0)), "shape": shape})
    assert [schedule.at(count) for count in (0, 10, 15, 20, 99)] == pytest.approx([4, 4, halfway, 1, 1])
    assert Schedule(points=((0, 0), (4, 8)), shape="cosine").at(1) == pytest.approx(8 * (1 - sqrt(0.5)) / 2)


def test_schedules_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="do not rise"):
        Schedule(points=((5, 1), (5, 2)))
    with pytest.raises(ValueError, match="above 0"):
        Schedule(points=((0, 1), (5, 0)), shape="geometric")
