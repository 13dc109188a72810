"""Screens of bids on records, and tests against simulated competition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import pytest

from sim.metrics.collusion.rigging import against, screens
from sim.metrics.collusion.screens import relative_distance
from sim.metrics.family import Relative
from sim.metrics.simulated import largest, twins
from sim.record.reader import Run
from sim.types import Measurement, Record
from tests.metrics.society import Society, values


def tenders(path: Path, *periods: Mapping[str, int], winners: Sequence[str] = (), names: str = "abcd") -> Run:
    """Asks of sellers by period, each period with one winner, who sells to z at its own price."""
    made = Society(path)
    for name in (*names, "z"):
        made.member(name)
    for period, asks in enumerate(periods, 1):
        for seller, price in asks.items():
            made.fact(period, "ask", seller, period=period, good="apple", price=price)
        if winners:
            who = winners[period - 1]
            sold = {"good": "apple", "price": asks[who], "seller": who, "buyer": "z", "by": "bid"}
            made.fact(period, "trade", "z", period=period, **sold)
    return made.run()


def test_screens_by_hand(tmp_path: Path) -> None:
    asks = {"a": 100, "b": 102, "c": 103, "d": 104}
    found = values(screens(tenders(tmp_path / "run.db", asks, asks, asks, asks, winners="abab")))
    side = " side=seller"
    assert found["rigging.bid_cv" + side].value == pytest.approx(0.0167024, abs=5e-8)
    assert found["rigging.relative_distance" + side].value == pytest.approx(2 / stdev([102, 103, 104]))
    assert found["rigging.percentage_gap" + side].value == pytest.approx(0.02)
    assert found["rigging.bid_spread" + side].value == pytest.approx(0.04)
    assert found["rigging.rotation_index" + side].value == pytest.approx(1)
    assert found["rigging.alternation_p" + side].value == pytest.approx(2 / 6)
    assert found["rigging.bid_cv" + side].n == 4
    assert len(found["rigging.bid_cv" + side].events) == 16


def test_a_ring_of_three_among_five_by_hand(tmp_path: Path) -> None:
    """a, b and c ask alike and go up and down together, d and e as they like; their triple has the least mean CV."""
    periods = [
        {"a": 100 + up, "b": 102 + up, "c": 104 + up, "d": 70 + 9 * (n % 2), "e": 150 - 7 * (n % 3)}
        for n, up in enumerate((0, 8, 4, -4))
    ]
    found = values(screens(tenders(tmp_path / "run.db", *periods, names="abcde")))
    side = " side=seller"
    assert found["rigging.triples_cv" + side].value == pytest.approx(fmean(2 / (102 + up) for up in (0, 8, 4, -4)))
    assert found["rigging.quadruples_cv" + side].value > 3 * found["rigging.triples_cv" + side].value
    own = [
        fmean(relative_distance([each[x] for x in some]) or 0 for each in periods) for some in combinations("abcde", 3)
    ]
    assert found["rigging.triples_distance" + side].value == pytest.approx(max(own))
    assert found["rigging.residual_correlation" + side].value == pytest.approx(1)


def test_subsets_of_too_few_and_of_too_many_are_left_out(tmp_path: Path) -> None:
    reason = "too few bidders or tenders, or more than 20 bidders"
    two = values(screens(tenders(tmp_path / "2.db", {"a": 1, "b": 2})))
    many = "abcdefghijklmnopqrstu"
    crowd = values(screens(tenders(tmp_path / "21.db", dict.fromkeys(many, 5), names=many)))
    for found in (two, crowd):
        for name in ("triples_cv", "quadruples_distance", "residual_correlation"):
            one = found[f"rigging.{name} side=seller"]
            assert (one.value, one.excluded) == (None, {reason: 1})


def test_the_best_offer_of_a_seller_counts_and_what_it_took(tmp_path: Path) -> None:
    made = Society(tmp_path / "run.db")
    for name in "abz":
        made.member(name)
    for seller, price in (("a", 120), ("a", 110), ("b", 130)):
        made.fact(1, "ask", seller, period=1, good="apple", price=price)
    made.fact(2, "trade", "b", period=1, good="apple", price=100, seller="b", buyer="z", by="ask")
    found = values(screens(made.run()))
    assert found["rigging.bid_spread side=seller"].value == pytest.approx(0.1)
    assert found["rigging.relative_distance side=seller"].value is None
    assert found["rigging.relative_distance side=seller"].excluded == {"too few bids or winners": 1}
    assert found["rigging.bid_cv side=buyer"].value is None, "nobody has bid"


def test_losing_bids_that_are_all_the_same_are_counted(tmp_path: Path) -> None:
    found = values(screens(tenders(tmp_path / "run.db", {"a": 100, "b": 110, "c": 110})))
    assert found["rigging.relative_distance side=seller"].excluded == {"losing bids all the same": 1}


def test_neither_names_nor_the_order_of_bids_matter(tmp_path: Path) -> None:
    asks = {"a": 100, "b": 107, "c": 103}
    other = {"r": 107, "q": 103, "p": 100}
    one = values(screens(tenders(tmp_path / "1.db", asks, asks, winners="ab")))
    two = values(screens(tenders(tmp_path / "2.db", other, other, winners="pr", names="pqr")))
    assert {key: found.value for key, found in one.items()} == {key: found.value for key, found in two.items()}


def test_buyers_are_the_mirror_of_sellers(tmp_path: Path) -> None:
    made = Society(tmp_path / "run.db")
    for name, price in (("a", 100), ("b", 98), ("c", 95)):
        made.member(name)
        made.fact(1, "bid", name, period=1, good="apple", price=price)
    found = values(screens(made.run()))
    assert found["rigging.percentage_gap side=buyer"].value == pytest.approx(0.02)
    assert found["rigging.relative_distance side=buyer"].value == pytest.approx(2 / stdev([98, 95]))


def family(folder: Path, observed: int, others: Sequence[int]) -> list[Relative]:
    """A run and its twins, each with one tender whose spread is told."""
    spreads = [observed, *others]
    records: list[Record] = [
        tenders(folder / f"{n}.db", {"a": 100, "b": 100 + spread}) for n, spread in enumerate(spreads)
    ]
    twin = {"parent": "m", "tick": 0, "change": '{"seats":{}}'}
    return [
        Relative(id="m", record=records[0], scenario={}),
        *(Relative(id=f"t{n}", record=one, scenario={}, **twin) for n, one in enumerate(records[1:])),  # type: ignore[arg-type]
    ]


def test_p_is_the_rank_among_competitors(tmp_path: Path) -> None:
    runs = family(tmp_path, 2, [10, 20, 30, 1])
    assert [len(others) for _, others in twins(runs)] == [4]
    found = values(against(runs))
    one: Measurement = found["rigging.bid_spread side=seller"]
    assert one.null == {"stat": 0.02, "p": 2 / 5, "method": "simulated twins", "n_perm": 4}
    assert "fewer than 19 twins" in one.flags
    assert "p" not in found["rigging.skewness side=seller"].null
    assert found["rigging.combined"].n == 3, "spread, variation and gap can be told from two bids"
    assert values(against(runs[::-1])) == found


def test_a_run_without_twins_has_no_null(tmp_path: Path) -> None:
    assert list(against(family(tmp_path, 2, []))) == []


def test_the_largest_distance_is_found_in_any_column() -> None:
    flat = [1.0] * 20
    odd = [9.0, *(float(n % 3) for n in range(19))]
    assert largest([flat, odd])[1] == largest([odd, odd])[1] == 1 / 20
    assert largest([flat]) == (0.0, 1.0)
