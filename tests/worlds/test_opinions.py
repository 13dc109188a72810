"""Opinions: rules by hand, theory of limits, who sees what and when, graphs, interventions, conformance, scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.check import check_agent, check_world, turns_of
from sim.metrics.society.opinions import all as opinionated
from sim.metrics.society.opinions import opinions, polarised
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import ALL, Action, Join, Leave, Measurement, Member, Mind, Outcome, Say, Seat, Set, Turn
from sim.verify import verify
from tests.benchmarks.opinions import clusters_of, fixed, meeting, together, until_fixed
from tests.worlds.playing import Played, play
from worlds.opinions.herding_strategies import Conformist, Truthful
from worlds.opinions.opinions import Opinions
from worlds.opinions.outcomes import clusters, large, settled
from worlds.opinions.settings import OpinionsParams
from worlds.opinions.strategies import (
    Deffuant,
    DeGroot,
    FriedkinJohnsen,
    HegselmannKrause,
    Voter,
    deffuant,
    degroot,
    felt,
    friedkin_johnsen,
    hegselmann_krause,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "opinions"
SYNTHETIC = "models.small.engine=synthetic"
KINDS = [DeGroot, FriedkinJohnsen, HegselmannKrause, Deffuant, Voter]
FRIEDKIN: Mapping[str, Mapping[str, float]] = {
    "a": {"a": 0.220, "b": 0.120, "c": 0.360, "d": 0.300},
    "b": {"a": 0.147, "b": 0.215, "c": 0.344, "d": 0.294},
    "c": {"c": 1.0},
    "d": {"a": 0.090, "b": 0.178, "c": 0.446, "d": 0.286},
}
"""Who gives how much to whom; each holds on to its start as much as it gives itself (Friedkin and Johnsen 1999)."""


class Says:
    """Gives one answer for ever."""

    state: object = None

    def __init__(self, member: Member, answer: Any) -> None:
        self.answer = answer

    def act(self, turn: Turn, streams: Streams) -> Mind:
        yield from ()
        return Action(answer=self.answer)


def society(start: Mapping[str, float], kind: Any, *, private: Any = None, **params: Any) -> Played:
    given = {key: params.pop(key) for key in ("think", "interventions", "until", "seed") if key in params}
    seats = [Seat(agent=a, private={"opinion": x, **(private or {}).get(a, {})}) for a, x in start.items()]
    return play(Opinions, [(seat, kind) for seat in seats], params, **given)


def fresh(start: Mapping[str, float] | str, roles: str = "", **params: Any) -> Opinions:
    world = Opinions(OpinionsParams.model_validate(params))
    given = start if isinstance(start, Mapping) else dict.fromkeys(start, 0.0)
    seats = [
        Seat(agent=agent, role=roles[place] if roles else "", private={"opinion": x})
        for place, (agent, x) in enumerate(given.items())
    ]
    world.reset(seats, Streams(1))
    return world


def seen(world: Opinions, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def do(world: Opinions, now: int = 0, **answers: Any) -> Outcome:
    actions = []
    for agent, answer in answers.items():
        turn = seen(world, agent, now)
        full = answer if isinstance(answer, dict) else {"opinion": answer}
        assert illegal(turn.format, full) is None, full
        actions.append(Action(answer=full, agent=agent, seen=now, shows=turn.shows))
    return world.step(now, actions)


def last(record: Played) -> dict[str, float]:
    return {item.fact.actor: item.fact.data["opinion"] for item in record.facts("opinion")}


# --- rules ------------------------------------------------------------------------------------------------


def test_rules_by_hand() -> None:
    assert degroot(0.0, [0.6, 0.9]) == 0.5
    assert degroot(0.0, [0.6, 0.9], [0.5, 0.5, 0.0]) == 0.3
    assert degroot(0.2, [], [0.0]) == 0.2
    assert friedkin_johnsen(-1.0, 0.25, 0.5) == pytest.approx(0.125)
    assert hegselmann_krause(0.0, [0.3, -0.3, 0.31], 0.3) == 0
    assert hegselmann_krause(0.0, [0.3, 0.31], 0.3) == 0.15
    assert deffuant(0.0, 0.4, 0.5, 0.25) == 0.1
    assert deffuant(0.0, 0.5, 0.5, 0.25) == 0
    assert felt(0.5, [0.5, -0.5]) == 0.5
    assert felt(1, [-1]) == -1
    assert felt(1, []) == 0


def test_clusters_by_hand() -> None:
    assert clusters([0.5, -0.5, 0.54, -0.52, 0.9], 0.05) == [2, 2, 1]
    assert clusters([], 0.05) == []
    assert large([0.0] * 19 + [1.0], 0.05) == 1
    assert large([0.0] * 18 + [1.0] * 2, 0.05) == 2


# --- theory -----------------------------------------------------------------------------------------------


def test_friedkin_s_group_of_four_comes_to_its_limit() -> None:
    """x = (I − (I − S)·W)⁻¹·S·x(0), S the stubbornness: (60.02, 59.98, 75.00, 74.99) of (25, 25, 75, 85)."""
    start = {"a": 25, "b": 25, "c": 75, "d": 85}
    private = {agent: {"stubbornness": row[agent]} for agent, row in FRIEDKIN.items()}
    scaled = {agent: x / 50 - 1 for agent, x in start.items()}
    record = society(scaled, FriedkinJohnsen, private=private, weights=FRIEDKIN, tolerance=1e-12, rounds=500)
    found = [50 * (x + 1) for x in last(record).values()]
    assert found == pytest.approx([60.02, 59.98, 75.00, 74.99], abs=0.01)
    w = np.array([[row.get(agent, 0.0) for agent in start] for row in FRIEDKIN.values()])
    s = np.diag(np.diag(w))
    exact = np.linalg.solve(np.eye(4) - (np.eye(4) - s) @ w, s @ np.array(list(start.values()), float))
    assert found == pytest.approx(list(exact), abs=1e-6)
    assert record.data("end")[0]["reason"] == "settled"


def test_degroot_comes_to_the_mean_weighted_by_who_is_heard() -> None:
    """Of equal weights on a graph the weight of an agent is its links and itself, over their sum (DeGroot 1974)."""
    edges = [["a", "b"], ["b", "c"], ["c", "d"], ["b", "d"]]
    start = {"a": -1.0, "b": 0.2, "c": 0.9, "d": 0.4}
    record = society(start, DeGroot, edges=edges, tolerance=1e-12, rounds=1_000)
    heard = {"a": 2, "b": 4, "c": 3, "d": 3}
    limit = sum(heard[agent] * x for agent, x in start.items()) / 12
    assert list(last(record).values()) == pytest.approx([limit] * 4, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.6, {1}), (0.4, {2}), (0.3, {2, 3}), (0.2, {3, 4, 5})])
def test_bounded_confidence_leaves_as_many_clusters_as_theory(epsilon: float, wanted: set[int]) -> None:
    """Hegselmann and Krause, 300 agents; the epsilons of [0, 1] are half of these.

    At 0.4 a thousand are at the brink of one cluster (tests.benchmarks).
    """
    assert together(300, epsilon, Random(1)) in wanted


@pytest.mark.parametrize(("epsilon", "wanted"), [(1.0, {1}), (0.6, {1}), (0.4, {2}), (0.3, {3}), (0.2, {4, 5})])
def test_pairs_of_bounded_confidence_do_too(epsilon: float, wanted: set[int]) -> None:
    """Deffuant et al., a thousand agents: about 1/(2ε) clusters of opinions in [0, 1]."""
    assert meeting(1_000, epsilon, Random(1)) in wanted


def test_voters_come_to_agree_as_often_as_many_thought_so() -> None:
    """The share of a side is a martingale: it wins with the probability of its first share, .3; 3 standard errors."""
    runs = [fixed(50, 15, Random(seed)) for seed in range(400)]
    assert abs(fmean(one.won for one in runs) - 0.3) < 3 * sqrt(0.3 * 0.7 / 400)
    sweeps = [one.sweeps for one in runs]
    assert abs(fmean(sweeps) - until_fixed(50, 15)) < 3 * stdev(sweeps) / sqrt(400)


def test_voters_of_the_world_do_the_same() -> None:
    start = dict(zip("abcde", (1.0, 1.0, -1.0, -1.0, -1.0), strict=True))
    won = []
    for seed in range(80):
        ends = set(last(society(start, Voter, schedule="agent", patience=12, rounds=500, seed=seed)).values())
        assert len(ends) == 1
        won.append(ends == {1.0})
    assert abs(fmean(won) - 0.4) < 3 * sqrt(0.4 * 0.6 / 80)


def test_the_world_s_hegselmann_krause_is_the_rule_s() -> None:
    luck = Random(3)
    start = {f"m{n}": luck.uniform(-1, 1) for n in range(60)}
    record = society(start, partial(HegselmannKrause, epsilon=0.4))
    x = list(start.values())
    for _ in range(record.data("end")[0]["round"]):
        x = [hegselmann_krause(own, [*x[:place], *x[place + 1 :]], 0.4) for place, own in enumerate(x)]
    assert list(last(record).values()) == pytest.approx(x, abs=1e-9)
    assert clusters_of(x) == 2


def test_pairs_of_the_world_meet_halfway_and_lose_nothing() -> None:
    """With μ = 1/2 both take their mean; so the sum stays, and clusters end further apart than ε."""
    start = {f"m{n}": x for n, x in enumerate(np.linspace(-1, 1, 20))}
    kind = partial(Deffuant, epsilon=0.5, mu=0.5)
    record = society(start, kind, schedule="pair", patience=5, rounds=300)
    ends = sorted(last(record).values())
    assert sum(ends) == pytest.approx(0, abs=1e-9)
    gaps = [after - before for before, after in pairwise(ends)]
    assert all(gap < 1e-3 or gap >= 0.5 - 1e-3 for gap in gaps)
    before: dict[str, float] = {}
    told = list(record.facts("opinion"))
    for one, other in zip(told[20::2], told[21::2], strict=True):
        before = before or {item.fact.actor: item.fact.data["opinion"] for item in told[:20]}
        x, y = before[one.fact.actor], before[other.fact.actor]
        assert one.fact.data["opinion"] == deffuant(x, y, 0.5, 0.5)
        assert other.fact.data["opinion"] == deffuant(y, x, 0.5, 0.5)
        before |= {each.fact.actor: each.fact.data["opinion"] for each in (one, other)}


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    st.sampled_from(["synchronous", "pair", "agent"]),
    st.sampled_from(KINDS),
    st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_no_rule_leaves_what_was_thought_at_first(values: list[float], schedule: str, kind: Any, seed: int) -> None:
    """Every rule takes means or copies: opinions stay between the first ones, voters' among them."""
    start = dict(zip("abcdef", values, strict=False))
    record = society(start, kind, schedule=schedule, graph="erdos_renyi", density=0.7, rounds=6, seed=seed)
    ends = last(record)
    assert all(min(values) - 1e-12 <= x <= max(values) + 1e-12 for x in ends.values())
    if kind is Voter:
        assert set(ends.values()) <= set(values)


