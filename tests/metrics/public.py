"""Every public metric: what `measure:` and `--across` can name in `sim.metrics` and in the worlds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OF_A_RECORD, OF_RUNS = "Record", "Sequence[Relative]"
HELPERS = ("sim.metrics.chosen", "sim.metrics.simulated", "sim.metrics.statistics", "sim.metrics.twins")
"""Modules whose functions make metrics of metrics, or numbers of numbers."""


@cache
def public(of: str) -> dict[str, Callable[[Any], Any]]:
    """By dotted path, the functions that make measurements of one record, or of several runs."""
    return {
        f"{module}:{name}": function
        for module in _modules()
        for name, function in vars(import_module(module)).items()
        if inspect.isfunction(function) and function.__module__ == module and _is_metric(name, function, of)
    }


def _modules() -> Iterator[str]:
    for folder in ("sim/metrics", "worlds"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not module.endswith("__init__") and not module.startswith(HELPERS):
                yield module


def _is_metric(name: str, function: Callable[..., Any], of: str) -> bool:
    """Public, all of its arguments but the first have defaults, and it gives measurements."""
    signature = inspect.signature(function)
    arguments = list(signature.parameters.values())
    return (
        not name.startswith("_")
        and [str(one.annotation) for one in arguments if one.default is one.empty] == [of]
        and bool(re.fullmatch(r"(Iterable|Iterator)\[Measurement\]", str(signature.return_annotation)))
    )
