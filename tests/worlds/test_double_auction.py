from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agents.scripted import Constant
from sim.answers import illegal, parse
from sim.check import check_agent, check_world, turns_of
from sim.quantities import distribution
from sim.scenarios.scenario import load
from sim.simulate import player
from sim.streams import Streams
from sim.types import Action, Fact, Form, Join, Leave, Member, Outcome, RecordedFact, Result, Say, Seat, Set, Turn
from tests.worlds.playing import Played, play
from worlds.markets.double_auction import ZIC, ZIP, ZIU, DoubleAuction
from worlds.markets.pass_through import all as passed_on
from worlds.markets.schedules import equilibrium, limits
from worlds.markets.traders import Learner, wish


def buyer(agent: str, *values: float, **private: Any) -> Seat:
    return Seat(agent=agent, role="buyer", private={"values": list(values), **private})


def seller(agent: str, *costs: float, **private: Any) -> Seat:
    return Seat(agent=agent, role="seller", private={"costs": list(costs), **private})


TWO_A_SIDE = [buyer("ann", 100, 90), buyer("bob", 80), seller("sam", 40, 60), seller("sue", 70)]


class Market:
    """A world under the hand of the test."""

    def __init__(self, seats: Sequence[Seat] = TWO_A_SIDE, seed: int = 0, **params: Any) -> None:
        self.world = DoubleAuction(DoubleAuction.Params.model_validate(params))  # type: ignore[arg-type]
        self.facts: list[Fact] = []
        self.first = self.keep(self.world.reset(seats, Streams(seed)))

    def keep(self, outcome: Outcome) -> Outcome:
        assert [fact.id for fact in outcome.facts] == list(range(len(self.facts), len(self.facts) + len(outcome.facts)))
        self.facts += outcome.facts
        return outcome

    def see(self, agent: str, now: int = 0) -> Turn:
        turn = self.world.observe(now, agent)
        assert turn is not None
        return turn

    def do(self, now: int, agent: str, act: str, price: int | None = None, seen: int | None = None) -> Outcome:
        """One decision that was taken on a look at `seen` (now, where not given)."""
        return self.keep(self.world.step(now, [self.action(now if seen is None else seen, agent, act, price)]))

    def action(self, seen: int, agent: str, act: str, price: int | None = None) -> Action:
        turn = self.world.observe(seen, agent)
        answer = {"act": act} if price is None else {"act": act, "price": price}
        return Action(answer=answer, agent=agent, seen=seen, shows=turn.shows if turn else ())

    def trader(self, agent: str) -> Any:
        return next(trader for trader in self.world.state()["traders"] if trader["agent"] == agent)

    def kinds(self) -> list[str]:
        return [fact.kind for fact in self.facts]


def stale(outcome: Outcome) -> str:
    assert [result.status for result in outcome.results] == ["stale"]
    return outcome.results[0].reason


# --- supply and demand ----------------------------------------------------------------------------


def test_limits_are_rounded_and_put_into_trading_order() -> None:
    assert limits("buyer", {"value": 99.5}, ["apple"]) == {"apple": (100,)}
    assert limits("buyer", {"values": [80, 95.4, 90]}, ["apple"]) == {"apple": (95, 90, 80)}
    assert limits("seller", {"costs": [30, 10]}, ["apple", "pear"]) == {"apple": (10, 30), "pear": (10, 30)}
    assert limits("seller", {"cost": {"pear": 7}}, ["apple", "pear"]) == {"apple": (), "pear": (7,)}


@pytest.mark.parametrize(
    ("role", "private", "what"),
    [
        ("spy", {"value": 1}, "buyer or a seller"),
        ("buyer", {"cost": 1}, "exactly one"),
        ("buyer", {"value": 1, "values": [1]}, "exactly one"),
        ("seller", {"costs": {"plum": 1}}, "no goods"),
    ],
)
def test_a_seat_that_cannot_trade_is_refused_by_name(role: str, private: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=f"odd.*{what}"):
        Market([Seat(agent="odd", role=role, private=private)])


def test_equilibrium_by_hand() -> None:
    theory = equilibrium([10, 8, 5], [2, 4, 6])
    assert theory is not None
    assert (theory.quantity, theory.low, theory.high, theory.price, theory.surplus) == (2, 5, 6, 5.5, 12)
    assert equilibrium([10], [11]) is None
    assert equilibrium([], [1]) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 50), max_size=8), st.lists(st.integers(0, 50), max_size=8))
def test_at_any_equilibrium_price_demand_meets_supply(values: list[int], costs: list[int]) -> None:
    theory = equilibrium(values, costs)
    if theory is None:
        assert all(value < cost for value in values for cost in costs)
        return
    for price in (theory.low, theory.price, theory.high):
        least_wanted, most_wanted = sum(v > price for v in values), sum(v >= price for v in values)
        assert least_wanted <= theory.quantity <= most_wanted
        assert sum(c < price for c in costs) <= theory.quantity <= sum(c <= price for c in costs)
        gains = sum(max(0, v - price) for v in values) + sum(max(0, price - c) for c in costs)
        assert gains == pytest.approx(theory.surplus)


