"""The history of entropies that the band's middle comes from, by hand."""

from __future__ import annotations

import pytest

from tests.training.tiny import row
from training.entropies import centres, extended
from training.readout import Said


def said(*entropies: float) -> Said:
    return Said(tuple(0.0 for _ in entropies), entropies)


def test_a_turn_has_the_mean_of_its_tokens_so_far() -> None:
    rows = [
        row((1,), (2, 3), policy="duel@1", turn=0),
        row((1,), (4,), policy="duel@2", turn=0),
        row((1,), (4,), policy="duel@2", turn=1),
    ]
    history = extended({}, rows, [said(1.0, 2.0), said(6.0), said(5.0)])
    assert history == {"duel 0": (9.0, 3), "duel 1": (5.0, 1)}
    assert centres(history, rows, [said(1.0, 2.0), said(6.0), said(5.0)]) == [(3.0, 3.0), (3.0,), (5.0,)]
    later = extended(history, rows[:1], [said(1.0, 2.0)])
    assert later == {"duel 0": (12.0, 5), "duel 1": (5.0, 1)}


def test_tokens_without_an_alternative_count_in_no_mean_and_have_no_band() -> None:
    rows = [row((1,), (2, 3), policy="duel@1")]
    history = extended({}, rows, [said(0.5, 0.0)])
    assert history == {"duel 0": (0.5, 1)}
    assert centres(history, rows, [said(0.5, 0.0)]) == [(0.5, 0.0)]


@pytest.mark.parametrize("changes", [{"trained": False}, {"how": "defaulted"}])
def test_what_cannot_be_learnt_from_is_no_history(changes: dict[str, object]) -> None:
    assert extended({}, [row((1,), (2,), policy="duel@1", **changes)], [said(1.0)]) == {}
