"""The market against what is known of it: equilibrium, zero intelligence and ZIP.

The literature lets one random trader act at a time. Here every trader's think time is exponential with the same mean,
so whoever acts next is random. All sessions clear the book after each trade, and prices lie between 0 and 200.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

from sim.streams import Streams
from sim.types import Action, Member, RecordedFact, Seat
from tests.worlds.playing import Played
from worlds.markets.double_auction import ZIC, ZIP, ZIU, DoubleAuction
from worlds.markets.outcomes import allocative_efficiency, smiths_alpha
from worlds.markets.schedules import equilibrium

THINK = 1_000
"""Mean think time in ticks."""


def buyers_and_sellers(values: Sequence[list[int]], costs: Sequence[list[int]]) -> list[Seat]:
    buyers = [Seat(agent=f"b{n}", role="buyer", private={"values": units}) for n, units in enumerate(values)]
    return buyers + [Seat(agent=f"s{n}", role="seller", private={"costs": units}) for n, units in enumerate(costs)]


SMITH_1 = buyers_and_sellers([[130 - 10 * k] for k in range(11)], [[30 + 10 * k] for k in range(11)])
MULTI_UNIT = buyers_and_sellers(
    [[150 - 10 * k - 5 * j for j in range(4)] for k in range(6)],
    [[30 + 10 * k + 5 * j for j in range(4)] for k in range(6)],
)
BOX = buyers_and_sellers([[120]] * 6, [[60]] * 4)


def decided(mind: Any) -> Action:
    """What a mind that asks no model decides."""
    try:
        next(mind)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    raise AssertionError("a scripted mind asks no model")


class Floor:
    """The smallest loop that runs the market: a heap of timers, due decisions and wakes."""

    def __init__(self, seats: list[Seat], kind: Callable[[Member], Any], seed: int, **rules: Any) -> None:
        params = DoubleAuction.Params.model_validate({"clear_after_trade": True, **rules})
        self.world = DoubleAuction(params)  # type: ignore[arg-type]
        self.record = Played(params.model_dump(), seats)
        self.streams = Streams(seed)
        self.minds = {seat.agent: kind(Member(seat=seat)) for seat in seats}
        self.agenda: list[tuple[int, int, int, str]] = []
        self.thinking: dict[str, Action] = {}
        self.again: set[str] = set()
        self.count = 0

    def run(self, stop: Callable[[], bool] = lambda: False) -> Played:
        """Until the market closes, or `stop` says after a trade that nothing more can happen."""
        self._take(0, self.world.reset(self.record.seats, self.streams.sub("world")))
        while self.agenda and not self.record.ended:
            now = self.agenda[0][0]
            due, timer = [], False
            while self.agenda and self.agenda[0][:2] < (now, 2):
                _, kind, _, agent = heapq.heappop(self.agenda)
                timer = True
                if kind == 1:
                    due.append(agent)
            if timer and self._step(now, due) and stop():
                break
            while self.agenda and self.agenda[0][:2] == (now, 2):
                self._wake(now, heapq.heappop(self.agenda)[3])
        return self.record

    def _push(self, tick: int, kind: int, agent: str = "") -> None:
        self.count += 1  # breaks ties
        heapq.heappush(self.agenda, (tick, kind, self.count, agent))

    def _take(self, now: int, outcome: Any) -> bool:
        for fact in outcome.facts:
            self.record.played.append(RecordedFact(table=0, seq=fact.id, tick=now, fact=fact))
        for wake in outcome.wakes:
            self._push(wake.tick, 2, wake.agent)
        for tick in outcome.timers:
            self._push(tick, 0)
        self.record.ended.update(outcome.ended)
        return any(fact.kind == "trade" for fact in outcome.facts)

    def _step(self, now: int, due: list[str]) -> bool:
        actions = [self.thinking.pop(agent) for agent in due]
        for action in actions:
            self.minds[action.agent].state = action.state or self.minds[action.agent].state
        traded = self._take(now, self.world.step(now, actions))
        for agent in self.again.intersection(due):
            self.again.discard(agent)
            self._push(now, 2, agent)
        return traded

    def _wake(self, now: int, agent: str) -> None:
        if agent in self.thinking:
            self.again.add(agent)
            return
        turn = self.world.observe(now, agent)
        if turn is None:
            return
        action = decided(self.minds[agent].act(turn, self.streams.sub("mind", agent, now)))
        self.thinking[agent] = replace(action, agent=agent, seen=now, shows=turn.shows)
        uniform = self.streams.draw("think", agent, now)
        self._push(now + max(1, round(-THINK * math.log1p(-uniform))), 1, agent)


def until_no_gain_is_left(seats: list[Seat], kind: Callable[[Member], Any], seed: int) -> Played:
    """One period of up to 6,000 shouts, cut off when no buyer's next unit is worth more than any seller's costs."""
    floor = Floor(seats, kind, seed, period=6_000 * THINK // len(seats), tape=0)

    def exhausted() -> bool:
        left: dict[str, list[int]] = {"bid": [], "ask": []}
        for trader in floor.world.state()["traders"]:
            left[trader["side"]] += trader["limits"]["apple"][trader["traded"]["apple"] :]
        return max(left["bid"], default=0) <= min(left["ask"], default=0)

    return floor.run(exhausted)


def by_period(metric: Any, record: Played) -> dict[int, float]:
    found = {one.of["period"]: one.value for one in metric(record) if one.of}
    return {period: value for period, value in found.items() if value is not None}


def test_constrained_zero_intelligence_reaches_the_known_efficiency_of_a_multi_unit_market() -> None:
    runs = [until_no_gain_is_left(MULTI_UNIT, ZIC, seed) for seed in range(12)]
    assert fmean(by_period(allocative_efficiency, run)[1] for run in runs) == pytest.approx(0.998, abs=0.005)
    assert fmean(by_period(smiths_alpha, run)[1] for run in runs) == pytest.approx(21, abs=3)


def test_constrained_zero_intelligence_reaches_the_known_efficiency_of_a_thin_market() -> None:
    runs = [until_no_gain_is_left(SMITH_1, ZIC, seed) for seed in range(100)]
    assert fmean(by_period(allocative_efficiency, run)[1] for run in runs) == pytest.approx(0.963, abs=0.01)


def test_unconstrained_zero_intelligence_trades_everything_and_so_gains_nothing() -> None:
    for seed in range(3):
        record = Floor(SMITH_1, ZIU, seed, period=10**7, tape=0, budget_constraint=False).run()
        assert len(record.data("trade")) == 11
        assert by_period(allocative_efficiency, record) == {1: 0.0}


def test_zip_traders_converge_to_the_equilibrium_price_within_days() -> None:
    days, shouts = 8, 400
    alpha, efficiency = defaultdict(list), defaultdict(list)
    for seed in range(8):
        record = Floor(SMITH_1, ZIP, seed, periods=days, period=shouts * THINK // len(SMITH_1)).run()
        for day, value in by_period(smiths_alpha, record).items():
            alpha[day].append(value)
        for day, value in by_period(allocative_efficiency, record).items():
            efficiency[day].append(value)
    mean = {day: fmean(values) for day, values in alpha.items()}
    assert mean[1] > mean[3] > mean[8]
    assert mean[8] < 3
    assert fmean(efficiency[8]) > 0.98


def test_in_a_box_market_everything_that_can_trade_does_and_the_long_side_sets_the_price() -> None:
    theory = equilibrium([120] * 6, [60] * 4)
    assert theory is not None
    assert (theory.quantity, theory.low, theory.high, theory.price, theory.surplus) == (4, 120, 120, 120, 240)
    for seed in range(5):
        assert by_period(allocative_efficiency, until_no_gain_is_left(BOX, ZIC, seed)) == {1: 1.0}
    record = Floor(BOX, ZIP, 1, periods=8, period=400 * THINK // len(BOX)).run()
    prices = [trade["price"] for trade in record.data("trade") if trade["period"] == 8]
    assert fmean(prices) == pytest.approx(120, abs=6)
