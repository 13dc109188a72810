"""Alternating offers: equilibrium exactly, metrics, time, interventions and words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.answers import illegal
from sim.check import check_agent, check_world, turns_of
from sim.record.reader import Run
from sim.runs import create, go
from sim.scenarios.scenario import load
from sim.simulate import player
from sim.streams import Streams
from sim.types import Action, Choice, Form, Join, Leave, Member, Mind, Outcome, Say, Seat, Set, Turn
from tests.worlds.playing import Played, play
from worlds.negotiation.bargaining import UNLIMITED, Bargaining, BargainingParams
from worlds.negotiation.offers import gains
from worlds.negotiation.outcomes import fairness
from worlds.negotiation.strategies import FiftyFifty, Greedy, Rubinstein, proposer_share

SCENARIOS = Path(__file__).parents[2] / "scenarios" / "negotiation"
PIE = 1_000_000
MAKERS = st.sampled_from([Rubinstein, FiftyFifty, Greedy, partial(FiftyFifty, threshold=0.9)])


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


def keep(gain: int) -> dict[str, int]:
    return {"gain": gain}


def pair(first: Any, second: Any, **params: Any) -> Played:
    given = {key: params.pop(key) for key in ("think", "interventions", "until") if key in params}
    return play(Bargaining, [(Seat(agent="a"), first), (Seat(agent="b"), second)], params, **given)


def fresh(*agents: str, **params: Any) -> Bargaining:
    world = Bargaining(BargainingParams.model_validate(params))
    world.reset([Seat(agent=agent) for agent in agents or ("a", "b")], Streams(1))
    return world


def seen(world: Bargaining, agent: str, now: int = 0) -> Turn:
    turn = world.observe(now, agent)
    assert turn is not None
    return turn


def do(world: Bargaining, agent: str, answer: Any, now: int = 0) -> Outcome:
    turn = seen(world, agent, now)
    assert illegal(turn.format, answer) is None, answer
    return world.step(now, [Action(answer=answer, agent=agent, seen=now, shows=turn.shows)])


# --- theory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "other", "share"),
    [(0.8, 0.8, 0.5556), (0.9, 0.9, 0.5263), (0.95, 0.95, 0.5128), (0.9, 0.8, 0.7143), (0.8, 0.95, 0.2083)],
)
def test_the_infinite_equilibrium_is_played_at_once(mine: float, other: float, share: float) -> None:
    record = pair(Rubinstein, Rubinstein, pie=PIE, discounts=(mine, other))
    exact = (1 - Fraction(str(other))) / (1 - Fraction(str(mine)) * Fraction(str(other)))
    assert record.won["a"] == pytest.approx(share, abs=1e-4)
    assert record.won["a"] == pytest.approx(float(exact), abs=1 / PIE)
    assert record.won["a"] + record.won["b"] == 1
    [deal] = record.data("deal")
    assert deal["round"] == 1
    measured = record.measured(Bargaining.metrics)
    assert measured["bargaining.efficiency"].value == 1
    assert measured["bargaining.agreement_round"].value == 1
    assert measured["bargaining.agreement_rate"].value == 1


def backward(discounts: tuple[Fraction, Fraction], rounds: int) -> Fraction:
    """The first mover's share, by the book: what the proposer of each round keeps, from the last to the first."""
    share = Fraction(1)
    for number in range(rounds - 1, 0, -1):
        responder = number % 2
        share = 1 - discounts[responder] * share
    return share


@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 7, 12, 99])
@pytest.mark.parametrize("discounts", [(0.9, 0.8), (0.8, 0.95), (1.0, 0.9), (1.0, 1.0)])
def test_the_finite_equilibrium_is_backward_induction(rounds: int, discounts: tuple[float, float]) -> None:
    record = pair(Rubinstein, Rubinstein, pie=PIE, discounts=discounts, max_rounds=rounds)
    exact = backward((Fraction(str(discounts[0])), Fraction(str(discounts[1]))), rounds)
    assert record.won["a"] == pytest.approx(float(exact), abs=1 / PIE)
    assert [deal["round"] for deal in record.data("deal")] == [1]