# --- trading --------------------------------------------------------------------------------------


def test_everybody_is_woken_at_the_start_and_again_after_each_decision() -> None:
    market = Market(period=100, pause=3)
    assert [(wake.agent, wake.tick) for wake in market.first.wakes] == [(seat.agent, 0) for seat in TWO_A_SIDE]
    assert list(market.first.timers) == [100]
    outcome = market.do(5, "ann", "wait", seen=0)
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("ann", 8)]
    assert outcome.results == [Result()]
    assert not outcome.facts


def test_an_order_that_crosses_trades_at_the_standing_price() -> None:
    market = Market()
    market.do(1, "sam", "ask", 50)
    outcome = market.do(2, "ann", "bid", 95)
    (trade,) = outcome.facts
    assert trade.kind == "trade"
    assert trade.answers == (1,)
    assert trade.data == {"period": 1, "good": "apple", "price": 50, "by": "bid", "buyer": "ann", "seller": "sam"}
    assert outcome.rewards == {"ann": 50, "sam": 10}
    assert (market.trader("ann")["cash"], market.trader("sam")["cash"]) == (9_950, 10_050)
    assert market.world.state()["books"] == {"apple": []}
    market.do(3, "bob", "bid", 77)
    assert market.do(4, "sue", "ask", 70).facts[0].data["price"] == 77


def test_a_new_order_replaces_the_old_one_and_cancel_takes_it_out() -> None:
    market = Market()
    market.do(1, "ann", "bid", 50)
    replaced = market.do(2, "ann", "bid", 45).facts[0]
    assert replaced.answers == (1,)
    assert [order["price"] for order in market.world.state()["books"]["apple"]] == [45]
    cancelled = market.do(3, "ann", "cancel")
    assert (cancelled.facts[0].kind, cancelled.facts[0].answers) == ("cancel", (2,))
    assert market.world.state()["books"]["apple"] == []
    assert stale(market.do(4, "ann", "cancel")) == "no order stands"


def test_a_trade_clears_the_book_where_the_scenario_says_so() -> None:
    for clears, left in ((True, []), (False, [30])):
        market = Market(clear_after_trade=clears)
        market.do(1, "bob", "bid", 30)
        market.do(2, "sam", "ask", 50)
        market.do(3, "ann", "bid", 50)
        assert [order["price"] for order in market.world.state()["books"]["apple"]] == left


def test_orders_expire_on_their_timer_but_not_those_that_replaced_them() -> None:
    market = Market(order_life=10)
    assert list(market.do(1, "ann", "bid", 50).timers) == [11]
    assert list(market.do(5, "bob", "bid", 40).timers) == [15]
    market.do(8, "ann", "bid", 55)
    assert not market.keep(market.world.step(11, [])).facts
    assert market.see("sam", 11).view["goods"]["apple"]["best_bid"] == 55
    (expired,) = market.keep(market.world.step(15, [])).facts
    assert (expired.kind, expired.actor, expired.answers) == ("expire", "bob", (2,))
    market.keep(market.world.step(18, []))
    assert market.see("sam", 18).view["goods"]["apple"]["best_bid"] is None


def test_an_order_that_expires_at_a_tick_is_gone_before_the_actions_of_that_tick() -> None:
    market = Market(order_life=10)
    market.do(0, "sam", "ask", 50)
    assert market.do(10, "ann", "bid", 90).facts[-1].kind == "bid"


def test_units_are_endowed_anew_each_period_and_the_market_ends_after_the_last() -> None:
    market = Market(period=50, periods=2)
    market.do(1, "sue", "ask", 75)
    market.do(2, "bob", "bid", 75)
    assert market.world.observe(3, "bob") is None
    market.do(4, "sam", "ask", 90)
    turned = market.keep(market.world.step(50, []))
    assert [(fact.kind, dict(fact.data)) for fact in turned.facts] == [("period", {"period": 2, "ends": 100})]
    assert [wake.agent for wake in turned.wakes] == ["ann", "bob", "sam", "sue"]
    assert list(turned.timers) == [100]
    view = market.see("bob", 50).view
    assert (view["goods"]["apple"]["limits"], view["cash"], view["profit"]) == ([80], 10_000, 5)
    assert view["goods"]["apple"]["best_ask"] is None
    ended = market.keep(market.world.step(100, []))
    assert ended.ended == dict.fromkeys(("ann", "bob", "sam", "sue"), "terminated")
    assert market.world.observe(100, "ann") is None


# --- stale decisions ------------------------------------------------------------------------------


def test_a_decision_seen_in_another_period_is_stale_and_its_wake_is_still_to_come() -> None:
    market = Market(period=50, periods=2)
    late = market.action(45, "ann", "bid", 60)
    market.keep(market.world.step(50, []))
    outcome = market.keep(market.world.step(60, [late]))
    assert stale(outcome) == "the period is over"
    assert not outcome.wakes
    assert [wake.tick for wake in market.do(70, "ann", "wait", seen=60).wakes] == [71]


