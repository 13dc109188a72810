"""The traps of credit assignment, and laws that hold for any record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from math import fsum, log, sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.training.records import CHOICES, GAME, choices, game
from training.baselines import Compared, keyed_baseline
from training.credit import START, Credit, Term, credit
from training.extras import NO_EXTRAS, Extras, Values
from training.keys import learnable
from training.paths import episode_order, trajectories
from training.returns import discounted, gains, lambda_returns
from training.reward import Rewards, rewards
from training.trajectory import Row, Span

MEAN, LOO, ZERO, EMA = ({"kind": kind} for kind in ("mean", "loo", "zero", "ema"))
EP, RTG = {"kind": "ep"}, {"kind": "rtg"}


def term(**fields: object) -> Term:
    return Term.model_validate({"returns": EP, "baseline": MEAN, **fields}, strict=False)


def steps(rows: Sequence[Row]) -> Rewards:
    return Rewards(streams={"step": tuple(row.reward for row in rows)}, own=((),) * len(rows))


def credited(rows: Sequence[Row], *terms: Term, extras: Extras = NO_EXTRAS) -> Credit:
    return credit(rows, steps(rows), terms, extras)


def first(found: Credit) -> list[float]:
    """Advantage of each row's first token, 0 where it has none."""
    return [each[0] if each else 0.0 for each in found.tokens]


def row(episode: str, seat: str, turn: int, reward: float, ended: str = "", **more: object) -> Row:
    fields = {"group": "g", "role": seat, "ids": (1, 2), "logprobs": (-1.0, -1.0), **more}
    return Row(episode=episode, seat=seat, turn=turn, reward=reward, ended=ended, **fields)  # type: ignore[arg-type]


# --- traps -----------------------------------------------------------------------------------------------


STATISTICS = [(b, s) for b in (MEAN, LOO) for s in ("one", "std", "mean", "family_std")]
STATISTICS += [(b, s) for b in (ZERO, EMA) for s in ("std", "mean", "family_std")]


@pytest.mark.parametrize(("baseline", "scale"), STATISTICS)
def test_a_singleton_gets_nothing_and_not_its_raw_reward(baseline: dict[str, str], scale: str) -> None:
    rows = [row("run:0", "a", 0, 5, "terminated")]
    assert first(credited(rows, term(key=["group"], baseline=baseline, scale={"kind": scale}))) == [0]


@pytest.mark.parametrize(
    ("unit", "of_returns", "to_go"),
    [
        ("episode", (8 + 2) / 2, (8 + 2) / 2),
        ("turn", (8 + 8 + 2) / 3, (8 + 5 + 2) / 3),
        ("row", (8 + 8 + 8 + 2) / 4, (8 + 5 + 5 + 2) / 4),
    ],
)
def test_what_counts_once(unit: str, of_returns: float, to_go: float) -> None:
    # a trajectory of return 8 = 3 + 5 whose second turn stands in two rows, and a short one of return 2
    rows = [row("run:0", "a", 0, 3), row("run:0", "a", 1, 5), row("run:0", "a", 1, 5), row("run:1", "a", 0, 2)]
    whole = first(credited(rows, term(key=["group"], unit=unit)))
    assert whole == pytest.approx([8 - of_returns] * 3 + [2 - of_returns])
    turns = first(credited(rows, term(key=["group"], returns=RTG, unit=unit)))
    assert turns == pytest.approx([number - to_go for number in (8, 5, 5, 2)])


@pytest.mark.parametrize(("ddof", "std"), [(1, 2 / sqrt(2)), (0, 1)])
def test_the_standard_deviation_says_its_ddof(ddof: int, std: float) -> None:
    rows = [row("run:0", "a", 0, 3), row("run:1", "a", 0, 1)]
    found = first(credited(rows, term(key=["group"], scale={"kind": "std", "ddof": ddof, "eps": 0.5})))
    assert found == pytest.approx([1 / (std + 0.5), -1 / (std + 0.5)])


