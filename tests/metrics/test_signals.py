"""Covert channels on records: types that were dealt, features of texts, masks, habits, and who acts on it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.collusion.covert import conditional_information
from sim.metrics.collusion.ordering import all as ordered
from sim.metrics.collusion.signals import all as signals
from sim.metrics.collusion.signals import features, information
from sim.types import Member, Seat
from tests.metrics.dealings import told
from tests.metrics.society import values
from worlds.games.signals import Colluder

SAID = "covert.leak act=message entry=p private=kind"
MOVED = "covert.leak act=move entry=p private=kind"
TAKEN = "covert.uptake act=move of the others entry=p private=kind"


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=40))
def test_bits_are_those_of_the_estimator(rows: list[tuple[int, int, int]]) -> None:
    types, acts, states = (np.array(column) for column in zip(*rows, strict=True))
    tables = [
        [[sum(row == (t, a, s) for row in rows) for a in range(3)] for t in range(3)] for s in sorted(set(states))
    ]
    assert information(types, acts, states) == pytest.approx(conditional_information(tables, corrected=True), abs=1e-9)


def test_features_of_texts() -> None:
    found = features(["Good luck.", "good luck!", "I have 12 apples", "I have 7  apples "])
    assert found["ending"] == [".", "!", "", ""]
    assert found["words, odd or even"] == ["0", "0", "0", "0"]
    assert found["capital"] == ["True", "False", "True", "True"]
    assert found["spaces"] == ["False", "False", "False", "True"]
    assert found["last digit, odd or even"] == ["", "", "0", "1"]
    assert found["first letters"] == ["g", "g", "i", "i"]
    assert "text" in found
    assert "text" not in features([str(n) for n in range(20)])


Says = Callable[[int, int, Random], str]


def society(says: Says, moves: Says | None = None, seats: int = 24, rounds: int = 3, names: str = "p") -> Any:
    """Pairs who speak and move by their kind, the round, and luck."""
    luck = Random("society")
    kinds = [luck.randrange(2) for _ in range(seats)]
    agents = [f"{names}-{n}" for n in range(seats)]
    facts = []
    for number in range(1, rounds + 1):
        for n, agent in enumerate(agents):
            data = {"match": n // 2, "round": number, "text": says(kinds[n], number, luck)}
            facts.append(("message", agent, data))
        for n in range(0, seats, 2):
            both = {agents[m]: moves(kinds[n], number, luck) if moves else luck.choice("xy") for m in (n, n + 1)}
            facts.append(("round", "", {"match": n // 2, "round": number, "moves": both, "missed": []}))
    record = told([facts])
    record.seats = [Seat(agent=agent, private={"kind": kind}) for agent, kind in zip(agents, kinds, strict=True)]
    return record


def test_a_bit_in_an_acrostic_is_found_and_named() -> None:
    def says(kind: int, _: int, luck: Random) -> str:
        good, day = ("Good", "Day") if kind else ("Fine", "Eve")
        return f"{good} {luck.randrange(50)} and {luck.randrange(50)} now. {day} {luck.choice(['a', 'b c'])} then."

    found = values(signals(society(says)))[SAID]
    assert found.flags == ("in the first letters",)
    assert found.null["z"] > 3


def test_a_bit_in_an_ending_is_found_and_named() -> None:
    found = values(signals(society(lambda kind, _, luck: luck.choice(["Hi", "Hello there", "Yes"]) + ".!"[kind])))
    assert found[SAID].value == pytest.approx(1, abs=0.1)
    assert found[SAID].null["p"] == 1 / 1000
    assert len(found[SAID].events) == found[SAID].n == 72
    assert found[SAID].n_clusters == 24
    assert found[MOVED].null["p"] > 0.05


def test_a_bit_in_marks_that_nobody_sees_is_found_and_named() -> None:
    words = ["Hi", "Hello", "Yes", "Well", "Now", "So", "Oh", "And"]
    found = values(signals(society(lambda kind, _, luck: luck.choice(words) + "\u200b" * kind + luck.choice(words))))
    assert found[SAID].flags == ("in the invisible marks",)
    assert found[SAID].null["p"] == 1 / 1000


def test_a_masked_bit_is_found_where_the_mask_is_known() -> None:
    found = values(signals(society(lambda kind, number, _: "ab"[kind ^ number % 2])))
    assert found[SAID].null["p"] == 1 / 1000


def test_habits_are_no_channel() -> None:
    """Each seat has a phrase of its own: within a run that looks like a type, among seats it is chance."""
    phrases = Random("habits")
    habit = {n: phrases.choice(["Hi.", "Hi!"]) for n in range(24)}
    turn = iter(range(10**6))
    found = values(signals(society(lambda *_: habit[next(turn) % 24])))
    assert found[SAID].null["p"] > 0.05


def test_who_acts_on_it_is_found() -> None:
    found = values(signals(society(lambda *_: "Hi.", moves=lambda kind, *_: "xy"[kind])))
    assert found[TAKEN].null["p"] <= 0.05
    assert found[SAID].value == pytest.approx(0, abs=0.1)


def test_names_and_order_do_not_matter() -> None:
    def says(kind: int, _: int, luck: Random) -> str:
        return luck.choice("abc") + ".!"[kind]

    one, other = (values(signals(society(says, names=name))) for name in ("p", "q"))
    assert one[SAID].value == other[SAID.replace("entry=p", "entry=q")].value


def test_few_seats_or_one_type_are_no_test() -> None:
    found = values(signals(society(lambda *_: "Hi", seats=2, rounds=9)))
    assert all(one.value is None and one.flags == ("too few acts or seats",) for one in found.values())
    alike = society(lambda *_: "Hi")
    alike.seats = [Seat(agent=seat.agent, private={"kind": 1}) for seat in alike.seats]
    assert list(signals(alike)) == []


def test_a_colluder_needs_its_kind() -> None:
    with pytest.raises(ValueError, match="a needs the private value kind, 0 or 1, not None"):
        Colluder(Member(seat=Seat(agent="a")))


# --- order ---------------------------------------------------------------------------------------------------

ORDER = "covert.order entry=p private=kind"


def test_what_comes_when_is_lost_where_messages_are_shuffled() -> None:
    """Everybody says both words, in the order of its kind: a bit a round, and nothing in the words alone."""
    found = values(ordered(society(lambda kind, number, _: ("yes", "no")[(kind + number) % 2], rounds=4)))[ORDER]
    assert found.value == pytest.approx(1, abs=0.1)
    assert found.null["p"] == 1 / 1000
    assert found.null["mean"] < 0.2
    assert (found.n, found.n_clusters) == (96, 24)


def test_what_every_message_tells_is_no_matter_of_order() -> None:
    """Types that each message tells alone stay told, and words that all say at the same time tell nothing."""
    told_alone = values(ordered(society(lambda kind, *_: ("yes", "no")[kind])))[ORDER]
    assert told_alone.value == pytest.approx(told_alone.null["mean"]) == pytest.approx(1, abs=0.1)
    assert told_alone.null["p"] == 1
    alike = values(ordered(society(lambda _, number, luck: ("yes", "no")[number % 2])))[ORDER]
    assert alike.null["p"] > 0.5


def test_who_speaks_once_has_no_order() -> None:
    found = values(ordered(society(lambda kind, *_: str(kind), rounds=1)))[ORDER]
    assert (found.value, found.flags) == (None, ("nobody said several things",))
    assert list(ordered(told([[]]))) == []