def test_a_unit_sold_meanwhile_makes_the_decision_stale() -> None:
    market = Market()
    market.do(1, "bob", "bid", 75)
    late = market.action(1, "bob", "bid", 78)
    market.do(2, "sam", "ask", 60)
    outcome = market.keep(market.world.step(3, [late]))
    assert stale(outcome) == "no unit of apple is left"
    assert not outcome.wakes


def test_a_bid_for_a_better_unit_than_the_next_one_is_stale_only_under_the_budget_constraint() -> None:
    for constrained in (True, False):
        market = Market(budget_constraint=constrained)
        market.do(1, "ann", "bid", 70)
        late = market.action(1, "ann", "bid", 95)
        market.do(2, "sam", "ask", 60)
        (result,) = market.keep(market.world.step(3, [late])).results
        assert result.status == ("stale" if constrained else "applied")


def test_cash_behind_bids_for_other_goods_cannot_be_spent_twice() -> None:
    market = Market([buyer("ann", 100, cash=120), seller("sam", 10)], goods=["apple", "pear"])
    market.do(1, "ann", "bid apple", 90)
    turn = market.see("ann", 1)
    assert isinstance(turn.format, Form)
    assert turn.format.narrow["Bid_pear.price"] == {"minimum": 0, "maximum": 30}
    assert turn.format.narrow["Bid_apple.price"] == {"minimum": 0, "maximum": 100}
    assert stale(market.do(2, "ann", "bid pear", 31)) == "31 can no longer be paid"
    market.do(3, "ann", "bid pear", 30)
    market.do(4, "sam", "ask apple", 80)
    market.do(5, "sam", "ask pear", 30)
    assert market.trader("ann")["cash"] == 0
    assert market.trader("ann")["traded"] == {"apple": 1, "pear": 1}


# --- simultaneous decisions and wakes --------------------------------------------------------------


def test_who_comes_first_among_simultaneous_orders_is_drawn_by_lot() -> None:
    first = 0
    for seed in range(400):
        market = Market([buyer("ann", 100), buyer("bob", 100), seller("sam", 50)], seed=seed)
        market.do(0, "sam", "ask", 60)
        both = [market.action(0, "ann", "bid", 90), market.action(0, "bob", "bid", 90)]
        outcome = market.keep(market.world.step(1, both))
        assert [result.status for result in outcome.results] == ["applied", "applied"]
        first += market.facts[2].data.get("buyer") == "ann"
    assert 170 <= first <= 230


def test_a_trade_interrupts_the_owner_of_the_standing_order_if_it_has_more_to_trade() -> None:
    for interrupts, woken in ((True, [("sam", 2, True)]), (False, [])):
        market = Market(interrupt_on_trade=interrupts)
        market.do(1, "sam", "ask", 50)
        wakes = market.do(2, "ann", "bid", 50, seen=0).wakes
        assert [(wake.agent, wake.tick, wake.interrupt) for wake in wakes if wake.agent != "ann"] == woken
    market = Market(interrupt_on_trade=True)
    market.do(1, "sue", "ask", 75)
    assert [wake.agent for wake in market.do(2, "ann", "bid", 75).wakes] == ["ann"]


def test_an_interrupted_trader_is_not_woken_twice() -> None:
    market = Market(interrupt_on_trade=True, pause=5)
    market.do(1, "sam", "ask", 50)
    market.do(2, "ann", "bid", 50)
    assert not market.do(4, "sam", "wait", seen=2).wakes, "the wake of tick 6 is still to come"
    assert [wake.tick for wake in market.do(9, "sam", "wait", seen=6).wakes] == [14]


# --- interventions --------------------------------------------------------------------------------


def test_a_leaver_takes_its_orders_along() -> None:
    market = Market()
    market.do(1, "sam", "ask", 50)
    (left,) = market.keep(market.world.change(2, Leave(agent="sam"))).facts
    assert (left.kind, left.actor, left.answers) == ("leave", "sam", (1,))
    assert market.see("ann", 2).view["goods"]["apple"]["best_ask"] is None
    assert market.world.observe(2, "sam") is None
    assert "sam" not in [trader["agent"] for trader in market.world.state()["traders"]]


def test_a_leavers_order_does_not_expire_later() -> None:
    market = Market(order_life=10)
    market.do(1, "sam", "ask", 50)
    market.keep(market.world.change(2, Leave(agent="sam")))
    assert not market.keep(market.world.step(11, [])).facts