def test_moving_baselines_are_met_before_they_move_and_in_episode_order() -> None:
    rows = [row(f"run:{n}", "a", 0, reward) for n, reward in ((2, 10), (10, 100), (0, 1))]
    found = credited(rows, term(key=["role"], baseline={"kind": "ema", "alpha": 0.5}))
    # 1 meets 0, 10 meets .5, 100 meets 5.25: run:10 comes after run:2
    assert first(found) == [9.5, 94.75, 1]
    assert list(found.state.ema.values()) == [52.625]
    assert START.ema == {}


def test_a_baseline_of_a_unit_is_one_for_all_its_rows() -> None:
    rows = [row("run:0", "a", 0, 1), row("run:0", "a", 1, 1), row("run:1", "a", 0, 4)]
    found = credited(rows, term(key=["role"], baseline={"kind": "ema", "alpha": 0.5}))
    assert first(found) == [2, 2, 3]


def test_masked_tokens_get_nothing() -> None:
    found = credited(game(), term(key=["group"], span={"kind": "tag", "tags": ["action"]}))
    assert found.tokens[2] == (0, 7, 7)
    assert found.mask[2] == (False, True, True)
    assert not any(any(each) for index, each in enumerate(found.tokens) if index != 2)
    assert found.tokens[3] == (0,), "an invalid answer"
    assert found.tokens[9] == (), "a frozen policy's"


def test_a_frozen_policy_is_no_yardstick() -> None:
    rows = [row("run:0", "a", 0, 4), row("run:1", "a", 0, 2), row("run:2", "a", 0, 99, trained=False)]
    assert first(credited(rows, term(key=["group"]))) == [1, -1, 0]


def test_returns_to_go_stay_with_the_player_and_before_the_end() -> None:
    rows = [
        row("run:0", "a", 0, 1),
        row("run:0", "b", 0, 100),
        row("run:0", "a", 1, 2, "truncated"),
        row("run:0", "a", 2, 40),
        row("run:0", "a", 3, 50, "terminated"),
    ]
    assert first(credited(rows, term(returns=RTG, baseline=ZERO))) == [3, 100, 2, 90, 50]


def test_discounts_count_turns_and_not_tokens() -> None:
    rows = [row("run:0", "a", 0, 0, ids=(1, 2, 3)), row("run:0", "a", 1, 8, "terminated", ids=(1,))]
    halved = term(returns={"kind": "rtg", "gamma": 0.5}, baseline=ZERO)
    assert credited(rows, halved).tokens == ((4, 4, 4), (8,))
    values = Extras(values={"value": Values(rows=((0, 0, 0), (0,)))})
    by_token = term(returns={"kind": "gae", "gamma": 0.5, "level": "token"}, baseline={"kind": "critic"})
    assert credited(rows, by_token, extras=values).tokens == ((4, 4, 4), (8,))


def test_levels_of_gae() -> None:
    # token, λ = ½: δ = (0, 4 − 0), carried back by λ per token; turn: V of the first token, one advantage a turn
    rows = [row("run:0", "a", 0, 0), row("run:0", "a", 1, 8, "terminated")]
    extras = Extras(values={"value": Values(rows=((0, 2), (4, 6)))})
    by_token = term(returns={"kind": "gae", "lam": 0.5, "level": "token"}, baseline={"kind": "critic"})
    # from the end: 8 − 6 = 2; 6 − 4 + 1 = 3; 4 − 2 + 1.5 = 3.5; 2 − 0 + 1.75 = 3.75
    assert credited(rows, by_token, extras=extras).tokens == ((3.75, 3.5), (3, 2))
    by_turn = term(returns={"kind": "gae", "lam": 0.5}, baseline={"kind": "critic"})
    # A = 8 − 4 = 4, G = 8; A = 4 − 0 + 2 = 6, G = 6; a turn has one A, whatever is known of its later tokens' states
    found = credited(rows, by_turn, extras=extras)
    assert found.tokens == ((6, 6), (4, 4))
    assert found.targets == {"value": ((6, 6), (8, 8))}
    bi = term(returns={"kind": "bi", "gamma": 1, "lam": 0.5}, baseline={"kind": "critic"})
    # V at last tokens 2 and 6: A = 2, G = 8; A = 6 − 2 + 1 = 5, G = 7
    assert credited(rows, bi, extras=extras).tokens == ((7, 5), (4, 2))


