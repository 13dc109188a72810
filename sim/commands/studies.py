"""The commands that learn something of stored runs by making others: what a disclosure does.

Beside `sim.commands.cli` and `sim.commands.trained`; each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from sim.commands.options import RUNS, Folder, Quiet, RunName

app = typer.Typer(rich_markup_mode=None)


@app.command()
def contagion(
    name: RunName,
    forks: Annotated[int, typer.Option(min=1, help="At most so many groups of disclosures, a fork for each.")] = 3,
    replicates: Annotated[int, typer.Option(min=1, help="Lucks after the fork; all but the first cost two runs.")] = 1,
    window: Annotated[int, typer.Option(min=1, help="Decisions for which something seen counts as seen.")] = 1,
    reads: Annotated[int | None, typer.Option(min=1, help="Instead: texts for which it does.")] = None,
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """What a told secret does to those who see it, by forks.

    Disclosures of the run are replaced by messages of the same kind and length that tell nothing, with the same luck;
    the decisions that saw them are compared. Forks that are there already are taken as they are.
    """
    from sim.commands.failures import BadInput
    from sim.commands.progress import watched
    from sim.commands.show import ending, measured
    from sim.commands.terminal import say
    from sim.contagion import arms, groups
    from sim.contagion import measured as compared
    from sim.library import find, keep
    from sim.record.reader import Run
    from sim.runs import go

    path = find(runs, name)
    with Run(path) as run:
        if run.status != "finished":
            raise BadInput(f"{path.stem} is {run.status}; finish it first: agora resume {path.stem}")
        wanted = groups(run, forks)
    if not wanted:
        raise BadInput(f"nothing to try: nobody in {path.stem} told a secret that could have been left unsaid")
    pairs = list(arms(path, runs, wanted, replicates))
    for each in dict.fromkeys(run for pair in pairs for run in pair[:2]):
        session = watched(lambda attach, each=each: go(each, attach=attach), quiet)  # type: ignore[misc]
        if session.status != "finished":
            say(ending(session))
            raise typer.Exit(1 if session.status == "failed" else 3)
    found = compared(pairs, window, reads)
    keep(path, found)
    say(*measured(path, found, True))
