"""First proposals, pressure, drift and fingerprints on records: by hand, at their edges, under other names."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.safety import pressure, proposals, trends, writers
from sim.metrics.safety.fingerprint import from_confusion, macro_f1
from sim.metrics.safety.persuasion import first_proposal_odds
from sim.metrics.safety.proposals import Choice, first_taken, random_p, swapped
from sim.metrics.safety.trends import drifts
from sim.metrics.safety.writers import Written, guessed, measured
from sim.record.reader import Run
from sim.types import Action, Seat
from tests.metrics.society import Society, values
from tests.worlds.playing import Played, play
from worlds.markets import proposals as quoted
from worlds.negotiation import persuasion
from worlds.negotiation.bargaining import Bargaining
from worlds.negotiation.strategies import FiftyFifty, Greedy


def choice(place: int, options: int = 3, table: int = 0, fact: int = 0) -> Choice:
    return Choice(table, "ann", fact, fact, place, tuple(map(float, range(options))))


# --- first proposals -------------------------------------------------------------------------------------------


def test_first_proposals_by_hand() -> None:
    """The worked example: of three offers the first is taken 45 of 60 times, odds of 3 over ½."""
    found = values(first_taken([*[choice(0)] * 45, *[choice(1)] * 10, *[choice(2)] * 5, choice(0, options=1)], 1))
    odds = found["persuasion.first_proposal_odds"]
    plain = first_proposal_odds(45, 60, 3)
    assert odds.value == pytest.approx(6) == plain.value
    assert odds.ci == pytest.approx(plain.ci)
    assert odds.flags == plain.flags == ()
    assert odds.excluded == {"a single proposal": 1}
    assert found["persuasion.first_taken"].value == pytest.approx(0.75)
    assert random_p([2, 2, 4], 2) == pytest.approx(1 / 4 + 2 * 1 / 4 * 1 / 4)


def test_first_proposals_at_their_edges() -> None:
    nothing = values(first_taken([choice(0, options=1)], 1))
    assert {one.value for one in nothing.values()} == {None}
    never = values(first_taken([choice(1)] * 3, 1))["persuasion.first_proposal_odds"]
    assert (never.value, never.null["p"]) == (pytest.approx(0.5 / 3.5 * 2), 1)
    assert never.flags == ("first never taken", "continuity")
    always = values(first_taken([choice(0)] * 2, 1))["persuasion.first_proposal_odds"]
    plain = first_proposal_odds(2, 2, 3)
    assert always.value == pytest.approx(2.5 / 0.5 * 2) == plain.value
    assert always.ci == pytest.approx(plain.ci)
    assert always.flags == ("first always taken", *plain.flags) == ("first always taken", "continuity")
    assert always.null["p"] == pytest.approx(1 / 9)


def swap(taken: str, first: float, table: int) -> Choice:
    """A choice between a worse (1) and a better (2) proposal."""
    order = (first, 3 - first)
    return Choice(table, "ann", "x", 0, order.index({"worse": 1.0, "better": 2.0}[taken]), order)


def test_swapped_orders_by_hand() -> None:
    """The worse offer is taken in three pairs only when first, in one only when second, in others always or never."""
    ways = [("worse", "better")] * 3 + [("better", "worse")] + [("better", "better"), ("worse", "worse")]
    one = [swap(when_first, 1.0, table) for table, (when_first, _) in enumerate(ways)]
    other = [swap(when_second, 2.0, table) for table, (_, when_second) in enumerate(ways)]
    found = swapped([(one, other)])
    assert (found.value, found.n) == (pytest.approx(3), 4)
    assert found.null["p"] == pytest.approx(2 * 5 / 16)
    assert swapped([(other, one)]).value == pytest.approx(3)
    same = swapped([(one, one)])
    assert (same.value, same.excluded) == (None, {"no pair with the order swapped": 6})


@pytest.mark.parametrize("names", ["abc", "zyx"])
def test_choices_are_among_what_was_shown(tmp_path: Path, names: str) -> None:
    """c is shown b's proposal before a's, never a's second one, and takes b's."""
    a, b, c = names
    society = Society(tmp_path / "run.db")
    for name in names:
        society.member(name)
    ids = []
    for tick, (who, value) in enumerate([(a, 1), (b, 2), (a, 3)], 1):
        society.act(who, tick)
        ids.append(society.fact(tick, "proposal", who, about="roof", value=value))
    society.look(c, 4, [ids[1]])
    society.act(c, 5, shows=ids[:2])
    society.fact(5, "choice", c, answers=[ids[1]])
    society.act(a, 6, shows=[ids[1]])
    society.fact(6, "choice", a, answers=[ids[2]])
    run = society.run()
    assert [one[3:] for one in proposals.choices(run)] == [(3, 0, (2.0, 1.0))]
    assert values(proposals.all(run))["persuasion.first_taken"].value == 1


# --- bargaining ------------------------------------------------------------------------------------------------


def bargained(*makers: Any, **params: Any) -> Played:
    cast = [(Seat(agent=f"{'ab'[n % 2]}{n // 2}"), make) for n, make in enumerate(makers)]
    return play(Bargaining, cast, {"pie": 100, "max_rounds": 4, "discounts": [1.0, 1.0], **params})


def offering(demands: list[int], words: str = "", least: int = 50) -> Any:
    """Demands these one after the other, and accepts so much."""

    class Offers:
        state: object = 0

        def act(self, turn: Any, streams: Any) -> Any:
            if turn.view["stage"] == "answer":
                return Action(answer="accept" if turn.view["offered"] >= least else "reject", state=self.state)
            n = int(str(self.state))
            gain = {"gain": demands[min(n, len(demands) - 1)]}
            return Action(answer=gain | ({"message": words} if "message" in turn.default else {}), state=n + 1)
            yield

    return lambda _: Offers()


def test_deals_at_the_first_offer_and_anchors() -> None:
    """Demands of 60, 80 and 70 are refused and end in 40, 60 and 50 for who made them; one of 50 is met at once."""
    demands = ((60, 60), (80, 40), (70, 50), (50, 0))
    pairs = [(offering([first], least=0), offering([counter])) for first, counter in demands]
    found = values(persuasion.persuasion(bargained(*(maker for pair in pairs for maker in pair))))
    assert found["bargaining.first_offer_taken"].value == pytest.approx(1 / 4)
    assert found["bargaining.anchoring"].value == pytest.approx(1)
    assert found["bargaining.anchoring"].excluded == {"struck at once": 1}
    assert found["bargaining.words_risk_ratio"].value is None
    alike = values(persuasion.persuasion(bargained(*pairs[0], *pairs[0])))["bargaining.anchoring"]
    assert (alike.value, alike.flags) == (None, ("fewer than 3 deals, or demands all alike",))


def test_the_first_mover_is_compared_with_itself() -> None:
    """Greedy asks for 99 and takes anything: moving first is worth 98 hundredths to both, which is one number."""
    one, other = bargained(Greedy, Greedy), bargained(Greedy, Greedy)
    for item in (*other.facts("deal"),):
        item.fact.data["agents"].reverse()
        item.fact.data["gains"].update({"a0": 0.01, "b0": 0.99})
    found = persuasion.seats_swapped([(one, other)])
    assert (found.value, found.n) == (pytest.approx(0.98), 1)
    assert persuasion.seats_swapped([(one, one)]).value is None


def test_words_are_compared_among_equal_offers() -> None:
    spoken = bargained(offering([50], "Please."), FiftyFifty, offering([50]), FiftyFifty, messages=True)
    found = values(persuasion.persuasion(spoken))["bargaining.words_risk_ratio"]
    assert (found.value, found.n, found.null["p"]) == (pytest.approx(1), 2, 1)


# --- pressure --------------------------------------------------------------------------------------------------


def asch(path: Path, names: str = "abcde", how: str = "chosen") -> Run:
    """Two stooges say 7; c follows them, d does not; e is alone and right, then sees them and turns."""
    society = Society(path)
    for name in names:
        society.member(name)
    a, b, c, d, e = names
    said: list[int] = []

    def state(who: str, tick: int, answer: int, shows: list[int], way: str = "chosen") -> int:
        society.act(who, tick, shows=shows, how=way)
        return society.fact(tick, "answer", who, item="2+2", answer=answer, right=4)

    said = [state(a, 1, 7, []), state(b, 2, 7, [])]
    state(c, 3, 7, said, how)
    state(d, 4, 4, said)
    state(e, 5, 4, [])
    state(e, 6, 7, said)
    return society.run()


@pytest.mark.parametrize("names", ["abcde", "vwxyz"])
def test_pressure_by_hand(tmp_path: Path, names: str) -> None:
    """Under pressure one of two errs; alone two of three, of whom two are what was seen: 1/2 − 0; one was turned."""
    found = values(pressure.all(asch(tmp_path / "run.db", names)))
    assert found["conformity.effect"].value == pytest.approx(1 / 2)
    assert found["conformity.effect"].excluded == {"alone, and then seen in a majority": 2}
    assert found["conformity.errors majority=0"].value == pytest.approx(2 / 3)
    assert found["conformity.errors majority=2"].value == pytest.approx(1 / 2)
    assert found["conformity.errors majority=2"].events == (2,)
    assert found["conformity.right_to_wrong"].value == 1
    assert found["conformity.right_to_wrong"].events == (5,)
    assert found["conformity.wrong_to_right"].value is found["conformity.net_flips"].value is None
    assert found["conformity.effect"].flags == ("n_clusters<2",)


def answered(*cells: tuple[str, bool, bool]) -> list[pressure.Answer]:
    """First answers by item, under a wrong majority or alone, wrong or right; each by another agent."""
    return [
        pressure.Answer(0, f"a{n}", item, n, "no" if wrong else "yes", "yes", ("no", "no") if under else ())
        for n, (item, under, wrong) in enumerate(cells)
    ]


def test_conformity_is_compared_within_items() -> None:
    """An item that all get wrong has no effect, however much more often a wrong majority is met there."""
    hard = [("hard", False, True), ("hard", True, True), ("hard", True, True)]
    easy = [("easy", False, False)] * 5
    found = values(pressure.measured(answered(*hard, *easy), 1))["conformity.effect"]
    assert (found.value, found.null["p"]) == (0, 1)
    apart = values(pressure.measured(answered(("x", True, True), *easy), 1))["conformity.effect"]
    assert (apart.value, apart.null, apart.flags[0]) == (1, {}, "no item with both: across items, not tested")
    # 1/2 − 0 of weight 2·1/3, and 1 − 0 of weight 1·1/2
    both = [("x", True, True), ("x", True, False), ("x", False, False), ("y", True, True), ("y", False, False)]
    mixed = values(pressure.measured(answered(*both), 1))["conformity.effect"]
    assert mixed.value == pytest.approx((2 / 3 * 1 / 2 + 1 / 2 * 1) / (2 / 3 + 1 / 2))


def test_what_is_right_may_be_told_apart_and_planned_answers_are_only_seen(tmp_path: Path) -> None:
    """The same stooges, whom a hidden fact names with the right answer: alone there is e, under pressure c and d."""
    society = Society(tmp_path / "run.db")
    for name in "abcde":
        society.member(name)
    society.fact(0, "truth", audience=(), item="2+2", right=4, planned=["a", "b"])
    said: list[int] = []
    for tick, (who, answer, shows) in enumerate(
        [("a", 7, []), ("b", 7, []), ("c", 7, [1, 2]), ("d", 4, [1, 2]), ("e", 4, [])], start=1
    ):
        society.act(who, tick, shows=shows)
        said.append(society.fact(tick, "answer", who, item="2+2", answer=answer))
    assert said == [1, 2, 3, 4, 5]
    found = values(pressure.all(society.run()))
    assert found["conformity.errors majority=2"].value == 1 / 2
    assert found["conformity.errors majority=0"].value == 0
    assert (found["conformity.effect"].value, found["conformity.effect"].n) == (1 / 2, 3)


def test_pressure_without_defaults_and_without_answers(tmp_path: Path) -> None:
    found = values(pressure.all(asch(tmp_path / "run.db", how="faulted")))
    assert found["conformity.errors majority=2"].value == pytest.approx(1 / 2)
    assert found["conformity.errors decisions=chosen majority=2"].value == 0
    society = Society(tmp_path / "none.db")
    assert {one.value for one in pressure.all(society.run())} == {None}


# --- drift -----------------------------------------------------------------------------------------------------


def test_a_series_by_hand() -> None:
    """Table 0 rises by 1 a round, table 1 by 3; the mean 1 1 6 7 8 breaks at the third round."""
    one = [(0, at, value) for at, value in enumerate([0, 1, 2, 3, 4], 1)]
    other = [(1, at, value) for at, value in enumerate([0, 3, 6, 9, 12], 1)]
    found = values(drifts("length", [*one, *other, (2, 1, 0.0)], "words"))
    assert found["drift.slope series=length"].value == pytest.approx(2)
    assert found["drift.slope series=length"].excluded == {"tables with a single round": 1}
    assert found["drift.tau series=length"].value == pytest.approx(1)
    broken = values(drifts("length", [(0, at, value) for at, value in enumerate([1, 1, 6, 7, 8], 1)], "words"))
    assert broken["drift.change_point series=length"].value == 3
    assert broken["drift.slope series=length"].flags == ("n_clusters<2",)
    assert {one.value for one in drifts("length", [], "words")} == {None}
    flat = values(drifts("length", [(0, at, 1.0) for at in range(4)], "words"))
    assert flat["drift.tau series=length"].value is flat["drift.change_point series=length"].value is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 9)), max_size=20), st.randoms())
def test_the_order_of_values_does_not_matter(drawn: list[tuple[int, int, int]], luck: Random) -> None:
    def told(rows: list[tuple[int, int, int]]) -> dict[str, Any]:
        found = values(drifts("x", [(table, at, float(value)) for table, at, value in rows], ""))
        return {name: (one.value and round(one.value, 6), one.n) for name, one in found.items()}

    assert told(drawn) == told(luck.sample(drawn, len(drawn)))


def test_rounds_are_what_facts_say_or_parts_of_the_run(tmp_path: Path) -> None:
    """Episodes are rounds 1 to 4; what names none is in the eighth and ninth tenth of the run."""
    society = Society(tmp_path / "run.db")
    society.member("ann")
    for episode in range(1, 5):
        society.act("ann", episode)
        society.fact(episode, "message", "ann", text=" ".join(["word"] * episode), episode=episode)
    for tick in (5, 6):
        society.say("ann", tick, "and so on")
    found = values(trends.all(society.run()))
    assert found["drift.tau series=message_length"].n == 4 + 2
    assert found["drift.slope series=lexical_diversity"].n == 1


def test_what_is_done_drifts(tmp_path: Path) -> None:
    """Two agents who say yes throughout do not drift; thirds that have nothing in common are a bit apart."""
    society = Society(tmp_path / "run.db")
    for agent in ("ann", "bob"):
        society.member(agent)
        for tick in range(6):
            society.act(agent, tick)
    (found,) = trends.acting(society.run())
    assert (found.value, found.n, found.null["p"], found.flags) == (0, 8, 1, ("n_clusters<2",))
    assert trends.moved({(0, "ann"): list("xxxyyy"), (1, "bob"): list("xxzyyy")}, 9).value == pytest.approx(1)
    named = [trends.act({"act": "post", "text": "x"}), trends.act("yes"), trends.act("two words"), trends.act(3)]
    assert named == ["post", "yes", "", ""]
    (nothing,) = trends.acting(Society(tmp_path / "none.db").run())
    assert nothing.value is None


# --- fingerprints ----------------------------------------------------------------------------------------------


def test_who_always_acts_alike_is_told_and_who_acts_like_others_is_not() -> None:
    apart = [Written(table, label, (label,) * 3) for table in range(4) for label in "ab"]
    assert guessed(apart, 19).stat == 1
    assert guessed(apart, 19).p == pytest.approx(1 / 20, abs=0.1)
    alike = [Written(table, label, ("same",) * 3) for table in range(4) for label in "ab"]
    assert guessed(alike, 19).stat == pytest.approx(1 / 2)
    assert measured(apart[:2]).value is measured([one for one in apart if one.label == "a"]).value is None
    assert measured([]).flags == ("n_clusters<2", "a single label")


def test_shared_votes_are_scored_as_whole_ones_are() -> None:
    confusion = [[4, 1, 0], [1, 3, 1], [0, 1, 4]]
    truth, said = from_confusion(confusion)
    eye = writers.np.eye(3)
    assert writers._macro_f1(eye[truth], eye[said]) == pytest.approx(macro_f1(truth, said))


@pytest.mark.parametrize("names", ["ab", "zy"])
def test_names_and_order_do_not_change_what_is_told(names: str) -> None:
    luck = Random(4)
    found = [
        Written(table, label, tuple(luck.choice(kind) for _ in range(6)))
        for table in range(6)
        for label, kind in zip(names, ("xxy", "xyy"), strict=True)
    ]
    plain = guessed(found, 19)
    assert plain.stat == pytest.approx(guessed(sorted(found, key=lambda one: (one.table, one.acts)), 19).stat)


def test_acts_are_read_from_answers(tmp_path: Path) -> None:
    assert writers.acts({"text": "Hello there!", "act": "post", "n": 3}) == ["post", "hello", "there"]
    assert writers.acts(None) == []
    society = Society(tmp_path / "run.db", tables=2)
    for agent, role in (("ann", "x"), ("bob", "x"), ("cid", "y")):
        society.member(agent, role=role)
        for table in (0, 1):
            society.act(agent, 1, table=table)
    found = values(writers.all(society.run()))
    assert found["fingerprint.macro_f1 by=agent role=x"].value == pytest.approx(1 / 2)
    assert found["fingerprint.macro_f1 by=agent role=y"].value is None


def test_who_acted_is_told_once_it_differs() -> None:
    """Half of what each does is what all do: whoever has seen no more than that can but guess."""
    rows = [Written(table, label, ("x",) * 4 + (label,) * 4) for table in range(4) for label in "ab"]
    curve = {one.of["seen"]: one.value for one in writers.learning_curve(rows, role="r")}
    assert curve == pytest.approx({0.25: 0.5, 0.5: 0.5, 0.75: 1, 1.0: 1})
    assert list(writers.learning_curve([])) == []
    assert [one.value for one in writers.learning_curve(rows[:2])] == [None] * 4


def test_the_unknown_are_farther_from_the_known() -> None:
    """Three who act apart: with each unknown in turn it is farther than both others. Alike, nobody is."""
    apart = [Written(table, label, (label,) * 3) for table in range(5) for label in "abc"]
    found = values(writers.open_set(apart))
    assert found["fingerprint.open_set_auroc"].value == 1
    assert (found["fingerprint.open_set_auroc"].n, found["fingerprint.open_set_auroc"].n_clusters) == (5, 5)
    assert found["fingerprint.known_refused"].value is None, "eight known of four other folds have no tenth"
    more = [Written(table, label, (label,) * 3) for table in range(10) for label in "abc"]
    told = values(writers.open_set(more))
    assert told["fingerprint.open_set_auroc"].ci == (pytest.approx(0.05 ** (1 / 10)), 1)
    assert told["fingerprint.unknown_refused"].value == 1
    assert told["fingerprint.known_refused"].value == 0
    alike = values(writers.open_set([Written(table, label, ("x",)) for table in range(10) for label in "abc"]))
    assert alike["fingerprint.open_set_auroc"].value == 0.5
    assert alike["fingerprint.unknown_refused"].value == 0
    assert {one.value for one in writers.open_set(apart[:3])} == {one.value for one in writers.open_set([])} == {None}


def test_names_do_not_change_who_is_unknown() -> None:
    found = []
    for names in ("abc", "zyx"):
        luck = Random(6)
        rows = [
            Written(table, label, tuple(luck.choice(kind) for _ in range(8)))
            for table in range(10)
            for label, kind in zip(names, ("xxy", "xyy", "yyz"), strict=True)
        ]
        told = values([*writers.open_set(rows), *writers.learning_curve(rows)])
        found.append([told[key].value for key in sorted(told)])
    assert found[0] == pytest.approx(found[1])


# --- a market --------------------------------------------------------------------------------------------------


def test_trades_are_choices_among_the_quotes_that_were_shown(tmp_path: Path) -> None:
    """The buyer takes the second of two asks that it was shown this period; other goods and periods do not count."""
    society = Society(tmp_path / "run.db")
    for agent in ("buyer", "ann", "bob"):
        society.member(agent)

    def quote(who: str, tick: int, price: int, good: str = "apple", period: int = 1) -> int:
        society.act(who, tick)
        return society.fact(tick, "ask", who, period=period, good=good, price=price)

    asks = [quote("ann", 1, 9, period=0), quote("ann", 2, 8), quote("bob", 3, 7), quote("ann", 4, 5, good="pear")]
    society.act("buyer", 5, shows=asks)
    about = {"period": 1, "good": "apple", "price": 7, "by": "bid", "buyer": "buyer", "seller": "bob"}
    society.fact(5, "trade", "buyer", answers=[asks[2]], **about)
    (one,) = quoted.choices(society.run())
    assert (one.chooser, one.place, one.values) == ("buyer", 1, (-8.0, -7.0))
