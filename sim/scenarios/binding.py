"""Binds the names of a scenario to what they stand for, and checks all that its schema alone cannot.

World and agent classes are imported; engines are not (theirs is the heavy machinery), only their settings are read off
their source. Persona files are not opened: a stored cast does not need them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel

from sim.quantities import Distribution
from sim.scenarios.becoming import became, becomings, what
from sim.scenarios.draws import drawable, think_time
from sim.scenarios.located import Keys, ScenarioError, nearest, shown
from sim.scenarios.resolve import ResolveError, keywords, resolve
from sim.scenarios.scenario_schema import (
    ENGINES,
    STOP_RULE,
    BecomeAt,
    CastEntry,
    FromPrivate,
    ModelSettings,
    Scenario,
    Taken,
)
from sim.scenarios.strict import checked
from sim.types import ALL, JSON, Agent, Metric, World

_WORLD = ("reset", "observe", "step", "change", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the names and durations of a scenario stand for."""

    until: int | None
    """Last tick."""
    stops: tuple[tuple[str, int], ...]
    """Kinds of facts and the number of them that ends a table."""
    world: Callable[[BaseModel], World]
    """The world's class."""
    params: BaseModel
    """Its parameters, checked."""
    changeable: frozenset[str]
    """Parameters that interventions may set."""
    minds: Mapping[str, Callable[..., Agent]]
    """The agents' classes by entry name."""
    seats: Mapping[str, Callable[..., Agent]]
    """The classes of those that decide instead, by agent."""
    becoming: Mapping[int, Callable[..., Agent]]
    """The classes of minds that agents get by interventions, by where these stand."""
    thinks: Mapping[str, Distribution]
    """Think times in ticks, by entry name."""
    metrics: tuple[Metric, ...]
    """The world's own, then the scenario's."""


def bind(scenario: Scenario) -> Bound:
    """Look everything up. Raises ScenarioError at the first thing that does not fit."""
    _check_sizes(scenario)
    _check_names(scenario)
    until = _until(scenario)
    world, params = _world(scenario)
    for name, settings in scenario.models.items():
        _check_model(scenario, name, settings)
    entries = scenario.entries
    minds = {entry.name: _mind(scenario, keys, entry) for keys, entry in entries}
    for keys, entry in entries:
        _check_draws(scenario, keys, entry)
    seats = {agent: _seat(scenario, agent) for agent in scenario.seats}
    becoming = {index: _becoming(scenario, index, one) for index, one in becomings(scenario).items()}
    own: tuple[Metric, ...] = tuple(getattr(world, "metrics", ()))
    measured = [_metric(scenario, index, path) for index, path in enumerate(scenario.measure)]
    return Bound(
        until=until,
        stops=_stops(scenario),
        world=world,
        params=params,
        changeable=frozenset(getattr(world, "changeable", ())),
        minds=minds,
        seats=seats,
        becoming=becoming,
        thinks={entry.name: _think(scenario, keys, entry) for keys, entry in entries},
        metrics=tuple(dict.fromkeys([*own, *measured])),
    )


def _check_sizes(scenario: Scenario) -> None:
    limits = scenario.limits
    if scenario.tables > limits.tables:
        message = (
            f"{scenario.tables:,} tables are more than limits.tables = {limits.tables:,}; write fewer, or raise it"
        )
        raise scenario.error(("tables",), message)
    largest = max(range(len(scenario.cast)), key=lambda index: scenario.cast[index].count)
    agents = sum(entry.count for _, entry in scenario.entries) * scenario.tables
    if agents > limits.agents:
        message = f"{agents:,} agents in all tables are more than limits.agents = {limits.agents:,}"
        raise scenario.error(("cast", largest, "count"), f"{message}; write fewer, or raise it")


def _check_names(scenario: Scenario) -> None:
    """No two agents of one id, no two entries of one name."""
    counts: dict[str, int] = {}
    for keys, entry in scenario.entries:
        if keys[0] == "interventions" and entry.count != 1:
            raise scenario.error(
                (*keys, "count"), f"{entry.count} agents cannot join at once; expected 1 in each entry"
            )
        if entry.name == ALL:
            raise scenario.error((*keys, "name"), f"{ALL!r} means everybody; choose another name")
        if entry.name in counts:
            raise scenario.error((*keys, "name"), f"{entry.name!r} is another entry's name; every entry needs its own")
        counts[entry.name] = entry.count
    for keys, entry in scenario.entries:
        stem, _, number = entry.name.rpartition("-")
        if entry.count == 1 and counts.get(stem, 1) > 1 and _is_number(number, counts[stem]):
            message = f"{entry.name!r} is also the id of an agent of {stem!r}; choose another name"
            raise scenario.error((*keys, "name"), message)


def _is_number(text: str, most: int) -> bool:
    """Whether a text is the number of one of `most` agents."""
    return text.isascii() and text.isdecimal() and text[0] != "0" and int(text[:9]) <= most


def agents_named(scenario: Scenario, name: str) -> list[str]:
    """The agents that a name stands for: one by its id, or all of an entry; none where nobody has the name."""
    for _, entry in scenario.entries:
        stem, _, number = name.rpartition("-")
        if entry.name == name:
            return entry.agents
        if entry.name == stem and entry.count > 1 and _is_number(number, entry.count):
            return [name]
    return []


def _until(scenario: Scenario) -> int | None:
    until = scenario.clock.until
    if until is not None:
        return scenario.ticks(("clock", "until"), until)
    if scenario.stop is None and "until" not in scenario.clock.model_fields_set:
        message = "missing, and nothing else stops the run; write a duration, stop.after, or null where the world ends"
        raise scenario.error(("clock", "until"), message)
    return None


def _stops(scenario: Scenario) -> tuple[tuple[str, int], ...]:
    """Each rule for the kind as written and for its singular, the smallest number of each."""
    after = scenario.stop.after if scenario.stop else ()
    found: dict[str, int] = {}
    for text in (after,) if isinstance(after, str) else after:
        rule = STOP_RULE.fullmatch(text)
        assert rule is not None
        for kind in {rule[2], singular(rule[2])}:
            found[kind] = min(int(rule[1]), found.get(kind, int(rule[1])))
    return tuple(sorted(found.items()))


def singular(word: str) -> str:
    """The singular of a regular English plural; any other word unchanged."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _resolved(scenario: Scenario, keys: Keys, text: str) -> Any:
    try:
        return resolve(text, scenario.base)
    except ResolveError as error:
        raise scenario.error(keys, str(error)) from error


def _world(scenario: Scenario) -> tuple[Callable[[BaseModel], World], BaseModel]:
    use = scenario.world.use
    world = _resolved(scenario, ("world", "use"), use)
    if missing := [name for name in _WORLD if not hasattr(world, name)]:
        raise scenario.error(("world", "use"), f"{use} is no world: it has no {missing[0]}; see sim.types:World")
    model = getattr(world, "Params", None)
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        raise scenario.error(("world", "use"), f"{use} has no pydantic model Params; a world needs one, even if empty")
    return world, world_params(scenario, model, scenario.world.params)


def world_params(scenario: Scenario, model: type[BaseModel], values: dict[str, JSON]) -> BaseModel:
    """The world's parameters from values as written. Raises ScenarioError."""
    context = {"tick_ms": scenario.clock.tick_ms}
    params = checked(model, values, scenario.located, ("world",), context)
    for keys, value in _leaves(params.model_dump(exclude_unset=True), ("world",)):
        if isinstance(value, float) and not math.isfinite(value):
            raise scenario.error(keys, f"{value} is not a finite number")
    return params


def _check_model(scenario: Scenario, name: str, settings: ModelSettings) -> None:
    keys: Keys = ("models", name)
    if settings.engine not in ENGINES and ":" not in settings.engine:
        message = f"unknown engine {shown(settings.engine)}; {nearest(settings.engine, ENGINES)} (or module:Name)"
        raise scenario.error((*keys, "engine"), message)
    if settings.max_tokens >= settings.context:
        message = (
            f"{settings.max_tokens} leaves no room for a prompt in {settings.context} tokens; lower it or raise context"
        )
        raise scenario.error((*keys, "max_tokens"), message)
    try:
        known = keywords(settings.engine_path, scenario.base)
    except ResolveError as error:
        raise scenario.error((*keys, "engine"), str(error)) from None
    for key in settings.settings:
        if known is not None and key not in known:
            hint = nearest(key, {*known, *ModelSettings.model_fields})
            raise scenario.error((*keys, key), f"unknown key; {hint}")
    _check_policy(scenario, keys, settings)


def _check_policy(scenario: Scenario, keys: Keys, settings: ModelSettings) -> None:
    """vLLM and torch speak only with the adapters they are given; an endpoint may know others.

    A policy without a version is a learner's: training gives it one.
    """
    if "@" not in settings.policy or not settings.needs_adapters:
        return
    adapters = settings.settings.get("adapters")
    names = list(adapters) if isinstance(adapters, dict) else []
    if settings.policy not in names:
        hint = nearest(settings.policy, names) if names else "add its folder: adapters: {name@v: folder}"
        raise scenario.error((*keys, "policy"), f"{shown(settings.policy)} is none of the model's adapters; {hint}")


def _seat(scenario: Scenario, agent: str) -> Callable[..., Agent]:
    """The class of what decides for an agent instead of what its entry names."""
    if agents_named(scenario, agent) != [agent]:
        raise nobody(scenario, ("seats", agent), agent)
    return _mind(scenario, ("seats", agent), scenario.seats[agent])


