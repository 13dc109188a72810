"""`--set key=value`: other values for keys of a scenario, before it is checked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from sim.scenarios.located import Keys, Located, Place, ScenarioError, nearest, shown
from sim.scenarios.yaml_text import read_yaml
from sim.types import JSON


def overridden(located: Located, texts: Sequence[str]) -> Located:
    """The scenario with each `dotted.key=value` set, the value read as YAML; a later text wins.

    A step of the key is a key of a mapping, or an index or an entry's name in a list. Whether a key is known is found
    out when the scenario is checked; the error then names the text.
    """
    result = Located(located.text, located.file, deepcopy(located.data), dict(located.places))
    for text in texts:
        _set(result, text)
    return result


def _set(located: Located, text: str) -> None:
    file = f"--set {text if len(text) <= 60 else text[:59] + '…'}"
    key, equals, value = text.partition("=")
    steps = [step.strip() for step in key.split(".")]
    if not equals or not all(steps):
        raise ScenarioError(file, None, "", "not a setting; write key=value, like clock.until=1h or cast.buyer.count=3")
    path: Keys = ()
    node: JSON = located.data
    for depth, step in enumerate(steps):
        place = _step(node, step, path, file)
        last = depth == len(steps) - 1
        path = (*path, place)
        if last:
            node[place] = _value(value, file)
        elif isinstance(node, dict) and node.get(step) is None:
            node[place] = {}
            located.places[path] = Place(file)
        node = node[place]
    for below in [known for known in located.places if known[: len(path)] == path]:
        del located.places[below]
    located.places[path] = Place(file)


def _value(text: str, file: str) -> JSON:
    try:
        return read_yaml(text, file).data
    except ScenarioError as error:
        raise ScenarioError(file, None, error.key, error.message) from None


def _step(node: JSON, step: str, path: Keys, file: str) -> str | int:
    """The key or index that one step of a dotted key stands for."""
    here = ".".join(map(str, path))
    if isinstance(node, dict):
        return step
    if not isinstance(node, list):
        raise ScenarioError(file, None, here, f"{shown(node)} has no keys below it; there is no {shown(step)} to set")
    if step.isdecimal():
        if int(step[:9]) < len(node):
            return int(step)
        raise ScenarioError(file, None, here, f"no entry {step[:12]}; the list has {len(node)}, counted from 0")
    names = {str(item["name"]): index for index, item in enumerate(node) if isinstance(item, dict) and "name" in item}
    if step not in names:
        raise ScenarioError(file, None, here, f"no entry is named {shown(step)}; {nearest(step, names)}")
    return names[step]