# --- who sees what, and when ---------------------------------------------------------------------------------


def test_an_answer_is_seen_from_the_next_turn_on() -> None:
    world = fresh({"a": -1.0, "b": 0.0, "c": 1.0}, pause=5)
    assert seen(world, "b").view["others"] == [["a", -1.0, ""], ["c", 1.0, ""]]
    do(world, a=0.5)
    assert world.observe(0, "a") is None
    assert seen(world, "b").view["others"] == [["a", -1.0, ""], ["c", 1.0, ""]]
    outcome = do(world, b=0.1, c=0.9)
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("a", 5), ("b", 5), ("c", 5)]
    assert world.observe(4, "b") is None
    assert seen(world, "b", 5).view["others"] == [["a", 0.5, ""], ["c", 0.9, ""]]


@given(st.permutations([1, 2, 5]), st.integers(0, 3))
@settings(max_examples=8, deadline=None)
def test_who_thinks_faster_moves_nobody(think: list[int], seed: int) -> None:
    start = {"a": -0.9, "b": 0.1, "c": 0.8}
    usual = society(start, DeGroot, rounds=4, seed=seed)
    other = society(start, DeGroot, rounds=4, seed=seed, think=dict(zip("abc", think, strict=True)))
    assert last(usual) == last(other)


def test_each_hears_its_neighbours_only() -> None:
    world = fresh({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, edges=[["a", "b"], ["b", "c"]])
    turn = seen(world, "a")
    assert turn.view["others"] == [["b", 0.2, ""]]
    assert turn.shows == (1, 2)  # its own statement and b's; fact 0 is the graph
    assert seen(world, "d").view["others"] == []
    facts = [fact for fact in do(world, a=0.0, b=0.5).facts if fact.kind == "opinion"]
    assert [fact.audience for fact in facts] == [("a", "b"), ("b", "a", "c")]
    assert all(fact.audience == ALL for fact in do(fresh("abc"), a=0.1).facts)


def test_weights_go_one_way() -> None:
    world = fresh({"a": 0.2, "b": 0.4}, weights={"a": {"a": 0.25, "b": 0.75}, "b": {"b": 1}})
    assert seen(world, "a").view["weights"] == [0.25, 0.75]
    assert seen(world, "b").view["others"] == []
    (fact,) = do(world, a=0.0).facts
    assert fact.audience == ("a",)
    pairs = fresh({"a": 0.2, "b": 0.4}, weights={"a": {"a": 0.25, "b": 0.75}, "b": {"b": 1}}, schedule="pair")
    assert pairs.observe(0, "b") is None
    assert seen(pairs, "a").view["others"] == [["b", 0.4, ""]]


def test_a_pair_sees_each_other_and_an_agent_all_it_hears() -> None:
    world = fresh({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, schedule="pair")
    met = [agent for agent in "abcd" if world.observe(0, agent)]
    assert len(met) == 2
    assert [seen(world, agent).view["others"][0][0] for agent in met] == met[::-1]
    alone = fresh({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, schedule="agent")
    (asked,) = [agent for agent in "abcd" if alone.observe(0, agent)]
    assert len(seen(alone, asked).view["others"]) == 3


def test_it_ends_when_opinions_rest_or_after_so_many_rounds() -> None:
    still = society({"a": 0.1, "b": 0.1}, DeGroot, patience=3)
    assert still.data("end") == [{"reason": "settled", "round": 3}]
    assert set(still.ended.values()) == {"terminated"}
    assert society({"a": 0.1, "b": 0.2}, DeGroot, rounds=1).data("end") == [{"reason": "rounds", "round": 1}]
    assert society({"a": 0.1, "b": 0.2}, Voter, schedule="pair", graph="erdos_renyi", density=0).data("end") == [
        {"reason": "alone", "round": 1}
    ]


def test_words_and_feelings() -> None:
    world = fresh({"a": -0.5, "b": 0.25}, roles="xy", feelings=True, message_chars=40, about="a road")
    answer = {"text": "Close it.", "opinion": -0.75, "own_camp": 0.5, "other_camp": -1.0}
    facts = do(world, a=answer, b=seen(world, "b").default).facts
    felt_by_a = [fact for fact in facts if fact.kind == "feeling" and fact.actor == "a"]
    assert [(one.data["toward"], one.data["feeling"]) for one in felt_by_a] == [("x", 0.5), ("y", -1.0)]
    assert felt_by_a[0].audience == ("a",)
    turn = seen(world, "b", 1)
    assert 'a (of the x side): -0.75, "Close it."' in turn.text
    assert "Your own opinion so far: 0.25." in turn.text
    assert "a road" in turn.rules
    assert illegal(turn.format, answer | {"text": "x" * 41})
    assert illegal(turn.format, answer | {"opinion": 1.01})


def test_a_default_stays_and_feels_nothing() -> None:
    world = fresh({"a": -0.5, "b": 0.25}, roles="xy", feelings=True)
    turn = seen(world, "a")
    assert turn.default == {"opinion": -0.5, "own_camp": 0.0, "other_camp": 0.0}
    outcome = world.step(0, [Action(answer=turn.default, how="defaulted", agent="a", shows=turn.shows)])
    assert [fact.kind for fact in outcome.facts] == ["opinion"]


# --- graphs and settings -----------------------------------------------------------------------------------


def links(world: Opinions) -> dict[str, list[str]]:
    return world.state()["listens"]  # type: ignore[no-any-return]


def test_graphs() -> None:
    names = [f"m{n}" for n in range(12)]
    ring = links(fresh(dict.fromkeys(names, 0.0), graph="ring", degree=2))
    assert all(len(others) == 2 for others in ring.values())
    assert ring["m0"] == ["m1", "m11"]
    small = links(fresh(dict.fromkeys(names, 0.0), graph="watts_strogatz", degree=4, rewire=1.0))
    assert sum(map(len, small.values())) == 12 * 4
    assert all(agent in small[other] for agent, others in small.items() for other in others)
    two = links(fresh("abcd", roles="xyxy", graph="two_camps", within=1, between=0))
    assert two == {"a": ["c"], "b": ["d"], "c": ["a"], "d": ["b"]}
    halves = links(fresh("abcd", graph="two_camps", within=1, between=0))
    assert halves == {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}
    assert links(fresh("abc"))["b"] == ["a", "c"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"degree": 3}, "degree"),
        ({"weights": {"a": {"a": 0.5}}}, "weights: those of a .* sum to 1, not 0.5"),
        ({"weights": {"a": {"a": 1}}, "edges": [["a", "b"]]}, "give one of the two"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"pause": 0}, "pause"),
        ({"graph": "star"}, "graph"),
        ({"ends": ["yes", "yes"]}, "ends: 'yes' twice"),
    ],
)
def test_wrong_settings_are_told(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        OpinionsParams.model_validate(params)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (HegselmannKrause, {"epsilon": -0.1}),
        (Deffuant, {"epsilon": "near"}),
        (Deffuant, {"mu": 1.5}),
        (Conformist, {"p": 2}),
        (Conformist, {"p": True}),
        (Truthful, {"confidence": -1}),
    ],
)
def test_wrong_settings_of_rules_are_told(kind: Any, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}: .*; expected a number from 0 to"):
        kind(Member(seat=Seat(agent="a")), **wrong)


