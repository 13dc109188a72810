"""Free text is learnt from as it was sampled: within its bounds, among the tokens that these left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace
from transformers import AutoModelForCausalLM

from agents.engines.torch import TorchEngine
from sim.types import Message, Request, Sampling, Text
from tests.training.tiny import mask
from training.constraint import distribution
from training.forward import predict
from training.packing import pack
from training.rows import Sample
from training.trajectory import Row


@pytest.fixture(scope="module")
def engine(tiny_folder: Path, one_thread: None) -> Iterator[TorchEngine]:
    made = TorchEngine(str(tiny_folder), max_model_len=512, threads=1)
    yield made
    made.close()


def said(engine: TorchEngine, chars: int, tokens: int, seed: int) -> Row:
    asked = Request(
        messages=(Message(role="user", text="Write."),),
        format=Text(max_chars=chars),
        sampling=Sampling(temperature=0.7, max_tokens=tokens),
        seed=seed,
    )
    completion = engine.submit(asked).result()
    return Row(
        episode="run:0",
        prompt=completion.prompt_ids,
        ids=completion.ids,
        logprobs=completion.logprobs,
        distribution=completion.distribution,
        temperature=0.7,
        bounds=(chars, tokens),
    )


@pytest.mark.parametrize(("chars", "tokens"), [(12, 8), (3, 6), (60, 5)])
def test_the_learner_says_of_a_text_what_its_engine_said(
    engine: TorchEngine, tiny_folder: Path, chars: int, tokens: int
) -> None:
    module = AutoModelForCausalLM.from_pretrained(tiny_folder, attn_implementation="sdpa")
    for seed in range(3):
        row = said(engine, chars, tokens, seed)
        support = distribution(row, mask, engine.banned)
        sample = Sample(prompt=row.prompt, ids=row.ids, banned=support.banned, temperature=support.temperature)
        (batch,) = pack([sample], 4096)
        found = predict(module, batch, entropy=True)
        assert found.logprobs_n.tolist() == pytest.approx(row.logprobs, abs=2e-5)
        assert found.entropy_n.isfinite().all()
        found.logprobs_n.sum().backward()
        gradients = [each.grad for each in module.parameters() if each.grad is not None]
        assert gradients
        assert all(torch.isfinite(each).all() for each in gradients)


def test_near_its_bound_a_text_has_hardly_a_choice_and_what_was_banned_is_refused(engine: TorchEngine) -> None:
    row = said(engine, 3, 20, 0)
    banned = engine.banned((3, 20), row.ids)
    assert len(banned) == len(row.ids)
    assert len(banned[-1]) > len(banned[0])
    broken = replace(row, ids=(banned[0][0], *row.ids[1:]))
    with pytest.raises(ValueError, match=f"token {banned[0][0]} at position 0 is not allowed"):
        distribution(broken, mask, engine.banned)
