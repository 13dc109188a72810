"""Runs in the terminal: the list of them, and one's outcome and cast."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

from sim.commands.measured import listed, measurement_table
from sim.commands.terminal import Framed, columns, plain, short
from sim.intervals import TOO_FEW, UNDER
from sim.library import PROJECT, Listed, check_table, metric_named, standing
from sim.record.project import Project
from sim.record.reader import Counts, Run
from sim.runs import Session
from sim.steering.people import peoples
from sim.studies.interview import answers
from sim.types import Measurement, Secret
from sim.verify import Verified
from sim.wording import so_far

if TYPE_CHECKING:
    from sim.metrics.family import Across

HOWS = ("chosen", "retried", "defaulted", "faulted")
FORMS = {"": "scripted", "choice": "choice", "form": "JSON object", "text": "free text"}
"""What decisions are called, by the answer format of their last model call."""
SOURCES = {"parent": "taken from the parent", "repeat": "asked again after a crash"}
COLOURS = {"finished": "green", "running": "cyan", "paused": "yellow", "interrupted": "yellow", "failed": "red"}
HONESTY = "honesty."
"""What the names of metrics begin with that stand at the head."""
VERDICT = "honesty.fit_for_claims"
"""The first of them, where none in particular is asked for."""
COLUMNS = 80
"""Within which the list of runs keeps."""
AGENTS = 30
"""Agents whose rewards are shown, unless all are asked for."""


def run_list(runs: Sequence[Listed]) -> Iterator[Text]:
    """The runs of a folder, a line each; below it what a run was forked from, or why a file cannot be read."""
    rows = [(one.status, one.id, one.made, f"{one.decisions:,}", f"{one.calls:,}") for one in runs]
    heads = ("status", "run", "made (UTC)", "decisions", "calls")
    widths = [max(cell_len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    room = COLUMNS - sum(widths[:1] + widths[2:]) - len(heads) + 1
    widths[1] = max(length for row in [heads, *rows] if (length := cell_len(row[1])) <= room)
    yield from _run_lines(heads, widths, "")
    for one, row in zip(runs, rows, strict=True):
        yield from _run_lines(row, widths, COLOURS.get(one.status, ""))
        if one.why:
            yield plain(f"{' ' * widths[0]} {one.why}", "dim")
        if one.parent:
            yield plain(f"{' ' * widths[0]} {'forked from' if one.forked else 'asks an agent of'} {one.parent}", "dim")


def _run_lines(row: Sequence[str], widths: Sequence[int], style: str) -> Iterator[Text]:
    status, name, made, *counts = row
    rest = [made.ljust(widths[2]), *(count.rjust(width) for count, width in zip(counts, widths[3:], strict=True))]
    head = Text(status.ljust(widths[0]), style=style) + " "
    if cell_len(name) > widths[1]:
        yield head + plain(name)
        head, name = Text(" " * (widths[0] + 1)), ""
    yield head + plain(" ".join([set_cell_size(name, widths[1]), *rest]))


# --- how a session ended ------------------------------------------------------------------------------


def ending(session: Session, budget: int | None = None) -> Text:
    """How a session ended, and what to do next."""
    name, again = session.path.stem, "resume"
    if session.plan is not None and peoples(session.plan.scenario):
        again = "play --resume"
    match session.status:
        case "finished":
            return plain(f"{name} finished. Look: agora show {name}   Check: agora verify {name}", "green")
        case "failed":
            return plain(f"{name} failed: {session.cause}\nMend it, then: agora {again} {name}", "red")
        case "paused":
            text = f"{name} is paused: {session.cause}\nNothing is lost. Go on: agora {again} {name}"
            return plain(text + _elsewhere(session, budget), "yellow")
        case _:
            return stopped(name, again)


def _elsewhere(session: Session, budget: int | None) -> str:
    """How to go on with other settings of the models, where an engine gave out on a run that is under way."""
    spent = budget is not None and session.calls is not None and session.calls.spent >= budget
    if spent or session.plan is None or not any(table.now for table in session.tables):
        return ""
    models = list(session.plan.models)
    model = models[0] if len(models) == 1 else "NAME"
    return f"\nOr on another model: agora fork {session.path.stem} --at TIME --set models.{model}.KEY=VALUE"


def stopped(name: str, again: str = "resume") -> Text:
    """A run was interrupted, and what to do next."""
    return plain(f"{name} was interrupted. Nothing is lost. Go on: agora {again} {name}", "yellow")


# --- interviews ----------------------------------------------------------------------------------------


def said(path: Path) -> Iterator[Any]:
    """The questions and answers of an interview."""
    with Run(path) as run:
        agent = run.cast()[0].seat.agent
    for one in answers(path):
        yield Framed(one.question, f"asked of {agent}", "")
        yield Framed(one.text, agent, "" if one.how == "chosen" else f"{one.how}: {one.reason}")


# --- outcome -------------------------------------------------------------------------------------------


def outcome(path: Path, table: int = 0, everything: bool = False) -> list[Any]:
    """Over all tables: how decisions came about, what calls cost, rewards, measurements. Raises BadInput (table)."""
    with Run(path) as run:
        check_table(run, table)
        manifest, status = run.manifest(), standing(run)
        name = manifest.id
        if status == "not started":
            return [plain(f"{name}  {status}", "bold"), plain(f"Start it: agora resume {name}")]
        counts = run.counts()
        why = f": {manifest.cause}" if status in ("failed", "paused") else ""
        parts: list[Any] = [plain(f"{name}  {status}{why}", "bold"), decision_table(counts)]
        if counts.calls:
            parts.append(call_table(counts))
        parts += _rewards(run, everything)
    numbers = path.with_name(PROJECT)
    if numbers.exists():
        with Project(numbers) as project:
            found = [one for _, one in project.measurements(run=name)]
            held = project.so_far(name) if status != "finished" else []
        if held:
            parts.append(plain(f"measured {so_far([tick for tick, _ in held], manifest.tick_ms)}", "bold"))
        parts += measurements(found or [one for _, one in held], f"show {name}", everything)
    return parts


def decision_table(counts: Counts) -> Table:
    """Decisions by answer format and by how they came about, with rates."""
    forced = any("forced" in by_how for by_how in counts.decisions.values())
    hows = (*HOWS, "forced") if forced else HOWS
    table = Table("decisions", "all", *hows, box=None)
    for form, name in FORMS.items():
        if by_how := counts.decisions.get(form):
            total = sum(by_how.values())
            table.add_row(name, f"{total:,}", *(_share(by_how.get(how, 0), total) for how in hows))
    total = sum(sum(by_how.values()) for by_how in counts.decisions.values())
    table.add_row("of these stale", _share(counts.stale, total))
    return table


def _share(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.1%})" if total else "0"


def call_table(counts: Counts) -> Table:
    """Model calls by purpose, and tokens."""
    table = Table("model calls", "", box=None)
    for purpose, count in counts.calls.items():
        table.add_row(plain(purpose), f"{count:,}")
    for source, count in counts.sources.items():
        if source in SOURCES:
            table.add_row(SOURCES[source], f"{count:,}")
    table.add_row("failed", f"{counts.failed:,}")
    table.add_row("cut off at the length limit", f"{counts.cut:,}")
    tokens = counts.tokens
    table.add_row("prompt tokens", f"{tokens.prompt:,} ({_share(tokens.cached, tokens.prompt)} cached)")
    table.add_row("sampled tokens", f"{tokens.completion:,}")
    return table


def _rewards(run: Run, everything: bool) -> Iterator[Any]:
    """Rewards by agent, the mean over tables where there are several; nothing where the world gave none."""
    sums: dict[str, float] = {}
    given = False
    for table in range(run.tables):
        for member in run.cast(table):
            sums.setdefault(member.seat.agent, 0.0)
        for agent, reward in run.rewards(table).items():
            sums[agent] = sums.get(agent, 0.0) + reward
            given = True
    if not given:
        return
    ranked = sorted(sums.items(), key=lambda item: -item[1])
    shown = ranked if everything else ranked[:AGENTS]
    head = "reward" if run.tables == 1 else "mean reward"
    yield columns(("agent", head), [(agent, f"{reward / run.tables:,.2f}") for agent, reward in shown])
    if len(shown) < len(ranked):
        yield _more(len(ranked) - len(shown), "agents", f"show {run.manifest().id}")


def measurements(found: Iterable[Measurement], command: str, everything: bool) -> Iterator[Any]:
    """Measurements as a table, and how many are left out and what shows them; nothing where there are none."""
    families: tuple[list[Measurement], list[Measurement]] = ([], [])
    under = False
    for one in found:
        under |= UNDER in one.flags
        families[not one.metric.startswith(HONESTY)].append(one)
        if one.metric == VERDICT:
            yield from (plain(reason, "red") for reason in one.flags)
    left = 0
    for title, family in zip(("honesty", "measure"), families, strict=True):
        shown, more = listed(family, everything)
        left += more
        if shown:
            yield measurement_table(shown, title)
    if under:
        yield plain(f" {TOO_FEW}", "dim")
    if left:
        yield _more(left, "numbers", command)


def _more(count: int, what: str, command: str) -> Text:
    return plain(f" {count:,} more {what}: agora {command} --all", "dim")


def measured(path: Path, found: Sequence[Measurement], everything: bool) -> Iterator[Any]:
    """What measuring a run came to; of one that is not finished, that it is not."""
    with Run(path) as run:
        name, status = run.manifest().id, standing(run)
    beside = [one for one in found if not one.metric.startswith(HONESTY)]
    known = any(one.value is not None for one in beside)
    if status == "not started":
        yield plain(f"{name} is not started, so there is nothing to measure. Start it: agora resume {name}")
    elif status != "finished" and not known:
        yield plain(f"{name} is {status}, and nothing in it can be measured yet")
    elif not beside and (not found or found[0].metric == VERDICT):
        yield plain(f"{name} has nothing to measure: neither its world nor its scenario's `measure` gives a number")
        yield from measurements(found, f"measure {name}", everything)
    else:
        if status != "finished":
            yield plain(f"{name} is {status}: these are the numbers so far, and they are not kept")
        yield from measurements(found, f"measure {name}", everything)


def measured_together(found: Sequence[tuple[Path, Sequence[Measurement]]], everything: bool) -> Iterator[Any]:
    """What measuring several runs came to: means over them, each run one observation."""
    from sim.metrics.pooling import pooled

    by_run = {path.stem: numbers for path, numbers in found if numbers}
    for path, numbers in found:
        if not numbers:
            yield plain(f"{path.stem} is not started or has nothing to measure, and is left out")
    yield from measurements(pooled(by_run), f"measure {' '.join(by_run)}", everything)


def measured_across(
    paths: Sequence[Path], metrics: Sequence[str], secrets: Sequence[Secret], everything: bool
) -> Iterator[Any]:
    """What metrics of several runs and their forks found."""
    from sim.metrics.family import measure

    wanted = [cast("Across", metric_named(dotted, Path())) for dotted in metrics]
    found = measure(paths, wanted, secrets)
    title = f"measure {' '.join(path.stem for path in paths)}"
    yield from measurements(found, title, everything) if found else [plain(f"{title}: nothing is found")]


def verified(name: str, found: Verified) -> str:
    """What a replay without a difference came to."""
    reach = "to its end" if found.whole else "as far as the record reaches (the run is not finished)"
    events = "1 event" if found.events == 1 else f"{found.events:,} events"
    return f"{name}: {events} replayed {reach}, all equal"


# --- cast ----------------------------------------------------------------------------------------------


def cast_table(path: Path, table: int) -> Table:
    """Who took part, what is private to them and which secrets they hold. Raises BadInput (table)."""
    rows = []
    with Run(path) as run:
        check_table(run, table)
        for member in run.cast(table):
            seat = member.seat
            told = [str(member.persona[key]) for key in ("name", "age", "occupation") if key in member.persona]
            private = ", ".join(f"{key} {short(value)}" for key, value in seat.private.items())
            secrets = "; ".join(f"{secret.attribute}: {secret.value}" for secret in member.secrets)
            rows.append((seat.agent, seat.role, member.model, private, ", ".join(told), secrets))
    return columns(("agent", "role", "model", "private", "persona", "secrets"), rows)