def test_a_joiner_trades_at_once_and_has_not_missed_what_was_before() -> None:
    market = Market()
    market.do(1, "ann", "bid", 55)
    outcome = market.keep(market.world.change(4, Join(seat=seller("tom", 20))))
    assert [(fact.kind, fact.actor) for fact in outcome.facts] == [("join", "tom")]
    assert [(wake.agent, wake.tick) for wake in outcome.wakes] == [("tom", 4)]
    view = market.see("tom", 4).view
    assert view["tape"] == []
    assert view["goods"]["apple"]["best_bid"] == 55
    assert market.do(5, "tom", "ask", 30, seen=4).facts[0].data["price"] == 55


def test_a_message_is_read_once_by_those_it_is_for() -> None:
    market = Market()
    market.keep(market.world.change(1, Say(text="A frost is coming.", to=("ann",))))
    market.keep(market.world.change(1, Say(text="Hello.", to="#elsewhere")))
    turn = market.see("ann", 1)
    assert turn.view["messages"] == ["A frost is coming."]
    assert "A frost is coming." in turn.text
    assert 1 in turn.shows
    assert market.see("bob", 1).view["messages"] == []
    market.do(2, "ann", "wait", seen=1)
    assert market.see("ann", 3).view["messages"] == []


def test_rules_may_change_while_trading_but_not_all() -> None:
    market = Market()
    assert [f.kind for f in market.keep(market.world.change(1, Set(key="order_life", value=5))).facts] == ["rule"]
    assert list(market.do(2, "ann", "bid", 50).timers) == [7]
    market.keep(market.world.change(3, Set(key="tape", value=0)))
    assert market.see("bob", 3).view["tape"] == []
    market.keep(market.world.change(3, Set(key="budget_constraint", value=False)))
    assert market.see("bob", 3).view["goods"]["apple"]["highest"] == 200
    with pytest.raises(ValueError, match="periods"):
        market.world.change(4, Set(key="periods", value=9))
    with pytest.raises(ValidationError):
        market.world.change(4, Set(key="order_life", value=0))


@pytest.mark.parametrize(
    "params",
    [{"goods": []}, {"goods": ["a b"]}, {"goods": ["x", "x"]}, {"price_low": 9, "price_high": 8}, {"spam": 1}],
)
def test_impossible_rules_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Market(**params)


# --- what a trader sees ---------------------------------------------------------------------------


def test_the_tape_holds_every_shout_since_the_last_turn_that_stood() -> None:
    market = Market()
    market.do(1, "ann", "bid", 50)
    market.do(2, "sam", "ask", 60)
    market.do(3, "bob", "bid", 65)
    turn = market.see("sam", 4)
    events = [(event["event"], event.get("price"), event.get("by"), event["mine"]) for event in turn.view["tape"]]
    assert events == [("ask", 60, None, True), ("trade", 60, "bid", True)], "it saw the first bid when it asked"
    assert set(turn.shows) == {1, 2, 3}, "the best bid and the last price are on display too"
    assert market.see("sam", 5).view["tape"] == turn.view["tape"], "looking alone marks nothing as read"
    market.do(6, "sam", "wait", seen=5)
    assert market.see("sam", 6).view["tape"] == []


def test_a_short_tape_never_drops_the_traders_own_trades() -> None:
    market = Market(tape=1)
    market.do(1, "sam", "ask", 50)
    market.do(2, "ann", "bid", 50)
    market.do(3, "bob", "bid", 20)
    market.do(4, "bob", "bid", 25)
    assert [event["event"] for event in market.see("sam", 5).view["tape"]] == ["trade", "bid"]
    assert [event["event"] for event in market.see("sue", 5).view["tape"]] == ["bid"]


def test_no_loss_is_legal_under_the_budget_constraint_and_only_the_grid_binds_without_it() -> None:
    for constrained, bid, ask in ((True, (0, 100), (40, 200)), (False, (0, 200), (0, 200))):
        market = Market(budget_constraint=constrained)
        for agent, act, (low, high) in (("ann", "bid", bid), ("sam", "ask", ask)):
            form = market.see(agent).format
            assert illegal(form, {"act": act, "price": low}) is None
            assert illegal(form, {"act": act, "price": high}) is None
            assert illegal(form, {"act": act, "price": low - 1})
            assert illegal(form, {"act": act, "price": high + 1})
            assert illegal(form, {"act": "wait"}) is None
            assert illegal(form, {"act": "cancel"})
    market.do(1, "ann", "bid", 50)
    assert illegal(market.see("ann", 1).format, {"act": "cancel"}) is None


def test_the_answer_of_a_model_is_read_as_tiny_json() -> None:
    form = Market().see("ann").format
    assert parse(form, '{"act": "bid", "price": 95}') == ({"act": "bid", "price": 95}, "")
    assert parse(form, '{"act": "bid", "price": 101}')[0] is None
    assert parse(form, '{"act": "ask", "price": 95}')[0] is None


def test_a_trader_with_no_cash_can_only_wait() -> None:
    market = Market([buyer("ann", 100, cash=0), seller("sam", 40)], price_low=1)
    turn = market.see("ann")
    assert turn.view["goods"]["apple"]["highest"] is None
    assert illegal(turn.format, {"act": "bid", "price": 1})
    assert "cannot order now" in turn.text
    for kind in (ZIU, ZIC, ZIP):
        assert decide(kind(Member(seat=Seat(agent="ann"))), turn).answer == {"act": "wait"}


