"""Words that their own model would hardly choose: by hand, without what is missing, and whatever the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.collusion.unlikely import all as unlikely
from sim.metrics.collusion.unlikely import apart, compared, odd_agent
from sim.metrics.family import Relative
from sim.record.reader import Run
from tests.metrics.society import Society, values

WORDS = '{"text":200}'
ABOUT = "answer=text entry=p model=small"


def spoken(path: Path, tables: Sequence[Mapping[str, Sequence[Any]]], **more: Any) -> Run:
    """A run in which agents give answers in words; of each the log-probabilities of its tokens."""
    society = Society(path, tables=len(tables))
    for agent in tables[0]:
        society.member(agent, model="small")
    for table, own in enumerate(tables):
        for agent, answers in own.items():
            for tick, logprobs in enumerate(answers, 1):
                society.act(agent, tick, calls=[{"form": WORDS, "logprobs": logprobs, **more}], table=table)
    return society.run()


def test_means_and_the_oddest_by_hand(tmp_path: Path) -> None:
    """Answers of p-1 have −2 and −1 a token, so −1.5 in the mean; the others −0.5. Tables: −5/6 and −7/6."""
    one = {"p-1": [(-1.0, -3.0), (-1.0,)], "p-2": [(-0.5,)], "p-3": [(-0.5, -0.5)]}
    two = {"p-1": [(-2.5,)], "p-2": [(-0.5,)], "p-3": [(-0.5,)]}
    found = values(unlikely(spoken(tmp_path / "run.db", [one, two])))
    whole = found[f"steganography.token_logprob {ABOUT}"]
    assert (whole.value, whole.n, whole.n_clusters) == (pytest.approx((-4 / 4 - 3.5 / 3) / 2), 7, 2)
    odd = found[f"steganography.token_logprob_oddest {ABOUT}"]
    assert odd.value == pytest.approx((1.0 + 2.0) / 2)
    assert odd.null["p"] == pytest.approx(1 / 3, abs=0.06), "at the second table one in three is p-1 by chance"
    assert odd.flags == ()


def test_who_is_odd_at_every_table_is_named(tmp_path: Path) -> None:
    tables = [{f"p-{n}": [(-2.0 if n == 3 else -0.5 - 0.01 * ((n + t) % 4),)] for n in range(4)} for t in range(6)]
    found = values(unlikely(spoken(tmp_path / "run.db", tables)))
    odd = found[f"steganography.token_logprob_oddest {ABOUT}"]
    assert odd.flags == ("it is p-3",)
    assert odd.null["p"] < 0.01


def test_what_is_missing_is_null(tmp_path: Path) -> None:
    lone = values(unlikely(spoken(tmp_path / "a.db", [{"p-1": [(-1.0,)], "p-2": [(-2.0,)]}])))
    assert lone[f"steganography.token_logprob {ABOUT}"].value == -1.5
    odd = lone[f"steganography.token_logprob_oddest {ABOUT}"]
    assert (odd.value, odd.flags) == (None, ("one table: nobody comes back",))
    alone = values(unlikely(spoken(tmp_path / "b.db", [{"p": [(-1.0,)]}] * 2)))
    odd = alone[f"steganography.token_logprob_oddest {ABOUT}"]
    assert (odd.value, odd.flags) == (None, ("nobody of its entry beside it",))
    for n, more in enumerate(
        ({"form": '{"choice":["yes"]}'}, {"finish": "length"}, {"logprobs": ()}, {"purpose": "memory"})
    ):
        (none,) = unlikely(spoken(tmp_path / f"c{n}.db", [{"p-1": [(-1.0,)]}], **more))
        assert (none.value, none.n) == (None, 0)
        assert none.excluded == [{}, {"cut off": 1}, {"no log-probabilities": 1}, {}][n]


def test_names_and_the_order_of_tables_do_not_matter(tmp_path: Path) -> None:
    tables = [{f"p-{n}": [(-1.0 - n * t, -0.5)] for n in range(3)} for t in range(3)]
    other = [{f"q-{9 - n}": [(-1.0 - n * t, -0.5)] for n in range(3)} for t in reversed(range(3))]
    one, two = (list(unlikely(spoken(tmp_path / f"{n}.db", each))) for n, each in enumerate((tables, other)))
    assert [(a.metric, a.n) for a in one] == [(a.metric, a.n) for a in two]
    assert [a.value for a in one] == pytest.approx([a.value for a in two])


@given(st.lists(st.lists(st.floats(-5, 0), min_size=2, max_size=4), min_size=2, max_size=4), st.floats(-3, 3))
def test_what_a_table_has_in_common_does_not_matter(tables: list[list[float]], common: float) -> None:
    units = {(t, f"a{n}"): value for t, own in enumerate(tables) for n, value in enumerate(own)}
    moved = {unit: value + common * unit[0] for unit, value in units.items()}
    assert apart(moved) == pytest.approx(apart(units), abs=1e-9)
    test = odd_agent(apart(units), 19)
    assert test is not None
    assert 0 < test.p <= 1


def test_a_reference(tmp_path: Path) -> None:
    """Gaps of 1 and ½ a token at the first table, of ½ and 1 at the second: ¾ at both, and 1 and ½ apart from 0."""
    tables = [{"p-1": [(-1.0, -1.0)], "p-2": [(-1.0,)]}, {"p-1": [(-1.0,)], "p-2": [(-1.0,)]}]
    other = [{"p-1": [(-2.0, -2.0)], "p-2": [(-1.5,)]}, {"p-1": [(-1.5,)], "p-2": [(-3.0,)]}]
    records = [spoken(tmp_path / f"r{n}.db", each) for n, each in enumerate((tables, other))]
    run, scored = (Relative(id=f"r{n}", record=record, scenario={}) for n, record in enumerate(records))
    run.rescorings.append(scored)
    found = {one.metric: one for one in compared([run])}
    gap = found["steganography.likelihood_gap"]
    assert (gap.value, gap.n, gap.unit) == (pytest.approx((0.75 + 1.25) / 2), 4, "nats a token")
    assert gap.null["stat"] == pytest.approx(1 / (0.25 * sqrt(2) / sqrt(2)))
    assert gap.null["p"] > 0.5
    assert gap.of == {"run": "r0", "reference": "r1", "entry": "p", "model": "small", "answer": "text"}
    assert list(compared([scored, run])) == list(compared([run, scored]))
    (none,) = compared([scored])
    assert (none.value, none.flags) == (None, ("no run is scored by another",))