def thinking(ended: str = "terminated") -> tuple[list[Row], Extras]:
    """Two decisions of a thought and an answer each, of two tokens each; the second earns 8. V = 0, 2 | 4, 6, …"""
    rows = [
        row("run:0", "a", turn, reward, end, spans=(Span(kind=kind, start=0, stop=2),))
        for turn, reward, end in ((0, 0, ""), (1, 8, ended))
        for kind in ("think", "action")
    ]
    return rows, Extras(values={"value": Values(rows=((0, 2), (4, 6), (2, 3), (5, 7)), after=(90, 91, 92, 10))})


def test_of_a_decision_in_several_rows_a_critic_knows_what_came_before_it() -> None:
    """The first row's first token: V of what the thought itself led to would take from thoughts what they are worth."""
    rows, extras = thinking()
    turn_gae = term(returns={"kind": "gae", "gamma": 0.5, "lam": 0.5}, baseline={"kind": "critic"})
    # A = 8 − 2 = 6, G = 8; A = ½·2 − 0 + ¼·6 = 2.5, G = 2.5
    found = credited(rows, turn_gae, extras=extras)
    assert found.tokens == ((2.5, 2.5), (2.5, 2.5), (6, 6), (6, 6))
    assert found.targets == {"value": ((2.5, 2.5), (2.5, 2.5), (8, 8), (8, 8))}
    cut, extras = thinking("truncated")
    # what follows is read after the answer: A = 8 + ½·10 − 2 = 11; A = 1 + ¼·11
    assert first(credited(cut, turn_gae, extras=extras)) == [3.75, 3.75, 11, 11]


def test_credit_of_answers_alone_is_above_what_is_known_after_the_thought() -> None:
    rows, extras = thinking()
    answers = {"kind": "tag", "tags": ["action"]}
    alone = term(returns={"kind": "gae", "gamma": 0.5, "lam": 0.5}, baseline={"kind": "critic"}, span=answers)
    # V = 4, 5: A = 8 − 5 = 3, G = 8; A = ½·5 − 4 + ¼·3 = −0.75, G = 3.25
    found = credited(rows, alone, extras=extras)
    assert found.tokens == ((0, 0), (-0.75, -0.75), (0, 0), (3, 3))
    assert found.targets == {"value": ((), (3.25, 3.25), (), (8, 8))}
    spans = (Span(kind="think", start=0, stop=3), Span(kind="action", start=3, stop=4))
    mixed = [replace(one, ids=(1, 2, 3, 4), spans=spans) for one in rows[1::2]]
    inside = Extras(values={"value": Values(rows=((0, 1, 2, 4), (2, 3, 4, 5)))})
    assert credited(mixed, alone, extras=inside).tokens == ((0, 0, 0, -0.75), (0, 0, 0, 3)), "the same in one row"


def test_by_token_a_thought_goes_on_in_its_answer() -> None:
    rows, extras = thinking()
    by_token = term(returns={"kind": "gae", "lam": 0.5, "level": "token"}, baseline={"kind": "critic"})
    # from the end: 8 − 7 = 1; 7 − 5 + ½ = 2.5; 5 − 3 + 1.25; 3 − 2 + 1.625 | 2 − 6 + 1.3125; 6 − 4 − 1.34375; …
    assert credited(rows, by_token, extras=extras).tokens == (
        (2 - 0 + 2.328125 / 2, 4 - 2 + 0.65625 / 2),
        (0.65625, -2.6875),
        (2.625, 3.25),
        (2.5, 1),
    )
    bi = term(returns={"kind": "bi", "gamma": 1, "lam": 0.5}, baseline={"kind": "critic"})
    # V at last tokens 6 and 7: A = 1, G = 8; A = 7 − 6 + ½ = 1.5, G = 7.5; minus the values of the tokens
    assert credited(rows, bi, extras=extras).tokens == ((7.5, 5.5), (3.5, 1.5), (6, 5), (3, 1))


