"""A judging made ready: what runs hold, blinded, and what people have judged, as the scenario of a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from sim.commands.failures import BadInput
from sim.record.reader import Run
from sim.runs import stored
from sim.scenarios.located import nearest, shown
from sim.scenarios.plan import plan
from sim.scenarios.resolve import resolve
from sim.scenarios.scenario import loads
from sim.scenarios.scenario_schema import ModelSettings, Scenario
from sim.scenarios.yaml_text import read_yaml, write_yaml
from sim.studies.judging import Item, Rule, blinded, called
from sim.studies.rubric import Known, Rubric
from sim.types import JSON, Record

if TYPE_CHECKING:
    from sim.metrics.judging.judged_items import Shown

JUDGES = 64
"""Questions that are asked at once, at most."""
MOST = 500
"""Texts of one run that are judged, drawn where there are more."""


def judging(
    paths: Sequence[Path],
    folder: Path,
    rubric: Rubric,
    model: str,
    calibration: Sequence[Known] = (),
    *,
    most: int = MOST,
    seed: int = 0,
) -> Path:
    """A new run file, not started, in which a model judges texts of runs, which are only read.

    `model`: an entry of the first run's `models`, or one written like it, `{engine: vllm, model: embedded}`. Start it
    with `sim.runs.go`. Raises BadInput, ScenarioError, ResolveError.
    """
    found = [_taken(path, rubric, most, seed) for path in paths]
    if not any(one.items for one in found):
        runs = ", ".join(path.stem for path in paths)
        raise BadInput(f"nothing to judge: {rubric.items} of the rubric {rubric.name} finds nothing in {runs}")
    names = [word for one in found for word in one.names]
    hidden = [word for one in found for word in one.hidden]
    rules = {rest: rule for one in found for rest, rule in one.rules.items()}
    known = []
    for one in calibration:
        shows = blinded(_seen(one.shows, rubric), names, hidden)
        known.append(Item(shows=shows, labels=one.labels, rule=rules.get(tuple(shows.values()), "")))
    scenario, base = _scenario_of(paths[0])
    items = [*known, *(item for one in found for item in one.items)]
    judged = sorted({words for one in found for words in one.models})
    asking = loads(write_yaml(_data(rubric, items, settings_of(scenario, model), judged, seed)), base, file="judging")
    run_id = f"judged-{rubric.name}-{paths[0].stem}"
    return stored(folder, run_id, plan(asking), parent=str(paths[0].resolve()), source="")


def drawn(paths: Sequence[Path], rubric: Rubric, count: int, *, seed: int = 0) -> list[dict[str, str]]:
    """Texts of runs for people to judge, blinded, each once: as far as there are, half of those that a rule calls
    positive and half of the others, in no order that tells which. Raises BadInput where there are fewer."""
    rules: dict[tuple[str, ...], Rule] = {}
    for path in paths:
        rules |= _taken(path, rubric, 0, seed).rules
    if len(rules) < count:
        raise BadInput(f"--draw {count} is more than there are: {len(rules)} different texts")
    luck = Random(f"{seed} calibration")
    order = luck.sample(list(rules), len(rules))
    hits, others = ([texts for texts in order if (rules[texts] == "yes") is hit] for hit in (True, False))
    some = max(min(len(hits), count // 2), count - len(others))
    return [
        dict(zip(rubric.sees, texts, strict=True)) for texts in luck.sample(hits[:some] + others[: count - some], count)
    ]


def _scenario_of(path: Path) -> tuple[Scenario, Path]:
    with Run(path) as run:
        manifest = run.manifest()
    scenario = loads(manifest.scenario, manifest.base, file=f"{path.name}: scenario")
    return scenario, scenario.base


class _Taken(NamedTuple):
    """What is taken of a run."""

    items: list[Item]
    """Blinded."""
    models: list[str]
    """Those that spoke in it."""
    names: list[str]
    """What its agents are called."""
    hidden: list[str]
    """Roles, models, and what the run is called."""
    rules: dict[tuple[str, ...], Rule]
    """What a rule says of each text of the run, taken or not."""


def _taken(path: Path, rubric: Rubric, most: int, seed: int) -> _Taken:
    scenario, base = _scenario_of(path)
    find = cast("Callable[[Record], Iterable[Shown]]", resolve(rubric.items, base))
    with Run(path) as run:
        found = list(find(run))
        members = [member for table in range(run.tables) for member in run.cast(table)]
    names = list(dict.fromkeys(name for member in members for name in called(member)))
    models = [scenario.models[name] for name in dict.fromkeys(member.model for member in members) if name]
    others = {member.seat.role for member in members} | {one.model for one in models} | {path.stem, scenario.name}
    hidden = sorted(others - {""})
    items = [
        Item(
            shows=blinded(_seen(one.shows, rubric), names, hidden),
            run=path.stem,
            table=one.table,
            fact=one.fact,
            rule="" if one.rule is None else ("yes" if one.rule else "no"),
        )
        for one in found
    ]
    rules = {tuple(one.shows.values()): one.rule for one in items}
    if len(items) > most:
        items = [items[place] for place in sorted(Random(f"{seed} {path.stem}").sample(range(len(items)), most))]
    return _Taken(items, [words_of(one) for one in models], names, hidden, rules)


def _seen(shows: Mapping[str, str], rubric: Rubric) -> dict[str, str]:
    """The fields that a rubric lets the judge see."""
    if missing := [field for field in rubric.sees if field not in shows]:
        message = f"rubric {rubric.name}: sees {shown(missing[0])}, which {rubric.items} does not show"
        raise BadInput(f"{message}; {nearest(missing[0], shows)}")
    return {field: shows[field] for field in rubric.sees}


def settings_of(scenario: Scenario, model: str) -> JSON:
    """A model as scenarios hold it: one of this one's by its name, or written like them. Raises BadInput."""
    if model in scenario.models:
        return scenario.located.data["models"][model]
    found = read_yaml(model, "--model").data
    if isinstance(found, dict):
        return found
    hint = f"; {nearest(model, scenario.models)}" if scenario.models else ""
    raise BadInput(
        f"--model {shown(model)} is none of the run's models{hint}; or write {{engine: vllm, model: embedded}}"
    )


def words_of(settings: ModelSettings) -> str:
    """Which model it is, whatever a scenario calls it."""
    return " ".join(part for part in (settings.engine, settings.model, settings.policy) if part)


def _data(rubric: Rubric, items: Sequence[Item], settings: JSON, judged: Sequence[str], seed: int) -> dict[str, JSON]:
    """The scenario of the judging."""
    judge = words_of(ModelSettings.model_validate(settings))
    return {
        "name": f"judged {rubric.name}",
        "seed": seed,
        "clock": {"tick": "1s", "until": None},
        "world": {
            "use": "sim.studies.judging:Judging",
            "name": rubric.name,
            "question": rubric.question,
            "options": list(rubric.options),
            "positive": rubric.positive,
            "definitions": rubric.definitions,
            "compare": list(rubric.compare),
            "items": [one.model_dump(mode="json", exclude_defaults=True) for one in items],
            "judge": judge,
            "judged": list(judged),
        },
        "models": {"judge": settings},
        "cast": [
            {
                "name": "judge",
                "count": min(JUDGES, len(items)),
                "agent": "sim.studies.judging:Judge",
                "model": "judge",
                "think": 1,
            }
        ],
    }
