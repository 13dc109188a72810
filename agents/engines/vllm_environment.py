"""What vLLM reads from the environment, and where it and its child processes may write: a log file, not the terminal.

The log names the cause of a failure. With AGORA_DEBUG set, all of it goes to the terminal instead.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sim.cores import cores

PARENT = "AGORA_VLLM_PARENT"
"""Environment variable with the process id of the program: when it is gone, so are the workers."""
LOG = "vllm.log"

_KV_CACHE_GIB = "2"
_FAILURE = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception): |died unexpectedly|^terminate called")


@contextlib.contextmanager
def environment(folder: Path, offline: bool) -> Iterator[None]:
    """What vLLM reads from the environment and its children inherit; what it leaves behind there is taken back."""
    before, options = dict(os.environ), sys.warnoptions[:]
    ours = {
        "HF_HUB_OFFLINE": str(int(offline)),
        "VLLM_CPU_KVCACHE_SPACE": _KV_CACHE_GIB,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore",
    }
    if _is_cpu_build():
        # Unpinned, or two engines would share one core. The scheduler's process gets a core of its own where there
        # are more than two; of two, leaving one idle costs more (64 prompts: 47 s against 27 s).
        there = cores()
        ours |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(there - 1 if there > 2 else there)}
        # Small functions would otherwise be compiled at their first call, by a C++ compiler.
        ours["TORCHDYNAMO_DISABLE"] = "1"
    for name, value in ours.items():
        os.environ.setdefault(name, value)
    os.environ[PARENT] = str(os.getpid())
    quiet = not os.environ.get("AGORA_DEBUG")
    if quiet:
        os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_CONFIG_PATH": _log_to(folder)}
        logging.getLogger("vllm").setLevel(logging.ERROR)
    # Spawned children take over the interpreter's -W options; vLLM's own code warns.
    sys.warnoptions.clear()
    try:
        with warnings.catch_warnings(), _errors_to(folder / LOG) if quiet else contextlib.nullcontext():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.warnoptions[:] = options
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextlib.contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Standard error goes to the log meanwhile, and that of the processes started meanwhile for good."""
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _log_to(folder: Path) -> str:
    """A logging configuration that sends vLLM's errors to a file of the folder."""
    config = folder / "logging.json"
    handler = {"class": "logging.FileHandler", "filename": str(folder / LOG), "formatter": "line"}
    logger = {"handlers": ["file"], "level": "ERROR", "propagate": False}
    value = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(message)s"}},
        "handlers": {"file": handler},
        "loggers": {"vllm": logger},
    }
    config.write_text(json.dumps(value))
    return str(config)


def first_failure(folder: Path) -> str:
    """The first failure in the folder's log; those after it are its consequences."""
    try:
        lines = (folder / LOG).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in lines if _FAILURE.search(line)), "")


def _is_cpu_build() -> bool:
    """Whether vLLM is the CPU's own build, told before it is imported."""
    with contextlib.suppress(PackageNotFoundError):
        return bool(version("vllm-cpu"))
    return False