@pytest.mark.parametrize("ended", ["truncated", ""])
def test_a_truncated_trajectory_goes_on_with_its_value(ended: str) -> None:
    rows = [row("run:0", "a", 0, 1, ended)]
    gae = term(returns={"kind": "gae"}, baseline={"kind": "critic"})
    cut = Extras(values={"value": Values(rows=((0,),), after=(10,))})
    assert credited(rows, gae, extras=cut).tokens == ((11, 11),)
    done = [replace(rows[0], ended="terminated")]
    assert credited(done, gae, extras=cut).tokens == ((1, 1),)
    with pytest.raises(ValueError, match="must say its value after"):
        credited(rows, gae, extras=Extras(values={"value": Values(rows=((0,),))}))
    with pytest.raises(ValueError, match="no values of the critic 'value'"):
        credited(done, gae)


def test_roles_do_not_mix() -> None:
    rows = [row(f"run:{n}", seat, 0, r) for n, seat, r in ((0, "a", 1), (0, "b", -1), (1, "a", 3), (1, "b", -3))]
    assert first(credited(rows, term(key=["group", "role"]))) == [-1, 1, 1, -1]
    assert first(credited(rows, term(key=["group"]))) == [1, -1, 3, -3]


def test_rows_without_a_name_are_in_no_group() -> None:
    rows = [row(f"run:{n}", "a", 0, n, group="", key="") for n in range(3)]
    assert first(credited(rows, term(key=["group"]))) == [0, 0, 0]
    assert first(credited(rows, term(key=["anchor"]))) == [0, 0, 0]
    assert first(credited([replace(one, state="s") for one in rows], term(key=["anchor"]))) == [-1, 0, 1]
    # an anchor is the information state, where the world names one
    named = [replace(one, state="s", key="k" if one.reward else "l") for one in rows]
    assert first(credited(named, term(key=["anchor"]))) == [0, -0.5, 0.5]


def test_one_decision_has_one_reward() -> None:
    with pytest.raises(ValueError, match="one decision with different rewards"):
        credited([row("run:0", "a", 0, 1), row("run:0", "a", 0, 2)], term(key=["group"]))


def test_a_nodes_rows_have_one_turn() -> None:
    rows = [row("run:0", "a", 0, 1, parent="n"), row("run:1", "a", 1, 2, parent="n")]
    with pytest.raises(ValueError, match="different turns"):
        credited(rows, term(returns={"kind": "tree"}, key=["group"]))


def test_family_std_divides_by_the_spread_of_the_centred_returns() -> None:
    rows = [
        row(f"run:{n}", "a", 0, r, group=g, family="f")
        for n, g, r in ((0, "g", 1), (1, "g", 3), (2, "h", 7), (3, "h", 13))
    ]
    # centred: −1, 1, −3, 3; squares 20, over n − 1 = 3
    found = first(credited(rows, term(key=["group"], scale={"kind": "family_std"})))
    assert found == pytest.approx([x / sqrt(20 / 3) for x in (-1, 1, -3, 3)], rel=1e-5)


@pytest.mark.parametrize("baseline", [MEAN, LOO])
@pytest.mark.parametrize("scale", ["one", "std"])
def test_equal_returns_give_exactly_nothing(baseline: dict[str, str], scale: str) -> None:
    rows = [row(f"run:{n}", "a", 0, 0.1) for n in range(3)]
    assert first(credited(rows, term(key=["group"], baseline=baseline, scale={"kind": scale}))) == [0, 0, 0]


def test_maxrl_gives_nothing_where_the_mean_is_not_positive() -> None:
    rows = [row("run:0", "a", 0, 1), row("run:1", "a", 0, -1)]
    assert first(credited(rows, term(key=["group"], scale={"kind": "mean"}))) == [0, 0]


def test_a_critic_may_be_the_baseline_of_plain_returns() -> None:
    found = credited(game(), term(returns=RTG, baseline={"kind": "critic"}), extras=GAME)
    assert found.tokens[2] == (3, 4, 5)
    assert found.tokens[8] == (1,), "5, and no more after the cut, minus 4"


def test_known_values_of_all_legal_options() -> None:
    rows = choices()
    known = replace(CHOICES, q=((3, 1), (5, 0), (3, 1), (5, 0)))
    paid = rewards((), rows)
    found = credit(
        rows, replace(paid, streams={"step": (0.0,) * 4}), [term(returns={"kind": "q"}, baseline=ZERO)], known
    )
    assert list(found.options[0]) == pytest.approx([1, -1])
    assert list(found.options[1]) == pytest.approx([1, -4])  # V = .8·5


