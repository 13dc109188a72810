"""The embedded model's folder: whole or absent, made once, checked. The converter is replaced; it has its own test."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents.engines import embedded

WEIGHTS = b"weights" * 1000


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A cache of its own and a small package file; the list counts conversions."""
    source = tmp_path / "model.gguf"
    source.write_bytes(b"gguf")
    calls: list[Path] = []

    def convert(gguf: Path, target: Path, step: embedded.Step) -> None:
        calls.append(gguf)
        (target / "model.safetensors").write_bytes(WEIGHTS)
        (target / "config.json").write_text("{}")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(embedded, "SHA256", hashlib.sha256(b"gguf").hexdigest())
    monkeypatch.setattr(embedded, "package_file", lambda: source)
    monkeypatch.setattr(embedded, "_convert", convert)
    return calls


def test_it_is_made_once_even_by_several_at_once(made: list[Path]) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _n: embedded.embedded_model(show=False), range(8)))
    (folder,) = folders
    assert len(made) == 1
    assert folder.name == f"SmolLM2-135M-Instruct-{embedded.SHA256[:8]}"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "manifest.json", "model.safetensors"]
    assert embedded.verify_embedded() == folder


def test_a_shortened_file_or_an_edited_manifest_has_it_made_again(made: list[Path]) -> None:
    folder = embedded.embedded_model(show=False)
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1])
    assert not embedded.intact(folder)
    assert embedded.embedded_model(show=False) == folder
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["config.json"]["size"] = 3
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert not embedded.intact(folder)
    embedded.embedded_model(show=False)
    assert len(made) == 3


def test_a_changed_byte_is_found_by_the_full_check(made: list[Path]) -> None:
    folder = embedded.embedded_model(show=False)
    (folder / "model.safetensors").write_bytes(b"W" + WEIGHTS[1:])
    assert embedded.intact(folder)
    with pytest.raises(embedded.EmbeddedModelError, match=r"model\.safetensors is damaged; delete"):
        embedded.verify_embedded()


def test_an_interrupted_conversion_leaves_nothing(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(gguf: Path, target: Path, step: embedded.Step) -> None:
        (target / "model.safetensors").write_bytes(WEIGHTS[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "_convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embedded.embedded_model(show=False)
    assert [path for path in embedded.cache().iterdir() if path.is_dir()] == []


def test_another_file_in_the_package_is_refused(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "SHA256", "0" * 64)
    with pytest.raises(embedded.EmbeddedModelError, match="not the file this version was made for"):
        embedded.embedded_model(show=False)


def test_a_missing_package_is_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package")
    with pytest.raises(embedded.EmbeddedModelError) as caught:
        embedded.package_file()
    assert str(caught.value) == f"the embedded model's package is not installed: {embedded.INSTALL}"


@pytest.mark.model
def test_its_tokenizer_takes_turns_with_single_tokens() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(embedded.embedded_model(show=False))
    assert tokenizer.encode("<|im_start|>user\nHello<|im_end|>\n") == [1, 4093, 198, 19556, 2, 198]
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    chat = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert text == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n"