@pytest.mark.parametrize(
    ("seats", "params", "says"),
    [
        ([Seat(agent="a", private={"opinion": 3})], {}, "a: the private value opinion is a number from -1 to 1, not 3"),
        ([Seat(agent="a", private={"stubbornness": -0.1})], {}, "a: the private value stubbornness .* from 0 to 1"),
        ([Seat(agent="a")], {"edges": [["a", "zoe"]]}, "edges: nobody here is called zoe"),
        ([Seat(agent="a"), Seat(agent="b")], {"weights": {"a": {"b": 1}}}, "weights: b has none"),
        ([Seat(agent="a")], {"graph": "ring"}, "degree: 4 neighbours of each need more than 4 agents, not 1"),
        ([Seat(agent="a")], {"feelings": True}, "feelings"),
    ],
)
def test_wrong_seats_are_told(seats: list[Seat], params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Opinions(OpinionsParams.model_validate(params)).reset(seats, Streams(1))


# --- interventions -------------------------------------------------------------------------------------------


def test_say_is_shown_until_an_answer_was_given_under_it() -> None:
    world = fresh("ab")
    (fact,) = world.change(0, Say(text="It rains.", to=("a",))).facts
    assert "News: It rains." in seen(world, "a").text
    assert fact.id in seen(world, "a").shows
    assert "rains" not in seen(world, "b").text
    do(world, a=0.1, b=0.2)
    assert "rains" not in seen(world, "a", 1).text


def test_a_leaver_is_heard_no_more_and_holds_nobody_up() -> None:
    world = fresh({"a": 0.1, "b": 0.2, "c": 0.3})
    do(world, a=0.5, b=0.6)
    outcome = world.change(7, Leave(agent="c"))
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("a", 8), ("b", 8)]
    assert seen(world, "a", 8).view["others"] == [["b", 0.6, ""]]
    assert not world.change(8, Leave(agent="c")).facts
    left = [(1, Leave(agent="c"), None)]
    record = society({"a": 0.1, "b": 0.2, "c": 0.9}, DeGroot, interventions=left)
    assert record.ended == {"a": "terminated", "b": "terminated"}
    pairs = fresh({"a": 0.1, "b": 0.2}, schedule="pair")
    assert [fact.data for fact in pairs.change(0, Leave(agent="b")).facts] == [
        {"agent": "b", "round": 1}
    ]  # the other still answers
    assert seen(pairs, "a").view["others"] == []
    assert do(pairs, a=0.3).facts[-1].data["reason"] == "alone"


