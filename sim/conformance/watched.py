"""A world with an eye on every answer it gives: the rules of `sim.types:World`, checked as it is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any, ClassVar

import orjson
from pydantic import BaseModel

from sim.answers import illegal, schema
from sim.conformance.findings import Broken, Findings, no_json
from sim.conformance.outcome_rules import OutcomeRules
from sim.samples import sample
from sim.streams import Streams
from sim.types import (
    JSON,
    Action,
    AgentId,
    Change,
    Choice,
    Form,
    Format,
    Join,
    Leave,
    Metric,
    Outcome,
    Seat,
    Turn,
    World,
)

REFRESH = 20
"""Steps and changes that one copy is given."""
CLOSELY = 20
"""Calls up to which every observation is compared with a second look; later on one in ten is."""


class Watched:
    """Hands every call on to a world, and to a copy of it that has to answer alike.

    A broken rule goes to `found`. What cannot be gone on with raises `Broken`, which ends the play.
    """

    Params: ClassVar[type[BaseModel]] = BaseModel
    metrics: ClassVar[tuple[Metric, ...]] = ()
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, world: World, found: Findings) -> None:
        self.world = world
        self.found = found
        self.turns: list[Turn] = []
        """Every turn it gave."""
        self.ticks: list[int] = []
        """Ticks at which it was stepped."""
        self.outcomes = OutcomeRules(found)
        self._shadow: World | None = None
        self._kept: tuple[JSON, bytes] = (None, b"null")
        self._calls = 0
        self._age = 0
        """Calls that the copy has answered."""

    # --- the world's calls ------------------------------------------------------------------------

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """As the world's."""
        self.outcomes.seated = {seat.agent for seat in seats}
        self.outcomes.known = set(self.outcomes.seated)
        outcome = self._call("reset", lambda: self.world.reset(seats, streams))
        return self.outcomes.check("reset", 0, outcome, 0)

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """As the world's."""
        self.ticks.append(now)
        return self._both("step", now, len(actions), lambda world: world.step(now, actions))

    def change(self, now: int, change: Change) -> Outcome:
        """As the world's."""
        if isinstance(change, Join):
            self.outcomes.known.add(change.seat.agent)
        elif isinstance(change, Leave):
            self.outcomes.left.add(change.agent)
        return self._both(f"change({type(change).__name__})", now, 0, lambda world: world.change(now, change))

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """As the world's."""
        look = lambda: self.world.observe(now, agent)  # noqa: E731
        self._calls += 1
        if self._calls > CLOSELY and self._calls % 10:
            turn: Turn | None = self._call("observe", look)
        else:
            turn = self._twice(now, agent, look)
        if turn is not None:
            self._check_turn(now, agent, turn)
            self.turns.append(turn)
        return turn

    def state(self) -> JSON:
        """The world's state, which must be JSON."""
        state = self._state()
        self.found.expect("state is JSON", not (wrong := no_json(state)), wrong)
        return state

    def _state(self) -> JSON:
        return self._call("state", self.world.state)

    def _call(self, verb: str, method: Callable[[], Any]) -> Any:
        try:
            return method()
        except Exception as error:
            self.found.add(f"{verb} raises nothing", f"{type(error).__name__}: {error}")
            raise Broken from error

    # --- the copy, and looking twice ----------------------------------------------------------------

    def _both(self, verb: str, now: int, actions: int, call: Callable[[World], Outcome]) -> Outcome:
        """Make the call on the world and on its copy."""
        if self._age % REFRESH == 0:
            self._refresh(now)
        self._age += 1
        outcome: Outcome = self._call(verb, lambda: call(self.world))
        if self._shadow is not None:
            self._compare(verb, now, outcome, call, self._shadow)
        return self.outcomes.check(verb, now, outcome, actions)

    def _refresh(self, now: int) -> None:
        """Copy the world anew; also: a state once given stays as it is, and everybody can be asked about."""
        state, written = self._kept
        self.found.expect(
            "state is fresh", orjson.dumps(state, default=repr) == written, "a state given earlier has changed since"
        )
        state = self.state()
        self._kept = (state, orjson.dumps(state, default=repr))
        for agent in sorted(self.outcomes.seated - self.outcomes.gone - self.outcomes.left):
            self._call("observe", lambda who=agent: self.world.observe(now, who))  # type: ignore[misc]
        self.found.expect(
            "observe changes nothing", self._state() == state, "the state is another after everybody looked"
        )
        try:
            self._shadow = deepcopy(self.world)
        except Exception as error:
            self.found.add("a copy goes on alike", f"it cannot be deep-copied: {type(error).__name__}: {error}")
            self._shadow = None

    def _compare(self, verb: str, now: int, outcome: Outcome, call: Callable[[World], Outcome], shadow: World) -> None:
        rule = "a copy goes on alike"
        try:
            other: object = call(shadow)
            equal = other == outcome and (self._age % REFRESH or shadow.state() == self.world.state())
        except Exception as error:
            self.found.add(rule, f"tick {now}: {verb} of a deep copy raised {type(error).__name__}: {error}")
            self._shadow = None
        else:
            if not self.found.expect(rule, bool(equal), f"tick {now}: {verb} of a deep copy came out otherwise"):
                self._shadow = None

    def _twice(self, now: int, agent: AgentId, look: Callable[[], Turn | None]) -> Turn | None:
        """Observe twice between two looks at the state."""
        before = self._state()
        turn: Turn | None = self._call("observe", look)
        again: Turn | None = self._call("observe", look)
        where = f"tick {now}, {agent}"
        self.found.expect(
            "observe changes nothing", self._state() == before, f"{where}: the state is another afterwards"
        )
        self.found.expect("observe says the same twice", _plain(turn) == _plain(again), f"{where}: two looks differ")
        return turn

    # --- a turn ---------------------------------------------------------------------------------------

    def _check_turn(self, now: int, agent: AgentId, turn: Turn) -> None:
        expect, where = self.found.expect, f"tick {now}, {agent}"
        expect(
            "a turn names its agent and tick",
            (turn.agent, turn.now) == (agent, now),
            f"{where}: {turn.agent}, {turn.now}",
        )
        self._check_shows(agent, turn, where)
        if wrong := unaskable(turn.format):
            self.found.add("an answer can be asked for", f"{where}: {wrong}")
            raise Broken
        reason = illegal(turn.format, turn.default)
        expect("the default is legal", reason is None, f"{where}: {turn.default!r}: {reason}")
        try:
            words = [turn.text, turn.rules, "" if turn.recap is None else turn.recap(turn.view)]
        except Exception as error:
            self.found.add("a turn reads as text", f"{where}: {type(error).__name__}: {error}")
        else:
            expect("a turn reads as text", all(type(each) is str for each in words), f"{where}: not all of it is text")

    def _check_shows(self, agent: AgentId, turn: Turn, where: str) -> None:
        for fact in turn.shows:
            rule = "a turn shows what its agent may see"
            if type(fact) is not int or not 0 <= fact < len(self.outcomes.facts):
                self.found.add(rule, f"{where}: there is no fact {fact!r}")
                continue
            audience, actor = self.outcomes.facts[fact].audience, self.outcomes.facts[fact].actor
            may = isinstance(audience, str) or agent in audience or agent == actor
            self.found.expect(rule, may, f"{where}: fact {fact} is for {audience} only")


def unaskable(format: Format) -> str:
    """Why no model could be asked for an answer of this format; empty if one can."""
    if isinstance(format, Choice):
        options = format.options
        texts = all(type(option) is str and option.strip() for option in options)
        return "" if options and texts and len(set(options)) == len(options) else f"choices {options}"
    if not isinstance(format, Form):
        return "" if format.max_chars > 0 else f"a text of {format.max_chars} characters"
    try:
        schema(format)
        drawn = sample(format, Random(0))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if drawn is not None else "none of twenty answers drawn from its schema passes its validators"


def _plain(turn: Turn | None) -> object:
    """What two looks must have in common: all but the functions that put it in words."""
    if turn is None:
        return None
    return (turn.agent, turn.now, turn.view, turn.format, turn.default, turn.rules, turn.shows, turn.key, turn.thread)
