"""Matchups: tables that add up, balanced sides, opponents by weight, and the same luck for the same question."""

from __future__ import annotations

from collections import Counter
from math import floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import TypeAdapter

from sim.streams import Streams
from training.league import LeagueState, with_exploiters
from training.matchup import DRAWN, games, last_versions
from training.opponents import Matchup, evaluations, matchups
from training.slots import Actors, League
from training.standings import Game, Seated
from training.trajectory import Row

KUHN = {"first": "kuhn@12", "second": "kuhn@12"}
SIDES = {"attacker": "attacker@5", "defender": "defender@7"}


def actors(kind: str, **settings: Any) -> Actors:
    found: Actors = TypeAdapter(Actors).validate_python({"kind": kind, **settings})
    return found


def game(table: int, first: str, second: str, earned: float) -> Game:
    seats = (Seated(player=first, role="first", earned=earned), Seated(player=second, role="second", earned=-earned))
    return Game(place=(0, table), seats=seats)


def pool(*labels: str) -> LeagueState:
    state = LeagueState()
    for label in labels:
        state = state.added(label, label.partition("@")[0], 0)
    return state


def full() -> LeagueState:
    """A league in which everybody is there: members, exploiters, averages."""
    state = with_exploiters(pool("kuhn@1", "kuhn@2"), League(kind="league"), ["kuhn"])
    for learner in state.learners:
        state = state.published(learner.policy, f"{learner.policy}@3")
    state = state.enrolled("kuhn-average", "average", "kuhn").published("kuhn-average", "kuhn-average@12")
    return state.added("kuhn-main-exploiter-1@2", "kuhn-main-exploiter-1", 2)


EVERY = [
    actors("self"),
    actors("fixed"),
    actors("lagged", last=3),
    *(
        actors("pool", weight=weight, side=side)
        for weight in ("uniform", "pfsp_hard", "pfsp_var", "match_quality", "meta_nash", "replicator")
        for side in ("all", "other")
    ),
    actors("league"),
    actors("psro", every=5),
    actors("nfsp"),
    actors("mix", last=3),
    actors("teacher", policy="teacher", beta=0.5),
    actors("population", size=4, elite=1),
]


def made(kind: Actors, episodes: int = 64, update: int = 0, seed: int = 0, **settings: Any) -> list[Matchup]:
    asked = {"entries": KUHN, "league": full(), **settings}
    return matchups(kind, asked["entries"], asked["league"], episodes, update, Streams(seed), asked.get("only"))


def tables(found: list[Matchup], entry: str) -> dict[str, int]:
    """Tables by who speaks with an entry."""
    counts: Counter[str] = Counter()
    for one in found:
        counts[one.speakers[entry]] += one.tables
    return dict(counts)


# --- what holds for all --------------------------------------------------------------------------------------


@given(st.sampled_from(EVERY), st.integers(0, 200), st.integers(0, 50), st.integers(0, 5))
def test_tables_add_up_and_are_the_same_every_time(kind: Actors, episodes: int, update: int, seed: int) -> None:
    found = made(kind, episodes, update, seed)
    assert sum(one.tables for one in found) == episodes
    assert found == made(kind, episodes, update, seed)
    assert all(one.tables > 0 and one.learners and set(one.speakers) == set(KUHN) for one in found)
    taken = [(tuple(one.speakers.items()), one.learners) for one in found]
    assert len(set(taken)) == len(taken), "equal matchups are one"


@given(st.sampled_from([one for one in EVERY if one.kind in ("lagged", "pool", "nfsp")]), st.integers(1, 99))
def test_every_side_learns_in_its_share(kind: Actors, episodes: int) -> None:
    found = made(kind, episodes)
    for entry in KUHN:
        share = sum(one.tables for one in found if entry in one.learners)
        assert floor(episodes / 2) <= share <= floor(episodes / 2) + 1
        assert all(one.players[entry] == "kuhn" for one in found if entry in one.learners)


@pytest.mark.parametrize("kind", [one for one in EVERY if one.kind in ("lagged", "pool", "league", "nfsp")])
def test_opponents_need_a_seat_of_their_own(kind: Actors) -> None:
    with pytest.raises(ValueError, match="an entry of models for each side"):
        made(kind, entries={"player": "kuhn@12"})


def test_only_some_learn() -> None:
    (one,) = made(actors("self"), entries=SIDES, only=["attacker"])
    assert (one.speakers, set(one.learners)) == (SIDES, {"attacker"})
    league = pool("attacker@1", "defender@1")
    (one,) = made(actors("pool", weight="uniform", side="other"), entries=SIDES, league=league, only=["defender"])
    assert (one.speakers, set(one.learners)) == ({"attacker": "attacker@1", "defender": "defender@7"}, {"defender"})
    with pytest.raises(ValueError, match="nobody learns"):
        made(actors("self"), only=["third"])


