"""The command line: the one place that joins all parts. Each command imports what it needs when it runs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.commands import studies, trained
from sim.commands.options import (
    EXITS,
    RUNS,
    All,
    Budget,
    Counted,
    Folder,
    Jobs,
    Quiet,
    RunName,
    RunNames,
    Sets,
    counted,
)
from sim.commands.usage import Commands

if TYPE_CHECKING:
    from sim.commands.doctor import Line
    from sim.runs import Session

app = typer.Typer(
    name="agora",
    cls=Commands,
    help="Societies of language-model agents: run, replay, resume, fork and measure them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # drawing boxes would double the time that help takes
)

SETTABLE = "A world parameter that may change, or models.NAME.key, from then on."


def main() -> None:
    """Run a command; what goes wrong by the user's doing is one line and exit code 2."""
    from sim.commands.failures import exit_code, leave

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # of a terminal that knows few letters
    leave(exit_code(app))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"agora {version('agora-sim')}")
        raise typer.Exit


@app.callback()
def agora(
    _: Annotated[bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")] = False,
) -> None:
    """What is asked of no command."""


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.")],
    sets: Sets = None,
    name: Annotated[str, typer.Option(metavar="ID", help="The run's id; by default name, date and time.")] = "",
    runs: Folder = RUNS,
    budget: Budget = None,
    paused: Annotated[bool, typer.Option("--paused", help="Wait before the first event, for agora control.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario file to its end."""
    from sim.commands.failures import scenario_file
    from sim.library import new_id
    from sim.runs import create
    from sim.scenarios.scenario import load

    run_id = new_id(runs, name) if name else ""
    _go(create(load(scenario_file(scenario), sets or []), runs, run_id), budget, quiet, paused)


@app.command()
def resume(
    names: RunNames, runs: Folder = RUNS, budget: Budget = None, jobs: Jobs = None, quiet: Quiet = False
) -> None:
    """Go on with runs after any interruption.

    Several go on side by side. What is recorded costs no tokens.
    """
    from sim.commands.failures import BadInput
    from sim.library import find_all

    paths = find_all(runs, names)
    if len(paths) == 1:
        _go(paths[0], budget, quiet)
    if budget is not None:
        raise BadInput(f"--budget is of one run, and these are {len(paths)}; go on with them one by one")
    from sim.commands.sweeping import play  # brings metrics, which one run does without until it is over
    from sim.commands.swept import swept, worst
    from sim.sweep import Cell

    play(paths, jobs, quiet)
    cells = [Cell((), paths)]
    _print(*swept(cells, shlex.join(names)))
    raise typer.Exit(worst(cells))


@app.command()
def play(
    scenario: Annotated[Path | None, typer.Argument(help="A scenario file.")] = None,
    seat: Annotated[str, typer.Option(metavar="AGENT", help="Whose seat you take.")] = "",
    resume: Annotated[str, typer.Option(metavar="RUN", help="Go on with a run that you left.")] = "",
    sets: Sets = None,
    runs: Folder = RUNS,
    budget: Budget = None,
) -> None:
    """Run a scenario in which you answer for one agent.

    You see what its seat sees and are asked for what it may do; an illegal answer is asked for again. Ctrl-C leaves
    the run, and agora play --resume RUN goes on with it: what you have answered is not asked again. Others can watch
    with agora control.
    """
    from sim.commands import playing
    from sim.commands.failures import BadInput, scenario_file
    from sim.library import find
    from sim.runs import create

    if (scenario is None) != bool(resume):
        raise BadInput("name a scenario file, or a run to go on with: agora play SCENARIO, or agora play --resume RUN")
    if scenario is None:
        path = find(runs, resume)
        seat = playing.seat_of(path, seat)
    else:
        taken, seat = playing.seated(scenario_file(scenario), sets or [], seat)
        path = create(taken, runs)
        _print(f"{path.stem}: you are {seat}")
    _ended(path, playing.played(path, seat, budget), budget)


@app.command()
def fork(
    name: RunName,
    at: Annotated[str, typer.Option(help="When, like 1h30m, or a tick.")],
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=SETTABLE)] = None,
    edit: Annotated[list[str] | None, typer.Option(help="An intervention, like '{do: say, text: Hello}'.")] = None,
    mind: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]module:Name", help="Who decides instead, from 0 on.")
    ] = None,
    replicates: Annotated[int, typer.Option(min=1, help="How many, each with other luck after the fork.")] = 1,
    control: Annotated[
        bool, typer.Option("--control", help="As many again without the change, of the same luck.")
    ] = False,
    start: Annotated[bool, typer.Option(help="Also run them.")] = True,
    runs: Folder = RUNS,
    budget: Budget = None,
    quiet: Quiet = False,
) -> None:
    """A new run: another one up to a moment, live after it."""
    from sim.fork import fork as branch
    from sim.fork import read_edit
    from sim.library import check_fork, find

    source = find(runs, name)
    check_fork(source, at, sets or [])
    edits = [read_edit(text, at) for text in edit or []]
    paths = [
        branch(source, runs, at, sets=sets or [], edits=edits, minds=mind or [], replicate=r) for r in range(replicates)
    ]
    paths += [branch(source, runs, at, replicate=r) for r in range(replicates) if control]
    for path in paths:
        if not start:
            _print(f"{path.stem}: made, not started; agora resume {path.stem}")
            continue
        try:
            _go(path, budget, quiet)
        except typer.Exit as ended:
            if ended.exit_code:  # one that did not come to its end leaves the others for agora resume
                raise


