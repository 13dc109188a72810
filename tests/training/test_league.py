"""The league: meta-solvers with known answers, scores with their uncertainty, ratings, exploiters, the PSRO loop."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp, inf, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.streams import Streams
from training import metagame
from training.league import LeagueState, Oracle, Step, exploiter_step, oracle, with_exploiters
from training.metagame import apportion, nash, replicator
from training.slots import League
from training.standings import Game, Rating, Score, Seated

RPS = [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]
BIASED = [[0, -1, 2], [1, 0, -1], [-2, 1, 0]]
"""Rock's win over scissors counts twice: rock 1/4, paper 1/2, scissors 1/4."""


def game(table: int, left: str, right: str, earned: float, matchup: int = 0) -> Game:
    """Left earns so much and right loses it."""
    seats = (Seated(player=left, role="first", earned=earned), Seated(player=right, role="second", earned=-earned))
    return Game(place=(matchup, table), seats=seats)


def members(*labels: str, policy: str = "kuhn") -> LeagueState:
    state = LeagueState()
    for update, label in enumerate(labels):
        state = state.added(label, policy, update)
    return state


# --- meta-solvers ------------------------------------------------------------------------------------------


def test_nash_of_rock_paper_scissors_is_exact() -> None:
    assert nash(RPS) == ((1 / 3,) * 3, (1 / 3,) * 3, 0.0)
    assert nash(BIASED) == ((0.25, 0.5, 0.25), (0.25, 0.5, 0.25), 0.0)


def test_nash_of_games_that_are_not_square_or_fair() -> None:
    assert nash([[3, 1], [0, 2]]) == ((0.5, 0.5), (0.25, 0.75), 1.5)
    assert nash([[1, 2, 3]]) == ((1.0,), (1.0, 0.0, 0.0), 1.0)
    assert nash([[Fraction(1, 3)], [0]]) == ((1.0, 0.0), (1.0,), 1 / 3)
    with pytest.raises(ValueError, match="at least one strategy"):
        nash([])


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_nobody_gains_by_leaving_a_nash_equilibrium(m: int, n: int, data: st.DataObject) -> None:
    payoffs = data.draw(st.lists(st.lists(st.integers(-3, 3), min_size=n, max_size=n), min_size=m, max_size=m))
    found = nash(payoffs)
    assert min(*found.rows, *found.columns) >= 0
    assert sum(found.rows) == pytest.approx(1)
    assert sum(found.columns) == pytest.approx(1)
    assert max(sum(a * y for a, y in zip(row, found.columns, strict=True)) for row in payoffs) == pytest.approx(
        found.value
    )
    assert min(sum(payoffs[i][j] * found.rows[i] for i in range(m)) for j in range(n)) == pytest.approx(found.value)


def test_replicator_stays_at_its_start_where_that_is_an_equilibrium() -> None:
    assert replicator(RPS).rows == pytest.approx((1 / 3,) * 3)


