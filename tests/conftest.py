"""The one model that tests share: the embedded one, served by vLLM, with two adapters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.engines.vllm import VLLMEngine

RANK = 8
PLACES = 16
"""Requests that the engine works on at once."""


@pytest.fixture(scope="session")
def embedded_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMEngine]:
    """Policies: the base model, `same@1` (an adapter that changes nothing) and `other@1` (one that does)."""
    root = tmp_path_factory.mktemp("adapters")
    adapters = {"same@1": str(adapter(root / "same", 0.0)), "other@1": str(adapter(root / "other", 5.0))}
    engine = VLLMEngine("embedded", max_num_seqs=PLACES, adapters=adapters, max_lora_rank=RANK)
    yield engine
    engine.close()


def adapter(folder: Path, size: float) -> Path:
    """A LoRA of the embedded model's first query projection with entries of one size."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    width = 576
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    weights = {
        f"{name}.lora_A.weight": torch.full((RANK, width), 0.1, dtype=torch.bfloat16),
        f"{name}.lora_B.weight": torch.full((width, RANK), size, dtype=torch.bfloat16),
    }
    save_file(weights, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["q_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder
