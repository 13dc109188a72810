"""`agora eval`: what is evaluated, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from agents.engines.weights import WeightsError
from training.evaluating import Settings
from training.plan import TrainingError
from training.report import as_json as json_of
from training.report import evaluated, side_by_side, tables, transcripts
from training.rollout import RolloutError
from training.subject import Subject, elsewhere, of_folder, of_scenario
from training.sync import DeliveryError

__all__ = ["FAILURES", "Settings", "evaluate", "subjects"]

FAILURES = (TrainingError, RolloutError, DeliveryError, WeightsError)
"""What goes wrong by the user's doing, one line each."""


def subjects(targets: Sequence[Path], scenarios: Sequence[Path], sets: Sequence[str], runs: Path) -> list[Subject]:
    """Every target, then the same policies in every other scenario; `sets` are of the scenarios named here.

    Raises TrainingError, ScenarioError.
    """
    found = []
    for target in targets:
        if target.is_dir():
            if sets and not scenarios:
                raise TrainingError("--set is for scenarios; a training's is as it was trained in: name one")
            own = of_folder(target)
        else:
            own = of_scenario(target, sets if not scenarios else (), runs)
        found += [own, *(elsewhere(own, file, sets) for file in scenarios)]
    return found


def evaluate(
    subjects: Sequence[Subject], settings: Settings, *, quiet: bool, respond: int, as_json: bool, transcript: bool
) -> Iterator[Any]:
    """What there is to print, subject by subject."""
    found = []
    for subject in subjects:
        evaluation, measured = evaluated(subject, settings, quiet, respond)
        if as_json:
            found.append(json_of(evaluation, measured))
            continue
        yield from tables(evaluation, measured)
        if transcript:
            yield side_by_side(transcripts(evaluation))
    if as_json:
        yield orjson.dumps(found, option=orjson.OPT_INDENT_2).decode()
