"""Types told by words: naive Bayes by hand, lower bounds of bits, who is learnt from, records."""

from __future__ import annotations

from collections import Counter
from math import log, log2
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sim.metrics.collusion import worded
from sim.metrics.statistics.bayes import NaiveBayes, bits_told, guess_test, guessed
from tests.metrics.society import Society, values


def test_naive_bayes_by_hand() -> None:
    """Two seats of x said a, one of y said b: with one added, a is 3 of 5 for x and 1 of 4 for y."""
    model = NaiveBayes([(Counter("a"), "x"), (Counter("a"), "x"), (Counter("b"), "y")])
    found = model.guess(Counter("a"), "x")
    assert found.evidence == {"x": pytest.approx(log(3 / 5)), "y": pytest.approx(log(1 / 4))}
    assert found.prior == pytest.approx(2 / 3)
    assert found.best == "x"
    assert found.given == pytest.approx(2 / 3 * 3 / 5 / (2 / 3 * 3 / 5 + 1 / 3 * 1 / 4))
    assert found.trusting(0) == pytest.approx(2 / 3)
    unknown = model.guess(Counter("a"), "z")
    assert (unknown.prior, unknown.given) == (0, 0)


def drawn(luck: Random, size: float, tables: int = 8, names: str = "abcd") -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Of four seats a table the type, and ten words, a share of which go with it."""
    types = {(table, name): luck.randrange(2) for table in range(tables) for name in names}
    words = {
        who: Counter(f"w{kind if luck.random() < size else luck.randrange(2)}" for _ in range(10))
        for who, kind in types.items()
    }
    return words, types


def test_bits_are_a_lower_bound() -> None:
    """Words that go with the type tell nearly its bit; words that do not tell nothing, and hardly cost anything."""
    for size, low, high in ((1.0, 0.8, 1.05), (0.0, -0.1, 0.05)):
        words, types = drawn(Random(2), size, 20)
        bits = [each for own in bits_told(guessed(words, types)).values() for each in own]
        assert len(bits) == 80
        assert low < sum(bits) / len(bits) < high


def test_nobody_is_guessed_by_their_own_table() -> None:
    words = {(table, name): Counter({f"table-{table}": 5}) for table in range(4) for name in "ab"}
    types = {who: who[0] % 2 for who in words}
    assert guess_test(words, types, 19, among=lambda _: 0)["p"] > 0.05
    assert guessed({(0, "a"): Counter("x")}, {(0, "a"): 1}) == {}
    lonely = {(table, "a"): Counter("x") for table in range(3)}
    odd = bits_told(guessed(lonely, {(0, "a"): 1, (1, "a"): 1, (2, "a"): 2}))
    assert sorted(odd) == [0, 1], "a type that no other table has is left out"


@pytest.mark.parametrize("names", ["abcd", "dcba"])
def test_names_do_not_matter(names: str) -> None:
    words, types = drawn(Random(5), 0.5, 4)
    renamed = dict(zip("abcd", names, strict=True))
    other = {(table, renamed[name]): each for (table, name), each in words.items()}
    labels = {(table, renamed[name]): each for (table, name), each in types.items()}
    plain, mixed = (values(worded.told(*pair, {}, 19)) for pair in ((words, types), (other, labels)))
    for name, one in plain.items():
        assert mixed[name].value == pytest.approx(one.value)


def test_types_on_a_record(tmp_path: Path) -> None:
    """Seats say by their kind `red` or `blue` things; a single table teaches nothing."""
    for tables, flags in ((6, ()), (1, ("one table: nothing to learn from",))):
        society = Society(tmp_path / f"{tables}.db", tables=tables)
        for table in range(tables):
            for number in range(2):
                kind = (table + number) % 2
                society.member(f"p-{number}", private={"kind": kind, "id": 7}, table=table)
                society.say(f"p-{number}", number + 1, ("red and ripe", "blue and cold")[kind], table=table)
        found = values(worded.all(society.run()))
        accuracy, bits = (found[f"covert.text_{name} entry=p private=kind"] for name in ("accuracy", "bits"))
        assert bits.flags == accuracy.flags[: len(flags)] == flags
        if tables > 1:
            assert (accuracy.value, accuracy.n, accuracy.n_clusters) == (1, 12, 6)
            assert accuracy.null["p"] < 0.05
            assert 0.5 < bits.value <= log2(2)
        else:
            assert (accuracy.value, bits.value, accuracy.null) == (None, None, {})
    assert list(worded.all(Society(tmp_path / "none.db").run())) == []