def test_nobody_joins_and_only_what_is_declared_is_set() -> None:
    world = fresh("ab")
    with pytest.raises(ValueError, match="nobody can join"):
        world.change(0, Join(seat=Seat(agent="z")))
    with pytest.raises(ValueError, match="can change"):
        world.change(0, Set(key="graph", value="ring"))
    world.change(0, Set(key="rounds", value=1))
    assert do(world, a=0.1, b=0.2).facts[-1].data == {"reason": "rounds", "round": 1}


def test_what_is_not_asked_is_stale() -> None:
    world = fresh("ab")
    do(world, a=0.1)
    again = Action(answer={"opinion": 0.2}, agent="a", seen=0)
    assert world.step(0, [again]).results[0].reason == "that is not asked now"
    wrong = Action(answer={"opinion": 2}, agent="b", seen=0)
    assert world.step(0, [wrong]).results[0].status == "stale"


# --- seams, metrics, scenarios ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"rounds": 4, "message_chars": 20},
        {"rounds": 3, "schedule": "pair", "graph": "ring", "degree": 2},
        {"rounds": 3, "schedule": "agent", "graph": "two_camps", "feelings": True},
    ],
)
def test_world_and_baselines_keep_the_rules_of_the_seams(params: dict[str, Any]) -> None:
    seats = [Seat(agent=agent, role="xy"[place % 2]) for place, agent in enumerate("abcd")]
    check_world(Opinions, seats, params)
    turns = turns_of(Opinions, seats, params)
    for kind in KINDS:
        check_agent(partial(kind, Member(seat=seats[0])), turns["a"])


