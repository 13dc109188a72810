"""A scenario under several settings and seeds: a run for each, made before the first one starts.

A sweep is nothing but its runs. They share the start of their ids, so `NAME-*` names all of them, and runs of one seed
share their luck from one setting to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import orjson

from sim.commands.failures import BadInput
from sim.library import PROJECT, new_id, remove
from sim.record.project import Project
from sim.runs import create, dated
from sim.scenarios.scenario import load
from sim.scenarios.yaml_text import read_yaml
from sim.types import JSON

MOST = 10_000
"""Runs past which a sweep is taken for a mistake."""

_WORDS = re.compile(r"\w[\w .()-]*")
_ID = re.compile(r"(?P<name>.+?)(-(?P<place>\d+))?-s(?P<seed>\d+)")


class Cell(NamedTuple):
    """The runs of one setting, in the order of their seeds."""

    sets: tuple[str, ...]
    """As `--set` takes them; empty where nothing is varied."""
    runs: list[Path]


class Sweep(NamedTuple):
    """What is run under every setting."""

    name: str
    """What all ids start with."""
    cells: list[Cell]


class Setting(NamedTuple):
    """What a folder has of one setting of a sweep."""

    sets: str
    """What was set, in words; empty where nothing was."""
    runs: dict[int, str]
    """Ids by seed."""


def known(tags: Mapping[str, Sequence[str]]) -> dict[str, list[Setting]]:
    """The settings of every sweep, by its name, from the tags of the runs of a folder, by their ids."""
    found: dict[str, dict[int, Setting]] = {}
    for run, own in sorted(tags.items()):
        read = _ID.fullmatch(run)
        if read and (name := read["name"]) in own:
            sets = "  ".join(tag for tag in own if "=" in tag)
            setting = found.setdefault(name, {}).setdefault(int(read["place"] or 1), Setting(sets, {}))
            setting.runs[int(read["seed"])] = run
    return {name: [settings[place] for place in sorted(settings)] for name, settings in found.items()}


def settings(over: Sequence[str]) -> list[tuple[str, ...]]:
    """Every combination of values, each key given as `KEY=[VALUE, …]`; the last key varies fastest. Raises BadInput."""
    return [tuple(each) for each in product(*map(_values, over))]


def _values(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    found = read_yaml(values, f"--over {text}").data if equals and values.strip() else None
    if not isinstance(found, list) or not found:
        raise BadInput(f"--over {text}: not a list of values; write KEY=[VALUE, …], like world.order_life=[20s, 2m]")
    if key.strip() == "seed":
        raise BadInput(f"--over {text}: every setting has the same seeds; write --seeds {len(found)}")
    written = [_written(value) for value in found]
    if twice := [one for place, one in enumerate(written) if one in written[:place]]:
        raise BadInput(f"--over {text}: {twice[0]} stands there twice; leave one out")
    return [f"{key}={one}" for one in written]


def _written(value: JSON) -> str:
    """A value that YAML reads as the same."""
    if isinstance(value, str) and _WORDS.fullmatch(value) and read_yaml(value, "").data == value:
        return value
    return orjson.dumps(value).decode()


def sweep(
    scenario: Path, folder: Path, *, over: Sequence[str] = (), seeds: int = 1, sets: Sequence[str] = (), name: str = ""
) -> Sweep:
    """Make the runs: each setting with so many seeds, from the scenario's own on. All of them are made or none.

    Ids are NAME-SETTING-sSEED, settings counted from 1 where there are several. Every run is tagged with the name and
    its settings. Raises BadInput, ScenarioError.
    """
    varied = settings(over)
    if len(varied) * seeds > MOST:
        raise BadInput(f"that would be {len(varied) * seeds:,} runs, more than {MOST:,}; write fewer values or seeds")
    first = load(scenario, [*sets, *varied[0]])
    name = name or dated(first.name)
    if taken := next((one for one in sorted(folder.glob("*.db")) if one.stem.startswith(f"{name}-")), None):
        raise _taken(name, taken.stem)
    planned = [
        (new_id(folder, f"{name}-{f'{place}-' if over else ''}s{seed}"), load(scenario, [*sets, *one, f"seed={seed}"]))
        for place, one in enumerate(varied, 1)
        for seed in range(first.seed, first.seed + seeds)
    ]
    made: list[Path] = []
    with Project(folder / PROJECT) as project:
        try:
            for place, (run_id, each) in enumerate(planned):
                made.append(create(each, folder, run_id))
                if made[-1].stem != run_id:  # another sweep has come in between
                    raise _taken(name, run_id)
                project.tag(run_id, name, *varied[place // seeds])
        except BaseException:
            for path in made:
                remove(path)
            raise
    return Sweep(name, [Cell(one, made[at * seeds : (at + 1) * seeds]) for at, one in enumerate(varied)])


def _taken(name: str, run: str) -> BadInput:
    return BadInput(f"--name {name}: there is {run} already; go on with those: agora resume '{name}-*'")