def test_finite_shares_by_hand() -> None:
    assert proposer_share(0.9, 0.8, 1) == 1
    assert proposer_share(0.9, 0.8, 2) == pytest.approx(0.2)  # the responder could have all, times 0.8
    assert proposer_share(0.9, 0.8, 3) == pytest.approx(1 - 0.8 * (1 - 0.9))
    assert proposer_share(1, 1, None) == 0.5


@given(mine=st.floats(0.05, 0.95), other=st.floats(0.05, 0.95))
@settings(max_examples=50, deadline=None)
def test_a_long_horizon_is_nearly_infinite(mine: float, other: float) -> None:
    assert proposer_share(mine, other, 1001) == pytest.approx(proposer_share(mine, other, None), abs=1e-6)


@given(rounds=st.integers(1, 9), keeps=st.integers(0, 1000), mine=st.sampled_from([0.8, 0.9, 1.0]))
@settings(max_examples=50, deadline=None)
def test_no_first_offer_beats_the_equilibrium_against_it(rounds: int, keeps: int, mine: float) -> None:
    """One deviation, equilibrium afterwards: subgame perfection, up to the unit of the pie."""

    class Deviant(Rubinstein):
        def act(self, turn: Turn, streams: Streams) -> Mind:
            if turn.view["round"] == 1:
                return Action(answer=keep(keeps))
            return (yield from super().act(turn, streams))

    setting = {"pie": 1000, "discounts": (mine, 0.9), "max_rounds": rounds}
    assert pair(Deviant, Rubinstein, **setting).won["a"] <= pair(Rubinstein, Rubinstein, **setting).won["a"] + 0.001


@pytest.mark.parametrize(("share", "value"), [(0.5, 1), (0.6, 0.96), (1.0, 0)])
def test_fairness_of_played_shares(share: float, value: float) -> None:
    record = pair(says(keep(round(share * 100))), says("accept"))
    assert record.measured(Bargaining.metrics)["bargaining.fairness"].value == pytest.approx(value, abs=1e-12)
    assert fairness(share) == pytest.approx(value, abs=1e-12)


def test_a_later_deal_is_discounted_for_each_by_its_own() -> None:
    record = pair(says(keep(90), "reject", keep(70)), says("reject", keep(80), "accept"), discounts=(0.9, 0.8))
    assert record.won == pytest.approx({"a": 0.7 * 0.81, "b": 0.3 * 0.64})
    measured = record.measured(Bargaining.metrics)
    assert measured["bargaining.efficiency"].value == pytest.approx(0.7 * 0.81 + 0.3 * 0.64)
    assert measured["bargaining.self_gain mover=first"].value == pytest.approx(0.567)
    assert measured["bargaining.self_gain agent=b"].value == pytest.approx(0.192)
    assert measured["bargaining.fairness"].value == pytest.approx(1 - 4 * 0.04)
    assert measured["bargaining.agreement_round"].value == 3


def test_no_deal_after_the_last_round_gives_nothing() -> None:
    record = pair(says(keep(90), "reject"), says("reject", keep(80)), max_rounds=2)
    assert record.won == {"a": 0, "b": 0}
    assert record.ended == {"a": "terminated", "b": "terminated"}
    assert record.data("no_deal") == [{"pair": 0, "round": 2, "agents": ["a", "b"], "reason": "rounds"}]
    measured = record.measured(Bargaining.metrics)
    assert measured["bargaining.agreement_rate"].value == 0
    assert measured["bargaining.efficiency"].value == 0
    assert measured["bargaining.fairness"].value is None
    assert measured["bargaining.fairness"].excluded == {"no deal": 1}


def test_pairs_cut_off_are_excluded_and_counted() -> None:
    measured = pair(Greedy, partial(FiftyFifty, threshold=0.6), until=40, think={"a": 30, "b": 30}).measured(
        Bargaining.metrics
    )
    assert measured["bargaining.agreement_rate"].value is None
    assert measured["bargaining.agreement_rate"].excluded == {"unfinished": 1}