def test_the_world_s_measures_by_hand() -> None:
    record = society({"a": -0.5, "b": -0.5, "c": 0.5}, partial(Says, answer={"opinion": -0.5}), tolerance=0)
    assert record.params["apart"] == 0.05
    found = record.measured(Opinions.metrics)
    assert found["opinions.clusters"].value == 1
    assert found["opinions.spread"].value == 0
    assert found["opinions.consensus"].value == 1
    assert found["opinions.rounds"].value is None
    assert found["opinions.rounds"].excluded == {"not settled": 1}


def of_run(path: Path) -> dict[str, Measurement]:
    with Run(path) as run:
        found = [one for metric in (*Opinions.metrics, opinionated) for one in metric(run)]
    return {one.metric: one for one in found if not one.of}


def test_the_pull_that_was_planted_is_found(tmp_path: Path) -> None:
    """Who averages itself with eleven others goes 11/12 of the way to their mean; who is as stubborn, half as far."""
    rule = [f"cast.{camp}.agent=worlds.opinions.strategies:FriedkinJohnsen" for camp in ("driver", "walker")]
    held = [f"cast.{camp}.private.stubbornness=0.5" for camp in ("driver", "walker")]
    sets = ["tables=3", "world.graph=complete", "world.rounds=1", *rule, *held]
    found = of_run(go(create(load(SCENARIOS / "opinions.yaml", sets), tmp_path)).path)
    assert found["persuasion.pull"].value == pytest.approx(11 / 24)
    assert found["persuasion.pull"].n == 36


