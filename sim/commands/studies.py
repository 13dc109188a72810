"""The commands that make many runs: a sweep, what a disclosure does, what a judge says.

Beside `sim.commands.cli` and `sim.commands.trained`; each command imports what it needs when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.commands.options import EXITS, RUNS, Budget, Counted, Folder, Jobs, Quiet, RunName, Sets, counted

app = typer.Typer(rich_markup_mode=None)


@app.command()
def sweep(
    scenario: Annotated[Path, typer.Argument(help="A scenario file.")],
    over: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=[VALUE, …]", help="Values of a key, as for --set; all combinations."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each setting, with seeds from the scenario's on.")] = 1,
    sets: Sets = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What all ids start with; by default name and date.")] = "",
    jobs: Jobs = None,
    start: Annotated[bool, typer.Option(help="Also run them.")] = True,
    runs: Folder = RUNS,
    quiet: Quiet = False,
) -> None:
    """Run a scenario under several settings and seeds.

    Runs of one seed share their luck under all settings, so agora report has paired differences. What has models speaks
    through shared engines in one process; others have a process each. After an interruption: agora resume 'NAME-*'.
    """
    from sim.commands.failures import scenario_file
    from sim.commands.sweeping import play
    from sim.commands.swept import swept, worst
    from sim.commands.terminal import say
    from sim.sweep import sweep as sweep_of

    made = sweep_of(scenario_file(scenario), runs, over=over or [], seeds=seeds, sets=sets or [], name=name)
    if start:
        play([path for cell in made.cells for path in cell.runs], jobs, quiet)
    say(*swept(made.cells, f"'{made.name}-*'"))
    raise typer.Exit(worst(made.cells) if start else 0)


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
    from sim.library import find, keep
    from sim.record.reader import Run
    from sim.runs import go
    from sim.studies.contagion import arms, groups
    from sim.studies.contagion import measured as compared

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
            raise typer.Exit(EXITS[session.status])
    found = compared(pairs, window, reads)
    keep(path, found)
    say(*measured(path, found, True))


@app.command()
def judge(
    names: Counted,
    rubric: Annotated[Path, typer.Option(help="A file with the question, the answers and what the judge sees.")],
    model: Annotated[
        str, typer.Option(help="The judge: one of the run's models, or an entry like {engine: vllm, model: embedded}.")
    ] = "",
    calibration: Annotated[Path | None, typer.Option(help="A JSONL file of texts that people have judged.")] = None,
    most: Annotated[
        int, typer.Option(min=1, help="Texts of one run that are judged; drawn where there are more.")
    ] = 500,
    draw: Annotated[
        int | None,
        typer.Option(min=1, help="Instead: print so many texts for people to judge, as a calibration file is written."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws and of the judge.")] = 0,
    runs: Folder = RUNS,
    budget: Budget = None,
    quiet: Quiet = False,
) -> None:
    """Have a model judge what was said in runs.

    The judging is a run of its own, to be shown, verified and, with agora resume, gone on with; the runs that are
    judged are only read. Without texts that people have judged it gives no rate; --draw prints some for them, half of
    which a rule calls positive where it can, whose labels are to be filled in.
    """
    import orjson

    from sim.commands.failures import BadInput
    from sim.commands.progress import watched
    from sim.commands.show import ending, measured
    from sim.commands.terminal import say
    from sim.library import keep, measure
    from sim.runs import go
    from sim.studies.docket import drawn, judging
    from sim.studies.rubric import read_calibration, read_rubric

    asked = read_rubric(rubric)
    paths = counted(runs, names)
    if draw:
        texts = drawn(paths, asked, draw, seed=seed)
        typer.echo("\n".join(orjson.dumps({"shows": each, "labels": []}).decode() for each in texts))
        return
    if not model:
        raise BadInput("--model is missing; name one of the run's models, or write {engine: vllm, model: embedded}")
    known = read_calibration(calibration, asked) if calibration else []
    path = judging(paths, runs, asked, model, known, most=most, seed=seed)
    session = watched(lambda attach: go(path, attach=attach, budget=budget), quiet)
    if session.status != "finished":
        say(ending(session, budget))
        raise typer.Exit(EXITS[session.status])
    found = measure(path)
    for each in paths:
        keep(each, [one for one in found if one.of.get("run") == each.stem])
    say(f"{path.stem}: the judging", *measured(path, found, False))


@app.command()
def rescore(
    name: RunName,
    model: Annotated[
        str, typer.Option(help="Who scores: one of the run's models, or an entry like {engine: vllm, model: embedded}.")
    ] = "",
    policy: Annotated[str, typer.Option(metavar="NAME@V=FOLDER", help="Weights that it scores with.")] = "",
    of: Annotated[str, typer.Option(metavar="NAME", help="Only the answers of this entry of the run's models.")] = "",
    runs: Folder = RUNS,
    budget: Budget = None,
    quiet: Quiet = False,
) -> None:
    """Score a run's answers by another model or policy.

    How likely it gives them, and what it would have earned with them.

    The scores are a run of its own, with the same answers, that agora resume goes on with; the run that is scored is
    only read. Without --model and --policy each model scores its own answers: the weights then say how exact that is.
    """
    from sim.commands.progress import watched
    from sim.commands.show import ending, measured
    from sim.commands.terminal import say
    from sim.library import find, keep
    from sim.metrics.analysis.offpolicy import valued
    from sim.record.reader import Run
    from sim.runs import go
    from sim.studies.rescoring import rescoring

    path = find(runs, name)
    scored = rescoring(path, runs, model=model, policy=policy, of=of)
    session = watched(lambda attach: go(scored, attach=attach, budget=budget), quiet)
    if session.status != "finished":
        say(ending(session, budget))
        raise typer.Exit(EXITS[session.status])
    with Run(path) as behaviour, Run(scored) as target:
        found = list(valued(behaviour, target, {"behaviour": path.stem, "target": scored.stem}))
    keep(path, found)
    say(f"{scored.stem}: the answers of {path.stem}, scored", *measured(path, found, True))
