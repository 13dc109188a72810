"""A report from stored runs: what has to be known first, what they come to together, each alone, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from sim.report.gather import Gathered, gather
from sim.report.method import method_section
from sim.report.model import Line, Measures, Note, Part, Report, Section, Table
from sim.report.several import together

DETAILED = 12
"""Most runs that have a part of their own."""
HIDDEN = (
    "The values of {count} secrets are hidden, wherever one stands as it is written, and texts are hidden whole that "
    "tell one otherwise, as far as the search of the metrics finds it. Prompts and raw answers of models are in no "
    "report. "
    "Names, personas, private values and everything else that was said are there: read it before you pass it on. "
    "With --show-secrets a report has the values."
)
SHOWN = "The values of secrets are shown in this report."


def composed(
    paths: Sequence[Path],
    command: str,
    show_secrets: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Report:
    """Measure runs and put everything together. `step` hears what is being done, about each run in turn."""
    runs = []
    for number, path in enumerate(paths, 1):
        runs.append(gather(path, f"r{number}", show_secrets, lambda what, name=path.stem: step(f"{what} {name}")))  # type: ignore[misc]
    sections = together(runs) if len(runs) > 1 else []
    parts = [_with_facts(one, number) for number, one in enumerate(runs[:DETAILED], 1)]
    reported = [*sections, *(section for part in parts for section in part.sections)]
    metrics = list(dict.fromkeys(metric for one in runs for metric in one.metrics))
    versions = {key: value for one in runs for key, value in one.manifest.versions.items()}
    return Report(
        title=_title(runs),
        what=_what(runs),
        command=command,
        version=version("agora-sim"),
        secrets_shown=show_secrets,
        verdict=tuple(_verdict(runs)),
        notes=tuple(_notes(runs, show_secrets)),
        together=tuple(sections),
        parts=tuple(parts),
        method=(method_section(metrics, _lines(reported), versions),),
    )


def _lines(sections: Sequence[Section]) -> list[Line]:
    blocks = [block for section in sections for block in section.blocks if isinstance(block, Measures)]
    return [line for block in blocks for line in (*block.lines, *block.more)]


def _with_facts(one: Gathered, number: int) -> Part:
    """A run's part, what it is after how honest it is."""
    table = Table(title="", heads=("what", "value"), rows=one.facts)
    about = Section(anchor=f"r{number}-run", title="The run", blocks=(table,))
    honesty, *rest = one.part.sections
    return Part(run=one.part.run, verdict=one.part.verdict, sections=(honesty, about, *rest))


def _title(runs: Sequence[Gathered]) -> str:
    if len(runs) == 1:
        return f"Report on {runs[0].manifest.id}"
    names = list(dict.fromkeys(one.manifest.name for one in runs))
    return f"Report on {len(runs)} runs of {', '.join(names[:4])}" + (" and more" if len(names) > 4 else "")


def _what(runs: Sequence[Gathered]) -> str:
    facts = [dict(one.facts) for one in runs]
    if len(runs) == 1:
        one = facts[0]
        tokens = f"; tokens: {one['tokens']}" if one["model calls"] != "0" else ""
        return (
            f"{one['scenario']}, {one['world']}, seed {one['seed']}, {one['models']}; {one['status']} after "
            f"{one['simulated time']} of simulated time, {one['decisions']} decisions{tokens}"
        )
    seeds = len({one["seed"] for one in facts})
    done = sum(one.status == "finished" for one in runs)
    return f"{len(runs)} runs with {seeds} seed{'s' * (seeds > 1)}, {done} of them finished"


def _verdict(runs: Sequence[Gathered]) -> list[str]:
    if len(runs) == 1:
        return list(runs[0].part.verdict)
    return [f"{one.manifest.id}: {reason}" for one in runs for reason in one.part.verdict]


def _notes(runs: Sequence[Gathered], show_secrets: bool) -> list[Note]:
    found = []
    for one in runs:
        name = one.manifest.id
        if one.status == "not started":
            found.append(Note(text=f"{name} is not started, so there is nothing to measure.", tone="warn"))
        elif one.status != "finished":
            text = f"{name} is {one.status}: these are the numbers so far, and they are not kept."
            found.append(Note(text=text, tone="warn"))
    if len(runs) > DETAILED:
        text = f"The first {DETAILED} of {len(runs)} runs have a part of their own; what all come to together has all."
        found.append(Note(text=text))
    hidden = sum(one.hidden for one in runs)
    if hidden:
        found.append(Note(text=HIDDEN.format(count=f"{hidden:,}")))
    elif show_secrets:
        found.append(Note(text=SHOWN, tone="warn"))
    return found