def test_the_other_baselines() -> None:
    assert pair(FiftyFifty, FiftyFifty).won == {"a": 0.5, "b": 0.5}
    assert pair(Greedy, Greedy).won == {"a": 0.99, "b": 0.01}
    # 1 is below the threshold of 40: refused, and half is offered in round 2.
    assert pair(Greedy, FiftyFifty, discounts=(0.9, 0.8)).won == pytest.approx({"a": 0.45, "b": 0.4})


def test_hidden_discounts_are_not_shown_and_may_be_assumed() -> None:
    world = fresh(discounts=(0.9, 0.8), complete_information=False)
    assert seen(world, "a").view["partner_discount"] is None
    assert "20%" not in seen(world, "a").text
    hidden = {"pie": PIE, "discounts": (0.9, 0.8), "complete_information": False}
    knowing = pair(partial(Rubinstein, assume=0.8), partial(Rubinstein, assume=0.9), **hidden)
    assert knowing.won["a"] == pytest.approx(0.7143, abs=1e-4)
    assert pair(Rubinstein, says("accept"), **hidden).won["a"] == pytest.approx(0.5263, abs=1e-4)


# --- the world ------------------------------------------------------------------------------------


def test_private_discounts_go_before_the_parameters() -> None:
    world = Bargaining(BargainingParams())
    world.reset([Seat(agent="a", private={"discount": 0.5}), Seat(agent="b")], Streams(1))
    assert (seen(world, "a").view["discount"], seen(world, "a").view["partner_discount"]) == (0.5, 0.9)
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        world.reset([Seat(agent="a", private={"discount": 2}), Seat(agent="b")], Streams(1))


def test_who_meets_whom() -> None:
    names = ["a", "b", "c", "d"]
    cast = [(Seat(agent=name), FiftyFifty) for name in names]
    assert [d["agents"] for d in play(Bargaining, cast).data("pair")] == [["a", "b"], ["c", "d"]]
    crossed = play(Bargaining, cast, {"pairing": "across"})
    assert [d["agents"] for d in crossed.data("pair")] == [["a", "c"], ["b", "d"]]
    assert {item.fact.audience for item in crossed.facts()} == {("a", "c"), ("b", "d")}
    with pytest.raises(ValueError, match="3 seats"):
        fresh("a", "b", "c")


def test_parameters_are_checked() -> None:
    for wrong in ({"pie": 0}, {"discounts": (0, 1)}, {"max_rounds": 0}, {"message_chars": 2000}, {"pies": 3}):
        with pytest.raises(ValueError):
            BargainingParams.model_validate(wrong)


def test_only_the_mover_is_asked_and_in_the_right_form() -> None:
    world = fresh(messages=True, message_chars=40)
    assert world.observe(0, "b") is None
    assert world.observe(0, "nobody") is None
    turn = seen(world, "a")
    assert isinstance(turn.format, Form)
    assert illegal(turn.format, {"gain": 60, "message": ""}) is None
    assert illegal(turn.format, {"gain": 101, "message": ""})
    assert illegal(turn.format, {"gain": 60, "message": "x" * 41})
    assert turn.default == {"gain": 100, "message": ""}
    do(world, "a", {"gain": 60, "message": " Fair? "})
    assert world.observe(0, "a") is None
    reply = seen(world, "b")
    assert reply.format == Choice(options=("accept", "reject"))
    assert reply.default == "reject"
    assert reply.view["message"] == "Fair?"
    assert 'They say: "Fair?"' in reply.text


def test_out_of_turn_late_and_wrong_answers_are_stale() -> None:
    world = fresh()
    before = world.state()
    wrong = [("b", "accept"), ("x", "accept"), ("a", "accept"), ("a", keep(101)), ("a", {"gain": True})]
    outcome = world.step(0, [Action(answer=answer, agent=agent) for agent, answer in wrong])
    assert [result.status for result in outcome.results] == ["stale"] * 5
    assert world.state() == before
    do(world, "a", keep(50))
    do(world, "b", "accept")
    [result] = world.step(0, [Action(answer="accept", agent="b")]).results
    assert result.reason == "the bargaining is over"