# --- one by one ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [one for one in EVERY if one.kind in ("self", "fixed", "mix", "teacher", "population")]
)
def test_the_plain_matchup(kind: Actors) -> None:
    players = {"first": "kuhn", "second": "kuhn"}
    assert made(kind) == [Matchup(speakers=KUHN, players=players, learners=frozenset(KUHN), tables=64)]


def test_lagged_meets_each_of_the_last_versions() -> None:
    met: Counter[str] = Counter()
    for update in range(50):
        for one in made(actors("lagged", last=3), 60, update):
            assert len(one.learners) == 1
            met.update({one.speakers[entry]: one.tables for entry in set(KUHN) - one.learners})
    assert set(met) == {"kuhn@11", "kuhn@10", "kuhn@9"}
    assert all(abs(count - 1000) < 150 for count in met.values())
    first = made(actors("lagged", last=3), entries=dict.fromkeys(KUHN, "kuhn@1"))
    assert {label for one in first for label in one.speakers.values()} == {"kuhn@1"}


def test_last_versions() -> None:
    assert last_versions("kuhn@12", 3) == ["kuhn@12", "kuhn@11", "kuhn@10"]
    assert last_versions("kuhn@2", 5) == ["kuhn@2", "kuhn@1"]
    assert last_versions("kuhn", 5) == ["kuhn"]


def test_an_empty_pool_is_self_play() -> None:
    (one,) = made(actors("pool", weight="meta_nash"), league=LeagueState())
    assert (one.speakers, set(one.learners)) == (KUHN, set(KUHN))
    (one,) = made(actors("pool", weight="uniform", side="other"), entries=SIDES, league=LeagueState())
    assert one.learners == set(SIDES)


def test_a_pool_meets_a_few_opponents() -> None:
    league = pool(*(f"kuhn@{n}" for n in range(1, 12)))
    for update in range(20):
        found = made(actors("pool", weight="uniform"), 100, update, league=league)
        for entry in KUHN:
            met = [one for one in found if entry in one.learners]
            assert len(met) == DRAWN
            assert {one.tables for one in met} <= {12, 13}


def test_a_pool_draws_by_weight() -> None:
    """It beats a@1 in half its games and b@1 in three quarters: (1 − x)² is 1/4 and 1/16, so a@1 comes in 4 of 5."""
    results = [game(n, "kuhn", "a@1", x) for n, x in enumerate((1, -1, 1, -1))]
    results += [game(n, "kuhn", "b@1", x) for n, x in enumerate((1, 1, 1, -1), start=4)]
    league = pool("a@1", "b@1").finished(results)
    kind = actors("pool", weight="pfsp_hard")
    counts: Counter[str] = Counter()
    for update in range(200):
        counts.update(
            tables([one for one in made(kind, 20, update, league=league) if "first" in one.learners], "second")
        )
    assert counts["a@1"] / sum(counts.values()) == pytest.approx(0.8, abs=0.03)
    nobody = pool("a@1").finished([game(0, "kuhn", "a@1", 1)])
    assert tables(made(kind, league=nobody), "second") == {"a@1": 32, "kuhn@12": 32}, "all weights 0: uniform"


def test_a_pool_draws_by_meta_nash() -> None:
    """Biased rock, paper, scissors: the equilibrium plays paper in half of the games, the others in a quarter each."""
    earns = {("rock@1", "paper@1"): -1, ("rock@1", "scissors@1"): 2, ("paper@1", "scissors@1"): -1}
    pairs = [*earns.items(), *(((b, a), -x) for (a, b), x in earns.items())]
    league = pool("rock@1", "paper@1", "scissors@1").finished(game(n, *pair, x) for n, (pair, x) in enumerate(pairs))
    for side in ("all", "other"):
        entries = dict.fromkeys(KUHN, "rock@9")
        league_of = league if side == "all" else _one_family(league)
        kind = actors("pool", weight="meta_nash", side=side)
        # Four opponents are drawn, so the quotas are whole: two, one and one.
        found = [one for one in made(kind, 40, entries=entries, league=league_of) if "first" in one.learners]
        assert tables(found, "second") == {"paper@1": 10, "rock@1": 5, "scissors@1": 5}


def _one_family(league: LeagueState) -> LeagueState:
    for name in ("paper", "scissors"):
        league = league.enrolled(name, "league_exploiter", "rock")
    return league


