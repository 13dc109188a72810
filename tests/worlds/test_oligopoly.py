"""Oligopoly: rounds, what firms see, notebooks, interventions, metrics, conformance, scenarios."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.check import check_agent, check_world, turns_of
from sim.fork import fork
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.streams import Streams
from sim.types import Action, Choice, Form, Join, Leave, Member, Mind, Outcome, Say, Seat, Set, Turn
from sim.verify import verify
from tests.worlds.playing import Played, play
from worlds.notices import AT_ONCE
from worlds.pricing.demand import read
from worlds.pricing.oligopoly import Oligopoly
from worlds.pricing.qlearning import Converged, QLearner
from worlds.pricing.settings import OligopolyParams, labels, nearest
from worlds.pricing.strategies import BestReply, Constant, GrimTrigger, Undercutter

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "pricing"
LEVELS = [1.4, 1.6, 1.8]


class Script:
    """Gives its answers one after the other, the last one for ever."""

    def __init__(self, _member: Member, answers: list[Any]) -> None:
        self.answers = answers
        self.state: object = 0

    def act(self, turn: Turn, streams: Streams) -> Mind:
        n = self.state
        assert isinstance(n, int)
        return Action(answer=self.answers[min(n, len(self.answers) - 1)], state=n + 1)
        yield


def says(*answers: Any) -> Callable[[Member], Script]:
    return lambda member: Script(member, list(answers))


def market(*makers: Any, **params: Any) -> Played:
    given = {key: params.pop(key) for key in ("think", "interventions", "until", "seed") if key in params}
    cast = [(Seat(agent=name), make) for name, make in zip("abcdef", makers, strict=False)]
    return play(Oligopoly, cast, params, **given)


def fresh(*seats: Seat | str, **params: Any) -> Oligopoly:
    world = Oligopoly(OligopolyParams.model_validate(params))
    world.reset([Seat(agent=seat) if isinstance(seat, str) else seat for seat in seats or ("a", "b")], Streams(1))
    return world


def seen(world: Oligopoly, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def acted(world: Oligopoly, agent: str, answer: Any, now: int = 0, **how: Any) -> Action:
    turn = seen(world, agent, now)
    assert illegal(turn.format, answer) is None, answer
    return Action(answer=answer, agent=agent, seen=now, shows=turn.shows, **how)


def do(world: Oligopoly, now: int = 0, **answers: Any) -> Outcome:
    return world.step(now, [acted(world, agent, answer, now) for agent, answer in answers.items()])


def note(price: float, plans: str = "wait", insights: str = "none") -> dict[str, Any]:
    return {"observations": "quiet", "plans": plans, "insights": insights, "price": price}


# --- a golden run -----------------------------------------------------------------------------------------

GOLDEN = """
0 benchmark - () nash [3.0, 3.0] optimum [2.25, 2.25]
3 period - all {"period": 1, "chosen": {"a": 2.25, "b": 1.0}, "missed": []}
3 sale a ('a',) {"period": 1, "price": 6.75, "quantity": 2.25, "profit": 12.9375}
3 sale b ('b',) {"period": 1, "price": 6.75, "quantity": 1.0, "profit": 5.75}
6 forced - () {"period": 2, "chosen": {"b": 0.5}}
6 period - all {"period": 2, "chosen": {"a": 2.25, "b": 0.5}, "missed": []}
6 sale a ('a',) {"period": 2, "price": 7.25, "quantity": 2.25, "profit": 14.0625}
6 sale b ('b',) {"period": 2, "price": 7.25, "quantity": 0.5, "profit": 3.125}
""".strip()


def test_two_periods_of_cournot_by_hand() -> None:
    record = market(
        partial(Constant, at="optimum"), partial(BestReply, start=1.0), demand="cournot", periods=2,
        think={"a": 1, "b": 3}, pause=0, interventions=[(4, Set(key="forced", value={"b": 0.5}), None)],
    )  # fmt: skip
    lines = []
    for item in record.facts():
        data = item.fact.data
        told = json.dumps(data)
        if item.fact.kind == "benchmark":
            told = f"nash {data['nash']['chosen']} optimum {data['optimum']['chosen']}"
        lines.append(f"{item.tick} {item.fact.kind} {item.fact.actor or '-'} {item.fact.audience} {told}")
    assert lines == GOLDEN.splitlines()
    assert record.won == {"a": 27, "b": 8.875}
    assert record.ended == {"a": "terminated", "b": "terminated"}


# --- what a firm sees and answers -----------------------------------------------------------------------------


def test_choices_are_hidden_until_all_have_chosen() -> None:
    worlds = [fresh(), fresh()]
    for world, price in zip(worlds, (1.5, 1.7), strict=True):
        do(world, a={"price": price})
        assert world.observe(0, "a") is None
    assert seen(worlds[0], "b") == seen(worlds[1], "b")
    outcome = do(worlds[0], b={"price": 1.6})
    assert outcome.rewards.keys() == {"a", "b"}
    assert {wake.tick for wake in outcome.wakes} == {1}
    view = seen(worlds[0], "b", 1).view
    assert view["history"][0]["chosen"] == {"a": 1.5, "b": 1.6}
    assert "profit" in view["history"][0]


def test_own_sales_are_private_and_choices_are_where_monitoring_is() -> None:
    """Whatever a rival's cost, a firm is told the same; under private monitoring rivals' prices show in sales only."""
    one, other = fresh(ceiling=4), fresh("a", Seat(agent="b", private={"cost": 1.3}), ceiling=4)
    for world in (one, other):
        do(world, a={"price": 1.5}, b={"price": 1.6})
    assert seen(one, "a", 1).text == seen(other, "a", 1).text
    private = fresh(monitoring="private")
    outcome = do(private, a={"price": 1.5}, b={"price": 1.6})
    turn = seen(private, "a", 1)
    assert turn.view["history"][0]["chosen"] == {"a": 1.5}
    assert "1.6" not in turn.text
    assert turn.shows == tuple(fact.id for fact in outcome.facts if fact.actor == "a")
    assert [fact.audience for fact in outcome.facts if fact.kind == "period"] == [()]


def test_the_history_is_bounded_and_shows_its_facts() -> None:
    world = fresh(history=2)
    ids = [[fact.id for fact in do(world, now, a={"price": 1.5}, b={"price": 1.6}).facts] for now in range(4)]
    turn = seen(world, "b", 4)
    assert [row["period"] for row in turn.view["history"]] == [3, 4]
    assert turn.shows == tuple(id for period in ids[2:] for id in (period[0], period[2]))


def test_a_key_holds_all_levels_so_far() -> None:
    world = fresh(levels=LEVELS, history=1)
    assert seen(world, "b").key == "1:"
    do(world, a="1.40", b="1.80")
    assert seen(world, "b", 1).key == "1:0,2"
    do(world, 1, a="1.60", b="1.60")
    assert seen(world, "b", 2).key is None
    for params in ({}, {"levels": LEVELS, "notebook": True}, {"levels": LEVELS, "monitoring": "private"}):
        assert seen(fresh(**params), "a").key is None


def test_formats_and_their_defaults() -> None:
    assert seen(fresh(levels=LEVELS), "a").format == Choice(options=("1.40", "1.60", "1.80"))
    assert seen(fresh(levels=LEVELS), "a").default == "1.40"
    free = seen(fresh(), "a")
    assert isinstance(free.format, Form)
    assert free.default == {"price": pytest.approx(1.472927, abs=1e-6)}
    assert illegal(free.format, {"price": 2 * 1.93}) is not None
    assert illegal(free.format, {"price": -0.1}) is not None
    noted = seen(fresh(levels=LEVELS, notebook=True, note_chars=10), "a")
    assert illegal(noted.format, note(0) | {"price": "1.60"}) is None
    assert illegal(noted.format, note(0) | {"price": "1.50"}) is not None
    assert illegal(noted.format, note(0) | {"price": "1.60", "plans": "x" * 11}) is not None
    assert seen(fresh(demand="cournot"), "a").default == {"quantity": pytest.approx(3)}
    assert seen(fresh(demand="cournot"), "a").view["ceiling"] == 10


def test_what_cannot_be_is_told() -> None:
    world = fresh(pause=3)
    twice = acted(world, "a", {"price": 1.5})
    do(world, a={"price": 1.5})
    refused = world.step(
        0, [twice, Action(agent="b", answer={"price": 99.0}), Action(agent="zoe", answer={"price": 1.0})]
    )
    assert [result.status for result in refused.results] == ["stale"] * 3
    assert [result.reason for result in refused.results][::2] == ["already chosen", "not in the market"]
    do(world, b={"price": 1.5})
    assert world.observe(2, "a") is None
    (late,) = world.step(3, [Action(agent="a", answer={"price": 1.5}, seen=0)]).results
    assert late.reason == "that period is over"


def test_a_notebook_is_its_firm_s_own_and_a_default_leaves_it_as_it_is() -> None:
    world = fresh(notebook=True)
    outcome = do(world, a=note(1.5, "stay high", "they follow"), b=note(1.6))
    mine = [fact for fact in outcome.facts if fact.kind == "notes" and fact.actor == "a"]
    assert [fact.audience for fact in mine] == [("a",)]
    turn = seen(world, "a", 1)
    assert turn.view["notebook"] == {"plans": "stay high", "insights": "they follow"}
    assert "Your plans so far: stay high\nYour insights so far: they follow" in turn.text
    assert mine[0].id in turn.shows
    assert "stay high" not in seen(world, "b", 1).text
    assert turn.default == {"observations": "", "plans": "stay high", "insights": "they follow", "price": 1.5}
    world.step(1, [acted(world, "a", turn.default, 1, how="defaulted")])
    outcome = do(world, 1, b=note(1.7))
    assert [fact.data["missed"] for fact in outcome.facts if fact.kind == "period"] == [["a"]]
    assert not [fact for fact in outcome.facts if fact.kind == "notes" and fact.actor == "a"]
    assert seen(world, "a", 2).view["notebook"]["plans"] == "stay high"


def test_who_is_late_goes_on_as_before() -> None:
    record = market(
        says({"price": 1.5}, {"price": 1.7}), says({"price": 1.6}), think={"a": 9, "b": 1}, deadline=5, periods=2
    )
    first, second = record.data("period")
    assert (first["missed"], second["missed"]) == (["a"], ["a"])
    assert first["chosen"]["a"] == pytest.approx(1.472927, abs=1e-6)
    assert second["chosen"]["a"] == first["chosen"]["a"]


def test_words() -> None:
    told = seen(fresh(told=True, scale=100), "a")
    assert "exp((a - p / 1) / 0.25), a being 2" in told.text
    assert "Unit costs: a 1, b 1." in told.text
    assert told.rules.startswith("You run a firm in a market. In each period all firms set a price at the same time")
    world = fresh(demand="cournot", told=True)
    do(world, a={"quantity": 2}, b={"quantity": 3})
    turn = seen(world, "a", 1)
    assert turn.text.splitlines() == [
        "Period 2.",
        "In the market with you: b. A unit costs you 1.",
        "Unit costs: a 1, b 1. The price at which a quantity Q is sold: 10 - 1 x Q.",
        "Market data, oldest first:",
        "1: your quantity 2, b 3, price 5, your profit 8.",
        "Choose your quantity, from 0 to 10.",
    ]
    assert turn.recap is not None
    assert turn.recap(turn.view) == "Period 2.\nLast period: your quantity 2, b 3, price 5, your profit 8."
    assert seen(fresh(levels=LEVELS), "a").text.endswith("Choose your price: 1.40, 1.60, 1.80.")


# --- settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"levels": 1}, "from 2 to 1000"),
        ({"levels": [2.0, 1.0]}, "in order"),
        ({"levels": [-1.0, 1.0]}, "from 0 upwards"),
        ({"forced": {"a": -1.0}}, "at least 0"),
        ({"mu": 0.0}, "mu"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_wrong_settings_are_told(params: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        OligopolyParams.model_validate(params)


def test_wrong_seats_are_told() -> None:
    with pytest.raises(ValueError, match="at least one firm"):
        Oligopoly(OligopolyParams()).reset([], Streams(1))
    with pytest.raises(ValueError, match="b: the private value cost is a number"):
        fresh("a", Seat(agent="b", private={"cost": "high"}))
    with pytest.raises(ValueError, match="give a list of levels"):
        fresh("a", levels=5)  # a monopolist
    with pytest.raises(ValueError, match="no firm here is called 'zoe'"):
        fresh(forced={"zoe": 1.0})


def test_labels_keep_levels_apart() -> None:
    assert labels((1.0, 1.5)) == ("1.00", "1.50")
    assert labels((1.0001, 1.0002)) == ("1.0001", "1.0002")
    assert nearest((1.0, 2.0), 1.5) == 0
    with pytest.raises(ValueError, match="too close"):
        labels((1.0, 1.0 + 1e-20))


# --- interventions ----------------------------------------------------------------------------------------------


def test_a_forced_choice_holds_for_one_period_and_is_seen_as_any_other() -> None:
    shock = [(4, Set(key="forced", value={"a": 1.2}), None)]
    record = market(says({"price": 1.8}), says({"price": 1.8}), periods=6, pause=2, interventions=shock)
    assert [data["chosen"]["a"] for data in record.data("period")] == [1.8, 1.8, 1.2, 1.8, 1.8, 1.8]
    assert record.data("forced") == [{"period": 3, "chosen": {"a": 1.2}}]
    world = fresh(levels=LEVELS, forced={"b": 1.65})
    do(world, a="1.40", b="1.80")
    assert seen(world, "a", 1).view["history"][0]["chosen"] == {"a": 1.4, "b": 1.6}
    with pytest.raises(ValueError, match="at most"):
        fresh().change(0, Set(key="forced", value={"a": 99.0}))
    replied = fresh(forced={"a": "best_reply"})
    do(replied, a={"price": 3.0}, b={"price": 3.0})
    # The reply is to what was before the first period: the equilibrium.
    assert seen(replied, "a", 1).view["history"][0]["chosen"]["a"] == pytest.approx(1.472927, abs=1e-6)


def test_a_new_cost_makes_new_benchmarks() -> None:
    cheap = partial(Constant, at="optimum")
    change = [(10, Set(key="cost", value=1.2), None)]
    record = market(cheap, cheap, periods=20, window=20, interventions=change)
    points = [data["optimum"]["chosen"][0] for data in record.data("benchmark")]
    assert len(points) == 2
    assert points[0] < points[1]
    assert record.measured(Oligopoly.metrics)["oligopoly.profit_gain"].value == pytest.approx(1)


def test_say_is_shown_until_a_choice_was_made_under_it() -> None:
    world = fresh()
    fact = world.change(0, Say(text="Costs may rise.", to=("a",))).facts[0]
    assert "News: Costs may rise." in seen(world, "a").text
    assert fact.id in seen(world, "a").shows
    assert "News" not in seen(world, "b").text
    do(world, a={"price": 1.5}, b={"price": 1.5})
    assert "News" not in seen(world, "a", 1).text
    for _ in range(AT_ONCE + 1):
        world.change(1, Say(text="Again."))
    assert seen(world, "a", 1).view["news"] == ["Again."] * AT_ONCE
    for to in ("#hall", ("nobody",)):
        before = world.state()
        with pytest.raises(ValueError, match=r"hall|nobody"):
            world.change(1, Say(text="x", to=to))
        assert world.state() == before


def test_a_leaver_s_market_goes_on_without_it() -> None:
    leave = [(5, Leave(agent="c"), None)]
    record = market(*[partial(Constant, at="nash")] * 3, demand="cournot", periods=10, window=10, interventions=leave)
    firms = [len(data["chosen"]) for data in record.data("period")]
    assert firms == [3] * 5 + [2] * 5
    measured = record.measured(Oligopoly.metrics)
    assert measured["oligopoly.profit_gain"].value == pytest.approx(0)
    assert (measured["oligopoly.profit_gain agent=c"].n, measured["oligopoly.mean_price"].n) == (5, 25)
    world = fresh()
    do(world, a={"price": 1.5})
    assert world.change(0, Leave(agent="b")).rewards.keys() == {"a"}
    assert not world.change(0, Leave(agent="b")).facts
    world.change(1, Leave(agent="a"))
    assert world.observe(1, "a") is None
    assert not world.step(2, []).wakes
    with pytest.raises(ValueError, match="zoe"):
        world.change(1, Leave(agent="zoe"))


def test_nobody_joins_and_only_what_is_declared_is_set() -> None:
    with pytest.raises(ValueError, match="its firms are set"):
        fresh().change(0, Join(seat=Seat(agent="c")))
    with pytest.raises(ValueError, match="not 'mu'"):
        fresh().change(0, Set(key="mu", value=1.0))
    longer = fresh(periods=1)
    longer.change(0, Set(key="periods", value=2))
    assert not do(longer, a={"price": 1.5}, b={"price": 1.5}).ended
    assert do(longer, 1, a={"price": 1.5}, b={"price": 1.5}).ended.keys() == {"a", "b"}


# --- metrics ------------------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    """Cournot with A = 10, b = c = 1: Nash profit 9 each, optimum 81/8; at quantities of 2.5 and 2.5 it is 10."""
    shock = [(7, Set(key="forced", value={"a": 9.0}), None)]
    record = market(
        says({"quantity": 2.5}), says({"quantity": 2.5}), demand="cournot", periods=9, window=4, interventions=shock
    )
    found = record.measured(Oligopoly.metrics)
    total = found["oligopoly.profit_gain"]
    assert total.value == pytest.approx((10 - 9) / (81 / 8 - 9))
    assert (total.n, total.excluded) == (3, {"forced": 1})
    periods = {item.fact.id: item.fact.data["period"] for item in record.facts("period")}
    assert [periods[fact] for fact in total.events] == [6, 7, 9]
    assert found["oligopoly.mean_price"].value == 5
    assert found["oligopoly.consumer_surplus"].value == 12.5
    assert found["oligopoly.benchmark_price at=optimum"].value == 5.5
    assert found["oligopoly.benchmark_surplus at=nash"].value == pytest.approx(18)


def test_a_monopolist_has_no_gain_to_measure_and_what_was_not_chosen_is_left_out() -> None:
    alone = market(partial(Constant, at="optimum"), periods=5).measured(Oligopoly.metrics)
    assert alone["oligopoly.profit_gain"].value is None
    late = market(says({"price": 1.5}), says({"price": 1.5}), think={"a": 9}, deadline=3, periods=4)
    assert late.measured(Oligopoly.metrics)["oligopoly.mean_price"].excluded == {"not chosen": 4}


# --- properties and conformance -------------------------------------------------------------------------------------


@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_legal_play_keeps_the_books(data: st.DataObject) -> None:
    demand = data.draw(st.sampled_from(["logit", "cournot", "homogeneous"]))
    world = fresh("a", "b", "c", demand=demand, periods=4, levels=data.draw(st.sampled_from([None, 3])), history=2)
    earned = dict.fromkeys("abc", 0.0)
    sold = dict.fromkeys("abc", 0.0)
    for now in range(4):
        actions = []
        for agent in "abc":
            turn = seen(world, agent, now)
            assert illegal(turn.format, turn.default) is None
            options = turn.format.options if isinstance(turn.format, Choice) else None
            price = st.floats(0, turn.view["ceiling"]).map(lambda x, t=turn: {t.view["chooses"]: x})
            actions.append(acted(world, agent, data.draw(st.sampled_from(options) if options else price), now))
        twin = copy.deepcopy(world)
        outcome = world.step(now, actions)
        assert twin.step(now, actions) == outcome
        assert twin.state() == world.state() == json.loads(json.dumps(world.state()))
        for agent, reward in outcome.rewards.items():
            earned[agent] += reward
        for fact in outcome.facts:
            if fact.kind == "sale":
                cost = read(world.state()["market"]).costs[0]
                margin = (fact.data["price"] - cost) * fact.data["quantity"]
                assert fact.data["profit"] == pytest.approx(margin)
                sold[fact.actor] += fact.data["profit"]
    assert earned == pytest.approx(sold)


@pytest.mark.parametrize(
    "params",
    [
        {"periods": 6, "history": 3},
        {"demand": "cournot", "notebook": True, "deadline": 4, "pause": 2, "periods": 8},
        {"demand": "homogeneous", "levels": 5, "monitoring": "private", "pause": 0, "periods": 8},
    ],
)
def test_the_world_keeps_the_rules_of_the_seams(params: dict[str, Any]) -> None:
    seats = [Seat(agent="a"), Seat(agent="b", private={"cost": 0.5}), Seat(agent="c")]
    check_world(Oligopoly, seats, params, partial(Constant, at="nash"))


FIRMS = [
    BestReply,
    GrimTrigger,
    Undercutter,
    QLearner,
    partial(Constant, at=1.5),
    partial(Converged, beta=1e-2, patience=50),
]


@pytest.mark.parametrize("kind", FIRMS)
@pytest.mark.parametrize("params", [{"levels": 3}, {"levels": 3, "notebook": True}])
def test_the_baselines_keep_the_rules_of_the_seams(kind: Any, params: dict[str, Any]) -> None:
    turns = turns_of(Oligopoly, ["a", "b"], params, most=6)
    check_agent(lambda: kind(Member(seat=Seat(agent="a"))), turns["a"])


@pytest.mark.parametrize("kind", [BestReply, GrimTrigger, Undercutter, partial(Constant, at=99.0)])
@pytest.mark.parametrize("demand", ["cournot", "homogeneous"])
def test_baselines_of_free_choices_keep_the_rules_of_the_seams(kind: Any, demand: str) -> None:
    turns = turns_of(Oligopoly, ["a", "b"], {"demand": demand, "notebook": True}, most=6)
    check_agent(lambda: kind(Member(seat=Seat(agent="a"))), turns["a"])


def test_a_learner_without_levels_is_told() -> None:
    turn = seen(fresh(), "a")
    with pytest.raises(ValueError, match="needs `levels`"):
        next(QLearner(Member(seat=Seat(agent="a"))).act(turn, Streams(0)))


# --- scenarios --------------------------------------------------------------------------------------------------------


SHORT = ("beta=0.001", "patience=500")


def firms_of(path: Path) -> list[tuple[float, ...]]:
    with Run(path) as run:
        return [tuple(item.fact.data["chosen"].values()) for item in run.facts("period")]


def test_the_shipped_learners_punish_a_deviation_and_a_fork_is_the_control(tmp_path: Path) -> None:
    quick = ["world.levels=4", *(f"cast.{name}.with.{key}" for name in ("first", "second") for key in SHORT)]
    whole = create(load(SCENARIOS / "oligopoly.yaml", [*quick, "interventions=[]"]), tmp_path, "whole")
    assert go(whole).status == "finished"
    shocked = fork(whole, tmp_path, "40d", sets=["forced={first: best_reply}"])
    assert go(shocked).status == "finished"
    free, forced = firms_of(whole), firms_of(shocked)
    assert free[:40] == forced[:40]
    assert free[40][1] == forced[40][1]
    assert free[40][0] > forced[40][0]
    assert verify(shocked).whole


def test_the_shipped_model_firms_play_on_any_engine_and_replay(tmp_path: Path) -> None:
    hashes = set()
    for run, latency in enumerate(("0s", "exponential(1ms)")):
        sets = ["models.small.engine=synthetic", f"models.small.latency={latency}", "models.small.order=shuffled"]
        path = create(load(SCENARIOS / "oligopoly_llm.yaml", sets), tmp_path, f"run-{run}")
        assert go(path).status == "finished"
        with Run(path) as stored:
            counts = stored.counts()
            assert counts.decisions["form"]["chosen"] >= 36
            hashes.add(json.dumps([fact.fact.data for fact in stored.facts()]))
            notes = list(stored.facts("notes"))
            assert {item.fact.audience for item in notes} == {("firm-1",), ("firm-2",)}
        assert verify(path).whole
    assert len(hashes) == 1