def test_replicator_plays_a_dominant_strategy_but_for_the_least_shares() -> None:
    """Three strategies, γ = 0.01: each of the dominated ones keeps 0.01/4."""
    found = replicator([[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert found.rows == pytest.approx((0.995, 0.0025, 0.0025), abs=1e-9)
    assert found.columns == pytest.approx((1 / 3,) * 3)
    assert found.value == pytest.approx(0.995)


def test_replicator_circles_around_a_mixed_equilibrium() -> None:
    assert replicator(BIASED).rows == pytest.approx((0.25, 0.5, 0.25), abs=0.05)


def test_payoffs_are_rounded_to_binary_digits_of_the_largest() -> None:
    """With 3 digits of a largest below 4 the unit is ½."""
    assert metagame.rounded([[3.9, 1.3], [-0.2, 0.8]], digits=3) == [[4, 1.5], [0, 1]]
    assert metagame.rounded(BIASED) == BIASED
    assert metagame.rounded([[0.0]]) == [[0.0]]
    third = metagame.rounded([[1 / 3]])[0][0]
    assert abs(third - 1 / 3) <= 2.0**-18
    assert third != 1 / 3


def test_a_step_of_the_replicator_by_hand() -> None:
    """x = ½, ½ earns u = 1, 0 (the scale is 2); ū = ½, so x moves by 0.1·½·½ to 0.525, 0.475."""
    assert replicator([[2], [0]], steps=1).rows == pytest.approx((0.525, 0.475))


def test_weights_by_hand() -> None:
    assert metagame.pfsp_hard([0.0, 0.5, 0.9, 1.0]) == pytest.approx([1, 0.25, 0.01, 0])
    assert metagame.pfsp_hard([0.5], power=1) == [0.5]
    assert metagame.pfsp_var([0.0, 0.5, 0.9]) == pytest.approx([0, 0.25, 0.09])
    spread = 2 * (25 / 6) ** 2 + 9 + 16
    assert metagame.match_quality(25, 3, 30, 4) == pytest.approx(
        sqrt(2 * (25 / 6) ** 2 / spread) * exp(-25 / 2 / spread)
    )
    assert metagame.match_quality(25, 0, 25, 0) == 1


@given(st.integers(0, 1000), st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_shares_add_up_and_are_quotas_rounded_up_or_down(total: int, weights: list[float], luck: float) -> None:
    shares = apportion(total, weights, luck)
    whole = sum(weights)
    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        quota = total * (weight / whole if whole else 1 / len(weights))
        assert -1e-6 <= share - quota + 1 <= 2 + 1e-6


def test_shares_are_quotas_on_average() -> None:
    counts = [0, 0, 0]
    for k in range(1000):
        for i, share in enumerate(apportion(2, [0.5, 0.3, 0.2], (k + 0.5) / 1000)):
            counts[i] += share
    assert counts == [1000, 600, 400]


# --- scores and ratings ------------------------------------------------------------------------------------


def test_scores_by_hand() -> None:
    """Three wins of 1, 1 and 4, a draw, a loss of 2: mean 0.8, sum of squares 22, variance (22 − 16/5)/4 = 4.7."""
    state = members("a@1", "b@1").finished(game(i, "a@1", "b@1", x) for i, x in enumerate((1, 1, 4, 0, -2)))
    score = state.score("a@1", "b@1")
    assert (score.wins, score.draws, score.losses, score.n) == (3, 1, 1, 5)
    assert score.win_rate == 0.7
    assert score.mean == pytest.approx(0.8)
    assert score.error == pytest.approx(sqrt(4.7 / 5))
    assert state.score("b@1", "a@1").win_rate == pytest.approx(0.3)
    assert state.score("b@1", "a@1", "second").mean == pytest.approx(-0.8)
    assert state.score("b@1", "a@1", "first") == Score()


def test_wilson_interval_of_eight_of_ten() -> None:
    assert Score(wins=8, losses=2).interval == pytest.approx((0.49016, 0.94332), abs=1e-5)
    assert Score().interval == (0, 1)
    assert (Score().win_rate, Score().error) == (0.5, inf)


def test_a_matrix_is_the_mean_over_roles_however_often_each_was_played() -> None:
    games = [game(0, "a@1", "b@1", 1), game(1, "b@1", "a@1", 3), game(2, "b@1", "a@1", 3)]
    state = members("a@1", "b@1").finished(games)
    assert state.matrix(["a@1"], ["a@1", "b@1"]) == [[0, -1]]
    assert state.matrix(["a@1"], ["b@1"], "first", "second") == [[1]]


def test_who_won_rises_and_who_lost_falls() -> None:
    state = members("a@1", "b@1")
    for update in range(5):
        before = state
        state = state.finished([game(update, "a@1", "b@1", 1)])
        assert state.rating("a@1").mu > before.rating("a@1").mu
        assert state.rating("b@1").mu < before.rating("b@1").mu
    assert state.rating("a@1").ordinal > state.rating("b@1").ordinal
    assert state.rating("a@1").sigma < 2 * Rating().sigma


def test_the_order_in_which_games_end_does_not_matter() -> None:
    luck = Random(0)
    labels = ("a@1", "b@1", "c@1")
    pairs = [luck.sample(labels, 2) for _ in range(27)]
    games = [game(i % 9, a, b, luck.choice((-1, 0, 1)), matchup=i // 9) for i, (a, b) in enumerate(pairs)]
    orders = [luck.sample(games, len(games)) for _ in range(5)]
    assert len({json.dumps(members(*labels).finished(order).to_json()) for order in [games, *orders]}) == 1


def test_a_game_of_three_is_rated_as_one() -> None:
    seats = tuple(Seated(player=f"{name}@1", role=name, earned=x) for name, x in (("a", 3), ("b", 2), ("c", 1)))
    state = members("a@1", "b@1", "c@1").finished([Game(place=(0, 0), seats=seats)])
    assert state.rating("a@1").mu > state.rating("b@1").mu > state.rating("c@1").mu
    assert state.score("a@1", "c@1").wins == 1


def test_of_several_seats_the_mean_counts_and_nobody_meets_itself() -> None:
    seats = [("kuhn", "first", 1), ("kuhn", "first", 2), ("b@1", "second", 1.25), ("kuhn@7", "second", 9)]
    played = tuple(Seated(player=player, role=role, earned=x) for player, role, x in seats)
    state = members("b@1").finished([Game(place=(0, 0), seats=played)])
    assert state.score("kuhn", "b@1") == Score(wins=1, total=1.5, squares=2.25)
    assert set(state.payoffs) == {"kuhn", "b@1"}, "a version that is no member is left out"
    mirror = members().finished([game(0, "kuhn", "kuhn", 1)])
    assert (mirror.payoffs, mirror.ratings) == ({}, {})


def test_what_one_that_changes_earned_fades_and_what_members_earned_stays() -> None:
    state = members("a@1", "b@1").finished([game(0, "a@1", "b@1", 1), game(1, "kuhn", "b@1", 1)])
    later = state.finished([], fade=0.5)
    assert later.score("a@1", "b@1").n == 1
    assert (later.score("kuhn", "b@1").n, later.score("b@1", "kuhn").n) == (0.5, 0.5)
    assert later.score("kuhn", "b@1").win_rate == 1


def test_a_newcomer_inherits_mu_twice_sigma_and_scores() -> None:
    state = members("a@1").finished([game(i, "kuhn", "a@1", 1) for i in range(4)])
    later = state.added("kuhn@5", "kuhn", 5, parent="kuhn@4")
    mine = state.rating("kuhn")
    assert later.rating("kuhn@5") == Rating(mu=mine.mu, sigma=2 * mine.sigma)
    assert later.score("kuhn@5", "a@1") == state.score("kuhn", "a@1")
    assert later.score("a@1", "kuhn@5") == state.score("a@1", "kuhn")
    assert (later.members[-1].kind, later.members[-1].parent, later.members[-1].added) == ("main", "kuhn@4", 5)
    assert state.member("kuhn@5") is None, "a state does not change"
    with pytest.raises(ValueError, match="already"):
        later.added("kuhn@5", "kuhn", 6)


def test_best_so_far_keeps_the_first_of_equals() -> None:
    state = LeagueState().judged("kuhn", "kuhn@1", -0.5, 1).judged("kuhn", "kuhn@2", -0.2, 2)
    state = state.judged("kuhn", "kuhn@3", -0.2, 3).judged("kuhn", "kuhn@4", -0.4, 4)
    assert (state.best["kuhn"].label, state.best["kuhn"].update) == ("kuhn@2", 2)


def test_a_league_goes_through_json() -> None:
    state = with_exploiters(members("a@1", "b@1"), League(kind="league"), ["kuhn"]).published(
        "kuhn-main-exploiter-1", "kuhn-main-exploiter-1@1"
    )
    state = state.finished([game(0, "a@1", "b@1", 1 / 3), game(1, "kuhn", "b@1", 0.1)]).judged("kuhn", "a@1", -0.1, 3)
    again = LeagueState.from_json(json.loads(json.dumps(state.to_json())))
    assert again == state
    more = [game(0, "b@1", "a@1", 0.7), game(1, "kuhn", "a@1", 0.2)]
    assert again.finished(more) == state.finished(more)


# --- exploiters --------------------------------------------------------------------------------------------


def league() -> LeagueState:
    return with_exploiters(members("kuhn@1"), League(kind="league"), ["kuhn"])


def decide(state: LeagueState, policy: str, update: int) -> Step:
    learner = state.learner(policy)
    assert learner is not None
    return exploiter_step(state, learner, update, Streams(0))


def test_exploiters_are_enrolled_once() -> None:
    state = league()
    assert [(one.policy, one.kind, one.of) for one in state.learners] == [
        ("kuhn-main-exploiter-1", "main_exploiter", "kuhn"),
        ("kuhn-league-exploiter-1", "league_exploiter", "kuhn"),
    ]
    assert with_exploiters(state, League(kind="league"), ["kuhn"]) == state
    assert state.family("kuhn-main-exploiter-1") == state.family("kuhn") == "kuhn"


def test_a_main_exploiter_joins_and_resets_when_it_beats_the_main_policy() -> None:
    name = "kuhn-main-exploiter-1"
    won = [game(i, name, "kuhn", 1 if i % 4 else -1) for i in range(40)]
    assert decide(league().finished(won), name, 5) == Step(joins=True, resets=True)
    assert decide(league().finished(won[:19]), name, 5) == Step(), "too few games"
    drawn = [game(i, name, "kuhn", 1 if i % 10 < 7 else -1) for i in range(40)]
    assert decide(league().finished(drawn), name, 5) == Step(), "70% is not more than 70%"
    assert decide(league(), name, 100) == Step(joins=True, resets=True), "its patience is over"


def test_a_league_exploiter_must_beat_everyone_and_resets_at_times() -> None:
    name = "kuhn-league-exploiter-1"
    won = [game(i, name, "kuhn@1", 1) for i in range(40)]
    assert decide(league().finished(won), name, 5).joins
    assert not decide(league().added("kuhn@2", "kuhn", 2).finished(won), name, 5).joins
    resets = [decide(league(), name, update).resets for update in range(100, 1100)]
    assert 200 < sum(resets) < 300


def test_patience_begins_anew_when_an_exploiter_has_joined() -> None:
    name = "kuhn-league-exploiter-1"
    joined = league().added(f"{name}@100", name, 100)
    assert not decide(joined, name, 199).joins
    assert decide(joined, name, 200).joins


def test_a_reset_forgets_what_was_earned() -> None:
    name = "kuhn-main-exploiter-1"
    state = league().finished([game(0, name, "kuhn", 1), game(1, name, "kuhn@1", 1)])
    state = state.added(f"{name}@3", name, 3).reset(name, f"{name}@4", 3)
    learner = state.learner(name)
    assert learner is not None
    assert (learner.label, learner.since) == (f"{name}@4", 3)
    assert state.score("kuhn", name) == state.score(name, "kuhn@1") == Score()
    assert name not in state.ratings
    assert state.score(f"{name}@3", "kuhn@1").wins == 1, "what has joined keeps its scores"
    assert state.members[-1].kind == "main_exploiter"


def test_only_exploiters_step() -> None:
    state = LeagueState().enrolled("kuhn-average", "average", "kuhn").published("kuhn-average", "kuhn-average@2")
    assert state.average("kuhn") == "kuhn-average@2"
    with pytest.raises(ValueError, match="no exploiter"):
        decide(state, "kuhn-average", 0)
    with pytest.raises(ValueError, match="already"):
        state.enrolled("kuhn-average", "average", "kuhn")


# --- PSRO --------------------------------------------------------------------------------------------------


def biased() -> LeagueState:
    """Three members that are rock, paper and scissors to each other."""
    labels = ("rock@1", "paper@1", "scissors@1")
    pairs = [(a, b, BIASED[i][j]) for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j]
    return members(*labels, policy="rps").finished(game(n, a, b, x) for n, (a, b, x) in enumerate(pairs))


def test_the_meta_nash_of_played_games() -> None:
    state, labels = biased(), ("rock@1", "paper@1", "scissors@1")
    assert state.matrix(labels, labels) == BIASED
    assert state.solved("meta_nash", labels, labels) == nash(BIASED)
    assert state.solved("uniform", labels, labels).rows == (1 / 3,) * 3
    assert state.solved("meta_nash", labels, labels, "first", "second").columns == (0.25, 0.5, 0.25)
    assert members("a@1", "b@1").solved("meta_nash", ["a@1", "b@1"], ["a@1", "b@1"]).rows == (0.5, 0.5)
    with pytest.raises(ValueError, match="both sides"):
        state.solved("meta_nash", [], labels)


def test_psro_with_one_policy() -> None:
    assert oracle(LeagueState(), ["rps"], 0, 3) == Oracle(policy="rps", opponents={})
    found = oracle(biased(), ["rps"], 2, 3)
    assert found.opponents == {"rock@1": 0.25, "paper@1": 0.5, "scissors@1": 0.25}
    assert (found.joins, found.gain) == (True, None)
    # It beats paper by 1 and draws with the others: ½·1 more than the value, 0.
    played = [game(0, "rps", "paper@1", 1), game(1, "rps", "rock@1", 0), game(2, "rps", "scissors@1", 0)]
    assert oracle(biased().finished(played), ["rps"], 2, 3).gain == pytest.approx(0.5)


def test_psro_with_two_policies_takes_turns() -> None:
    state = members("a@1", policy="a")
    assert [oracle(state, ["a", "b"], update, 2).policy for update in range(5)] == ["a", "a", "b", "b", "a"]
    assert oracle(state, ["a", "b"], 2, 2).opponents == {"a@1": 1.0}
    assert oracle(state, ["a", "b"], 0, 2).opponents == {}
    with pytest.raises(ValueError, match="one or two"):
        oracle(state, ["a", "b", "c"], 0, 2)