def test_the_view_in_words_is_short_and_says_what_matters() -> None:
    market = Market(period=100)
    market.do(1, "ann", "bid", 50)
    market.do(2, "sam", "ask", 90)
    market.do(10, "ann", "bid", 60)
    assert market.see("ann", 25).text == (
        "Since your last turn: your bid 60.\n"
        "apple: best bid 60, best ask 90, last price none.\n"
        "Your next apple is worth 100. Your bid stands at 60. You may bid 0 to 100.\n"
        "Cash 10000. Period 1 of 1, 75% of it left."
    )
    assert market.see("sue", 25).text.startswith("Since your last turn: period 1 began, bid 50, ask 90, bid 60.\n")
    assert "Your next apple costs you 70. You may ask 70 to 200." in market.see("sue", 25).text
    assert "You are a seller" in market.see("sue", 25).rules


def test_several_goods_are_told_apart_in_words_and_answers() -> None:
    market = Market([buyer("ann", 100), seller("sam", 40)], goods=["apple", "pear"])
    market.do(1, "ann", "bid pear", 50)
    turn = market.see("sam", 1)
    assert "pear bid 50" in turn.text
    assert market.do(2, "sam", "ask pear", 45).facts[0].data["good"] == "pear"
    assert "You have no more pear." in market.see("sam", 2).text
    assert "You want no more pear." in market.see("ann", 2).text
    assert isinstance(turn.format, Form)
    assert [model.__name__ for model in turn.format.models] == ["Ask_apple", "Ask_pear", "Wait"]


# --- laws of trading, whatever traders do ----------------------------------------------------------

SEATS = [buyer("a", 90, 70, cash=150), buyer("b", 120, cash=200), seller("c", 30, 50), seller("d", 60), seller("e", 10)]
GOODS = ["apple", "pear"]


@settings(max_examples=25, deadline=None)
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from([None, 1, 4]))
def test_nothing_is_created_lost_or_owed(
    data: st.DataObject, constrained: bool, clears: bool, life: int | None
) -> None:
    market = Market(
        SEATS,
        goods=GOODS,
        period=20,
        periods=2,
        budget_constraint=constrained,
        clear_after_trade=clears,
        order_life=life,
    )
    pending: dict[str, Action] = {}
    for now in range(1, 25):
        for agent in data.draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=3)):
            turn = market.world.observe(now - 1, agent)
            if turn is not None and agent not in pending:
                answer = drawn_answer(data, turn)
                assert illegal(turn.format, answer) is None
                pending[agent] = Action(answer=answer, agent=agent, seen=now - 1, shows=turn.shows)
        due = [pending.pop(agent) for agent in sorted(pending) if data.draw(st.booleans())]
        check_step(market, now, due)


def drawn_answer(data: st.DataObject, turn: Turn) -> dict[str, Any]:
    assert isinstance(turn.format, Form)
    model = data.draw(st.sampled_from(turn.format.models))
    answer = {"act": model.model_json_schema()["properties"]["act"]["const"]}
    if bounds := turn.format.narrow.get(f"{model.__name__}.price"):
        answer["price"] = data.draw(st.integers(bounds["minimum"], bounds["maximum"]))
    return answer


def check_step(market: Market, now: int, due: list[Action]) -> None:
    before = market.world.state()
    twin = copy.deepcopy(market.world)
    outcome = market.keep(market.world.step(now, due))
    after = market.world.state()
    assert twin.step(now, due) == outcome, "a copy behaves alike"
    assert twin.state() == after == json.loads(json.dumps(after))
    for was, trader in zip(before["traders"], after["traders"], strict=True):
        assert trader["profit"] - was["profit"] == outcome.rewards.get(trader["agent"], 0)
    traders = {trader["agent"]: trader for trader in after["traders"]}
    assert sum(t["cash"] for t in traders.values()) == sum(t["endowment"] for t in traders.values())
    for good in GOODS:
        moved = {side: sum(t["traded"][good] for t in traders.values() if t["side"] == side) for side in ("bid", "ask")}
        assert moved["bid"] == moved["ask"]
        check_book(after["books"][good], good, traders)
    for agent, trader in traders.items():
        bids = [
            o["price"] for book in after["books"].values() for o in book if o["trader"] == agent and o["side"] == "bid"
        ]
        assert 0 <= sum(bids) <= trader["cash"]


def check_book(book: list[Any], good: str, traders: dict[str, Any]) -> None:
    bids, asks = ([order for order in book if order["side"] == side] for side in ("bid", "ask"))
    assert not bids or not asks or bids[0]["price"] < asks[0]["price"], "never crossed"
    for side, sign in ((bids, -1), (asks, 1)):
        ranks = [(sign * order["price"], order["id"]) for order in side]
        assert ranks == sorted(ranks)
    assert len({order["trader"] for order in book}) == len(book)
    for order in book:
        trader = traders[order["trader"]]
        assert trader["traded"][good] < len(trader["limits"][good])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60)), max_size=40))
