"""Societies on records: opinions, standings, contributions, and repeated games that were played."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import log
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.society import opinions, standings
from sim.metrics.society.contributions import left_out, shapley_values, tokens
from sim.metrics.society.opinions import Move, Opinion, beyond, polarised, pulled
from sim.metrics.society.polarisation import bimodality
from sim.metrics.society.ratings import Glicko, elo_orders, glicko2
from sim.metrics.society.standings import Score, rated
from sim.record.reader import Run
from sim.types import Action, Seat
from tests.metrics.society import Society, values
from tests.worlds.playing import Played, play
from worlds.games import incentives, society
from worlds.games.matrix import Matrix
from worlds.games.strategies import Fixed, SuspiciousTitForTat, TitForTat

COOPERATE, DEFECT = partial(Fixed, action="cooperate"), partial(Fixed, action="defect")


def repeated(*makers: Any, names: str = "abcdefgh", **params: Any) -> Played:
    cast = [(Seat(agent=names[n]), make) for n, make in enumerate(makers)]
    return play(Matrix, cast, {"game": "pd", "rounds": 5, **params})


# --- repeated games ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", ["abcd", "zyxw"])
def test_reciprocity_by_hand(names: str) -> None:
    """Tit-for-tat after three defections in four rounds of a defector, and two who alternate: CD, DC, CD, DC, CD."""
    played = repeated(TitForTat, DEFECT, TitForTat, SuspiciousTitForTat, names=names)
    found = values(society.all(played))
    # After cooperation: the defector once, who defects; the two alternators four times, who cooperate.
    assert found["matrix.cooperation_after after=cooperation"].value == pytest.approx(4 / 5)
    # After defection: tit-for-tat four times, the defector three times, the alternators four times: never.
    assert found["matrix.cooperation_after after=defection"].value == 0
    assert found["matrix.cooperation_after after=defection"].n == 4 + 3 + 4
    assert found["matrix.reciprocity"].value == pytest.approx(4 / 5)
    assert found["matrix.reciprocity"].null["p"] < 0.05
    # Tit-for-tat defects first in round 2, the defector and the suspicious in 1, the other tit-for-tat in 2.
    assert found["matrix.first_defection"].value == pytest.approx((2 + 1 + 2 + 1) / 4)
    assert found["drift.slope series=cooperation"].value == pytest.approx(-0.05)


def test_games_that_are_no_dilemma_and_never_defecting() -> None:
    pennies = repeated(*(partial(Fixed, action="heads"),) * 2, game="matching_pennies")
    assert not any("cooperation" in name for name in values(society.all(pennies)))
    kind = values(society.all(repeated(COOPERATE, COOPERATE)))
    assert kind["matrix.first_defection"].value is None
    assert kind["matrix.first_defection"].excluded == {"never defected": 2}
    assert kind["matrix.cooperation_after after=defection"].value is kind["matrix.reciprocity"].value is None
    assert kind["matrix.influence"].value is None


def test_play_with_strangers() -> None:
    """Cooperators earn 3 with each other, defectors 1, and 0 and 5 across: (3 + 1)/2 − (0 + 5)/2."""
    cast = [("kind-1", COOPERATE), ("kind-2", COOPERATE), ("hard-1", DEFECT), ("hard-2", DEFECT)]
    params = {"game": "pd", "rounds": 2, "pairing": "round_robin"}
    played = play(Matrix, [(Seat(agent=agent), make) for agent, make in cast], params)
    found = values(society.strangers(played))["matrix.cross_play_gap"]
    assert (found.value, found.flags) == (pytest.approx(-0.5), ("n_clusters<2",))
    fixed = play(Matrix, [(Seat(agent=agent), make) for agent, make in cast], {**params, "pairing": "fixed"})
    assert values(society.strangers(fixed))["matrix.cross_play_gap"].excluded == {"not all kinds met": 1}


def test_what_a_partner_did_tells_what_tit_for_tat_does() -> None:
    random = repeated(TitForTat, Random_, rounds=80)
    found = values(society.influence(random, 199))["matrix.influence"]
    assert found.null["p"] < 0.05


class Random_:
    """Cooperates by a coin of its own."""

    state: object = None

    def __init__(self, member: Any) -> None:
        pass

    def act(self, turn: Any, streams: Any) -> Any:
        return Action(answer=streams.choice(("cooperate", "defect"), "coin"))
        yield


def test_regret_and_equilibria_by_hand() -> None:
    """A cooperator loses 5 − 3 a round with a cooperator, 1 − 0 with a defector; two defectors are in equilibrium."""
    found = values(incentives.all(repeated(COOPERATE, COOPERATE, COOPERATE, DEFECT)))
    assert found["matrix.external_regret agent=a"].value == found["matrix.swap_regret agent=a"].value == 2
    assert found["matrix.external_regret agent=c"].value == 1
    assert found["matrix.external_regret agent=d"].value == 0
    assert found["matrix.external_regret"].value == pytest.approx((2 + 2 + 1 + 0) / 4)
    assert found["matrix.external_regret"].flags == ("others held as they moved", "n_clusters<2")
    assert found["matrix.regret_growth"].value == pytest.approx(1), "the same is lost each round"
    assert found["matrix.regret_growth"].n == 3
    assert values(incentives.equilibrium(repeated(DEFECT, DEFECT)))["matrix.nash_conv"].value == 0
    part = values(incentives.equilibrium(repeated(COOPERATE, COOPERATE)))["matrix.exploitability"]
    assert (part.value, part.ci_method, part.flags) == (2, "credible, Dirichlet", ("n_clusters<2",))
    assert values(incentives.equilibrium(repeated(COOPERATE, COOPERATE)))["matrix.nash_conv"].value == 4
    nothing = Played(params={"game": "rps", "actions": (), "payoffs": {}, "by_count": {}}, seats=[])
    assert {one.value for one in incentives.all(nothing)} == {None}


# --- standings -----------------------------------------------------------------------------------------------------


def test_strengths_by_hand() -> None:
    """a beats b at three of four tables: with half a win to either, log odds of 3.5 to 1.5."""
    scores = [Score(table, agent, reward) for table in range(4) for agent, reward in (("a", table), ("b", 0.5))]
    found = values(rated(scores))
    assert found["rating.bradley_terry agent=a"].value == pytest.approx(log(3.5 / 1.5) / 2)
    assert found["rating.bradley_terry agent=a"].ci is not None
    assert found["rating.elo agent=a"].value + found["rating.elo agent=b"].value == pytest.approx(3000)
    assert found["rating.elo agent=a"].value > 1500 > found["rating.elo agent=b"].value
    skill, rating = found["rating.skill agent=a"], Glicko()
    assert found["rating.ordinal agent=a"].value == pytest.approx(
        skill.value - 3 * (skill.ci[1] - skill.value) / 1.959964
    )
    other = Glicko()
    for score in (0, 1, 1, 1):
        rating, other = glicko2(rating, [(other, score)]), glicko2(other, [(rating, 1 - score)])
    glicko = found["rating.glicko agent=a"]
    assert glicko.value == pytest.approx(rating.rating)
    assert glicko.ci == pytest.approx(
        (rating.rating - 1.959964 * rating.deviation, rating.rating + 1.959964 * rating.deviation)
    )
    games = [("a", "b", float(table > 0.5)) for table in range(4)]
    assert found["rating.elo_order agent=a"].value == pytest.approx(elo_orders(games)["a"].sd, abs=0.2)
    assert found["rating.skill agent=a"].value > 25 > found["rating.skill agent=b"].value
    assert found["rating.spread"].value == pytest.approx(1 / 16)


def test_intervals_of_elo_are_of_tables_drawn_anew() -> None:
    """Chance gives 7 of 10 tables, not 10 of 10; a single table says nothing of the spread."""
    for wins, apart in ((7, False), (10, True)):
        scores = [Score(n, agent, float((agent == "a") == (n < wins))) for n in range(10) for agent in "ab"]
        found = values(rated(scores, 99))
        low, high = found["rating.elo agent=a"].ci or (0, 0)
        assert (low > 1500, high > 1500) == (apart, True)
    low, high = found["rating.skill agent=a"].ci or (0, 0)
    assert (low + high) / 2 == pytest.approx(found["rating.skill agent=a"].value)
    one = values(rated(scores[:2], 99))["rating.elo agent=a"]
    assert (one.ci, one.ci_method) == (None, "")


def test_who_beats_each_other_in_a_circle_shares() -> None:
    """Each of three beats one at two of three tables; a fourth that loses to all has nothing."""
    ladders = ["abc", "bca", "cab"]
    scores = [
        Score(table, name, float(2 - place)) for table, order in enumerate(ladders) for place, name in enumerate(order)
    ]
    found = values(rated([*scores, *(Score(table, "d", -1.0) for table in range(3))], 49))
    for name, share in zip("abcd", (1 / 3, 1 / 3, 1 / 3, 0), strict=True):
        one = found[f"rating.alpha_rank agent={name}"]
        assert one.value == pytest.approx(share, abs=1e-6)
        assert one.ci[0] <= share + 1e-9
        assert share - 1e-9 <= one.ci[1]
    assert found["rating.alpha_rank agent=a"].n == 9
    chain = [Score(0, "a", 1), Score(0, "b", 0), Score(1, "b", 1), Score(1, "c", 0)]
    apart = values(rated(chain, 9))["rating.alpha_rank"]
    assert (apart.value, apart.flags) == (None, ("some agents never met each other",))


def test_standings_at_their_edges(tmp_path: Path) -> None:
    assert [(one.metric, one.value, one.flags) for one in rated([Score(0, "a", 1.0)])] == [
        ("rating.spread", None, ("n_clusters<2",)),
        ("rating.bradley_terry", None, ("a single agent", "n_clusters<2")),
    ]
    apart = values(rated([Score(0, "a", 1), Score(0, "b", 0), Score(1, "c", 1), Score(1, "d", 0)]))
    assert apart["rating.bradley_terry"].flags == ("agents who never met",)
    once = values(rated([Score(0, "a", 1), Score(0, "b", 0)]))["rating.bradley_terry agent=a"]
    assert (once.ci, once.flags) == (None, ("n_clusters<2",))
    empty = Society(tmp_path / "run.db")
    empty.member("ann")
    assert list(standings.all(empty.run())) == []


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=6), st.randoms()
)
def test_names_and_order_of_tables_do_not_change_strengths(rewards: list[tuple[int, int, int]], luck: Random) -> None:
    def strengths(names: str, order: list[int]) -> list[Any]:
        scores = [
            Score(place, name, reward)
            for place, table in enumerate(order)
            for name, reward in zip(names, rewards[table], strict=True)
        ]
        found = values(rated(scores, 5))
        return [found[f"rating.bradley_terry agent={name}"].value for name in names]

    tables = list(range(len(rewards)))
    plain = strengths("abc", tables)
    assert strengths("zyx", luck.sample(tables, len(tables))) == pytest.approx(plain, abs=1e-6)


# --- contributions -------------------------------------------------------------------------------------------------


def earned(path: Path, **rewards: float) -> Run:
    """One table at which agents earn so much."""
    society = Society(path)
    for agent, reward in rewards.items():
        society.member(agent)
        society.logs[0].event(1, 0, "rewards", "", {agent: reward})
    return society.run()


def test_contributions_by_hand(tmp_path: Path) -> None:
    """The worked example: alone .5 and .1, together .8; the second has a quarter of it, and is lazy below that."""
    both = earned(tmp_path / "both.db", a=0.4, b=0.4)
    one, other = earned(tmp_path / "a.db", a=0.5), earned(tmp_path / "b.db", b=0.1)
    family = {frozenset("ab"): both, frozenset("a"): one, frozenset("b"): other}
    found = values(shapley_values([family]))
    assert found["influence.shapley agent=a"].value == pytest.approx(0.6)
    assert found["influence.shapley_share agent=b"].value == pytest.approx(0.25)
    assert found["influence.shapley agent=b"].flags == ("n_clusters<2",)
    lost = values(left_out([family]))
    assert lost["influence.left_out agent=a"].value == pytest.approx(0.7)
    assert lost["influence.left_out agent=b"].value == pytest.approx(0.3)
    lacking = values(shapley_values([{frozenset("ab"): both, frozenset("a"): one}]))["influence.shapley agent=a"]
    assert (lacking.value, lacking.flags) == (None, ("1 groups of agents without a run",))


def test_shares_of_tokens(tmp_path: Path) -> None:
    """a has 30 of 40 at one table and none of 20 at the other; c, who never asked a model, has no share."""
    made = Society(tmp_path / "run.db", tables=2)
    for agent in "abc":
        made.member(agent)
    made.act("a", 1, calls=[{"completion_tokens": 10}, {"completion_tokens": 20}])
    made.act("b", 2, calls=[{"completion_tokens": 10}])
    made.act("b", 1, calls=[{"completion_tokens": 20}], table=1)
    made.act("c", 3)
    found = values(tokens(made.run()))
    assert found.keys() == {"influence.token_share agent=a", "influence.token_share agent=b"}
    assert found["influence.token_share agent=a"].value == pytest.approx(30 / 60)
    assert found["influence.token_share agent=b"].n_clusters == 2


# --- opinions ------------------------------------------------------------------------------------------------------


def held(number: int, agent: str, value: float, table: int = 0) -> Opinion:
    return Opinion(table, agent, "roof", number, value)


def test_polarisation_by_hand() -> None:
    """Two camps at 0 and 1: variance ¼, Esteban and Ray 2·½^2.3·½; at first all stood at ½."""
    start = [held(n, agent, 0.5) for n, agent in enumerate("abcd")]
    end = [held(n, agent, float(agent in "cd")) for n, agent in enumerate("abcd", 4)]
    found = values(polarised([*start, *end, held(9, "e", 0.3, table=1)]))
    assert found["polarisation.variance"].value == pytest.approx(1 / 4)
    assert found["polarisation.esteban_ray"].value == pytest.approx(0.203063, abs=5e-7)
    assert found["polarisation.growth"].value == pytest.approx(1 / 4)
    assert found["polarisation.growth"].flags == ("n_clusters<2",)
    assert found["polarisation.variance"].excluded == {"a single opinion": 1}
    assert {one.value for one in polarised([])} == {None}
    assert {one.value for one in pulled([])} == {None}


def test_many_agents_of_one_table_have_an_interval_whatever_their_order() -> None:
    """Of forty as many at 0 as at 1, drawn anew: a variance near ¼, and less than ¼ where they are not as many."""
    ends = [held(n, f"a{n}", float(n % 2)) for n in range(40)]
    mixed = [one._replace(agent=f"b{40 - place}") for place, one in enumerate(Random(1).sample(ends, 40))]
    few = [one for one in ends if one.fact < 39]
    for kept in (ends, mixed):
        found = values(polarised(kept, 199))
        for name, value in (("variance", 1 / 4), ("bimodality", bimodality([0, 1] * 20))):
            one = found[f"polarisation.{name}"]
            assert (one.value, one.ci_method) == (pytest.approx(value), "centred bootstrap over agents")
            assert one.ci[0] < value < one.ci[1]
            assert one.flags == ("n_clusters<2",)
        assert found["polarisation.esteban_ray"].ci is None
        assert values(polarised(mixed, 199))["polarisation.variance"].ci == found["polarisation.variance"].ci
    assert values(polarised(few, 9))["polarisation.variance"].ci is None


def test_the_pull_of_what_was_seen() -> None:
    """Half of the way to what was seen, and none of the way to what is seen afterwards."""
    luck = Random(2)
    moves = []
    for table in range(4):
        for _ in range(10):
            before, seen, later = luck.random(), luck.random(), luck.random()
            moves.append(Move(table, "roof", before, before + (seen - before) / 2, seen, later))
    found = values(pulled(moves, 199))
    assert found["persuasion.pull"].value == pytest.approx(0.5)
    assert found["persuasion.pull"].null["p"] == pytest.approx(1 / 200)
    assert found["persuasion.placebo_pull"].null["p"] > 0.05


def test_a_pull_among_those_who_think_alike() -> None:
    """Two camps that see their own and move towards what they see, all the same; and two that move without it."""
    luck = Random(4)
    towards, anyhow = [], []
    for table, n in product(range(4), range(20)):
        before = (0.5 if n % 2 else -0.5) + luck.gauss(0, 0.2)
        seen = (0.4 if n % 2 else -0.4) + luck.gauss(0, 0.1)
        towards.append(Move(table, "roof", before, before + (seen - before) / 4, seen, None))
        anyhow.append(Move(table, "roof", before, 0.8 * before + luck.gauss(0, 0.02), seen, None))
    assert values(pulled(towards, 199))["persuasion.pull"].null["p"] == pytest.approx(1 / 200)
    assert values(pulled(anyhow, 199))["persuasion.pull"].null["p"] > 0.05
    assert beyond([1, 2, 6], [0, 1, 2]) == pytest.approx([0.5, -1, 0.5])
    assert beyond([1, 3], [7, 7]) == [-1, 1]


@pytest.mark.parametrize("names", ["abc", "zyx"])
def test_opinions_on_a_record(tmp_path: Path, names: str) -> None:
    """a stands at 0, sees b at 1 and c at .5, and moves to .3; what it sees of another matter does not count."""
    a, b, c = names
    society = Society(tmp_path / "run.db")
    for name, role in zip(names, ("left", "left", "right"), strict=True):
        society.member(name, role=role)

    def think(who: str, tick: int, value: float, shows: list[int], about: str = "roof") -> int:
        society.act(who, tick, shows=shows)
        return society.fact(tick, "opinion", who, opinion=value, about=about)

    think(a, 1, 0.0, [])
    seen = [think(b, 2, 1.0, []), think(c, 3, 0.5, []), think(c, 4, 0.9, [], "tree")]
    think(a, 5, 0.3, seen)
    think(a, 6, 0.3, seen)
    for tick, (who, toward, feeling) in enumerate([(a, "left", 0.8), (a, "right", 0.2), (c, "left", 0.4)], 7):
        society.act(who, tick)
        society.fact(tick, "feeling", who, toward=toward, feeling=feeling)
    run = society.run()
    assert [one.seen for one in opinions.opinions(run)] == [(), (), (), (), (0.5, 1.0), ()]
    found = values(opinions.all(run))
    assert found["persuasion.pull"].value == pytest.approx(0.3 / 0.75)
    assert found["persuasion.pull"].n == 1
    assert found["polarisation.affective"].value == pytest.approx(0.8 - fmean([0.2, 0.4]))
