"""How the numbers came about: what each metric is, how intervals are made, which software ran, what is hidden."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from types import ModuleType
from typing import Any

from sim.intervals import BOUNDS, DEPENDENT, none_upper, wilson
from sim.metrics.statistics import censored
from sim.metrics.statistics.clusters import geometric_mean, mean, ratio
from sim.report.model import Block, Entry, Glossary, Line, Note, Section, Table
from sim.report.numbers import NO_INTERVAL, ONE_CLUSTER, anchor
from sim.types import JSON, Metric

INTERVALS: Mapping[str, Callable[..., Any] | str] = {
    "t over clusters": ratio,
    "t over runs": mean,
    "t on logs": geometric_mean,
    "t on pairs": mean,
    "t, sandwich": "Student's t with standard errors that let what happens at one table hang together (sandwich).",
    "t, jackknife": "Student's t with the standard error of leaving out each cluster in turn (jackknife).",
    "normal on logs": "Normal on the scale of logarithms, by the delta method.",
    "bootstrap": "The middle 95% of the values found when what it is over is drawn anew, with replacement.",
    "centred bootstrap": "The middle 95% of values found with tables drawn anew, their mean moved to the value.",
    "parametric bootstrap": "The middle 95% of the values found on data drawn from the fitted model.",
    "log(−log)": "Normal on the scale of log(−log) of the curve, which keeps it between 0 and 1.",
    "profile likelihood": "All values that make the data hardly less likely than the best one does, by chi-square with "
    "all else at its best (profile likelihood); at an edge a bound on one side. Rows are taken for independent.",
    "Tobit": censored.mean,
    "credible": "The middle 95% of a belief after the data: of a normal skill or rating, or of policies by Dirichlet.",
    BOUNDS: "No 95% interval: from all that is unknown having failed to all of it having worked.",
    "Newcombe": "Of a difference of two shares, from Wilson's intervals of both (Newcombe 1998).",
    "exact, one-sided": none_upper,
    "wilson": wilson,
    "t": mean,
}
"""How an interval is made, or who makes it, by what the name of its method begins with."""
OURS = "sim"
"""Package whose modules metrics are built of."""
AS_IT_SAYS = "As the metric itself says."
UNKNOWN = "Measured by a metric of another time or place."
SIGNS = (
    ("n", "units that a number is made of"),
    ("clusters", "independent runs, tables, or pairs at these, among them; what happens within one hangs together"),
    ("–", "no value: the notes say why"),
    (NO_INTERVAL, "a single run or table says nothing of the spread between them"),
    (ONE_CLUSTER, "others may differ by more than what is drawn anew within this one"),
    (DEPENDENT, "the bound takes all n for independent, and is too near where they hang together"),
    (
        "luck shared",
        "variance of a difference without pairs over that with them; at 1 or less, shared luck did not help",
    ),
    (
        "a turn of one alone",
        "the first turn that one run of a pair has and the other has not: the luck of its think time and of its calls "
        "stands beside nothing",
    ),
    (
        "two answers to one request",
        "the first call that both runs of a pair made alike, seed and weights included, and that came back otherwise",
    ),
    ("turns of both", "share of the turns of either run of a pair that both have"),
    ("left out", "what a number does not count, and how often, by reason"),
    ("test of no effect", "p of a value as far from none as this one where there is no effect, in brackets how"),
)


def method_section(metrics: Iterable[Metric], lines: Sequence[Line], versions: Mapping[str, JSON]) -> Section:
    """Notes on everything that stands in a report."""
    blocks: list[Block] = [
        Glossary(title="Columns", entries=tuple(Entry(anchor="", name=name, text=text) for name, text in SIGNS)),
        Glossary(title="What each measure is", entries=tuple(_measures(list(metrics), lines))),
        *_how_intervals(lines),
        Note(
            text="Each number is computed from the stored run alone, as “agora measure” does. Where a run has several "
            "tables these are its clusters, or the pairs at them that meet nobody else; what several runs come to is "
            "the mean over runs with one seed a cluster."
        ),
        _software(versions),
    ]
    return Section(anchor="method", title="How these numbers came about", blocks=tuple(blocks))


def _measures(metrics: Sequence[Metric], lines: Sequence[Line]) -> Iterable[Entry]:
    modules = reached([sys.modules[one.__module__] for one in metrics if one.__module__ in sys.modules])
    found: dict[str, Line] = {}
    for one in lines:
        if not found.get(one.metric) or not found[one.metric].denominator:
            found[one.metric] = one
    for name, line in sorted(found.items()):
        text = described(name, modules)
        share = f" Out of: {line.denominator}." if line.denominator else ""
        yield Entry(anchor=anchor(name), name=name, text=f"{text}{share} (version {line.version})")


def reached(modules: Iterable[ModuleType]) -> list[ModuleType]:
    """These modules and all of ours, or of the same package, whose functions and classes they use, in that order."""
    found = list(dict.fromkeys(modules))
    packages = {one.__name__.partition(".")[0] for one in found} | {OURS}
    for module in found:  # grows meanwhile
        used = {str(getattr(one, "__module__", "")) for one in vars(module).values()}
        near = sorted(name for name in used if name.partition(".")[0] in packages and name in sys.modules)
        found += [sys.modules[name] for name in near if sys.modules[name] not in found]
    return found


def described(metric: str, modules: Sequence[ModuleType]) -> str:
    """What a metric is, by the docstrings of those modules that write its name, or its family and a dot.

    That of their function of its name; else of one that spells the name, and not only that of another of the family;
    else of a function of its name that they use; else what such a module says of itself, in a sentence.
    """
    family, dot, last = metric.rpartition(".")
    starts = (f'"{family}.',) if dot else tuple(_spellings(metric))
    writing = [one for one in modules if any(start in _source(one) for start in starts)]
    made = sorted((one for module in writing for one in _functions(module)), key=lambda one: one.__name__[0] == "_")
    another, any_of = (re.compile(rf'"{re.escape(family)}\.\w*{mark}') for mark in ('"', r"\{"))
    own = [one for one in made if any_of.search(_source(one)) or not (dot and another.search(_source(one)))]
    whole, *parts = _spellings(metric)
    found: list[ModuleType | Callable[..., Any]] = [
        *(one for one in made if one.__name__ == last),
        *(one for one in made if whole in _source(one)),
        *(one for words in parts for one in own if words in _source(one)),
        *(used for one in writing if inspect.isfunction(used := vars(one).get(last)) and used.__doc__),
        *(one for one in writing if one.__doc__),
    ]
    return _said(found[0]) if found else UNKNOWN


def _said(one: ModuleType | Callable[..., Any]) -> str:
    """A docstring on one line; of a module only what stands before its first empty line."""
    said = (inspect.getdoc(one) or "").replace("`", "")
    return " ".join((said.partition("\n\n")[0] if inspect.ismodule(one) else said).split())


def _spellings(metric: str) -> list[str]:
    """How a source may write a metric's name, the surest first: whole, without its family, or only its last words."""
    last = metric.rpartition(".")[2]
    words = last.split("_")
    return [f'"{metric}"', f'"{last}"', *(f'_{"_".join(words[k:])}"' for k in range(1, len(words)))]


def _functions(module: ModuleType) -> list[Callable[..., Any]]:
    """Documented functions that a module defines."""
    own = (one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__)
    return [one for one in own if one.__doc__]


@lru_cache(maxsize=4096)
def _source(one: ModuleType | Callable[..., Any]) -> str:
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):
        return ""


def _how_intervals(lines: Sequence[Line]) -> list[Block]:
    entries = tuple(_intervals(lines))
    return [Glossary(title="How intervals are made (95%)", entries=entries)] if entries else []


def _intervals(lines: Sequence[Line]) -> Iterable[Entry]:
    for name in sorted({one.ci_method for one in lines if one.ci_method}):
        maker = next((maker for start, maker in INTERVALS.items() if name.startswith(start)), AS_IT_SAYS)
        text = maker if isinstance(maker, str) else _said(maker)
        yield Entry(anchor="", name=name, text=text)


def _software(versions: Mapping[str, JSON]) -> Table:
    rows = [(name, str(found)) for name, found in versions.items()]
    rows.append(("agora-sim (this report)", version("agora-sim")))
    return Table(title="Software", heads=("package", "version"), rows=tuple(rows))