def test_close_ratings_make_likely_opponents() -> None:
    league = pool("a@1", "b@1").finished(
        [*(game(n, "kuhn", "a@1", (-1) ** n) for n in range(20)), *(game(n, "kuhn", "b@1", 1) for n in range(20, 40))]
    )
    counts: Counter[str] = Counter()
    for update in range(100):
        counts.update(tables(made(actors("pool", weight="match_quality"), 20, update, league=league), "second"))
    assert counts["a@1"] > counts["b@1"] > 0


def test_pools_of_roles_hold_their_own_side() -> None:
    league = pool("attacker@1", "attacker@2", "defender@1")
    found = made(actors("pool", weight="replicator", side="other"), entries=SIDES, league=league)
    for one in found:
        assert (one.speakers["attacker"] == "attacker@5") != (one.speakers["defender"] == "defender@7")
        assert all(label.partition("@")[0] == entry for entry, label in one.speakers.items())


def test_three_seats_are_drawn_for_one_by_one() -> None:
    entries = dict.fromkeys(("a", "b", "c"), "kuhn@12")
    found = made(actors("pool", weight="uniform"), 96, entries=entries)
    assert all(len(one.learners) == 1 and set(one.speakers) == set(entries) for one in found)
    assert {sum(one.tables for one in found if entry in one.learners) for entry in entries} == {32}


def test_nfsp_meets_best_responses_with_probability_eta() -> None:
    found = made(actors("nfsp", eta=0.25), 80)
    learning = {one.speakers["second"]: one for one in found if one.learners == {"first"}}
    assert {label: one.tables for label, one in learning.items()} == {"kuhn@12": 10, "kuhn-average@12": 30}
    assert learning["kuhn-average@12"].players == {"first": "kuhn", "second": "kuhn-average"}
    (one,) = made(actors("nfsp"), league=LeagueState())
    assert (one.speakers, set(one.learners)) == (KUHN, set(KUHN)), "while there is no average"


def test_a_best_response_meets_the_members_in_the_shares_of_their_mixture() -> None:
    """Biased rock, paper, scissors: a quarter, half, a quarter; the response learns in each seat half of the time."""
    earns = {("rock@1", "paper@1"): -1, ("rock@1", "scissors@1"): 2, ("paper@1", "scissors@1"): -1}
    pairs = [*earns.items(), *(((b, a), -x) for (a, b), x in earns.items())]
    league = pool("rock@1", "paper@1", "scissors@1").finished(game(n, *pair, x) for n, (pair, x) in enumerate(pairs))
    league = replace(league, members=tuple(replace(one, policy="rock") for one in league.members))
    found = made(actors("psro"), 80, entries=dict.fromkeys(KUHN, "rock@9"), league=league)
    for learner, other in (("first", "second"), ("second", "first")):
        mine = [one for one in found if one.learners == {learner}]
        assert {one.speakers[learner] for one in mine} == {"rock@9"}
        assert tables(mine, other) == {"rock@1": 10, "paper@1": 20, "scissors@1": 10}


def test_two_policies_respond_in_turns_and_one_alone_learns() -> None:
    league = pool("attacker@1", "defender@1")
    for update, who, met in (
        (0, "attacker", "defender@1"),
        (5, "defender", "attacker@1"),
        (10, "attacker", "defender@1"),
    ):
        (one,) = made(actors("psro", every=5), update=update, entries=SIDES, league=league)
        assert one.learners == {who}
        assert set(one.speakers.values()) == {SIDES[who], met}
    (one,) = made(actors("psro"), entries=SIDES, league=LeagueState())
    assert one.speakers == SIDES, "while nobody has joined"
    with pytest.raises(ValueError, match="two entries of models"):
        made(actors("psro"), entries=dict.fromkeys("abc", "kuhn@12"))
    with pytest.raises(ValueError, match="turn of attacker to respond"):
        made(actors("psro"), entries=SIDES, league=league, only={"defender"})


# --- leagues -------------------------------------------------------------------------------------------------


def shares(found: list[Matchup]) -> Counter[str]:
    """Tables by the policy that learns; self-play counts once."""
    counts: Counter[str] = Counter()
    for one in found:
        (policy,) = {one.players[entry] for entry in one.learners}
        counts[policy] += one.tables
    return counts


def test_learners_of_a_league_get_equal_shares() -> None:
    found = made(actors("league"), 120)
    assert shares(found) == {"kuhn": 40, "kuhn-main-exploiter-1": 40, "kuhn-league-exploiter-1": 40}
    assert all(one.players[next(iter(one.learners))] == "kuhn" for one in found if len(one.learners) == 2)