def test_each_trade_is_with_the_best_and_earliest_standing_order(shouts: list[tuple[int, int]]) -> None:
    seats = [buyer(f"b{n}", *[60] * 9) for n in range(5)] + [seller(f"s{n}", *[0] * 9) for n in range(5)]
    market = Market(seats)
    for now, (n, price) in enumerate(shouts, start=1):
        agent, act = (f"b{n}", "bid") if n < 5 else (f"s{n - 5}", "ask")
        if market.world.observe(now, agent) is None:
            continue
        facing = [o for o in market.world.state()["books"]["apple"] if o["side"] != act]
        (fact,) = market.do(now, agent, act, price).facts
        sign = 1 if act == "bid" else -1
        best = min(facing, key=lambda o: (sign * o["price"], o["id"]), default=None)
        if best is None or sign * best["price"] > sign * price:
            assert fact.kind == act
        else:
            assert (fact.kind, fact.data["price"], fact.answers) == ("trade", best["price"], (best["id"],))


# --- the baselines --------------------------------------------------------------------------------


def decide(agent: Any, turn: Turn, *key: str | int) -> Action:
    mind = agent.act(turn, Streams(3).sub("mind", *key))
    with pytest.raises(StopIteration) as stopped:
        next(mind)
    assert isinstance(stopped.value.value, Action)
    return stopped.value.value


def prices(kind: Any, agent: str, market: Market, n: int = 400) -> list[int]:
    mind, turn = kind(Member(seat=Seat(agent=agent))), market.see(agent)
    return [decide(mind, turn, k).answer["price"] for k in range(n)]


def test_zero_intelligence_draws_from_the_grid_or_from_within_its_limit() -> None:
    free = Market(budget_constraint=False)
    for kind, agent, low, high in (
        (ZIU, "ann", 0, 200),
        (ZIC, "ann", 0, 100),
        (ZIU, "sam", 0, 200),
        (ZIC, "sam", 40, 200),
    ):
        drawn = prices(kind, agent, free)
        assert low <= min(drawn) <= low + 5
        assert high - 5 <= max(drawn) <= high
        assert sum(drawn) / len(drawn) == pytest.approx((low + high) / 2, abs=9)


def test_zero_intelligence_never_bids_what_it_cannot_pay() -> None:
    poor = Market([buyer("ann", 100, cash=30), seller("sam", 250)], budget_constraint=False)
    assert max(prices(ZIC, "ann", poor)) == max(prices(ZIU, "ann", poor)) == 30
    assert decide(ZIC(Member(seat=Seat(agent="sam"))), poor.see("sam")).answer == {"act": "wait"}


@pytest.mark.parametrize(
    ("event", "by", "buyer_at_90", "buyer_at_70", "seller_at_90", "seller_at_70"),
    [
        ("trade", "bid", True, None, False, True),
        ("trade", "ask", True, False, None, True),
        ("bid", None, None, False, None, None),
        ("ask", None, None, None, False, None),
    ],
)
def test_zip_wants_more_where_others_trade_worse_and_less_where_it_is_beaten(
    event: str,
    by: str | None,
    buyer_at_90: bool | None,
    buyer_at_70: bool | None,
    seller_at_90: bool | None,
    seller_at_70: bool | None,
) -> None:
    shout = {"event": event, "price": 80, "by": by}
    assert wish(shout, 90, buying=True, active=True) is buyer_at_90
    assert wish(shout, 70, buying=True, active=True) is buyer_at_70
    assert wish(shout, 90, buying=False, active=True) is seller_at_90
    assert wish(shout, 70, buying=False, active=True) is seller_at_70
    assert False not in [wish(shout, at, buying=side, active=False) for at in (70, 90) for side in (True, False)]


def test_zip_starts_with_a_margin_in_its_range_and_keeps_its_constants() -> None:
    market = Market()
    zip_ = ZIP(Member(seat=Seat(agent="ann")))
    first = decide(zip_, market.see("ann"))
    assert zip_.state is None, "deciding changes nothing"
    assert isinstance(first.state, Learner)
    assert 0.1 <= first.state.beta <= 0.5
    assert 0 <= first.state.gamma <= 0.1
    assert 65 <= first.answer["price"] <= 95
    zip_.state = first.state
    market.do(1, "sam", "ask", 90)
    market.do(2, "bob", "bid", 79)
    second = decide(zip_, market.see("ann", 3))
    assert isinstance(second.state, Learner)
    assert (second.state.beta, second.state.gamma) == (first.state.beta, first.state.gamma)