def test_the_shipped_camps_come_nearer_and_stay_two(tmp_path: Path) -> None:
    path = go(create(load(SCENARIOS / "opinions.yaml", ["tables=4"]), tmp_path)).path
    found = of_run(path)
    assert found["polarisation.growth"].value < 0  # type: ignore[operator]
    assert found["polarisation.affective"].value > 0.5  # type: ignore[operator]
    assert found["opinions.clusters"].value == pytest.approx(2, abs=0.5)
    assert found["opinions.consensus"].value == 0
    assert verify(path).whole


def test_the_shipped_bounded_confidence_makes_two_clusters(tmp_path: Path) -> None:
    sets = ["tables=1", "cast.member.count=60"]
    with Run(go(create(load(SCENARIOS / "bounded_confidence.yaml", sets), tmp_path)).path) as run:
        found = {one.metric: one.value for one in (*settled(run), *polarised(opinions(run)))}
    assert found["opinions.clusters"] == 2
    assert found["polarisation.bimodality"] > 5 / 9


def test_the_shipped_model_society_has_the_graph_and_the_start_of_its_baseline(tmp_path: Path) -> None:
    starts = []
    for name, sets in (("opinions", ["tables=1", "world.rounds=1"]), ("opinions_llm", [SYNTHETIC])):
        path = go(create(load(SCENARIOS / f"{name}.yaml", sets), tmp_path, name)).path
        with Run(path) as run:
            graph = next(iter(run.facts("graph"))).fact.data
            said = [one.fact.data["opinion"] for one in run.facts("opinion") if one.fact.data["round"] == 0]
            starts.append((graph, said))
    assert starts[0] == starts[1]
    assert verify(path).whole
    assert of_run(path)["polarisation.variance"].value is not None
