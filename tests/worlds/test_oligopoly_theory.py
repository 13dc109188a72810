"""Oligopoly pricing against theory: benchmarks, best replies, the grim trigger, Q-learning."""

from __future__ import annotations

from functools import partial
from math import exp, log
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.types import Seat, Set
from tests.benchmarks.pricing import main
from tests.worlds.playing import Played, play
from worlds.pricing.demand import Cournot, Demand, Homogeneous, Logit, best_level, omega, read, written
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.qlearning import (
    Converged,
    Learning,
    QLearner,
    Table,
    coded,
    first_values,
    payoffs,
    played,
    session,
    states,
)
from worlds.pricing.settings import OligopolyParams, grid
from worlds.pricing.strategies import BestReply, Constant, GrimTrigger, Undercutter, undercut

CALVANO = Logit((1.0, 1.0), (2.0, 2.0), 0.0, 0.25, 1.0, 1.0)
SHORT = Learning(beta=2e-5, patience=20_000)
"""A session of some 400,000 periods."""
Cartel = partial(Constant, at="optimum")


def market(*makers: Any, **params: Any) -> Played:
    """Firms a, b, … in one market; Calvano's baseline unless told otherwise."""
    interventions = params.pop("interventions", ())
    cast = [(Seat(agent=name), make) for name, make in zip("abcdef", makers, strict=False)]
    return play(Oligopoly, cast, params, interventions=interventions)


def chosen(record: Played, firm: str = "a") -> list[float]:
    return [data["chosen"][firm] for data in record.data("period")]


def gain(record: Played) -> float:
    value = record.measured(Oligopoly.metrics)["oligopoly.profit_gain"].value
    assert value is not None
    return value


# --- benchmarks ---------------------------------------------------------------------------------------


def test_the_baseline_of_calvano() -> None:
    """Published values 1.472927, 1.924981, 0.222927, 0.337490."""
    assert CALVANO.nash() == pytest.approx((1.472927,) * 2, abs=1e-6)
    assert len(set(CALVANO.nash())) == 1
    assert CALVANO.optimum() == pytest.approx((1.924981,) * 2, abs=1e-6)
    assert CALVANO.sell(CALVANO.nash()).profits == pytest.approx((0.222927,) * 2, abs=1e-6)
    assert CALVANO.sell(CALVANO.optimum()).profits == pytest.approx((0.337490,) * 2, abs=1e-6)


@pytest.mark.parametrize("unit", [1.0, 3.2, 10.0])
def test_units_of_money_and_the_number_of_customers_change_no_behaviour(unit: float) -> None:
    """The design of Fish, Gonczarowski and Shorrer: 100 customers, money in units of 1, 3.2 and 10."""
    fish = Logit((unit, unit), (2.0, 2.0), 0.0, 0.25, 100.0, unit)
    assert [p / unit for p in fish.nash()] == pytest.approx(CALVANO.nash())
    assert [p / unit for p in fish.optimum()] == pytest.approx(CALVANO.optimum())
    sales, plain = fish.sell(fish.nash()), CALVANO.sell(CALVANO.nash())
    assert [x / 100 / unit for x in sales.profits] == pytest.approx(plain.profits)
    assert sales.surplus == pytest.approx(100 * unit * plain.surplus)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_cournot_in_closed_form(n: int) -> None:
    """q* = (A - c) / (b (n + 1)), monopoly output (A - c) / 2b."""
    demand = Cournot((1.0,) * n, 10.0, 2.0)
    assert demand.nash() == pytest.approx((9 / (2 * (n + 1)),) * n)
    assert demand.optimum() == pytest.approx((9 / 4 / n,) * n)
    assert sum(demand.sell(demand.optimum()).profits) == pytest.approx(81 / 8)
    # With two costs: q_i = (A - 2 c_i + c_j) / 3b; a firm whose cost is too high stays away.
    assert Cournot((1.0, 4.0), 10.0, 1.0).nash() == pytest.approx((4, 1))
    assert Cournot((1.0, 6.0), 10.0, 1.0).nash() == pytest.approx((4.5, 0))
    assert Cournot((1.0, 4.0), 10.0, 1.0).optimum() == (4.5, 0)


def test_homogeneous_goods_in_closed_form() -> None:
    """Price competition of equals ends at cost; a firm alone at the lowest cost asks that of the next."""
    assert Homogeneous((1.0, 1.0), 10.0, 1.0, 0.1).nash() == (1, 1)
    assert Homogeneous((1.0, 1.0), 10.0, 1.0, 0.1).optimum() == (5.5, 5.5)
    better = Homogeneous((1.0, 3.0), 10.0, 1.0, 0.1)
    assert better.nash() == (3, 3)
    assert better.sell(better.nash()).quantities == (7, 0)
    assert Homogeneous((1.0, 8.0), 10.0, 1.0, 0.1).nash() == (5.5, 8)
    assert Homogeneous((1.0, 1.0), 10.0, 1.0, 0.1).sell((2, 2)).quantities == (4, 4)


