"""How much a trained response earns against a policy: an approximate NashConv, where no exact one can be had.

For each seat a new policy, which starts as the evaluated one, is trained against the newest versions of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson
from msgspec.structs import replace as with_fields

from sim.types import Measurement
from training.contest import Contest
from training.evaluating import Evaluation, Step, earned
from training.loop import Trainer
from training.measures import gain
from training.plan import Plan, TrainingError, check
from training.slots import CE, Fixed
from training.standings import Role
from training.subject import Lineup, Subject, label_of

RESPONSE = "response"
"""What the policy is called that is trained against another."""


def responses(evaluation: Evaluation, updates: int) -> Iterator[Step]:
    """A step for each seat that trains its response, and one that compares what they earn.

    Raises TrainingError where the subject has no recipe to train by.
    """
    if evaluation.subject.plan is None:
        raise TrainingError("--respond trains by the recipe of a training; name its folder, not a scenario")
    if evaluation.settings.games < 2:
        raise TrainingError("--respond compares means, which one game has not; give --games 2 or more")
    for entry in evaluation.subject.entries:
        recipe = _plan(evaluation.subject, entry, evaluation.ends[-1]).recipe
        if not recipe.credit:
            raise TrainingError(f"--respond: {recipe.name} credits nothing that a response could learn to earn")
        check(recipe)
    for entry in evaluation.subject.entries:
        yield Step(name=f"response as {entry}", do=partial(_trained, evaluation, entry, updates))
    yield Step(name="gain of the responses", do=partial(_gain, evaluation, updates))


def _plan(subject: Subject, entry: Role, lineup: Lineup) -> Plan:
    """The training of a response in one seat; the others are frozen."""
    assert subject.plan is not None
    actors = Fixed(kind="fixed", explore=subject.plan.recipe.actors.explore)
    extra = tuple(one for one in subject.plan.recipe.extra if not isinstance(one, CE) or one.labels == "rows")
    recipe = subject.plan.recipe.model_copy(update={"actors": actors, "curriculum": (), "extra": extra})
    sampling = recipe.rollout
    sets = [*subject.sets, f"models.{entry}.policy={RESPONSE}"]
    for other, label in lineup.items():
        if other != entry:
            folder = orjson.dumps({label: str(subject.folders[label])}).decode()
            sets += [f"models.{other}.policy={label}", f"models.{other}.adapters={folder}"]
            sets += [f"models.{other}.temperature={sampling.temperature}", f"models.{other}.top_p={sampling.top_p}"]
            sets += [f"models.{other}.max_tokens={sampling.max_tokens}"]
    start = {RESPONSE: subject.folders[lineup[entry]]}
    return replace(subject.plan, recipe=recipe, scenario=subject.scenario, sets=tuple(sets), start=start)


def _folder(evaluation: Evaluation, entry: Role) -> Path:
    newest = label_of(evaluation.ends[-1]).replace("@", ".").replace(" ", "-")
    return evaluation.subject.runs / f"response-{entry}-{newest}-{evaluation.subject.scenario.stem}"


def _trained(evaluation: Evaluation, entry: Role, updates: int) -> list[Measurement]:
    folder = _folder(evaluation, entry)
    plan = _plan(evaluation.subject, entry, evaluation.ends[-1])
    with Trainer(folder, plan) as trainer:
        trainer.run(updates=updates)
    return []


def _gain(evaluation: Evaluation, updates: int) -> list[Measurement]:
    lineup, subject = evaluation.ends[-1], evaluation.subject
    own = earned(evaluation.run(lineup))
    found = {}
    for entry in subject.entries:
        trained = _folder(evaluation, entry).resolve() / "policies"
        newest = max(trained.glob(f"{RESPONSE}@*"), key=lambda path: int(path.name.partition("@")[2]))
        label = f"{RESPONSE}-{entry}@{newest.name.partition('@')[2]}"
        folders = {**subject.folders, label: newest}
        with Contest(replace(subject, folders=folders)) as contest:
            path = contest.run({**lineup, entry: label}, evaluation.settings.games, evaluation.seed)
        found[entry] = earned(path)[entry]
    of = {**evaluation.about, "policy": label_of(lineup), "updates": updates}
    compared = gain({entry: own[entry] for entry in found}, found)
    return [with_fields(compared, metric="eval.approximate_nash_conv", of=of)]