def test_views_show_the_facts_they_tell() -> None:
    world = fresh()
    offer = do(world, "a", keep(70)).facts[0]
    assert seen(world, "b").shows == (offer.id,)
    refusal = do(world, "b", "reject").facts[0]
    assert refusal.answers == (offer.id,)
    assert seen(world, "b", 1).shows == (offer.id, refusal.id)
    counter = do(world, "b", keep(55), 1).facts[0]
    assert counter.answers == (refusal.id,)
    assert seen(world, "a", 1).shows == (offer.id, refusal.id, counter.id)


def test_a_turn_has_a_key_while_its_view_holds_all_offers() -> None:
    """Discounts, the refused offer, the open one; for two rounds, and none where words are said."""
    world = fresh(discounts=[0.9, 0.8], pause=0)
    keys = []
    for agent, answer in (("a", keep(60)), ("b", "reject"), ("b", keep(50)), ("a", "reject"), ("a", keep(1))):
        keys.append(seen(world, agent).key)
        do(world, agent, answer)
    assert keys == ["0:0.9,0.8:", "1:0.8,0.9:60", "1:0.8,0.9:60 rejected", "0:0.9,0.8:60 rejected 50", None]
    assert seen(fresh(complete_information=False), "a").key == "0:0.9,?:"
    assert seen(fresh(messages=True), "a").key is None


def test_words_for_both_sides() -> None:
    world = fresh(max_rounds=2, discounts=(0.9, 0.75))
    first = seen(world, "a")
    assert "from 0 to 100" in first.text
    assert "costs you 10% of your points and your partner 25%" in first.text
    do(world, "a", keep(70))
    answer = seen(world, "b")
    assert answer.text.splitlines() == [
        "Round 1 of 2.",
        "Your partner offers: 30 for you, 70 for them.",
        "Waiting one round costs you 25% of your points and your partner 10%.",
        "Accepting now is worth 30 to you. If you reject, you make the next offer.",
        "Answer accept or reject.",
    ]
    assert answer.recap is not None
    assert answer.recap(answer.view).splitlines() == answer.text.splitlines()[:2]
    do(world, "b", "reject")
    assert "You rejected your partner's offer: 30 for you, 70 for them." in seen(world, "b").text
    assert "This is the last round." in seen(world, "b").text
    do(world, "b", keep(60))
    last = seen(world, "a").text
    assert "Your partner rejected your offer: 70 for you, 30 for them." in last
    assert "worth 36 to you. If you reject, both get 0." in last
    assert first.rules == answer.rules == seen(world, "a").rules


def test_a_refusal_pauses_before_the_next_offer() -> None:
    record = pair(says(keep(90), "accept"), says("reject", keep(80)), pause=5, think={"a": 2, "b": 3})
    ticks = [(item.fact.kind, item.tick) for item in record.facts()]
    assert ticks == [("pair", 0), ("offer", 2), ("reject", 5), ("offer", 13), ("accept", 15), ("deal", 15)]


def test_bargaining_without_limit_ends_far_away() -> None:
    world = fresh()
    world._pairs[0].round = UNLIMITED
    do(world, "b", keep(90))
    assert [fact.kind for fact in do(world, "a", "reject").facts] == ["reject", "no_deal"]