def test_zip_moves_by_the_widrow_hoff_rule() -> None:
    """Without noise a buyer at 80 (100 less 20%) that sees a trade at 60 aims at 60, less 5% of 60 at most."""
    zip_ = ZIP(Member(seat=Seat(agent="ann")), absolute=0.0)
    market = Market()
    start = decide(zip_, market.see("ann")).state
    assert isinstance(start, Learner)
    margin = start.margins["apple"]
    zip_.state = Learner(0.5, 0.0, {"apple": type(margin)(markup=-0.2, units=2)})
    market.do(1, "sam", "ask", 60)
    market.do(2, "bob", "bid", 60)
    after = decide(zip_, market.see("ann", 3)).state
    assert isinstance(after, Learner)
    price = 100 * (1 + after.margins["apple"].markup)
    assert 80 + 0.5 * (57 - 80) <= price <= 80 + 0.5 * (60 - 80)


@pytest.mark.parametrize("kind", [ZIU, ZIC, ZIP])
def test_baselines_trade_several_goods(kind: Any) -> None:
    seats = [buyer(f"b{n}", 100, 80) for n in range(3)] + [seller(f"s{n}", 20, 40) for n in range(3)]
    record = play(DoubleAuction, [(seat, kind) for seat in seats], {"goods": GOODS, "period": 300}, think={}, seed=2)
    assert {trade["good"] for trade in record.data("trade")} == set(GOODS)
    assert all(one.action.how == "chosen" for one in record.decisions())


# --- conformance -----------------------------------------------------------------------------------

SMALL = {"period": 60, "periods": 2, "order_life": 15, "interrupt_on_trade": True, "goods": GOODS}


def test_the_market_keeps_the_rules_of_worlds() -> None:
    check_world(DoubleAuction, TWO_A_SIDE, SMALL, agent=ZIP)
    check_world(DoubleAuction, TWO_A_SIDE, {"period": 40, "clear_after_trade": True, "tape": 3}, agent=ZIC)


@pytest.mark.parametrize("kind", [ZIU, ZIC, ZIP])
def test_the_baselines_keep_the_rules_of_agents(kind: Any) -> None:
    turns = turns_of(DoubleAuction, TWO_A_SIDE, SMALL)
    for seat in TWO_A_SIDE:
        check_agent(lambda seat=seat: kind(Member(seat=seat)), turns[seat.agent])  # type: ignore[misc]


# --- on the kernel --------------------------------------------------------------------------------


def crowd(kind: Any, n: int = 4) -> list[tuple[Seat, Any]]:
    return [(buyer(f"b{k}", 120 - 10 * k, 90), kind) for k in range(n)] + [
        (seller(f"s{k}", 40 + 10 * k, 70), kind) for k in range(n)
    ]


RULES = {"period": 60, "periods": 2, "order_life": 30, "interrupt_on_trade": True}


def test_a_run_ends_by_itself_with_everybody_terminated_and_repeats_exactly() -> None:
    think = {f"{side}{k}": "exponential(5)" for side in "bs" for k in range(4)}
    runs = [play(DoubleAuction, crowd(ZIP), RULES, think=think, seed=5) for _ in range(2)]
    assert vars(runs[0]) == vars(runs[1])
    assert set(runs[0].ended.values()) == {"terminated"}
    assert len(runs[0].data("trade")) >= 6
    assert {one.result.reason for one in runs[0].decisions() if one.result.status == "stale"} <= {
        "the period is over",
        "no unit of apple is left",
    }
    kept = runs[0].measured(DoubleAuction.metrics)["market.allocative_efficiency"].value
    assert kept == sum(runs[0].won.values()) / (2 * 280)


def test_traders_who_think_for_no_time_do_not_stop_the_clock() -> None:
    record = play(DoubleAuction, crowd(ZIC), RULES, seed=1)
    assert set(record.ended.values()) == {"terminated"}
    assert {item.tick for item in record.facts("trade")} <= set(range(121))


def test_one_more_trader_who_only_waits_changes_nothing_for_the_others() -> None:
    think: dict[str, Any] = {f"{side}{k}": "exponential(5)" for side in "bs" for k in range(4)}
    alone = play(DoubleAuction, crowd(ZIC), RULES, think=think, seed=4)
    waiter = (buyer("idler", 50), lambda member: Constant(member, answer={"act": "wait"}))
    joined = play(DoubleAuction, [waiter, *crowd(ZIC)], RULES, think={**think, "idler": 3}, seed=4)
    assert [(item.tick, item.fact) for item in joined.facts()] == [(item.tick, item.fact) for item in alone.facts()]
    assert sum(one.action.agent == "idler" for one in joined.decisions()) > 20


def test_joiners_and_leavers_on_the_kernel() -> None:
    late = Member(seat=seller("late", 10))
    moves = [(20, Join(seat=late.seat), player(ZIC(late), late, "exponential(5)")), (40, Leave(agent="b0"), None)]
    think: dict[str, Any] = {f"{side}{k}": distribution("exponential(5)") for side in "bs" for k in range(4)}
    record = play(DoubleAuction, crowd(ZIC), RULES, think=think, interventions=moves, seed=3)
    gone = next(item.seq for item in record.facts("leave"))
    assert not [item for item in record.facts() if item.fact.actor == "b0" and item.seq > gone]
    record.seats.append(late.seat)
    measured = record.measured(DoubleAuction.metrics)
    assert measured["market.trades period=2 good=apple"].n == sum(t["period"] == 2 for t in record.data("trade"))
    assert (measured["market.allocative_efficiency period=2 good=apple"].value or 0) > 0.5


