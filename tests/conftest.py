"""The models that tests share: the embedded one, served by vLLM, and a tiny one for torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from agents.engines.vllm import VLLMEngine
from sim.commands.cli import app
from sim.commands.failures import exit_code
from tests.commands import Agora, Said

settings.register_profile("agora", deadline=None)  # machines are slow at times; that is no defect
settings.load_profile("agora")

PLACES = 16
"""Requests that the engine works on at once."""


@pytest.fixture(scope="session")
def embedded_engine() -> Iterator[VLLMEngine]:
    """The base model alone: on a CPU, room for adapters makes every call several times slower."""
    engine = VLLMEngine("embedded", max_num_seqs=PLACES)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """More threads only wait for each other in a model as small as the tests'."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers with random weights and the embedded model's tokenizer."""
    from training.policy import tiny_model

    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1)


@pytest.fixture
def agora(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Agora:
    """Runs a command in this process; its runs are in the test's folder."""
    monkeypatch.setenv("AGORA_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Said:
        code = exit_code(lambda: app(args=[str(arg) for arg in args], prog_name="agora"))
        shown = capsys.readouterr()
        return Said(code, shown.out, shown.err)

    return call
