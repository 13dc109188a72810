"""How the numbers came about: what each metric is, how intervals are made, which software ran, what is hidden."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from types import ModuleType
from typing import Any

from sim.intervals import none_upper, wilson
from sim.metrics.statistics.clusters import geometric_mean, mean, ratio
from sim.report.model import Block, Entry, Glossary, Line, Note, Section, Table
from sim.report.numbers import anchor
from sim.types import JSON, Metric

INTERVALS: Mapping[str, Callable[..., Any]] = {
    "t over clusters": ratio,
    "t over runs": mean,
    "t on logs": geometric_mean,
    "t on pairs": mean,
    "exact, one-sided": none_upper,
    "wilson": wilson,
    "t": mean,
}
"""Who makes an interval, by what the name of its method begins with."""
UNKNOWN = "Measured by a metric of another time or place."
SIGNS = (
    ("n", "units that a number is made of"),
    ("clusters", "independent runs or tables among them; what happens within one hangs together"),
    ("–", "no value: the denominator is 0"),
    ("n_clusters<2", "no interval, for one run or table says nothing of the spread between"),
    ("left out", "what a number does not count, and how often, by reason"),
)


def method_section(metrics: Iterable[Metric], lines: Sequence[Line], versions: Mapping[str, JSON]) -> Section:
    """Notes on everything that stands in a report."""
    blocks: list[Block] = [
        Glossary(title="Columns", entries=tuple(Entry(anchor="", name=name, text=text) for name, text in SIGNS)),
        Glossary(title="What each measure is", entries=tuple(_measures(list(metrics), lines))),
        Glossary(title="How intervals are made (95%)", entries=tuple(_intervals(lines))),
        Note(
            text="Each number is computed from the stored run alone, as `agora measure` does. Where a run has several "
            "tables these are its clusters; what several runs come to is the mean over runs with one seed a cluster."
        ),
        _software(versions),
    ]
    return Section(anchor="method", title="How these numbers came about", blocks=tuple(blocks))


def _measures(metrics: Sequence[Metric], lines: Sequence[Line]) -> Iterable[Entry]:
    modules = list(dict.fromkeys(sys.modules[one.__module__] for one in metrics if one.__module__ in sys.modules))
    found: dict[str, Line] = {}
    for one in lines:
        if not found.get(one.metric) or not found[one.metric].denominator:
            found[one.metric] = one
    for name, line in sorted(found.items()):
        text = described(name, modules)
        share = f" Out of: {line.denominator}." if line.denominator else ""
        yield Entry(anchor=anchor(name), name=name, text=f"{text}{share} (version {line.version})")


def described(metric: str, modules: Iterable[ModuleType]) -> str:
    """The docstring of the function that yields a metric: the one of its name, else one that spells its name."""
    last = metric.rpartition(".")[2]
    made = sorted((one for module in modules for one in _functions(module)), key=lambda one: one.__name__[0] == "_")
    named = (one for one in made if one.__name__ == last)
    spelt = (one for words in _spellings(metric) for one in made if words in _source(one))
    first = next(named, None) or next(spelt, None)
    return " ".join((inspect.getdoc(first) or "").split()) if first else UNKNOWN


def _spellings(metric: str) -> list[str]:
    """How a source may write a metric's name, the surest first: whole, without its family, or only its last words."""
    last = metric.rpartition(".")[2]
    words = last.split("_")
    return [f'"{metric}"', f'"{last}"', *(f'_{"_".join(words[k:])}"' for k in range(1, len(words)))]


def _functions(module: ModuleType) -> list[Callable[..., Any]]:
    """Documented functions that a module defines."""
    own = (one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__)
    return [one for one in own if one.__doc__]


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except OSError:
        return ""


def _intervals(lines: Sequence[Line]) -> Iterable[Entry]:
    for name in sorted({one.ci_method for one in lines if one.ci_method}):
        maker = next((maker for start, maker in INTERVALS.items() if name.startswith(start)), None)
        text = " ".join((inspect.getdoc(maker) or "").split()) if maker else "As the metric itself says."
        yield Entry(anchor="", name=name, text=text)


def _software(versions: Mapping[str, JSON]) -> Table:
    rows = [(name, str(found)) for name, found in versions.items()]
    rows.append(("agora-sim (this report)", version("agora-sim")))
    return Table(title="Software", heads=("package", "version"), rows=tuple(rows))
