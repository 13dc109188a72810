"""The model that tests share: the embedded one, served by vLLM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.engines.vllm import VLLMEngine

PLACES = 16
"""Requests that the engine works on at once."""


@pytest.fixture(scope="session")
def embedded_engine() -> Iterator[VLLMEngine]:
    """The base model alone: on a CPU, room for adapters makes every call several times slower."""
    engine = VLLMEngine("embedded", max_num_seqs=PLACES)
    yield engine
    engine.close()
