"""The commands for what was trained: evaluate it, give it away, hand its rows on.

Beside `sim.commands.cli` the other half of the place that joins all parts; each command imports what it needs when it
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.commands.options import RUNS, Folder, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def export_adapter(
    folder: Annotated[Path, typer.Argument(help="The folder of a training.")],
    policy: Annotated[str, typer.Argument(metavar="NAME@V", help="A version in it.")],
    target: Annotated[Path, typer.Argument(help="A folder to make.")],
    base: Annotated[str, typer.Option(help="Public name of the base model, for the adapter's settings.")] = "",
) -> None:
    """Copy a trained version to give away: safetensors, and the settings that peft or transformers read.

    Another's adapter comes in by agora train --policy NAME=FOLDER.
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
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs, as for agora show; their files too.")],
    out: Annotated[Path, typer.Option(help="A .parquet or a .jsonl file to write.")],
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """Write the decisions of runs for another trainer: one a row, with tokens, log-probabilities and rewards."""
    from rich.console import Console
    from rich.progress import track

    from sim.commands.failures import BadInput
    from sim.commands.terminal import say
    from sim.library import find
    from training.rows_file import write_rows
    from training.trajectory import TrajectoryError

    paths = [find(runs, name) for name in names]
    try:
        each = track(paths, "reading", console=Console(stderr=True), transient=True, disable=quiet)
        count = write_rows(each, out)
    except (ValueError, ImportError, TrajectoryError) as error:
        raise BadInput(str(error)) from error
    say(f"{count:,} rows of {len(paths)} runs in {out}")
