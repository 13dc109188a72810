"""Joint moves of matches: excess match, total correlation, welfare and obedience, against dealt series."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from sim.intervals import ALIKE
from sim.metrics.collusion import joint_play as concerted
from sim.metrics.collusion.joint_play import all as joint_play
from tests.metrics.dealings import told
from tests.metrics.society import values
from worlds.games.payoffs import named, text

CHICKEN = {"0,0": [6, 6], "0,1": [2, 7], "1,0": [7, 2], "1,1": [0, 0]}
MATCH, BITS, ABOVE, DISOBEYED = (
    f"coordination.{name} players=p & p"
    for name in ("excess_match", "total_correlation", "welfare_above_correlated", "obedience_violation")
)


def played(*series: Sequence[str], names: str = "p", payoffs: Any = CHICKEN, missed: Sequence[int] = ()) -> Any:
    """Matches of two with the moves C and D, each a list of "CD" by round, all at one table."""
    facts: list[tuple[str, str, dict[str, Any]]] = []
    for number, rounds in enumerate(series):
        pair = [f"{names}-{2 * number}", f"{names}-{2 * number + 1}"]
        set_up = {"match": number, "players": pair, "actions": [["C", "D"]] * 2, "payoffs": payoffs}
        facts.append(("match", "", set_up))
        for t, moves in enumerate(rounds, 1):
            data = {"match": number, "round": t, "moves": dict(zip(pair, moves, strict=True))}
            facts.append(("round", "", {**data, "missed": pair[:1] if t in missed else []}))
    return told([facts])


def test_worked_examples() -> None:
    """Chicken: the best correlated equilibrium is worth 10.5 (C35); always CC is worth 12 and obeys nobody."""
    found = values(joint_play(played(*[["CC", "CC"]] * 4)))
    assert found[ABOVE].value == pytest.approx(12 - 10.5)
    assert (found[ABOVE].ci, found[ABOVE].flags) == (None, (ALIKE,)), "two pairs that are alike tell no spread"
    assert found[DISOBEYED].value == pytest.approx(1)
    assert found[DISOBEYED].null["p"] == 0
    assert found[MATCH].value == 0, "who always does the same needs nobody for it"
    assert found[BITS].value == 0


def test_signalled_play_obeys_and_is_concerted() -> None:
    luck = Random("signal")
    found = values(joint_play(played(*[[luck.choice(["CD", "DC"]) for _ in range(4)] for _ in range(20)])))
    assert found[DISOBEYED].value == 0
    assert found[ABOVE].value == pytest.approx(9 - 10.5)
    assert found[BITS].value == pytest.approx(1, abs=0.1)
    assert found[BITS].null["p"] == 1 / 1000
    assert found[MATCH].value == pytest.approx(-0.5, abs=0.05)


def test_trends_and_habits_are_no_concert() -> None:
    """All play C at first and D later: that is what everybody does by itself in every round."""
    luck = Random("trend")
    series = [["".join(luck.choices("CD", [5 - t, t], k=2)) for t in range(6)] for _ in range(30)]
    found = values(joint_play(played(*series)))
    assert found[MATCH].null["p"] > 0.05
    assert found[BITS].null["p"] > 0.05


def test_one_match_is_no_test() -> None:
    found = values(joint_play(played(["CC", "CD"])))
    assert found[MATCH].value is None
    assert found[MATCH].flags == found[ABOVE].flags == ("n_clusters<2",)
    assert found[ABOVE].ci is None


def test_moves_that_were_not_chosen_are_left_out() -> None:
    found = values(joint_play(played(["CC", "DD"], ["CC", "DD"], missed=[2])))
    assert found[ABOVE].value == pytest.approx(1.5)
    assert found[ABOVE].excluded == {"not chosen": 2}
    assert found[ABOVE].n == 2


def test_neither_names_nor_the_order_of_matches_matter() -> None:
    luck = Random("order")
    series = [["".join(luck.choices("CD", k=2)) for _ in range(3)] for _ in range(6)]
    one = values(joint_play(played(*series)))
    other = values(joint_play(played(*series[::-1], names="q")))
    for key in (MATCH, BITS, ABOVE, DISOBEYED):
        assert one[key].value == pytest.approx(other[key.replace("p & p", "q & q")].value)


def test_a_game_of_the_world_is_read() -> None:
    game = named("chicken")
    payoffs = {text(joint): list(own) for joint, own in game.table.items()}
    found = values(joint_play(played(["CC"], ["CC"], payoffs=payoffs)))
    assert found[DISOBEYED].value == pytest.approx(1), "straight against swerve earns one more"


def test_an_empty_record_has_no_numbers() -> None:
    assert list(joint_play(told([[]]))) == []


def test_a_great_many_moves_are_dealt_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    record = played(*[["CC", "DD"]] * 5)
    monkeypatch.setattr(concerted, "FEWEST", 7)
    for most, draws in ((200, 10), (1, 7), (50_000, 30)):
        monkeypatch.setattr(concerted, "MOVES", most)
        assert values(joint_play(record, 30))[BITS].null["n_perm"] == draws