def test_a_main_policy_plays_itself_its_members_and_those_it_forgot() -> None:
    results = [game(n, "kuhn", "kuhn@1", 1) for n in range(10)]
    league = pool("kuhn@1", "kuhn@2").finished(
        [*results, game(10, "kuhn", "kuhn@2", 1), game(11, "kuhn", "kuhn@2", -1)]
    )
    counts: Counter[str] = Counter()
    for update in range(50):
        for one in made(actors("league"), 40, update, league=league):
            counts["self" if len(one.learners) == 2 else one.speakers[min(set(KUHN) - one.learners)]] += one.tables
    # It always beats kuhn@1, so hard games and forgotten ones are all against kuhn@2.
    assert set(counts) == {"self", "kuhn@2"}
    assert counts["self"] / 2000 == pytest.approx(0.35, abs=0.01)


def test_forgotten_games_go_to_exploiters_first() -> None:
    name = "kuhn-main-exploiter-1@2"
    league = full().finished([game(0, "kuhn", name, -1), game(1, "kuhn", "kuhn@1", -1)])
    kind = actors("league", self_play=0, pfsp=0, main_exploiters=0, league_exploiters=0)
    met = {one.speakers["second"] for one in made(kind, league=league) if one.players["first"] == "kuhn"}
    assert name in met
    assert "kuhn@1" not in met


def test_a_main_exploiter_meets_the_main_policy_unless_that_is_hopeless() -> None:
    name = "kuhn-main-exploiter-1"

    def opponents(league: LeagueState) -> set[str]:
        found = [one for one in made(actors("league"), 90, league=league) if name in one.players.values()]
        return {label for one in found for entry, label in one.speakers.items() if entry not in one.learners}

    assert opponents(full()) == {"kuhn@12"}
    lost = [game(n, "kuhn", name, 1) for n in range(10)]
    assert opponents(full().finished(lost)) == {"kuhn@1", "kuhn@2"}


def test_a_league_exploiter_meets_all_members() -> None:
    name, met = "kuhn-league-exploiter-1", set()
    for update in range(5):
        for one in made(actors("league"), 90, update):
            if name in one.players.values():
                met |= {label for entry, label in one.speakers.items() if entry not in one.learners}
    assert met == {"kuhn@1", "kuhn@2", "kuhn-main-exploiter-1@2"}


# --- games ---------------------------------------------------------------------------------------------------


def test_evaluations_fill_what_is_missing() -> None:
    league = pool("kuhn@1", "kuhn@2").finished([game(n, "kuhn@1", "kuhn@2", 1) for n in range(4)])
    found = [(tuple(one.speakers.values()), one.tables, set(one.learners)) for one in evaluations(KUHN, league, 10)]
    assert found == [(("kuhn@1", "kuhn@2"), 6, set()), (("kuhn@2", "kuhn@1"), 10, set())]
    sides = evaluations(SIDES, pool("attacker@1", "defender@1", "defender@2"), 3)
    assert [one.speakers["defender"] for one in sides] == ["defender@1", "defender@2"]
    with pytest.raises(ValueError, match="two at a time"):
        evaluations({"player": "kuhn@1"}, league, 1)


def test_games_are_the_sums_of_their_rows() -> None:
    matchup = Matchup(speakers=KUHN, players={"first": "kuhn", "second": "kuhn@3"}, learners=frozenset(), tables=2)
    rows = [
        Row(episode=f"run:{table}", seat=seat, turn=turn, reward=reward)
        for table, seat, turn, reward in (
            (11, "a", 0, 1),
            (11, "b", 0, -3),
            (11, "a", 1, 2),
            (2, "c", 0, 5),
            (2, "a", 0, -5),
        )
    ]
    found = games(4, matchup, rows, {"a": "first", "b": "second", "c": "rival"})
    assert found == [
        Game(
            place=(4, 11),
            seats=(
                Seated(player="kuhn", role="first", earned=3),
                Seated(player="kuhn@3", role="second", earned=-3),
            ),
        ),
        Game(
            place=(4, 2),
            seats=(Seated(player="rival", role="rival", earned=5), Seated(player="kuhn", role="first", earned=-5)),
        ),
    ]


def test_a_league_from_json_gives_the_same_matchups() -> None:
    state = full().finished([game(0, "kuhn", "kuhn@1", 1), game(1, "kuhn", "kuhn@2", -1)])
    again = LeagueState.from_json(state.to_json())
    for kind in EVERY:
        assert made(kind, league=again, update=9) == made(kind, league=state, update=9)