def _go(path: Path, budget: int | None, quiet: bool, paused: bool = False) -> None:
    """Run a stored run with a live display, then print what came of it."""
    from sim.commands.progress import watched
    from sim.commands.show import stopped
    from sim.runs import go
    from sim.steering.channel import served

    def attached(attach: Callable[[Session], None]) -> Session:
        def begin(session: Session) -> None:
            if paused:
                session.pace.pause()
            attach(session)

        return go(path, budget=budget, attach=begin, beside=served)

    try:
        session = watched(attached, quiet)
    except KeyboardInterrupt:
        _print(stopped(path.stem))
        raise typer.Exit(130) from None
    _ended(path, session, budget)


def _ended(path: Path, session: Session, budget: int | None) -> None:
    """Print what came of a session."""
    from sim.commands.show import ending, outcome
    from sim.library import measure

    if session.status == "finished":
        measure(path)
        _print(*outcome(path))
    _print(ending(session, budget))
    raise typer.Exit(EXITS[session.status])


@app.command()
def control(
    name: RunName,
    do: Annotated[
        str, typer.Argument(help="status, pause, go, step, speed, stop, say, set, leave or answer.")
    ] = "status",
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]", help="What the command is about.")] = None,
    to: Annotated[list[str] | None, typer.Option(help="Of say: to whom, an agent, an entry, a #channel.")] = None,
    table: Annotated[int | None, typer.Option(help="Of say, set and leave: at this table only.")] = None,
    runs: Folder = RUNS,
) -> None:
    """Control a run that is going on in another process.

    status; pause, and go to go on; step (one event) or step tick; speed 60 (simulated seconds a second) or speed max;
    stop (resumable), or stop now, which waits for no call in flight. None of these reaches the log.

    say TEXT, set KEY=VALUE and leave AGENT are interventions: they take effect at the next moment and are recorded
    with it, so that the run verifies, resumes and forks with them.

    answer AGENT ANSWER answers what a person is asked who has the agent's seat; status shows the questions.
    """
    from sim.commands.controlling import controlled
    from sim.library import find

    _print(*controlled(find(runs, name), do, words or [], to or [], table))


@app.command()
def interview(
    name: RunName,
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="One after the other, in quotes.")],
    agent: Annotated[str, typer.Option(help="Whom to ask: an agent that speaks with a model.")],
    at: Annotated[str, typer.Option(help="When, like 1h30m, or a tick.")],
    table: Annotated[int, typer.Option(help="At which table.")] = 0,
    runs: Folder = RUNS,
) -> None:
    """Ask an agent something, at any moment of a run.

    A copy of the agent, with its persona and its memory as of then, answers through its own model, and the run never
    hears of it: it is only read. The interview is a run of its own, to be shown and verified like any other.
    """
    from sim.commands.progress import working
    from sim.commands.show import ending, said
    from sim.library import find
    from sim.runs import go
    from sim.studies.interview import interview as made

    path = made(find(runs, name), runs, agent, at, questions, table)
    with working(f"asking {agent}"):
        session = go(path)
    _print(*said(path))
    if session.status != "finished":
        _print(ending(session))
    raise typer.Exit(EXITS[session.status])


@app.command()
def runs(runs: Folder = RUNS) -> None:
    """The runs there are."""
    from sim.commands.show import run_list
    from sim.library import listing

    found = list(listing(runs))
    _print(*(run_list(found) if found else [f"no runs in {runs}; make one with: agora run SCENARIO"]))