@given(x=st.floats(-60, 500))
def test_omega_solves_its_equation(x: float) -> None:
    y = omega(x)
    assert y == pytest.approx(exp(x)) if x < -30 else y + log(y) == pytest.approx(x, abs=1e-9)


costs = st.lists(st.floats(0.2, 2.0), min_size=1, max_size=4).map(tuple)


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    cost = draw(costs)
    if draw(st.booleans()):
        return Cournot(cost, draw(st.floats(3.0, 20.0)), draw(st.floats(0.1, 3.0)))
    qualities = tuple(draw(st.floats(0.5, 3.0)) for _ in cost)
    return Logit(cost, qualities, draw(st.floats(-1.0, 1.0)), draw(st.floats(0.1, 1.0)), 1.0, draw(st.floats(0.5, 4.0)))


@given(demand=demands(), shift=st.floats(-0.5, 0.5))
@settings(max_examples=60, deadline=None)
def test_no_firm_gains_by_leaving_the_equilibrium_and_the_cartel_by_leaving_the_optimum(
    demand: Demand, shift: float
) -> None:
    nash, optimum = demand.nash(), demand.optimum()
    base, best = demand.sell(nash).profits, sum(demand.sell(optimum).profits)
    for firm in range(len(nash)):
        moved = [max(0.0, x + shift) if n == firm else x for n, x in enumerate(nash)]
        assert demand.sell(moved).profits[firm] <= base[firm] + 1e-9
        moved = [max(0.0, x + shift) if n == firm else x for n, x in enumerate(optimum)]
        assert sum(demand.sell(moved).profits) <= best + 1e-9
    assert best >= sum(base) - 1e-9
    assert read(written(demand)) == demand  # type: ignore[arg-type]


def test_consumers_lose_what_a_price_takes_from_them() -> None:
    """The derivative of the surplus with respect to a price is minus the quantity (Shephard)."""
    step = 1e-6
    dearer = CALVANO.sell((1.5 + step, 1.6)).surplus - CALVANO.sell((1.5 - step, 1.6)).surplus
    assert dearer / (2 * step) == pytest.approx(-CALVANO.sell((1.5, 1.6)).quantities[0], rel=1e-6)
    assert Cournot((1.0, 1.0), 10.0, 2.0).sell((1, 1)).surplus == 4
    assert CALVANO.sell((50.0, 50.0)).surplus == pytest.approx(0)


# --- best replies, cartels, price wars -------------------------------------------------------------------


def test_best_replies_lead_to_the_equilibrium_and_gain_nothing() -> None:
    record = market(BestReply, partial(BestReply, start=1.0), periods=60, window=10)
    assert gain(record) == pytest.approx(0, abs=1e-6)
    assert chosen(record)[-1] == pytest.approx(CALVANO.nash()[0])


def test_simultaneous_best_replies_of_cournot() -> None:
    """Two firms converge, three go round in circles, four diverge until somebody sells nothing (Theocharis 1960)."""
    paths = [
        chosen(market(*[partial(BestReply, start=2.0)] * n, demand="cournot", periods=40, window=1)) for n in (2, 3, 4)
    ]
    assert paths[0][-1] == pytest.approx(3)
    assert paths[1] == pytest.approx([2.0, 2.5] * 20)
    assert paths[2][-4:] == pytest.approx([4.5, 0, 4.5, 0])
    distances = [abs(q - 9 / 5) for q in paths[2][:4]]
    assert distances == sorted(distances)


def test_a_cartel_by_fiat_gains_all_and_punishes_nobody() -> None:
    shock = [(20, Set(key="forced", value={"a": "best_reply"}), None)]
    record = market(Cartel, Cartel, periods=40, window=30, interventions=shock)
    assert gain(record) == pytest.approx(1)
    assert set(chosen(record, "b")) == {CALVANO.optimum()[0]}
    assert gain(market(Cartel, Cartel, demand="cournot")) == pytest.approx(1)


def test_undercutting_ends_at_cost_or_a_tick_above() -> None:
    free = chosen(market(Undercutter, Undercutter, demand="homogeneous", tick=0.1, periods=60))
    assert free[0] == 5.5
    assert free[-1] == 1
    levels = [round(0.35 + n / 10, 2) for n in range(60)]
    assert chosen(market(Undercutter, Undercutter, demand="homogeneous", levels=levels, periods=60))[-1] == 1.05
    assert undercut((1, 2, 3), lowest=2, cost=2) == 2
    assert undercut((1, 2, 3), lowest=3, cost=0) == 2


