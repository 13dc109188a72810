"""What was allowed where."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training.tiny import END, MASK, mask, row
from training.constraint import choice_masks, distribution
from training.forward import ragged_entropy, ragged_log_softmax

OPTIONS = ("ab", "ac", "d")
LOGITS = st.floats(-30, 30, width=32)


def test_a_choice_has_the_mask_of_its_options() -> None:
    chosen = row((5,), (10, 12, END), options=OPTIONS, distribution="processed", temperature=0.7)
    support = distribution(chosen, mask)
    assert support.allowed == MASK.along(chosen.ids) == ((10, 13), (11, 12), (END,))
    assert support.temperature == 0.7


def test_free_text_has_the_whole_vocabulary() -> None:
    raw = distribution(row((5,), (7,), distribution="raw", temperature=0.7), mask)
    assert raw == (None, 1.0, ()), "raw log-probabilities are the model's own, whatever the temperature"
    assert distribution(row((5,), (7,), temperature=0.7), mask) == (None, 0.7, ())


def test_masked_free_text_is_refused() -> None:
    text = row((5,), (7,), distribution="processed", temperature=0.7, seat="ann", turn=3)
    with pytest.raises(ValueError, match=r"'ann', turn 3.*masked free text"):
        distribution(text, mask)
    assert distribution(text, mask, unmasked=True) == (None, 0.7, ())


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ValueError, match="without it"):
        distribution(row((5,), (13, END), options=OPTIONS, distribution="raw", logprobs=(-1.0, 0.0)), mask)
    with pytest.raises(ValueError, match="token 20 at position 1"):
        distribution(row((5,), (10, 20), options=OPTIONS, distribution="processed"), mask)
    with pytest.raises(ValueError, match="temperature 0"):
        distribution(row((5,), (13, END), options=OPTIONS, temperature=0.0), mask)


def test_a_mask_is_made_once() -> None:
    masks = choice_masks(lambda text: [ord(char) for char in text], END)
    assert masks(OPTIONS) is masks(OPTIONS)


@given(st.lists(st.lists(LOGITS, min_size=1, max_size=5), min_size=1, max_size=5))
def test_ragged_log_softmax_is_log_softmax_of_each(logits: list[list[float]]) -> None:
    query_k = torch.tensor([query for query, each in enumerate(logits) for _ in each])
    logprobs_k = ragged_log_softmax(torch.tensor([x for each in logits for x in each]), query_k, len(logits))
    wanted = [torch.tensor(each).log_softmax(-1) for each in logits]
    torch.testing.assert_close(logprobs_k, torch.cat(wanted), rtol=1e-5, atol=1e-5)
    entropy_q = ragged_entropy(logprobs_k, query_k, len(logits))
    torch.testing.assert_close(entropy_q, torch.stack([-(x.exp() * x).sum() for x in wanted]), rtol=1e-4, atol=1e-5)


def test_ragged_log_softmax_by_hand() -> None:
    logprobs_k = ragged_log_softmax(torch.tensor([0.0, math.log(3.0), 7.0]), torch.tensor([0, 0, 1]), 2)
    assert logprobs_k.exp().tolist() == pytest.approx([0.25, 0.75, 1.0])