@given(makers=st.lists(MAKERS, min_size=4, max_size=4), thinks=st.lists(st.integers(0, 5), min_size=4, max_size=4))
@settings(max_examples=25, deadline=None)
def test_think_times_do_not_change_what_pairs_agree(makers: list[Any], thinks: list[int]) -> None:
    cast = [(Seat(agent=name), make) for name, make in zip("abcd", makers, strict=True)]
    setting = {"max_rounds": 12}
    slow = play(Bargaining, cast, setting, think=dict(zip("abcd", thinks, strict=True)))
    assert slow.won == play(Bargaining, cast, setting).won
    assert len(slow.ended) == 4


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_legal_play_keeps_the_books(data: st.DataObject) -> None:
    world = fresh("a", "b", "c", "d", max_rounds=4, messages=True)
    shares = 0
    for now in range(20):
        movers = [agent for agent in "abcd" if world.observe(now, agent)]
        if not movers:
            break
        agent = data.draw(st.sampled_from(movers))
        twin = copy.deepcopy(world)
        assert json.loads(json.dumps(world.state())) == world.state()
        answer = data.draw(
            st.sampled_from(["accept", "reject"])
            if isinstance(seen(world, agent).format, Choice)
            else st.builds(lambda gain, message: {"gain": gain, "message": message}, st.integers(0, 100), st.just("hm"))
        )
        outcome = do(world, agent, answer, now)
        assert do(twin, agent, answer, now) == outcome
        assert twin.state() == world.state()
        for fact in outcome.facts:
            if fact.kind == "deal":
                shares += 1
                assert sum(fact.data["shares"].values()) == 100
                assert fact.data["gains"] == pytest.approx(outcome.rewards)
    assert shares <= 2


def test_gains_by_hand() -> None:
    assert gains((60, 40), 100, (0.9, 0.5), 2) == pytest.approx((0.54, 0.2))


# --- interventions -----------------------------------------------------------------------------------


def test_say_is_shown_until_an_answer_was_given_under_it() -> None:
    world = fresh()
    fact = world.change(0, Say(text="A storm is coming.", to=("b",))).facts[0]
    assert "storm" not in seen(world, "a").text
    do(world, "a", keep(70))
    assert fact.id in seen(world, "b").shows
    assert "News: A storm is coming." in seen(world, "b").text
    do(world, "b", "reject")
    assert fact.id not in seen(world, "b").shows
    for to in ("#hall", ("nobody",)):
        before = world.state()
        with pytest.raises(ValueError, match=r"hall|nobody"):
            world.change(0, Say(text="x", to=to))
        assert world.state() == before


def test_set_moves_the_end_and_opens_the_cards() -> None:
    record = pair(
        says(keep(90), "reject"), says("reject", keep(80)), think={"a": 5, "b": 5},
        interventions=[(7, Set(key="max_rounds", value=1), None)],
    )  # fmt: skip
    assert [fact["round"] for fact in record.data("no_deal")] == [1]
    world = fresh(complete_information=False)
    world.change(0, Set(key="complete_information", value=True))
    assert seen(world, "a").view["partner_discount"] == 0.9
    for key, value in (("pie", 50), ("max_rounds", 0)):
        with pytest.raises(ValueError, match=key):
            world.change(0, Set(key=key, value=value))


def test_a_leaver_ends_its_pair_without_a_deal() -> None:
    cast = [(Seat(agent=name), FiftyFifty) for name in "abcd"]
    record = play(Bargaining, cast, think=dict.fromkeys("abcd", 4), interventions=[(6, Leave(agent="b"), None)])
    assert record.data("no_deal")[0]["reason"] == "left"
    assert record.won == {"a": 0, "b": 0, "c": 0.5, "d": 0.5}
    assert record.ended == dict.fromkeys("acd", "terminated")
    world = fresh()
    world.change(0, Leave(agent="a"))
    assert world.change(0, Leave(agent="b")) == Outcome()
    with pytest.raises(ValueError, match="zoe"):
        world.change(0, Leave(agent="zoe"))


def test_two_joiners_make_a_pair() -> None:
    def joins(tick: int, name: str) -> Any:
        seat = Seat(agent=name)
        return (tick, Join(seat=seat), player(FiftyFifty(Member(seat=seat)), seat, 1))

    record = pair(FiftyFifty, FiftyFifty, think={"a": 9, "b": 9}, interventions=[joins(2, "c"), joins(4, "d")])
    assert record.data("pair")[1] == {"pair": 1, "agents": ["c", "d"]}
    assert record.won == {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}
    world = fresh()
    world.change(0, Join(seat=Seat(agent="c")))
    world.change(0, Leave(agent="c"))
    with pytest.raises(ValueError, match="before"):
        world.change(0, Join(seat=Seat(agent="c")))
    assert world.change(0, Join(seat=Seat(agent="d"))) == Outcome()
    assert [wake.agent for wake in world.change(0, Join(seat=Seat(agent="e"))).wakes] == ["d"]