def test_a_critic_may_stand_under_all_legal_options() -> None:
    rows = choices()[:1]
    extras = Extras(values={"value": Values(rows=((0.5,),))})
    q = term(returns={"kind": "q"}, baseline={"kind": "critic"})
    found = credit(rows, steps(rows), [q], extras)
    assert list(found.options[0]) == pytest.approx([0.5, -0.5])  # Q(bet) = (1 − .5)/.5 = 1, Q(pass) = 0


@pytest.mark.parametrize("unknown", [(), (log(0.5), None), (None, None)])
def test_all_legal_options_need_what_was_recorded(unknown: tuple[float | None, ...]) -> None:
    rows = [replace(one, option_logprobs=unknown) for one in choices()]
    with pytest.raises(ValueError, match="not recorded"):
        credited(rows, term(returns={"kind": "q"}, baseline=ZERO))
    rows = [replace(one, answer="raise") for one in choices()]
    with pytest.raises(ValueError, match="none of its options"):
        credited(rows, term(returns={"kind": "q"}, baseline=ZERO))


def test_the_anchors_own_term_goes_with_its_stream() -> None:
    rows = choices()[:1]
    paid = Rewards(streams={"step": (1.0,), "anchored": (0.0,)}, own=((-1.0, 4.0),))
    named = credit(rows, paid, [term(returns={"kind": "q"}, baseline=ZERO, rewards=["step"])])
    assert list(named.options[0]) == pytest.approx([1, -1])  # Q = 1/.5, 0
    both = credit(rows, paid, [term(returns={"kind": "q"}, baseline=ZERO)])
    assert list(both.options[0]) == pytest.approx([-0.5, 0.5])  # Q = −1 + (1 + 1)/.5 = 3, 4


def test_a_suffix_reaches_only_rows_that_the_term_is_about() -> None:
    rows = [row("run:0", "a", 0, 1, role="x"), row("run:0", "a", 1, 2, role="y")]
    suffix = term(returns=RTG, baseline=ZERO, only={"role": "y"}, span={"kind": "suffix"})
    assert first(credited(rows, suffix)) == [0, 2]


def test_full_exploration_leaves_the_policy_open() -> None:
    rows = [replace(choices()[0], explored=1.0, option_logprobs=(log(0.5), log(0.5)))]
    found = credited(rows, term(returns={"kind": "q"}, baseline=ZERO))
    assert list(found.options[0]) == pytest.approx([1, -1])


# --- laws --------------------------------------------------------------------------------------------------


@st.composite
def records(draw: st.DrawFn) -> list[Row]:
    """Episodes of two seats, of different lengths, zero-sum at the end, in a few groups."""
    rows = []
    for number in range(draw(st.integers(1, 6))):
        group = draw(st.sampled_from(["g", "h"]))
        prize = float(draw(st.integers(-3, 3)))
        for seat, sign in (("a", 1), ("b", -1)):
            length = draw(st.integers(1, 3))
            for turn in range(length):
                last = turn == length - 1
                rows.append(
                    row(
                        f"run:{number}",
                        seat,
                        turn,
                        sign * prize if last else float(draw(st.integers(-2, 2))),
                        draw(st.sampled_from(["terminated", "truncated"])) if last else "",
                        group=group,
                        how=draw(st.sampled_from(["chosen", "chosen", "retried", "defaulted"])),
                    )
                )
    return rows


TERMS = [
    term(key=["group", "role"], scale={"kind": "std"}),
    term(key=["group"], baseline=LOO),
    term(key=["group", "role", "turn"], returns=RTG, unit="turn", scale={"kind": "std", "ddof": 0}),
    term(key=["group", "role"], scale={"kind": "mean"}),
    term(key=["group"], returns=RTG, unit="turn", span={"kind": "suffix", "gamma": 0.9}),
]


@settings(max_examples=60, deadline=None)
@given(records(), st.sampled_from(TERMS), st.randoms(use_true_random=False))
def test_the_order_of_episodes_does_not_matter_to_groups(rows: list[Row], one: Term, random: Random) -> None:
    by_index = dict(enumerate(first(credited(rows, one))))
    episodes = [list(each) for _, each in groupby(range(len(rows)), lambda index: rows[index].episode)]
    random.shuffle(episodes)
    order = [index for each in episodes for index in each]
    shuffled = first(credited([rows[index] for index in order], one))
    assert shuffled == pytest.approx([by_index[index] for index in order])


