"""The rules of `sim.types:World` that take whole plays to check: reset, luck, interventions, arrivals."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sim.conformance.findings import Broken, Findings
from sim.conformance.trials import Cast, Drawn, play
from sim.conformance.watched import Watched
from sim.streams import Root, Streams
from sim.types import JSON, Agent, Change, Leave, Member, Say, Set, World

SEEDS = (0, 1, 2)
LEAVERS = 4
"""Agents that are each sent away in a play of its own."""
EVENTS_CHANGED = 80
"""Events of a play with interventions."""


def built(kind: Any, params: Mapping[str, JSON] | BaseModel | None) -> World:
    """A new world of a class."""
    world: World = kind(built_params(kind, params))
    return world


def built_params(kind: Any, params: Mapping[str, JSON] | BaseModel | None) -> BaseModel:
    """Params of a world, from values as a scenario writes them. Raises ValidationError."""
    if isinstance(params, BaseModel):
        return params
    model: type[BaseModel] = kind.Params
    return model.model_validate(dict(params or {}))


def drawn(members: Sequence[Member], asks: bool = False) -> Cast:
    """A cast that plays at random."""
    return [(member, lambda one: Drawn(one, asks)) for member in members]


class WorldRules:
    """The checks of one world, played by these members."""

    def __init__(
        self, kind: Any, members: Sequence[Member], params: Mapping[str, JSON] | BaseModel | None, found: Findings
    ) -> None:
        self.kind = kind
        self.members = members
        self.found = found
        self.ids = [member.seat.agent for member in members]
        self.params = params

    def check(self, agent: Callable[[Member], Agent] | None) -> None:
        """Find what is wrong."""
        self._declared()
        self._reset()
        ticks = self._plays()
        self._changes(ticks)
        self._leavers(ticks)
        if not self.found:
            self._arrivals()
        if agent is not None:
            self._played_by(agent)

    def _new(self) -> World:
        try:
            return built(self.kind, self.params)
        except Exception as error:
            self.found.add("it is built from its Params", f"{type(error).__name__}: {error}")
            raise Broken from error

    def _declared(self) -> None:
        """Params, metrics and changeable are there and of the right kind."""
        kind, expect = self.kind, self.found.expect
        params = getattr(kind, "Params", None)
        model = isinstance(params, type) and issubclass(params, BaseModel)
        if not expect("it is built from its Params", model, "it has no pydantic model Params"):
            raise Broken
        metrics = getattr(kind, "metrics", None)
        listed = isinstance(metrics, tuple) and all(callable(metric) for metric in metrics)
        expect("metrics are functions", listed, f"metrics is {metrics!r}; expected a tuple of functions of a record")
        changeable = getattr(kind, "changeable", None)
        named = isinstance(changeable, frozenset) and all(isinstance(key, str) for key in changeable)
        expect("changeable names parameters", named, f"changeable is {changeable!r}; expected a frozenset of names")

    def _reset(self) -> None:
        """A world that is reset starts anew, whatever happened before."""
        world, seats = self._new(), [member.seat for member in self.members]
        watched = Watched(world, self.found)
        play(watched, drawn(self.members), self.found, events=20)
        starts = []
        for each in (world, world, self._new()):
            outcome = Watched(each, self.found).reset(seats, Streams(Root(7), ("table", 0)))
            starts.append((outcome, each.state()))
        rule = "reset starts anew"
        self.found.expect(rule, starts[0] == starts[1], "two resets of one world differ in outcome or state")
        self.found.expect(rule, starts[1] == starts[2], "a reset differs from that of a new world")

    def _plays(self) -> list[int]:
        """Random play, twice per seed, with other global luck; the ticks at which something happened."""
        ticks: list[int] = []
        for seed in SEEDS:
            watched = Watched(self._new(), self.found)
            # What a play comes to does not depend on being watched.
            hashes = {self._hash(world, seed, noise) for noise, world in enumerate((watched, self._new()))}
            self.found.expect("one seed, one log", len(hashes) == 1, f"two plays with seed {seed} differ")
            ticks = max(ticks, watched.ticks, key=len)
        return sorted(set(ticks)) or [0]

    def _hash(self, world: World, seed: int, noise: int) -> str:
        """Hash of the log of one random play."""
        callers = random.getstate()
        random.seed(noise)
        before = random.getstate()
        try:
            trial = play(world, drawn(self.members), self.found, seed=seed)
            touched = random.getstate() != before
        finally:
            random.setstate(callers)  # the luck of whoever asked for the check is left as it was
        self.found.expect("luck comes from the streams only", not touched, "it draws from module `random`")
        if trial is None:
            raise Broken
        return trial.hash

    def _changes(self, ticks: Sequence[int]) -> None:
        """Words from outside, and every parameter that may change set to what it is."""
        changes: list[Change] = [Say(text="Listen!"), Say(text="A word to you.", to=(self.ids[0],))]
        values = built_params(self.kind, self.params).model_dump(mode="json")
        changes += [Set(key=key, value=values[key]) for key in sorted(self.kind.changeable) if key in values]
        for tick in {0, ticks[len(ticks) // 3]}:
            self._changed([(tick, change) for change in changes])

    def _leavers(self, ticks: Sequence[int]) -> None:
        """Everybody leaves: some each alone, then all one after the other."""
        middle = ticks[len(ticks) // 3]
        for agent in self.ids[:LEAVERS]:
            self._changed([(middle, Leave(agent=agent))])
        self._changed([(0, Leave(agent=agent)) for agent in self.ids])
        self._changed([(middle + n, Leave(agent=agent)) for n, agent in enumerate(reversed(self.ids))])

    def _changed(self, changes: Sequence[tuple[int, Change]]) -> None:
        play(Watched(self._new(), self.found), drawn(self.members), self.found, changes=changes, events=EVENTS_CHANGED)

    def _arrivals(self) -> None:
        """The order in which models answer never shows."""
        hashes = set()
        for order in (0, 1, 2):
            trial = play(self._new(), drawn(self.members, asks=True), self.found, order=order)
            hashes.add(trial.hash if trial else "")
        self.found.expect("answers may arrive in any order", len(hashes) == 1, "another order gives another log")

    def _played_by(self, agent: Callable[[Member], Agent]) -> None:
        for seed in SEEDS:
            cast = [(member, agent) for member in self.members]
            trial = play(Watched(self._new(), self.found), cast, self.found, seed=seed)
            if trial is not None and trial.faults:
                self.found.add("its agents find their way", trial.faults[0])
