"""`agora train`: a training with a live display, and what an update will cost before any is made."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from agents.engines.weights import WeightsError
from sim.commands.terminal import plain, say
from sim.scenarios.scenario import load as load_scenario
from sim.scenarios.yaml_text import write_yaml
from sim.types import JSON
from training import checkpoint, ladder, roster
from training.league import LeagueState
from training.loop import Done, Trainer
from training.plan import Plan, TrainingError
from training.population import BEST, Breeding
from training.recipe import load as load_recipe
from training.recipe import loads as read_recipe
from training.rollout import RolloutError, seats
from training.slots import Population, Stored
from training.starting import read_start
from training.structures import start
from training.sync import DeliveryError
from training.tensorboard import Board

SHOWN = (
    "return",
    "loss",
    "entropy",
    "kl",
    "clip_fraction",
    "gradient_norm",
    "legal_rate",
    "nash_conv",
    "average_nash_conv",
    "strategy_nash_conv",
    "best_strategy_nash_conv",
    "fitness",
    "best_fitness",
)
"""Numbers on the live line, those that there are."""
SHOWN_PLAYERS = 8
"""Players of a league whose games are shown, unless all are asked for."""
SOLVED = 32
"""Members, the best by rating, of which a mixture is shown that no training asks for."""
PROBE = 16
"""Episodes that a dry run plays."""
FAILURES = (TrainingError, RolloutError, DeliveryError, WeightsError)
"""What goes wrong by the user's doing, one line each."""


def planned(
    recipe: str,
    scenario: Path | None,
    sets: Sequence[str],
    changes: Sequence[str],
    seed: int,
    folder: Path,
    stored: Sequence[Path] = (),
    start: Sequence[str] = (),
) -> Plan:
    """The training of a folder, or a new one; `changes` are of the recipe, `sets` of the scenario.

    A training that has begun takes changes of how it is watched, and no others. Raises TrainingError.
    """
    if scenario is not None:
        made = load_recipe(recipe, changes)
        runs, weights = tuple(stored), read_start(start)
        return Plan(recipe=made, scenario=scenario, sets=tuple(sets), seed=seed, runs=runs, start=weights)
    if not (folder / "train.yaml").is_file():
        raise TrainingError("a new training needs --scenario, a scenario in which an entry of models: has a policy")
    begun = Plan.read(folder)
    given = {"a recipe": recipe, "--set": sets, "--from": stored, "--policy": start, "--seed": seed}
    if other := [name for name, value in given.items() if value]:
        raise TrainingError(f"{folder} holds a training already, which {other[0]} would change; choose another --out")
    if not begun.scenario.is_file():
        raise TrainingError(f"{begun.scenario}, the scenario of the training in {folder}, is gone; bring it back")
    recipe_text = write_yaml(begun.recipe.resolved())
    plan = replace(begun, recipe=read_recipe(recipe_text, str(folder / "train.yaml"), changes))
    if not plan.continues(begun):
        raise TrainingError(f"{folder} holds a training already; of its recipe only monitor.… may change")
    return plan


def bred(plan: Plan) -> bool:
    """Whether settings are searched for, and no policy is trained."""
    return isinstance(plan.recipe.actors, Population)


def begun(plan: Plan, folder: Path) -> Trainer | Breeding:
    """What trains in a folder."""
    return Breeding(folder, plan) if bred(plan) else Trainer(folder, plan)


def train(
    plan: Plan,
    folder: Path,
    updates: int | None,
    quiet: bool,
    *,
    go_on: bool = False,
    board: Path | None = None,
) -> str:
    """Train to the end, showing how it goes; interrupted, what is done stays.

    Returns why it stopped before; empty: it did not. `go_on`: whatever has stopped it before. `board`: where
    TensorBoard finds its numbers.
    """
    console = Console(stderr=True)
    scalars = Board(board) if board else None
    with (
        scalars or nullcontext(),
        Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[numbers]}"),
            console=console,
            disable=quiet,
            transient=True,
        ) as progress,
    ):
        bar = progress.add_task(folder.name, total=updates or plan.recipe.updates, numbers="loading the models")
        with begun(plan, folder) as trainer:
            progress.update(bar, completed=trainer.done, numbers="")
            if go_on and isinstance(trainer, Trainer):
                trainer.go_on()

            def report(done: Done) -> None:
                progress.update(bar, completed=done.update, numbers=line(done.numbers))
                if scalars:
                    scalars.add(done)

            trainer.run(report, updates)
            last, reason = trainer.done, trainer.stopped
    result = f"the fittest in {folder / BEST}" if bred(plan) else f"policies in {folder / 'policies'}"
    say(f"{folder.name}: {last} updates done; numbers in {folder / 'project.db'}, {result}")
    if reason:
        say(plain(f"{folder.name} was stopped after update {last}: {reason}", "yellow"))
        say(f"Go on all the same: agora train --out {folder} --go-on")
        say(f"Or with other bounds: agora train --out {folder} --recipe-set 'monitor.stop=[…]'")
    return reason


def standings(folder: Path, everything: bool) -> tuple[dict[str, JSON], list[Table | str]]:
    """The league of a training's folder, as a JSON value and for people. Raises TrainingError where it has none."""
    plan, found = Plan.read(folder), checkpoint.read_notes(folder)
    if found is None:
        raise TrainingError(f"{folder} has no checkpoint yet; go on with it: agora train --out {folder}")
    if not roster.meets(plan.recipe.actors):
        raise TrainingError(
            f"{folder}: the actors {plan.recipe.actors.kind} have no league; expected pool, league, psro or nfsp"
        )
    league = LeagueState.from_json(found[1]["league"])
    entries = seats(load_scenario(plan.scenario, plan.sets))
    mixtures = roster.strategy(plan.recipe.actors, league, entries) or roster.mixtures(league, entries, most=SOLVED)
    most = len(ladder.players(league)) if everything else SHOWN_PLAYERS
    return ladder.summary(league, mixtures), list(ladder.tables(league, mixtures, most))


def line(numbers: Mapping[str, float]) -> str:
    """The numbers of an update that are worth a glance."""
    return "  ".join(f"{name.replace('_', ' ')} {numbers[name]:.3g}" for name in SHOWN if name in numbers)


def cost(plan: Plan) -> Table:
    """What one update takes, measured on a small one in a folder that is thrown away."""
    recipe = plan.recipe
    if bred(plan):
        raise TrainingError(
            f"{recipe.name}: a generation costs what its {recipe.rollout.episodes} episodes cost; play a few: agora run"
        )
    episodes = recipe.rollout.episodes
    each = start(recipe.structure).episodes
    few = max(1, min(PROBE, episodes) // each) * each
    small = recipe.model_copy(update={"rollout": recipe.rollout.model_copy(update={"episodes": few})})
    with tempfile.TemporaryDirectory() as folder, Trainer(Path(folder) / "dry", replace(plan, recipe=small)) as trainer:
        began = time.monotonic()
        numbers = trainer.update()
        seconds = time.monotonic() - began
    scale = 1.0 if isinstance(recipe.structure, Stored) else (episodes // each) / (few // each)
    table = Table("one update", "about", box=None)
    table.add_row("episodes", f"{episodes:,}")
    table.add_row("rows", f"{numbers['decisions'] * scale:,.0f}")
    table.add_row("tokens, prompts included", f"{numbers['prompt_tokens'] * scale:,.0f}")
    table.add_row("sampled tokens", f"{numbers['sampled_tokens'] * scale:,.0f}")
    table.add_row("seconds, at most", f"{seconds * scale:,.0f}")
    table.add_row("peak memory, MiB", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f}")
    return table