@app.command()
def show(
    name: RunName,
    agent: Annotated[str, typer.Option(help="The transcript of this agent: what it saw, was asked and did.")] = "",
    channel: Annotated[str, typer.Option(help="What was said in a channel, or `all`.")] = "",
    cast: Annotated[bool, typer.Option("--cast", help="Who took part.")] = False,
    table: Annotated[int, typer.Option(help="Table of the cast or the transcript; an outcome is over all.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="At most so many entries of a transcript.")] = 200,
    everything: All = False,
    runs: Folder = RUNS,
) -> None:
    """A run's outcome, cast or transcripts. A transcript is what one agent or one channel lived through."""
    from sim.commands.show import cast_table, outcome
    from sim.commands.transcript import agent_transcript, channel_transcript
    from sim.library import find

    path = find(runs, name)
    if agent:
        _print(*agent_transcript(path, agent, table, limit))
    elif channel:
        _print(*channel_transcript(path, channel, table, limit))
    elif cast:
        _print(cast_table(path, table))
    else:
        _print(*outcome(path, table, everything))


@app.command()
def verify(name: RunName, runs: Folder = RUNS) -> None:
    """Replay a run from its record, comparing event by event."""
    from sim.commands.progress import working
    from sim.commands.show import verified
    from sim.library import find
    from sim.verify import verify as replay

    path = find(runs, name)
    with working(f"replaying {path.stem}"):
        found = replay(path)
    _print(verified(path.stem, found))


@app.command()
def measure(
    names: Counted,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="module:Name", help="A metric to compute instead of the usual ones.")
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(metavar="module:Name", help="A metric of all these runs and their forks together."),
    ] = None,
    secrets: Annotated[Path | None, typer.Option(help="A file of further secrets to look for.")] = None,
    chosen: Annotated[
        bool, typer.Option("--chosen", help="Each number again without decisions that were not the model's own.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Again and again while the run goes on; Ctrl-C leaves it.")
    ] = False,
    every: Annotated[str, typer.Option(metavar="TIME", help="Of --follow: how long to rest in between.")] = "5s",
    runs: Folder = RUNS,
    everything: All = False,
    quiet: Quiet = False,
) -> None:
    """Compute metrics of runs, the usual ones or others.

    Of a run that is not finished: so far. Of several runs: of each, and their means are shown. With --across: of the
    finished ones and of all finished forks of them. With --follow: of one run that goes on, until it has ended; the
    numbers so far are kept, with the time at which they hold, and then the final ones in their place.
    """
    from sim.commands.failures import BadInput
    from sim.commands.progress import working
    from sim.commands.show import measured, measured_across, measured_together
    from sim.library import measure as compute
    from sim.library import metric_named, secrets_file

    paths = counted(runs, names)
    if follow:
        from sim.commands.following import followed

        if across or chosen or len(paths) > 1:
            raise BadInput("--follow measures one run alone; name one, without --across and --chosen")
        followed(paths[0], metric or [], secrets_file(secrets) if secrets else [], every, everything, quiet)
        return
    if across:
        if chosen:
            raise BadInput("--chosen is about metrics of single runs; leave --across out")
        _print(*measured_across(paths, across, secrets_file(secrets) if secrets else [], everything))
        return
    wanted = [metric_named(dotted, Path()) for dotted in metric] if metric else None
    known = secrets_file(secrets) if secrets else []
    found = []
    for number, path in enumerate(paths, 1):
        with working(f"Measuring {path.stem} ({number} of {len(paths)})", quiet):
            found.append((path, compute(path, wanted, known, chosen=chosen)))
    if len(found) == 1:
        _print(*measured(*found[0], everything))
    else:
        _print(*measured_together(found, everything))


@app.command()
def report(
    names: Counted,
    form: Annotated[
        str | None, typer.Option("--format", help="html, md, json or csv; by default what FILE ends in, or html.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; by default named after the run.")
    ] = None,
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Do not hide the values of secrets.")] = False,
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """Write a report on runs, to be passed on.

    How honest they are, every number with its interval, what happened, what leaked. The HTML file works offline; md,
    json and csv have the same numbers. Of several runs: means over them, and paired differences where they share seeds
    or forks.
    """
    from sim.commands import reporting
    from sim.commands.failures import BadInput

    paths = counted(runs, names)
    file, form = reporting.target(out, paths, form)
    writers = dict(reporting.CORE)
    if form not in writers:
        try:
            from ui.report.html import as_html
        except ImportError as missing:
            need = "an HTML report needs plotly: pip install -e '.[ui]', or write --format md, json or csv"
            raise BadInput(need) from missing
        writers[form] = as_html
    _print(str(reporting.report(paths, file, writers[form], form, show_secrets, quiet)))


@app.command()
def export(
    name: RunName,
    parquet: Annotated[Path, typer.Option(help="Folder to write one Parquet file a table to.")],
    runs: Folder = RUNS,
) -> None:
    """Write a run's tables as Parquet files."""
    from sim.commands.failures import BadInput
    from sim.commands.progress import working
    from sim.library import find
    from sim.record.reader import Run

    try:
        from sim.record.export import export_parquet
    except ImportError as missing:
        raise BadInput(str(missing)) from missing
    with working("exporting"), Run(find(runs, name)) as run:
        files = export_parquet(run, parquet)
    _print(*(str(file) for file in files))


@app.command()
def check(
    what: Annotated[str, typer.Argument(help="A scenario file, or module:Name of a world or an agent.")] = "",
    sets: Sets = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Try a world or an agent with this scenario's parameters and cast.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scenario files instead.")] = False,
    runs: Folder = RUNS,
) -> None:
    """Check a scenario file, a world or an agent. Worlds and agents have to keep the rules of the seams.

    Of a scenario, also what a run of it would cost, as far as runs like it have told.
    """
    if schema:
        import json

        from sim.scenarios.scenario import json_schema

        typer.echo(json.dumps(json_schema(), indent=2))
        return
    from sim.commands.checking import checked

    _print(*checked(what, sets or [], scenario, runs))


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="world, agent or scenario.")],
    name: Annotated[str, typer.Argument(help="What it is called.")],
    folder: Annotated[Path, typer.Option(help="Where to put it.")] = Path(),
) -> None:
    """A world, an agent or a scenario from a template that runs."""
    from sim.commands.new import create

    _print(*create(kind, name, folder))


