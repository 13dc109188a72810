"""Template collapse, repeated trials, retests and paraphrases: worked examples, edges, invariances."""

from __future__ import annotations

from math import log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.metrics.analysis.collapse import chance, conditional_entropy, mutual_information, retrieval_accuracy
from sim.metrics.statistics.repeats import (
    Components,
    modal_share,
    pairwise_agreement,
    paraphrase_drop,
    pass_all,
    pass_any,
    variance_component,
    variance_components,
    worst_case_drop,
)

OWN = [[log(0.8), log(0.2)], [log(0.2), log(0.8)]]


def test_worked_examples() -> None:
    assert mutual_information(OWN) == pytest.approx(0.470004, abs=5e-7)
    assert (retrieval_accuracy(OWN) or 0) - (chance(2) or 0) == pytest.approx(0.5)
    assert pass_all([(5, 3)], 2) == pytest.approx(0.3)
    assert pass_all([(5, 3)], 3) == pytest.approx(0.1)
    assert pass_any([(5, 3)], 2) == pytest.approx(0.9)
    assert variance_component(24, 1, 3).between == pytest.approx(7.66667, abs=5e-6)
    assert variance_component(24, 1, 3).icc == pytest.approx(0.884615, abs=5e-7)
    assert pairwise_agreement("AAABA") == pytest.approx(0.6)
    assert paraphrase_drop(0.8, [0.7, 0.6, 0.5]) == pytest.approx(0.25)


def test_edges() -> None:
    assert mutual_information([[0.0]]) is None
    assert conditional_entropy([]) is None
    assert conditional_entropy(OWN) == pytest.approx(-log(0.8))
    assert retrieval_accuracy([[0.0]]) is None
    assert pass_all([(2, 1)], 3) is None
    assert pass_any([], 1) is None
    assert pairwise_agreement("A") is None
    assert modal_share([]) is None
    assert modal_share("AAB") == pytest.approx(2 / 3)
    assert paraphrase_drop(0, [1]) is None
    assert worst_case_drop(0.8, [0.7, 0.4]) == pytest.approx(0.5)
    assert variance_components([[1, 2]]) is None
    assert variance_component(1, 2, 2) == Components(0.0, 2, 0.0, ("negative component",))


def test_a_collapsed_policy_tells_nothing_of_its_prompt() -> None:
    same = [[-1.0, -1.0, -1.0]] * 3
    assert mutual_information(same) == pytest.approx(0)
    assert retrieval_accuracy(same) == pytest.approx(1 / 3)
    apart = [[0.0 if i == j else -800.0 for j in range(8)] for i in range(8)]
    assert mutual_information(apart) == pytest.approx(log(8))
    assert retrieval_accuracy(apart) == 1


def test_equal_prompts_share_credit() -> None:
    scores = [[0.0, 0.0, -9.0]] * 2 + [[-9.0, -9.0, 0.0]]
    assert retrieval_accuracy(scores) == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert retrieval_accuracy(scores, prompts=["a", "a", "b"]) == 1
    assert chance(3, prompts=["a", "a", "b"]) == pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 3)
    assert chance(8, 4) == pytest.approx(0.5)


def test_components_are_recovered() -> None:
    luck = Random(3)
    groups = []
    for _ in range(300):
        own = luck.gauss(0, 2)
        groups.append([own + luck.gauss(0, 1) for _ in range(luck.randint(2, 6))])
    found = variance_components(groups)
    assert found is not None
    assert found.between == pytest.approx(4, rel=0.2)
    assert found.within == pytest.approx(1, rel=0.1)


@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=4), min_size=2, max_size=5), st.randoms())
def test_the_order_of_groups_does_not_matter(groups: list[list[int]], luck: Random) -> None:
    mixed = [luck.sample(group, len(group)) for group in luck.sample(groups, len(groups))]
    one, other = variance_components(groups), variance_components(mixed)
    assert one is not None
    assert other is not None
    assert one[:2] == pytest.approx(other[:2], abs=1e-9)


@given(st.integers(1, 8), st.integers(0, 8), st.integers(1, 8))
def test_more_tries_make_any_easier_and_all_harder(n: int, c: int, k: int) -> None:
    c, k = min(c, n), min(k, n)
    assert (pass_all([(n, c)], k) or 0) <= c / n + 1e-12
    assert (pass_any([(n, c)], k) or 0) >= c / n - 1e-12
    assert pass_all([(n, c)], 1) == pytest.approx(c / n)
    assert pass_any([(n, c)], 1) == pytest.approx(c / n)