@settings(max_examples=60, deadline=None)
@given(records(), st.randoms(use_true_random=False))
def test_moving_baselines_follow_episodes_and_not_arrival(rows: list[Row], random: Random) -> None:
    one = term(key=["role"], baseline=EMA)
    before = credited(rows, one)
    order = list(range(len(rows)))
    random.shuffle(order)
    after = credited([rows[index] for index in order], one)
    assert after.state == before.state
    assert first(after) == [first(before)[index] for index in order]


@settings(max_examples=60, deadline=None)
@given(records(), st.sampled_from(TERMS[:4]))
def test_statistics_never_mix_keys(rows: list[Row], one: Term) -> None:
    whole = first(credited(rows, one))
    parts: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, each in enumerate(rows):
        parts[(each.group, each.role) if "role" in one.key else (each.group,)].append(index)
    for indices in parts.values():
        assert first(credited([rows[index] for index in indices], one)) == pytest.approx([whole[i] for i in indices])


@settings(max_examples=60, deadline=None)
@given(records(), st.integers(0, 40), st.floats(-5, 5))
def test_returns_to_go_know_nothing_of_others_and_of_the_past(rows: list[Row], at: int, change: float) -> None:
    paths = trajectories(rows)
    at %= len(rows)
    changed = [one.reward + change if index == at else one.reward for index, one in enumerate(rows)]
    going = term(returns=RTG, baseline=ZERO).returns
    before = gains(going, rows, [one.reward for one in rows], {}, paths)
    after = gains(going, rows, changed, {}, paths)
    for index, one in enumerate(rows):
        touched = (one.episode, one.seat) == (rows[at].episode, rows[at].seat) and one.turn <= rows[at].turn
        assert after[index][0] - before[index][0] == pytest.approx(change if touched else 0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(records())
def test_a_zero_sum_ending_stays_one_in_returns_and_in_advantages(rows: list[Row]) -> None:
    rows = [replace(one, how="chosen", reward=one.reward if one.ended else 0.0) for one in rows]
    for baseline in (ZERO, MEAN, LOO):
        found = first(credited(rows, term(key=["group", "role"], baseline=baseline)))
        assert fsum(a for a, one in zip(found, rows, strict=True) if one.ended) == pytest.approx(0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(records(), st.sampled_from(TERMS))
def test_what_is_not_learnt_gets_nothing(rows: list[Row], one: Term) -> None:
    found = credited(rows, one)
    for each, tokens, mask in zip(rows, found.tokens, found.mask, strict=True):
        assert len(tokens) == len(mask) == len(each.ids)
        assert learnable(each) or not any(tokens)
        assert all(learnt or not advantage for advantage, learnt in zip(tokens, mask, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-9, 9), min_size=2, max_size=9))
def test_known_relations_of_the_estimators(values: list[float]) -> None:
    compared = [Compared(value, value, "k", number) for number, value in enumerate(values)]
    unscaled = term(scale={"kind": "one"}).scale
    mean, _ = keyed_baseline(compared, term().baseline, unscaled, {})
    loo, _ = keyed_baseline(compared, term(baseline=LOO).baseline, unscaled, {})
    n = len(values)
    assert fsum(mean) == pytest.approx(0, abs=1e-9)
    assert loo == pytest.approx([n / (n - 1) * each for each in mean], abs=1e-9)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=6), st.floats(0, 1), st.floats(-3, 3))
def test_gae_with_lambda_one_is_the_discounted_return(earned: list[float], gamma: float, after: float) -> None:
    values = [float(index) for index in range(len(earned))]
    found = lambda_returns(earned, values, after, [gamma] * len(earned), 1.0)
    assert found == pytest.approx(discounted(earned, gamma, after), abs=1e-6)


def test_tables_are_ordered_as_people_count() -> None:
    assert sorted(["r:10", "r:2", "q:3"], key=episode_order) == ["q:3", "r:2", "r:10"]
