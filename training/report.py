"""An evaluation in the terminal: how far it is, its numbers as tables or JSON, and what was said before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from sim.commands.measured import measurement_table
from sim.commands.terminal import cell, columns, number, plain
from sim.quantities import readable
from sim.record.project import Project
from sim.record.reader import Run
from sim.types import JSON, Measurement
from training.contest import Contest
from training.evaluating import Evaluation, Settings
from training.responding import responses
from training.subject import Subject, label_of

LINES = 12
"""Decisions of a transcript that are shown."""


def evaluated(
    subject: Subject, settings: Settings, quiet: bool, respond: int = 0
) -> tuple[Evaluation, list[Measurement]]:
    """Take every step, keeping its measurements in the project file as soon as they are there.

    `respond`: updates that a response is trained for in each seat; 0: none is. What is interrupted is gone on with by
    the next evaluation of the same kind.
    """
    found: list[Measurement] = []
    with Contest(subject) as contest:
        evaluation = Evaluation(subject, contest, settings)
        steps = [*evaluation.steps(), *(responses(evaluation, respond) if respond else ())]
        with Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet,
            transient=True,
        ) as progress:
            bar = progress.add_task(subject.name, total=len(steps))
            for step in steps:
                progress.update(bar, description=f"{subject.name}: {step.name}")
                new = step.do()
                kept(subject, new)
                found += new
                progress.advance(bar)
        return evaluation, found


def kept(subject: Subject, measured: Sequence[Measurement]) -> None:
    """Put measurements into the subject's project file."""
    project = Project(subject.project)
    try:
        project.measure(subject.name, measured)
    finally:
        project.close()


def as_json(evaluation: Evaluation, measured: Sequence[Measurement]) -> JSON:
    """Everything that was measured, and what was not and why."""
    subject = evaluation.subject
    return {
        "name": subject.name,
        "scenario": str(subject.scenario),
        "temperature": subject.temperature,
        "games": evaluation.settings.games,
        "seed": evaluation.settings.seed,
        "lineups": [dict(lineup) for lineup in evaluation.lineups],
        "measurements": [msgspec.to_builtins(one) for one in measured],
        "left_out": evaluation.left_out,
    }


def tables(evaluation: Evaluation, measured: Sequence[Measurement]) -> Iterator[Any]:
    """The numbers, as one reads them."""
    subject, settings = evaluation.subject, evaluation.settings
    heat = "temperatures of the scenario" if subject.temperature is None else f"temperature {subject.temperature:g}"
    names = ", ".join(label_of(lineup) for lineup in evaluation.lineups)
    yield plain(f"{subject.name} in {subject.scenario.stem}: {names}", "bold")
    yield plain(f"{settings.games} games of each line-up, held-out seed {settings.seed}, {heat}, no exploration")
    of = _by_metric(measured)
    if exact := of("eval.nash_conv"):
        relative = {one.of["policy"]: one for one in of("eval.relative_nash_conv")}
        rows = [(one.of["policy"], _value(one), _value(relative[one.of["policy"]])) for one in exact]
        yield columns(("exactly", "NashConv", "of uniform play's"), rows)
    if met := of("eval.cross_play"):
        yield _matrix(evaluation, met, of("eval.exact_return"))
    if ends := [one for one in measured if one.metric in ("eval.win_rate", "eval.return_gain")]:
        shown = [(_short(one), _who(one), _value(one), _interval(one), f"{one.n:,}") for one in ends]
        yield columns(("newest against first", "", "value", "interval", "n"), shown)
    yield _before_after(evaluation, measured)
    if gains := of("eval.approximate_nash_conv"):
        yield measurement_table(gains)
    for why in evaluation.left_out:
        yield plain(why, "dim")


def _by_metric(measured: Sequence[Measurement]) -> Callable[[str], list[Measurement]]:
    return lambda name: [one for one in measured if one.metric == name]


def _matrix(evaluation: Evaluation, met: Sequence[Measurement], exact: Sequence[Measurement]) -> Table:
    """Share of games that the row's version won as the first entry against the column's, and its exact return."""
    first, second = evaluation.subject.entries
    cells = {(one.of["first"], one.of["second"]): f"{_value(one)} {_interval(one)}" for one in met}
    for one in exact:
        cells[one.of["first"], one.of["second"]] += f", {one.value:+.4f}"
    rows, heads = [], list(dict.fromkeys(lineup[second] for lineup in evaluation.lineups))
    for label in dict.fromkeys(lineup[first] for lineup in evaluation.lineups):
        rows.append((label, *(cells.get((label, other), "") for other in heads)))
    what = "wins" + (", exact return" if exact else "")
    return columns((f"{what} as {first}", *(f"{second} {head}" for head in heads)), rows)


def _before_after(evaluation: Evaluation, measured: Sequence[Measurement]) -> Table:
    """The outcomes of the first line-up beside those of the newest."""
    names = [label_of(lineup) for lineup in evaluation.ends]
    found: dict[tuple[str, str], dict[str, Measurement]] = {}
    for one in measured:
        own = {key: value for key, value in one.of.items() if key not in ("policy", "scenario", "seed")}
        if one.of.get("policy") in names and "against" not in one.of and "temperature" not in one.of:
            about = ", ".join(f"{key} {value}" for key, value in sorted(own.items()))
            found.setdefault((one.metric.removeprefix("eval."), about), {})[str(one.of["policy"])] = one
    rows = [
        (metric, about, *(f"{_value(by[name])} {_interval(by[name])}" if name in by else "–" for name in names))
        for (metric, about), by in found.items()
    ]
    return columns(("outcome", "of", *names), rows)


def _short(one: Measurement) -> str:
    return one.metric.removeprefix("eval.")


def _who(one: Measurement) -> str:
    return str(one.of.get("entry", ""))


def _value(one: Measurement) -> str:
    return "–" if one.value is None else number(one.value)


def _interval(one: Measurement) -> str:
    return f"[{number(one.ci[0])}, {number(one.ci[1])}]" if one.ci else ""


# --- transcripts --------------------------------------------------------------------------------------


def side_by_side(runs: Mapping[str, Path], table: int = 0) -> Table:
    """One table of the game as the first line-up and as the newest lived through it, under the same luck."""
    shown = Table(*(f"{name}, game {table}" for name in runs), box=None)
    for row in zip_longest(*(list(_lived(path, table)) for path in runs.values()), fillvalue=""):
        shown.add_row(*(cell(line) for line in row))
    return shown


def _lived(path: Path, table: int) -> Iterator[str]:
    """Who answered what, and what they earned."""
    with Run(path) as run:
        tick_ms = run.manifest().tick_ms
        for place, decision in enumerate(run.decisions(table)):
            if place == LINES:
                yield "…"
                break
            action = decision.action
            said = action.answer if isinstance(action.answer, str) else msgspec.json.encode(action.answer).decode()
            how = "" if action.how == "chosen" else f" ({action.how})"
            yield f"{readable(decision.tick, tick_ms)} {action.agent}: {said}{how}"
        rewards = run.rewards(table)
        yield "earned: " + ", ".join(f"{agent} {reward:g}" for agent, reward in rewards.items())


def transcripts(evaluation: Evaluation) -> dict[str, Path]:
    """The runs of the first line-up and the newest, by name."""
    return {label_of(lineup): evaluation.run(lineup) for lineup in evaluation.ends}
