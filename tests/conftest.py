"""The models that tests share: the embedded one, served by vLLM, and a tiny one for torch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from agents.engines.vllm import VLLMEngine
from sim.commands.cli import app
from sim.commands.failures import exit_code
from tests.commands import Agora, Process, Said

settings.register_profile("agora", deadline=None)  # machines are slow at times; that is no defect
settings.load_profile("agora")

PLACES = 16
"""Requests that the engine works on at once."""


RANK = 8
ADAPTERS = 7
"""Adapters that the engine has places for."""
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What ends the engine that all share comes last."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def before_engine() -> tuple[set[threading.Thread], set[int]]:
    """Threads and child processes that were there before the engine."""
    return set(threading.enumerate()), children()


@pytest.fixture(scope="session")
def embedded_engine(before_engine: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMEngine]:
    """The one vLLM engine of all tests, for starting one takes a minute.

    In float32, so that it says the same on every CPU, and the same as torch but for little. Policies: the base model,
    `same@1` (an adapter that changes nothing) and `other@1` (one that does).
    """
    root = tmp_path_factory.mktemp("adapters")
    adapters = {"same@1": str(adapter(root / "same", 0.0)), "other@1": str(adapter(root / "other", 5.0))}
    engine = VLLMEngine(
        "embedded",
        dtype="float32",
        max_num_seqs=PLACES,
        adapters=adapters,
        max_adapters=ADAPTERS,
        max_lora_rank=RANK,
        lora_modules=ATTENTION,
    )
    yield engine
    engine.close()


def adapter(folder: Path, size: float, layer: str = "self_attn.q_proj") -> Path:
    """A LoRA of one of the embedded model's first layers (576 wide) with entries of one size."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True)
    width, name = 576, f"base_model.model.model.layers.0.{layer}"
    weights = {
        f"{name}.lora_A.weight": torch.full((RANK, width), 0.1, dtype=torch.bfloat16),
        f"{name}.lora_B.weight": torch.full((width, RANK), size, dtype=torch.bfloat16),
    }
    save_file(weights, folder / "adapter_model.safetensors")
    target = layer.rpartition(".")[2]
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": [target], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def children() -> set[int]:
    """Processes below this one, but for Python's own tracker."""
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(child.cmdline())
    }


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


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts commands; what still runs at the end is killed."""
    all_of_them: list[Process] = []

    def start(*args: object) -> Process:
        all_of_them.append(Process(tmp_path, *args))
        return all_of_them[-1]

    yield start
    for process in all_of_them:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()