@app.command()
def doctor(runs: Folder = RUNS) -> None:
    """What works on this machine, and what the rest needs."""
    from sim.commands.doctor import report

    _print(report(runs, [_embedded()]))


def _embedded() -> Line:
    """The embedded model: ready in the cache, or its package to make it from."""
    from agents.engines import embedded
    from sim.commands.doctor import Line

    folder = embedded.cache() / f"{embedded.NAME}-{embedded.SHA256[:8]}"
    if embedded.intact(folder):
        return Line(what="embedded model", ok=True, found=str(folder))
    try:
        package = embedded.package_file()
    except embedded.EmbeddedModelError as error:
        return Line(what="embedded model", ok=False, found="", advice=str(error))
    return Line(what="embedded model", ok=True, found=f"{package.name}; unpack it now or at first use: agora models")


@app.command()
def models() -> None:
    """Set up the embedded model, or check every byte of it."""
    from agents.engines.embedded import EmbeddedModelError, prepare
    from sim.commands.failures import BadInput

    try:
        _print(prepare())
    except EmbeddedModelError as error:
        raise BadInput(str(error)) from error


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that comes with the install.")] = "",
    scenario: Annotated[Path | None, typer.Option(help="A scenario with learners: models that have a policy.")] = None,
    sets: Sets = None,
    recipe_sets: Annotated[
        list[str] | None, typer.Option("--recipe-set", metavar="KEY=VALUE", help="Another value for a recipe's key.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the training; an unfinished one is gone on with.")] = Path(
        "training-run"
    ),
    updates: Annotated[int | None, typer.Option(min=1, help="Updates in all; by default the recipe's.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of every draw.")] = 0,
    from_runs: Annotated[
        list[str] | None, typer.Option("--from", metavar="RUN", help="Learn from stored runs.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FOLDER", help="Weights that a learner starts from, also a foreign LoRA adapter's."),
    ] = None,
    go_on: Annotated[bool, typer.Option("--go-on", help="Train on, whatever stopped the training.")] = False,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder to write TensorBoard's scalars to.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="What one update costs; nothing is kept.")] = False,
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """Train a scenario's policies by self-play.

    With --out alone, go on with the training of that folder.
    """
    from sim.commands.failures import BadInput, scenario_file
    from sim.library import find
    from training import command

    try:
        stored = [find(runs, name).resolve() for name in from_runs or []]
        file = scenario_file(scenario) if scenario else None
        plan = command.planned(recipe, file, sets or [], recipe_sets or [], seed, out, stored, policy or [])
        if dry_run:
            _print(command.cost(plan))
        elif command.train(plan, out, updates, quiet, go_on=go_on, board=tensorboard):
            raise typer.Exit(3)
    except command.FAILURES as error:
        raise BadInput(str(error)) from error


@app.command()
def ui(
    runs: Folder = RUNS,
    address: Annotated[str, typer.Option(help="Where to listen; any but this machine's own asks for a password.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="TCP port.")] = 8501,
) -> None:
    """The page: watch, start, fork and compare runs."""
    from ui.serve import serve

    _print(f"the page is at http://{address}:{port}; Ctrl-C ends it, runs go on")
    serve(runs, address, port)


app.registered_commands += [*studies.app.registered_commands, *trained.app.registered_commands]


def _print(*things: object) -> None:
    """Print texts and tables."""
    from sim.commands.terminal import say

    say(*things)
