"""The commands for what was trained: evaluate it, give it away, hand its rows on.

Beside `sim.commands.cli` the other half of the place that joins all parts; each command imports what it needs when it
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.commands.options import RUNS, Counted, Folder, Quiet, counted

app = typer.Typer(rich_markup_mode=None)


@app.command("eval")
def evaluate(
    targets: Annotated[list[Path], typer.Argument(metavar="FOLDER|SCENARIO...", help="Trainings, or scenario files.")],
    scenario: Annotated[
        list[Path] | None, typer.Option(help="Another scenario to meet the policies in; its models name them.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Of the scenarios that are named here.")
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="Games of each line-up.")] = 64,
    versions: Annotated[int, typer.Option(min=1, help="Line-ups of the history, first and newest among them.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Another number, other games; never those of training.")] = 0,
    respond: Annotated[int, typer.Option(min=0, metavar="UPDATES", help="Train a response to each seat.")] = 0,
    transcript: Annotated[bool, typer.Option(help="One game before and after training, side by side.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead.")] = False,
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """How good trained policies are, exactly and as they play.

    The newest versions beside the first ones and some between: NashConv where the game is small, who beats whom,
    rewards, the world's own metrics. All numbers go into the project file; games that are played stay, and an
    interrupted evaluation goes on.
    """
    from sim.commands.failures import BadInput, scenario_file
    from sim.commands.terminal import say
    from training import evaluation_command as command

    settings = command.Settings(games=games, versions=versions, seed=seed)
    try:
        subjects = command.subjects(targets, [scenario_file(one) for one in scenario or []], sets or [], runs)
        for part in command.evaluate(
            subjects, settings, quiet=quiet, respond=respond, as_json=as_json, transcript=transcript
        ):
            say(part)
    except command.FAILURES as error:
        raise BadInput(str(error)) from error


@app.command("export-adapter")
def export_adapter(
    folder: Annotated[Path, typer.Argument(help="The folder of a training.")],
    policy: Annotated[str, typer.Argument(metavar="NAME@V", help="A version in it.")],
    target: Annotated[Path, typer.Argument(help="A folder to make.")],
    base: Annotated[str, typer.Option(help="Public name of the base model, for the adapter's settings.")] = "",
) -> None:
    """Copy a trained version to give away.

    It is safetensors and the settings that peft or transformers read. An adapter of somebody else's comes in by
    agora train --policy NAME=FOLDER.
    """
    from sim.commands.failures import BadInput
    from sim.commands.terminal import say
    from training.export import ExportError, export_version

    try:
        say(export_version(folder, policy, target, base))
    except ExportError as error:
        raise BadInput(str(error)) from error


@app.command()
def rows(
    names: Counted,
    out: Annotated[Path, typer.Option(help="A .parquet or a .jsonl file to write.")],
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """Write the decisions of runs as rows for another trainer.

    Each has its tokens, log-probabilities, reward, and the hash of the weights that spoke.
    """
    from rich.console import Console
    from rich.progress import track

    from sim.commands.failures import BadInput
    from sim.commands.terminal import say
    from training.rows_file import write_rows
    from training.trajectory import TrajectoryError

    paths = counted(runs, names)
    try:
        each = track(paths, "reading", console=Console(stderr=True), transient=True, disable=quiet)
        count = write_rows(each, out)
    except (ValueError, ImportError, TrajectoryError) as error:
        raise BadInput(str(error)) from error
    say(f"{count:,} rows of {len(paths)} runs in {out}")


@app.command()
def league(
    folder: Annotated[Path, typer.Argument(help="Folder of a training.")],
    everything: Annotated[bool, typer.Option("--all", help="The games of all players, not only of the best.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON.")] = False,
) -> None:
    """Show a training's league: ratings and who beat whom."""
    import json

    from sim.commands.failures import BadInput
    from sim.commands.terminal import say
    from training import command

    try:
        numbers, tables = command.standings(folder, everything)
    except command.FAILURES as error:
        raise BadInput(str(error)) from error
    if as_json:
        typer.echo(json.dumps(numbers, indent=2))
    else:
        for table in tables:
            say(table)