def _becoming(scenario: Scenario, index: int, one: BecomeAt) -> Callable[..., Agent]:
    """The class of the mind that an agent gets by an intervention."""
    keys: Keys = ("interventions", index)
    if agents_named(scenario, one.agent) != [one.agent]:
        raise nobody(scenario, (*keys, "agent"), one.agent)
    if not what(one):
        raise scenario.error(keys, "nothing is another; write persona, use, with or model")
    mind, _ = became(scenario, index)
    if mind.model in scenario.models and scenario.models[mind.model].person:
        raise scenario.error((*keys, "model"), f"{mind.model} is a person, who takes a seat from the start; see seats")
    return _mind(scenario, keys, mind, "use")


def nobody(scenario: Scenario, keys: Keys, name: str) -> ScenarioError:
    """The error where no agent goes by a name."""
    known = [agent for _, entry in scenario.entries for agent in (entry.name, *entry.agents[:100])]
    return scenario.error(keys, f"no agent has the id {shown(name)}; {nearest(name, known)}")


def _mind(scenario: Scenario, keys: Keys, entry: CastEntry | Taken, key: str = "agent") -> Callable[..., Agent]:
    """The class of an entry's agents, its model and constructor settings checked; `key`: where the class is named."""
    mind = _resolved(scenario, (*keys, key), entry.agent)
    if not callable(mind) or not hasattr(mind, "act"):
        raise scenario.error((*keys, key), f"{entry.agent} is no agent: it has no act; see sim.types:Agent")
    if entry.model and entry.model not in scenario.models:
        message = f"no model is named {shown(entry.model)}; {nearest(entry.model, scenario.models)}"
        raise scenario.error((*keys, "model"), message)
    _check_settings(scenario, keys, entry, mind)
    _check_asked(scenario, keys, entry, getattr(mind, "models", ()))
    return cast("Callable[..., Agent]", mind)


def _check_settings(scenario: Scenario, keys: Keys, entry: CastEntry | Taken, mind: Callable[..., object]) -> None:
    try:
        rest = list(inspect.signature(mind).parameters.values())[1:]
    except ValueError:
        return
    named = [each for each in rest if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in rest)
    for key in entry.settings:
        if not takes_any and key not in {each.name for each in named}:
            hint = nearest(key, [each.name for each in named])
            raise scenario.error((*keys, "with", key), f"unknown setting of {entry.agent}; {hint}")
    for each in named:
        if each.default is each.empty and each.name not in entry.settings:
            raise scenario.error((*keys, "with", each.name), f"missing; {entry.agent} needs it")


def _check_asked(scenario: Scenario, keys: Keys, entry: CastEntry | Taken, asked: Sequence[str]) -> None:
    """The models that a mind says it asks are there; `asked`: `model`, and settings that name others."""
    if "model" in asked and not entry.model:
        known = f"one of {', '.join(scenario.models)}" if scenario.models else "an entry of models"
        raise scenario.error((*keys, "model"), f"missing; {entry.agent} asks a model: name {known}")
    for key in entry.settings.keys() & set(asked):
        name = entry.settings[key]
        if name and isinstance(name, str) and name not in scenario.models:
            message = f"no model is named {shown(name)}; {nearest(name, scenario.models)}"
            raise scenario.error((*keys, "with", key), message)


def _leaves(value: JSON, keys: Keys) -> Iterator[tuple[Keys, JSON]]:
    """All values in a value that hold no others, with where they stand."""
    if isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*keys, key))
    else:
        yield keys, value


def _check_draws(scenario: Scenario, keys: Keys, entry: CastEntry) -> None:
    """Private values and secrets can be drawn."""
    tick_ms = scenario.clock.tick_ms
    texts: list[tuple[Keys, str, float | None]] = [
        (where, leaf, tick_ms) for where, leaf in _leaves(entry.private, (*keys, "private")) if isinstance(leaf, str)
    ]
    for index, secret in enumerate(entry.secrets):
        where = (*keys, "secrets", index, "value")
        if isinstance(secret.value, FromPrivate) and (key := secret.value.private) not in entry.private:
            raise scenario.error(where, f"no private value is named {shown(key)}; {nearest(key, entry.private)}")
        if isinstance(secret.value, str):
            texts.append((where, secret.value, None))
    for where, text, tick in texts:
        try:
            drawable(text, tick)
        except ValueError as error:
            raise scenario.error(where, str(error)) from None


def _think(scenario: Scenario, keys: Keys, entry: CastEntry) -> Distribution:
    try:
        return think_time(entry.think, scenario.clock.tick_ms)
    except ValueError as error:
        raise scenario.error((*keys, "think"), str(error)) from None


def _metric(scenario: Scenario, index: int, path: str) -> Metric:
    metric = _resolved(scenario, ("measure", index), path)
    if not callable(metric):
        raise scenario.error(("measure", index), f"{path} cannot be called; a metric is a function of a record")
    return cast("Metric", metric)