# --- offers that are a choice --------------------------------------------------------------------------------


def test_with_a_step_offers_are_a_choice_and_pay_as_others_do() -> None:
    world = fresh(pie=100, step=25, discounts=[0.9, 0.8])
    turn = seen(world, "a")
    assert turn.format == Choice(options=("0", "25", "50", "75", "100"))
    assert turn.default == "100"
    (refused,) = world.step(0, [Action(agent="a", answer="60")]).results
    assert (refused.status, refused.reason) == ("stale", "not an offer from 0 to 100")
    do(world, "a", "75")
    assert "25 for you, 75 for them" in seen(world, "b").text
    do(world, "b", "reject")
    do(world, "b", "50", 1)
    assert dict(do(world, "a", "accept", 1).rewards) == {"a": pytest.approx(0.45), "b": pytest.approx(0.40)}


def test_baselines_choose_the_largest_offer_that_keeps_no_more_than_they_would() -> None:
    record = pair(Rubinstein, Rubinstein, pie=100, step=25, discounts=[0.9, 0.8], max_rounds=1_000)
    (deal,) = record.data("deal")
    # Rubinstein's 71 of 100 become 50; waiting is worth 0.8 * 0.357 to the other, who gets 50 and agrees.
    assert deal["shares"] == {"a": 50, "b": 50}
    (deal,) = pair(Greedy, Greedy, pie=100, step=25).data("deal")
    assert deal["shares"] == {"a": 75, "b": 25}


@pytest.mark.parametrize("given", [{"step": 30}, {"step": 25, "messages": True}])
def test_a_step_divides_the_pie_and_goes_without_messages(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"step \d+: it must divide the pie of 100, and a choice carries no messages"):
        BargainingParams(pie=100, **given)


# --- conformance and scenarios ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"max_rounds": 4, "messages": True},
        {"max_rounds": 6, "pause": 0, "complete_information": False},
        {"max_rounds": 3, "pairing": "across"},
        {"max_rounds": 3, "step": 25},
    ],
)
def test_the_world_keeps_the_rules_of_the_seams(params: dict[str, Any]) -> None:
    check_world(Bargaining, ["a", "b", "c", "d"], params, Rubinstein)


@pytest.mark.parametrize("kind", [Rubinstein, FiftyFifty, Greedy])
def test_the_baselines_keep_the_rules_of_the_seams(kind: Any) -> None:
    turns = turns_of(Bargaining, ["a", "b"], {"max_rounds": 4, "messages": True})
    check_agent(lambda: kind(Member(seat=Seat(agent="a"))), [turn for mine in turns.values() for turn in mine])


def test_the_shipped_scenario_plays_the_equilibrium(tmp_path: Path) -> None:
    scenario = load(SCENARIOS / "bargaining_rubinstein.yaml")
    with Run(go(create(scenario, tmp_path)).path) as run:
        deals = {item.fact.data["agents"][1]: item.fact.data for item in run.facts("deal")}
        assert all(deals[name]["round"] == 1 for name in ("equal-1", "equal-2", "greedy"))
        exact = backward((Fraction("0.9"), Fraction("0.8")), 40)
        assert deals["equal-1"]["shares"]["first-1"] == int(exact * 10_000)
        # Ten rounds before the end the other side is left 1 - 0.5761, twelve before it 1 - 0.6148 (below 0.4).
        assert (deals["even"]["round"], deals["even"]["shares"]["even"]) == (31, 4_240)


def test_the_shipped_model_scenario_fits_the_world() -> None:
    scenario = load(SCENARIOS / "bargaining_llm.yaml")
    assert sum(entry.count for entry in scenario.cast) == 8
