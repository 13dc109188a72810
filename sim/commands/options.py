"""Options and arguments that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sim.commands.failures import BadInput


def _folder(runs: Path) -> Path:
    """The folder of the runs, which may be yet to be made. Raises BadInput where a file is in its place."""
    there = next((each for each in (runs, *runs.absolute().parents) if each.exists()), runs)
    if not there.is_dir():
        raise BadInput(f"--runs {runs}: {there} is a file; name a folder, or a place for one")
    return runs


Folder = Annotated[Path, typer.Option("--runs", help="Folder of the runs.", envvar="AGORA_RUNS", callback=_folder)]


def counted(runs: Path, names: Sequence[str]) -> list[Path]:
    """The runs that are taken for one observation each; says how many a pattern has left out. Raises NoSuchRun."""
    from sim.library import find_counted

    found, left = find_counted(runs, names)
    if left:
        what = "a fork or an interview is" if left == 1 else f"{left} forks and interviews are"
        typer.echo(f"agora: {what} left out; to take one, name it", err=True)
    return found


RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the start of one, `last`, or its file.")]
_NAMED = "Ids of runs, starts of them, `last`, or their files; 'frost-*' is all that start so"
RunNames = Annotated[list[str], typer.Argument(metavar="RUN…", help=f"{_NAMED}, forks too.")]
Counted = Annotated[list[str], typer.Argument(metavar="RUN…", help=f"{_NAMED}, but for forks and interviews.")]
"""For `counted`."""
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value for a key.")]
Budget = Annotated[int | None, typer.Option(min=0, help="Pause, resumably, once this many tokens are spent.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No live display.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs at once; by default one a core, or 8 where models speak.")]
All = Annotated[bool, typer.Option("--all", help="Every number and every reward, not only the first of each.")]
RUNS = Path("runs")
EXITS = {"finished": 0, "failed": 1, "paused": 3, "interrupted": 130}
"""Exit codes by how a session ended."""