# --- metrics --------------------------------------------------------------------------------------


def recorded(trades: Sequence[tuple[str, str, int]], seats: Sequence[Seat], periods: int = 1) -> Played:
    record = Played({"goods": ("apple",)}, list(seats))
    facts = [("period", {"period": n, "ends": 10 * n}) for n in range(1, periods + 1)]
    facts += [("trade", {"period": 1, "good": "apple", "price": p, "buyer": b, "seller": s}) for b, s, p in trades]
    for n, (kind, data) in enumerate(facts):
        record.played.append(RecordedFact(table=0, seq=n, tick=n, fact=Fact(id=n, kind=kind, data=data)))
    return record


def test_metrics_by_hand() -> None:
    """Values 10, 8, 5 and costs 2, 4, 6: p* = 5.5, greatest gains 12; trades 8-2 at 4 and 10-6 at 7 gain 10."""
    seats = [buyer("x", 10), buyer("y", 8), buyer("z", 5), seller("p", 2), seller("q", 4), seller("r", 6)]
    found = recorded([("y", "p", 4), ("x", "r", 7)], seats).measured(DoubleAuction.metrics)
    value = {name.removeprefix("market."): one.value for name, one in found.items()}
    assert value["allocative_efficiency"] == pytest.approx(10 / 12)
    here = " period=1 good=apple"
    assert value["smiths_alpha" + here] == pytest.approx(100 * 1.5 / 5.5)
    assert value["seller_share" + here] == pytest.approx((2 + 1) / 10)
    gaps = [3 - 4.5, 4 - 2.5, 0, 2 - 3.5, 0 - 1.5, 1 - 0]
    assert value["profit_dispersion" + here] == pytest.approx((sum(gap * gap for gap in gaps) / 6) ** 0.5)
    assert (value["trades" + here], value["equilibrium_quantity" + here]) == (2, 2)
    assert (value["mean_price" + here], value["equilibrium_price" + here]) == (5.5, 5.5)
    assert value["price_in_equilibrium" + here] == 0
    assert found["market.allocative_efficiency"].events == (1, 2)


def test_costs_that_are_passed_on() -> None:
    """Units that cost 2, 6 and 10 sell at 4, 7 and 10: three quarters. The second of p is the one that costs 10."""
    seats = [buyer("x", 20, 20, 20), seller("p", 2, 10), seller("r", 6)]
    (found,) = passed_on(recorded([("x", "p", 4), ("x", "r", 7), ("x", "p", 10)], seats))
    assert (found.value, found.n, found.of) == (pytest.approx(3 / 4), 3, {"good": "apple"})
    (none,) = passed_on(recorded([("x", "p", 4)], seats))
    assert (none.value, none.excluded) == (None, {"tables without trades of units that differ in cost": 1})


def test_metrics_have_no_value_where_there_is_nothing_to_divide_by() -> None:
    empty = recorded([], [buyer("x", 10), seller("p", 2)], periods=2).measured(DoubleAuction.metrics)
    assert empty["market.allocative_efficiency"].value == 0
    assert empty["market.allocative_efficiency"].n == 2
    assert empty["market.smiths_alpha period=1 good=apple"].value is None
    assert empty["market.mean_price period=2 good=apple"].value is None
    assert empty["market.seller_share period=1 good=apple"].value is None
    hopeless = recorded([], [buyer("x", 1), seller("p", 2)]).measured(DoubleAuction.metrics)
    assert hopeless["market.allocative_efficiency"].value is None
    assert hopeless["market.profit_dispersion period=1 good=apple"].value is None
    assert recorded([], [], periods=0).measured(DoubleAuction.metrics) == {}


def test_later_units_count_at_later_limits_and_absent_traders_not_at_all() -> None:
    record = recorded([("x", "p", 5), ("x", "p", 5)], [buyer("x", 10, 7), seller("p", 1, 3), buyer("w", 100)])
    left = Fact(id=9, kind="leave", actor="w", data={"period": 0})
    record.played.append(RecordedFact(table=0, seq=9, tick=9, fact=left))
    assert record.measured(DoubleAuction.metrics)["market.allocative_efficiency"].value == (5 + 2 + 4 + 2) / (9 + 4)


# --- scenarios ------------------------------------------------------------------------------------


def test_the_shipped_scenarios_are_valid_and_seat_enough_traders() -> None:
    for name, least in (("apple_market", 20), ("apple_market_llm", 8)):
        scenario = load(f"scenarios/markets/{name}.yaml")
        assert sum(entry.count for entry in scenario.cast) >= least
