"""Who joins the league, when, and who starts anew; what a training comes to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from sim.streams import Streams
from training import ladder, roster
from training.league import LeagueState
from training.matchup import Matchup
from training.roster import Joined
from training.slots import Actors
from training.standings import Game, Seated

ENTRIES = {"first": "kuhn@5", "second": "kuhn@5"}
EXPLOITER = "kuhn-main-exploiter-1"


def actors(kind: str, **settings: Any) -> Actors:
    found: Actors = TypeAdapter(Actors).validate_python({"kind": kind, **settings})
    return found


def game(table: int, first: str, second: str, earned: float) -> Game:
    seats = (Seated(player=first, role="first", earned=earned), Seated(player=second, role="second", earned=-earned))
    return Game(place=(0, table), seats=seats)


def labels(league: LeagueState, version: int) -> dict[str, str]:
    return {name: f"{name}@{version}" for name in ("kuhn", *(one.policy for one in league.learners))}


def begun(kind: Actors) -> LeagueState:
    league = roster.enrolled(kind, ["kuhn"])
    return roster.begun(kind, league, ["kuhn"], labels(league, 1))


def joined(kind: Actors, league: LeagueState, done: int) -> Joined:
    return roster.joined(kind, league, ["kuhn"], labels(league, done + 1), done, Streams(0))


@pytest.mark.parametrize(
    ("kind", "beside", "members"),
    [
        (actors("self"), [], []),
        (actors("pool", weight="uniform"), [], []),
        (actors("league", main_exploiters=2, league_exploiters=0), [EXPLOITER, EXPLOITER[:-1] + "2"], ["kuhn@1"]),
        (actors("psro"), [], ["kuhn@1"]),
        (actors("nfsp"), ["kuhn-average"], []),
    ],
)
def test_who_is_there_at_the_start(kind: Actors, beside: list[str], members: list[str]) -> None:
    league = begun(kind)
    assert [one.policy for one in league.learners] == beside
    assert all(one.label == f"{one.policy}@1" for one in league.learners)
    assert [one.label for one in league.members] == members


def test_of_a_pool_the_newest_versions_join_every_so_many_updates() -> None:
    kind = actors("pool", weight="uniform", add_every=3)
    found = [joined(kind, LeagueState(), done).newcomers for done in (1, 2, 3, 4, 6)]
    assert found == [(), (), ("kuhn@4",), (), ("kuhn@7",)]


def test_a_response_joins_when_its_turn_is_over_without_what_weaker_versions_earned() -> None:
    kind = actors("psro", every=2, anew=True)
    league = begun(kind).finished([game(0, "kuhn", "kuhn@1", 1)])
    assert joined(kind, league, 1) == Joined(league=league)
    found = joined(kind, league, 2)
    assert (found.newcomers, found.anew) == (("kuhn@3",), ("kuhn",))
    assert found.league.score("kuhn@3", "kuhn@1").n == 0
    assert found.league.score("kuhn", "kuhn@1").n == 1
    assert roster.restarting(kind, league, ["kuhn"]) == ["kuhn"]
    assert roster.restarting(actors("psro"), league, ["kuhn"]) == []


def test_an_exploiter_that_wins_joins_at_once_and_starts_anew_while_mains_wait_for_their_time() -> None:
    kind = actors("league", add_every=10)
    won = begun(kind).finished(game(n, EXPLOITER, "kuhn", 1) for n in range(30))
    found = joined(kind, won, 4)
    assert (found.newcomers, found.anew) == ((f"{EXPLOITER}@5",), (EXPLOITER,))
    assert joined(kind, begun(kind), 10).newcomers == ("kuhn@11",)
    assert joined(actors("league", add_every=10, beats=0.99), _mixed(kind), 4).newcomers == ()
    assert roster.restarting(kind, won, ["kuhn"]) == [EXPLOITER, "kuhn-league-exploiter-1"]


def _mixed(kind: Actors) -> LeagueState:
    """The exploiter has won 29 games of 30."""
    return begun(kind).finished(game(n, EXPLOITER, "kuhn", 1 if n else -1) for n in range(30))


def test_an_exploiter_s_games_are_a_family_of_their_own() -> None:
    league = begun(actors("league"))

    def matchup(first: str, learner: str) -> Matchup:
        speakers = {"first": first, "second": "kuhn@2"}
        return Matchup(speakers=speakers, players={}, learners=frozenset([learner]), tables=1)

    assert roster.family("poker", league, matchup(f"{EXPLOITER}@2", "first")) == f"poker/{EXPLOITER}"
    assert roster.family("poker", league, matchup(f"{EXPLOITER}@2", "second")) == "poker"
    assert roster.family("poker", league, matchup("kuhn@1", "second")) == "poker"


def test_what_stays_are_members_and_the_best() -> None:
    league = begun(actors("psro")).judged("kuhn", "kuhn@7", -0.5, 6)
    assert roster.kept(league) == {"kuhn@1", "kuhn@7"}
    mixed = league.judged(roster.STRATEGY, f"{roster.STRATEGY}@9", -0.1, 9, {"first": {"kuhn@3": 0.5, "kuhn@4": 0.5}})
    assert roster.kept(mixed) >= {"kuhn@3", "kuhn@4"}, "what the best mixture draws from"


def test_a_training_comes_to_a_mixture_or_to_averages() -> None:
    kind = actors("psro")
    league = LeagueState()
    for label in ("kuhn@1", "kuhn@2"):
        league = league.added(label, "kuhn", 0)
    league = league.finished([game(0, "kuhn@2", "kuhn@1", 1), game(1, "kuhn@1", "kuhn@2", -1)])
    assert roster.strategy(kind, league, ENTRIES) == {key: {"kuhn@2": 1.0} for key in ENTRIES}, "it beats the other"
    assert roster.strategy(kind, LeagueState(), ENTRIES) == {}
    assert roster.mixtures(league, ENTRIES, most=1) == roster.strategy(kind, league, ENTRIES), "the better one"
    assert roster.mixtures(league, {"only": "kuhn@2"}) == {}
    assert roster.strategy(actors("self"), league, ENTRIES) == {}
    nfsp = actors("nfsp")
    assert roster.strategy(nfsp, begun(nfsp), ENTRIES) == {key: {"kuhn-average@1": 1.0} for key in ENTRIES}


def test_measurements_are_the_league_with_its_uncertainty() -> None:
    league = LeagueState().added("a@1", "a", 0).added("b@1", "b", 0)
    league = league.finished(game(n, "a@1", "b@1", 1 if n < 8 else -1) for n in range(10))
    found = {(one.metric, one.of["player"], one.of.get("opponent")): one for one in ladder.measurements(league, 4)}
    rate = found["league.win_rate", "a@1", "b@1"]
    assert (rate.value, rate.n, rate.ci_method) == (0.8, 10, "wilson")
    assert rate.ci == pytest.approx((0.49016, 0.94332), abs=1e-5)
    payoff = found["league.payoff", "b@1", "a@1"]
    # Two wins of 1 and eight losses of 1: mean -0.6, variance (10 - 3.6)/9, error sqrt(0.64/9).
    assert payoff.value == pytest.approx(-0.6)
    assert payoff.ci == pytest.approx((-0.6 - 1.96 * 0.26667, -0.6 + 1.96 * 0.26667), abs=1e-3)
    rating = found["league.rating", "a@1", None]
    assert rating.of == {"player": "a@1", "update": 4}
    assert rating.ci is not None
    assert rating.ci[0] < league.rating("a@1").mu < rating.ci[1]
