"""`agora report`: from the runs that are named to a file that is written whole or not at all."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sim.commands.failures import BadInput, visible
from sim.report.compose import composed
from sim.report.markdown import as_markdown
from sim.report.model import Report
from sim.report.tables import as_csv, as_json
from sim.scenarios.located import nearest, shown

Writer: TypeAlias = Callable[[Report], str]
FORMATS = ("html", "md", "json", "csv")
CORE: Mapping[str, Writer] = {"md": as_markdown, "json": as_json, "csv": as_csv}
"""Those that the core install can write."""
STEPS = 2
"""Of each run: measuring, reading."""


def target(out: Path | None, paths: Sequence[Path], form: str | None) -> tuple[Path, str]:
    """The file to write, as asked for, else named after the run, and its format. Raises BadInput, FileExistsError."""
    ends = out.suffix.removeprefix(".") if out else ""
    named = ends if ends in FORMATS else None
    ending = form or named or FORMATS[0]
    if ending not in FORMATS:
        raise BadInput(f"--format {shown(ending)} is none; {nearest(ending, FORMATS)}")
    if ends and not (form or named):
        raise BadInput(f"-o {out} ends in {ends}, which is no format; {nearest(ends, FORMATS)}")
    if named and named != ending:
        raise BadInput(f"-o {out} ends in {named}, and --format is {ending}; leave one of them out")
    more = f"-and-{len(paths) - 1}-more" if len(paths) > 1 else ""
    file = out or Path(f"{paths[0].stem}{more}-report.{ending}")
    if file.is_dir():
        raise BadInput(f"-o {file} is a folder; name a file in it, like {file / 'report'}.{ending}")
    if file.exists():
        raise FileExistsError(f"{file} is there already; choose another file with -o, or remove it")
    if not file.parent.is_dir():
        raise BadInput(f"-o {file}: there is no folder {file.parent}; make it first")
    return file, ending


def report(paths: Sequence[Path], file: Path, writer: Writer, ending: str, show_secrets: bool, quiet: bool) -> Path:
    """Make a report of runs and write it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("", total=STEPS * len(paths) + 1)
        begun = False

        def step(what: str) -> None:
            nonlocal begun
            progress.update(task, description=visible(what), advance=int(begun))
            begun = True

        made = composed(paths, command(paths, ending, show_secrets), show_secrets, step)
        step(f"writing {file.name}")
        return written(file, writer(made))


def command(paths: Sequence[Path], ending: str, show_secrets: bool) -> str:
    """What makes the same report again."""
    words = ["agora", "report", *(path.stem for path in paths), "--format", ending]
    return shlex.join([*words, *(["--show-secrets"] if show_secrets else [])])


def written(file: Path, text: str) -> Path:
    """Write a file whole or not at all, and never over another. Raises FileExistsError."""
    with NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, prefix=f".{file.name}-", delete=False) as part:
        try:
            part.write(re.sub(r"[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text))
            part.close()
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(part.name, 0o666 & ~mask)
            os.link(part.name, file)
        finally:
            os.unlink(part.name)
    return file
