"""Outcomes of worlds have intervals over what is independent in them, by hand; a single one has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sim.intervals import FEW
from tests.metrics.dealings import PD, Told, told
from worlds.games import outcomes as games
from worlds.negotiation import outcomes as bargains
from worlds.pricing import outcomes as firms
from worlds.privacy import outcomes as disclosure
from worlds.verification import outcomes as verification

HALF = 4.302653 / 3**0.5
"""Of three clusters whose means are 1 apart: t with two degrees of freedom times the standard error."""


def over(tables: Sequence[Sequence[Told]], metric: Any, params: Mapping[str, Any] | None = None) -> Any:
    """The measurements of records of one table and of three, by name and subject."""
    return [told(some, "ab", params).measured([metric]) for some in (tables[:1], tables)]


def rounds(paid: float) -> list[Told]:
    """Two rounds in which both get about so much."""
    data = {"match": 0, "moves": {"a": "cooperate", "b": "defect"}, "missed": []}
    return [("round", "", {**data, "round": n, "payoffs": {"a": paid - n, "b": paid + n}}) for n in range(2)]


def test_payoffs_over_tables() -> None:
    alone, three = over([rounds(1), rounds(2), rounds(3)], games.mean_payoff, PD)
    assert (alone["matrix.mean_payoff"].ci, alone["matrix.mean_payoff"].flags) == (None, (FEW,))
    found = three["matrix.mean_payoff"]
    assert (found.value, found.n, found.n_clusters, found.flags) == (2, 12, 3, ())
    assert found.ci == pytest.approx((2 - HALF, 2 + HALF))
    assert three["matrix.mean_payoff agent=a"].ci == pytest.approx((1.5 - HALF, 1.5 + HALF))


def moves(cooperates: int) -> list[Told]:
    """Ten rounds, in so many of which a cooperates and b does what a does."""
    acts = ["cooperate" if n < cooperates else "defect" for n in range(10)]
    data: dict[str, Any] = {"match": 0, "payoffs": {}, "missed": []}
    return [("round", "", {**data, "round": n, "moves": {"a": act, "b": act}}) for n, act in enumerate(acts)]


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (games.cooperation, "cooperation_rate"),
        (games.action_frequency, "action_frequency action=cooperate"),
        (games.mutual_action, "mutual_action action=cooperate"),
    ],
)
def test_shares_of_moves_over_tables(metric: Any, name: str) -> None:
    """.4, .5 and .6 of ten rounds: se .1/√3."""
    alone, three = over([moves(4), moves(5), moves(6)], metric, PD)
    assert alone[f"matrix.{name}"].ci is None
    assert three[f"matrix.{name}"].ci == pytest.approx((0.5 - HALF / 10, 0.5 + HALF / 10))


def deal(first: float, number: int) -> list[Told]:
    gains = {"a": first, "b": 0.1}
    data = {"pair": 0, "round": number, "agents": ["a", "b"], "gains": gains, "shares": {"a": 50, "b": 50}}
    return [("pair", "", {}), ("deal", "", data)]


def test_bargains_over_tables() -> None:
    """First movers get .4, .5 and .6 in rounds 1, 2 and 3."""
    tables = [deal(0.4, 1), deal(0.5, 2), deal(0.6, 3)]
    _, gains = over(tables, bargains.self_gain)
    assert gains["bargaining.self_gain mover=first"].ci == pytest.approx((0.5 - HALF / 10, 0.5 + HALF / 10))
    _, whole = over(tables, bargains.efficiency)
    assert whole["bargaining.efficiency"].ci == pytest.approx((0.6 - HALF / 10, 0.6 + HALF / 10))
    _, points = over(tables, bargains.solution)
    assert points["bargaining.nash_product"].value == pytest.approx(4 * 0.1 * 0.5)
    wanted = (0.17**0.5 + 0.16**0.5 + 0.17**0.5) / 3
    assert points["bargaining.nash_distance"].value == pytest.approx(wanted)
    failed = [("pair", "", {}), ("no_deal", "", {"pair": 0, "agents": ["a", "b"], "reason": "rounds"})]
    _, some = over([*tables, failed], bargains.agreement)
    assert (some["bargaining.breakdown reason=rounds"].value, some["bargaining.agreement_rate"].value) == (0.25, 0.75)
    _, apart = over([*tables, failed], bargains.solution)
    assert apart["bargaining.nash_product"].value == pytest.approx(0.15)
    alone, three = over(tables, bargains.agreement)
    assert alone["bargaining.agreement_round"].flags == (FEW,)
    assert three["bargaining.agreement_round"].ci == pytest.approx((2 - HALF, 2 + HALF))
    assert three["bargaining.agreement_rate"].ci == pytest.approx((0.05 ** (1 / 3), 1)), "all of three, exactly"


def test_exchanges_over_conversations() -> None:
    """Two of one table and one of another, of 1, 2 and 3 exchanges."""
    ends: list[Told] = [("outcome", "", {"pair": n, "exchanges": n + 1}) for n in range(3)]
    (found,) = disclosure.exchanges(told([[("pair", "", {})] * 3 + ends[:2], ends[2:]]))
    assert (found.value, found.n_clusters) == (2, 3)
    assert found.ci == pytest.approx((2 - HALF, 2 + HALF))


def test_rewards_over_pairs() -> None:
    """Three pairs of one table, who get 1, 2 and 3."""
    facts: list[Told] = [
        ("outcome", "", {"pair": n, "rule": "raw", "missed": [], "rewards": {f"a{n}": n, f"b{n}": n + 2}})
        for n in range(3)
    ]
    found, *own = verification.reward(told([facts]))
    assert (found.value, found.n, found.n_clusters) == (2, 6, 3)
    assert found.ci == pytest.approx((2 - HALF, 2 + HALF))
    assert {one.flags for one in own} == {(FEW,)}


def sold(price: float) -> list[Told]:
    """One period of a firm that sells alone at a price."""
    point = {"prices": [1.0], "profits": [0.0], "surplus": 0.5}
    market = {"demand": "homogeneous", "costs": [0.0], "intercept": 10.0, "slope": 1.0, "tick": 0.01}
    facts = {"firms": ["a"], "market": market, "nash": point, "optimum": {**point, "profits": [25.0]}}
    return [("benchmark", "", facts), ("period", "", {"period": 0, "chosen": {"a": price}, "missed": []})]


def test_prices_over_tables() -> None:
    """At prices of 1, 2 and 3 a monopolist sells 9, 8 and 7: consumers keep 81/2, 64/2 and 49/2."""
    tables = [sold(1.0), sold(2.0), sold(3.0)]
    alone, three = over(tables, firms.mean_price, {"window": 5})
    assert alone["oligopoly.mean_price"].flags == (FEW,)
    assert three["oligopoly.mean_price"].ci == pytest.approx((2 - HALF, 2 + HALF))
    _, kept = over(tables, firms.consumer_surplus, {"window": 5})
    assert kept["oligopoly.consumer_surplus"].value == pytest.approx((81 + 64 + 49) / 6)
    _, gains = over(tables, firms.profit_gain, {"window": 5})
    assert gains["oligopoly.profit_gain"].value == pytest.approx((9 + 16 + 21) / 75)
    assert gains["oligopoly.profit_gain"].ci is not None
