"""A tiny model, and a training on it after one update; a tokenizer that is read once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from sim.commands.cli import app
from sim.commands.failures import exit_code
from tests.training.typed import asked


@pytest.fixture(scope="session", autouse=True)
def one_tokenizer() -> Iterator[None]:
    """Tiny models have all the embedded model's, whose 3.5 MB take longer to read than to copy: each has a copy."""
    read = AutoTokenizer.from_pretrained
    known: dict[tuple[bytes, ...], Any] = {}

    def copied(folder: str | Path) -> Any:
        files = tuple(one.read_bytes() for one in sorted(Path(folder).glob("*token*")) if one.is_file())
        if files not in known:
            known[files] = read(folder)
        return deepcopy(known[files])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutoTokenizer, "from_pretrained", copied)
        yield


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers with random weights."""
    from training.policy import tiny_model

    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", seed=1, width=32)


@pytest.fixture(scope="session")
def once(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training's folder, only to be read."""
    folder = tmp_path_factory.mktemp("once") / "kuhn"
    words = [*asked(model, out=str(folder)), "--updates", 1]
    assert exit_code(lambda: app(args=[str(word) for word in words])) == 0
    return folder


@pytest.fixture
def kuhn(once: Path, tmp_path: Path) -> Path:
    """A copy of it in the test's folder, which has to be the current one."""
    shutil.copytree(once, tmp_path / "kuhn")
    return Path("kuhn")