def test_a_grim_trigger_punishes_for_ever_and_deters_the_patient() -> None:
    shock = [(10, Set(key="forced", value={"a": "best_reply"}), None)]
    record = market(GrimTrigger, GrimTrigger, periods=30, window=5, interventions=shock)
    nash, optimum = CALVANO.nash()[0], CALVANO.optimum()[0]
    assert chosen(record, "b") == pytest.approx([optimum] * 11 + [nash] * 19)
    assert gain(record) == pytest.approx(0)
    assert gain(market(GrimTrigger, GrimTrigger, periods=30)) == pytest.approx(1)
    # One period's gain of the deviation against all that follows, at a discount of 0.95.
    won = [item.fact.data["profit"] for item in record.facts("sale") if item.fact.actor == "a"]
    assert won[10] > won[9]
    lost = won[9] - won[11]
    assert won[10] - won[9] < lost * 0.95 / 0.05
    # Quantities: producing more than agreed is the betrayal.
    flood = [(10, Set(key="forced", value={"a": 3.3}), None)]
    record = market(GrimTrigger, GrimTrigger, demand="cournot", periods=30, interventions=flood)
    assert chosen(record, "b") == pytest.approx([2.25] * 11 + [3] * 19)


# --- Q-learning -----------------------------------------------------------------------------------------


def levels_of(demand: Demand, m: int = 15) -> tuple[tuple[float, ...], ...]:
    return tuple(grid(*ends, m, 0.1) for ends in zip(demand.nash(), demand.optimum(), strict=True))


def test_the_grid_reaches_a_tenth_beyond_the_benchmarks() -> None:
    (levels, _) = levels_of(CALVANO)
    nash, optimum = CALVANO.nash()[0], CALVANO.optimum()[0]
    assert len(levels) == 15
    assert levels[0] == pytest.approx(nash - 0.1 * (optimum - nash))
    assert levels[-1] == pytest.approx(optimum + 0.1 * (optimum - nash))
    assert best_level(CALVANO, 0, (optimum, optimum), levels) == min(levels, key=lambda p: abs(p - 1.662))


def test_a_table_starts_with_what_random_rivals_leave_and_learns_by_the_rule() -> None:
    levels = ((1.0, 2.0), (1.0, 1.5, 2.0))
    profits = payoffs(CALVANO, levels)
    assert states(levels) == len(profits[0]) == 6
    assert coded((1, 2), levels) == 5
    assert profits[1][coded((0, 2), levels)] == CALVANO.sell((1.0, 2.0)).profits[1]
    mean = fmean(CALVANO.sell((2.0, other)).profits[0] for other in levels[1])
    assert first_values(profits[0], 0, levels, 0.9)[1] == pytest.approx(mean / 0.1)
    table = Table(((0.0, 1.0), (2.0, 4.0)), 0, 7).learnt(1, 3.0, 1, Learning(alpha=0.5, delta=0.5))
    assert table == Table(((0.0, 0.5 * 1 + 0.5 * (3 + 0.5 * 4)), (2.0, 4.0)), 1, 8)


def test_sessions_gain_and_answer_a_deviation_with_a_price_cut() -> None:
    """The baseline with faster decay of exploration; `python -m tests.benchmarks pricing` has it at full length."""
    earned, responded, learnt, myopic, fiat = main(sessions=2, beta=SHORT.beta, patience=SHORT.patience)
    assert 0.6 < float(earned.split("profit gain ")[1].split()[0]) < 1
    assert float(responded.split("periods 1 to 3: ")[1].split()[0]) < -0.02
    assert float(learnt.split("gain of deviating ")[1].split()[0]) < 0 < float(learnt.split("depth ")[1].split()[0])
    assert float(myopic.split("profit gain ")[1].split(",")[0]) < 0.2
    assert "depth none, gain of deviating none" in myopic, "a best reply is what they do anyway"
    assert "profit gain 1.000, depth 0.000, gain of deviating 0.0" in fiat, "high prices that nothing sustains"


def test_a_session_goes_on_as_its_firms_do_in_the_world() -> None:
    small = Learning(beta=1e-3, patience=500)
    levels = levels_of(CALVANO, 4)
    done = session(CALVANO, levels, small, 3)
    session.cache_clear()
    assert session(CALVANO, levels, small, 3) == done
    assert session(CALVANO, levels, small, 4) != done
    firm = partial(Converged, seed=3, beta=1e-3, patience=500)
    record = market(firm, firm, levels=4, periods=12)
    assert [list(data["chosen"].values()) for data in record.data("period")] == played(done, levels, 12)


def test_a_learner_in_the_world_keeps_to_the_rule() -> None:
    """At first it tries everything; against a rival who never moves it ends at the best reply."""
    levels = [1.0, 1.5, 2.0]
    record = market(partial(QLearner, beta=0.02), partial(Constant, at=1.5), levels=levels, periods=400, window=50)
    found = chosen(record)
    assert set(found[:40]) == set(levels)
    demand = OligopolyParams().market([Seat(agent="a"), Seat(agent="b")])
    assert set(found[-50:]) == {best_level(demand, 0, (1.0, 1.5), levels)}
