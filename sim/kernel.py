"""The kernel: one table's discrete events.

Time is an integer count of ticks, and SimPy's `env.now` is the only clock. An agent wakes, its turn is
observed, its mind starts, and its decision is due a think time later; the kernel goes on with other
events meanwhile and needs the mind only when time reaches the due tick. SimPy's agenda has one entry per
occupied tick and round, not one per agent.

The kernel never waits: it says whether its next event is `ready`, and the host decides when to
`advance` it. Nothing here reads the wall clock.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from math import inf, isfinite
from operator import attrgetter
from typing import Any

import simpy
from msgspec import Struct
from msgspec.structs import replace

from sim.answers import illegal
from sim.blobs import encode_ids
from sim.log import Log, change_json, dumps, seat_json
from sim.quantities import Distribution
from sim.streams import Key, Streams
from sim.types import (
    Act,
    Action,
    Agent,
    AgentId,
    Become,
    Completion,
    How,
    Intervention,
    Join,
    Leave,
    Member,
    Outcome,
    Request,
    Turn,
    World,
)

MAX_ROUNDS = 1_000
"""Most rounds of one tick; where there are more, zero-think agents are waking each other for ever."""
MAX_INTERRUPTS = 3
"""Decisions of one agent dropped in a row before one stands."""

_in_cast_order = attrgetter("place")
_by_cast_order = attrgetter("player.place")

_MISFITS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
"""What taking an outcome raises where the world gave something else than its type says."""


class WorldError(Exception):
    """The world or an agent's setting broke a rule of the seams, or the world raised."""


class Unaskable(Exception):
    """A mind asks for a call that cannot be made: its own fault."""


class Player:
    """One member of the cast in play."""

    __slots__ = ("again", "agent", "decision", "id", "interrupts", "live", "member", "place", "think", "wakes")

    def __init__(self, member: Member, agent: Agent, think: Distribution) -> None:
        self.member = member
        self.agent = agent
        self.think = think
        self.id: AgentId = member.seat.agent
        self.place = 0
        self.live = True
        self.decision: Decision | None = None
        self.again = False
        """A wake came while thinking."""
        self.interrupts = 0
        """Decisions dropped since the last one that stood."""
        self.wakes = (-1, 0)
        """Last tick of a decision and how many were started in it."""

    def become(self, other: Player) -> None:
        """Take over another one's mind and what it knows of itself; memory stays where the minds are of one kind."""
        if type(other.agent) is type(self.agent):
            other.agent.state = self.agent.state
        self.member, self.agent = other.member, other.agent


class Waiting(Struct, eq=False):
    """A mind between its requests and their completions."""

    mind: Any
    streams: Streams
    answered: list[Completion | None]
    missing: int


class Decision(Struct, eq=False):
    """One decision in progress: a turn, and what its mind waits for or has decided."""

    table: Table
    player: Player
    agent: Agent
    """Whose mind it is."""
    turn: Turn
    seen: int
    nth: int
    due: int
    state: bytes | None
    """Hash of the world's state that the turn was seen in."""
    waiting: Waiting | None = None
    calls: int = 0
    """Calls made so far."""
    digest: bytes | None = None
    """Chained digest of the requests."""
    action: Action | None = None
    dropped: bool = False

    def seed(self, call: int) -> int:
        """Seed of one of the calls that it waits for."""
        assert self.waiting is not None
        return self.waiting.streams.seed("call", call)


class Slot(Struct, eq=False):
    """What happens in one round of one tick."""

    changes: tuple[tuple[Intervention, Player | None], ...] = ()
    due: list[Decision] = []
    wakes: dict[Player, bool] = {}
    """Whom to ask, and whether that interrupts."""
    timer: bool = False
    missing: int = 0
    """Due decisions whose minds wait for calls."""


class Occupied(simpy.Event):
    """What stands on SimPy's agenda at each occupied tick and round of a table: what happens then is in the slot."""

    def __init__(self, env: simpy.Environment, happen: Callable[[simpy.Event], None]) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self.callbacks = self.kept = [happen]


class Table:
    """One world with its cast, clock and log.

    `submit(decision, requests)` starts model calls and later calls `deliver` on the same thread; or raises
    `Unaskable` and has started none.
    `pump()` lets the host deliver what has arrived; it is called between wakes. `branches` are the forks that the
    run went through: tick and replicate number, oldest first.
    `mind_path` sets the minds' luck apart from that of another table whose world has the same; `branch` does so from a
    tick on: what is seen then is still the same, what is made of it is not. With `states`, every decision carries a
    hash of the world's whole state.
    """

    def __init__(
        self,
        world: World,
        players: Sequence[Player],
        *,
        streams: Streams,
        log: Log,
        submit: Callable[[Decision, Sequence[Request]], None],
        pump: Callable[[], None] = lambda: None,
        until: int | None = None,
        stops: Sequence[tuple[str, int]] = (),
        interventions: Sequence[tuple[int, Intervention, Player | None]] = (),
        branches: Sequence[tuple[int, int]] = (),
        mind_path: tuple[Key, ...] = (),
        branch: tuple[int, int] | None = None,
        states: bool = False,
    ) -> None:
        self.world = world
        self.env = simpy.Environment()
        self._occupied = Occupied(self.env, self._event)
        self.log = log
        self.index = log.table
        self.until = inf if until is None else until
        self.round = 0
        self._tick = -1
        """Tick of the last event."""
        self.finished = False
        self.alive = 0
        self._expected = 0
        """Agents who are to join."""
        self.counts: Counter[str] = Counter()
        """Decisions by how, stale ones, faults by kind."""
        self._mind_path = mind_path
        self._branch = branch
        self._states = states
        self._state: bytes | None = None
        """Hash of the world's state in the event that is on."""
        self._streams = streams
        self._renew_minds()
        self._players: dict[AgentId, Player] = {}
        self._order: list[Player] = []
        self._slots: dict[int, Slot] = {}
        self._submit = submit
        self._pump = pump
        self._stops = {kind: number for kind, number in stops if kind != "decision"}
        self._most_decisions = dict(stops).get("decision", inf)
        self._stopped = False
        """Whether a stop rule is met."""
        self._branches = list(branches)
        self._acts: dict[AgentId, Act] = {}
        """What agents are to do next, whatever they decide."""
        for player in players:
            self._seat(player)
        for intervention in interventions:
            self.intend(*intervention)

    # --- the host's side ---------------------------------------------------------------------

    def start(self) -> None:
        """Reset the world at tick 0."""
        seats = [player.member.seat for player in self._order]
        self.log.event(0, 0, "start", "", [seat_json(seat) for seat in seats])
        try:
            outcome = self.world.reset(seats, self._streams)
        except Exception as error:
            raise self._raised("reset", error) from error
        try:
            self._absorb(0, outcome, None)
            self.log.hand_on()
        except _MISFITS as error:
            raise self._misfit(error) from error
        if not self._slots:
            self._finish()

    @property
    def now(self) -> int:
        """The current tick."""
        return int(self.env.now)

    @property
    def next(self) -> int:
        """Tick of the next event."""
        return int(self.env.peek())

    @property
    def ready(self) -> bool:
        """Whether the next event can happen: all minds due in it have finished."""
        return not self._slots[self.next].missing

    def intend(self, tick: int, change: Intervention, player: Player | None = None) -> None:
        """Let an intervention come at a tick that has not begun, after those intended before.

        `player`: who joins by it, or what an agent becomes.
        """
        if slot := self._slot(tick):
            slot.changes += ((change, player),)
            self._expected += isinstance(change, Join)

    def thinking(self, agent: AgentId) -> tuple[int, int] | None:
        """Tick and number of the decision that an agent is at."""
        decision = self._players[agent].decision if agent in self._players else None
        return (decision.seen, decision.nth) if decision else None

    def advance(self) -> None:
        """Let the next event happen."""
        try:
            self.env.step()
        except _MISFITS as error:
            raise self._misfit(error) from error

    def deliver(self, decision: Decision, index: int, completion: Completion) -> None:
        """One call of a decision has been answered."""
        waiting = decision.waiting
        if waiting is None or decision.dropped:
            return
        waiting.answered[index] = completion
        waiting.missing -= 1
        if waiting.missing == 0:
            decision.waiting = None
            self._slots[decision.due].missing -= 1
            self._think(decision, waiting.mind, waiting.streams, waiting.answered)

    def close(self) -> None:
        """Drop all minds, and hand on what an event that broke off has left."""
        self._drop_all()
        with suppress(*_MISFITS):  # a row that cannot be coded
            self.log.hand_on()

    # --- one event -----------------------------------------------------------------------------

    def _slot(self, tick: int) -> Slot | None:
        """The slot at a tick, made and put on SimPy's agenda on first use; None past the end."""
        slot = self._slots.get(tick)
        if slot is None and tick <= self.until:
            if not isinstance(tick, int):
                raise TypeError(f"a tick is a whole number, not {tick!r}")
            slot = self._slots[tick] = Slot()
            self.env.schedule(self._occupied, delay=tick - self.env.now)
        return slot

    def _event(self, _event: simpy.Event) -> None:
        """Changes in file order, one step with all due actions, then all wakes against one state."""
        self._occupied.callbacks = self._occupied.kept  # SimPy takes them off an event that happens
        now = int(self.env.now)
        slot = self._slots.pop(now)
        if now == self._tick:
            self._count_round(now, slot)
        else:
            self._tick, self.round = now, 0
        while self._branches and now >= self._branches[0][0]:
            self._streams.replicate(self._branches.pop(0)[1])
            self._renew_minds()
        if self._branch and now >= self._branch[0]:
            self._mind_path = (*self._mind_path, "branch", self._branch[1])
            self._branch = None
            self._renew_minds()
        for change, player in slot.changes:
            self._change(now, slot, change, player)
        due = [decision for decision in slot.due if not decision.dropped]
        if len(due) > 1:
            due.sort(key=_by_cast_order)
        if due or slot.timer:
            self._step(now, slot, due)
        if self._stopped or not (self.alive or self._expected):
            self._finish()
            return
        wakes = slot.wakes
        if self._states and wakes:
            self._state = self._state_hash()
        for player in sorted(wakes, key=_in_cast_order) if len(wakes) > 1 else wakes:
            self._wake(now, player, wakes[player])
            self._pump()
        self.log.mark(now, self.round)
        if not self._slots:
            self._finish()

    def _count_round(self, now: int, slot: Slot) -> None:
        """One more in the same tick."""
        self.round += 1
        if self.round >= MAX_ROUNDS:
            agents = sorted({player.id for player in (*(decision.player for decision in slot.due), *slot.wakes)})
            raise WorldError(
                f"table {self.index}, tick {now}: more than {MAX_ROUNDS} rounds in one tick; "
                f"agents that think for 0 ticks keep waking each other: {', '.join(agents[:10])}"
            )

    def _change(self, now: int, slot: Slot, change: Intervention, player: Player | None) -> None:
        """Apply an intervention; one on an agent that is gone is recorded and does nothing."""
        data = change_json(change)
        if isinstance(change, Leave | Act | Become):
            there = self._players.get(change.agent)
            if there is None or not there.live:
                self.log.event(now, self.round, "change", "", {**data, "skipped": "not in play"})
                return
            if isinstance(change, Leave):
                self._retire(there)
            elif isinstance(change, Become):
                assert player is not None
                there.become(player)
            else:
                self._acts[change.agent] = change
        self.log.event(now, self.round, "change", "", data)
        if isinstance(change, Act | Become):
            return
        if isinstance(change, Join) and player is not None:
            self._expected -= 1
            self._seat(player)
        try:
            outcome = self.world.change(now, change)
        except Exception as error:
            raise self._raised("change", error) from error
        self._absorb(now, outcome, slot)

    def _step(self, now: int, slot: Slot, due: list[Decision]) -> None:
        """One step of the world with all due actions."""
        if self._acts:
            for decision in due:
                if act := self._acts.pop(decision.player.id, None):
                    self._force(now, decision, act)
        actions = []
        for decision in due:
            action = decision.action
            assert action is not None
            actions.append(action)
        try:
            outcome = self.world.step(now, actions)
        except Exception as error:
            raise self._raised("step", error) from error
        if len(outcome.results) != len(actions):
            raise WorldError(
                f"table {self.index}, tick {now}: step got {len(actions)} actions "
                f"and gave {len(outcome.results)} results"
            )
        counts, log, round_ = self.counts, self.log, self.round
        for place, result in enumerate(outcome.results):
            decision, action = due[place], actions[place]
            player = decision.player
            player.decision = None
            player.interrupts = 0
            if action.state is not None and type(decision.agent) is type(player.agent):
                player.agent.state = action.state  # the decision stands: now the agent remembers
            if player.again:
                player.again = False
                slot.wakes.setdefault(player, False)
            counts[action.how] += 1
            counts[result.status] += 1
            log.decision(now, round_, decision, result)
        counts["decisions"] += len(due)
        if counts["decisions"] >= self._most_decisions:
            self._stopped = True
        self._absorb(now, outcome, slot)

    def _absorb(self, now: int, outcome: Outcome, slot: Slot | None) -> None:
        """Record what happened and put what follows on the agenda; wakes for now join `slot`."""
        for fact in outcome.facts:
            self.log.fact(now, self.round, fact)
            if fact.kind in self._stops:
                self.counts["fact " + fact.kind] += 1
                if self.counts["fact " + fact.kind] >= self._stops[fact.kind]:
                    self._stopped = True
        if outcome.rewards:
            if not all(map(isfinite, outcome.rewards.values())):
                raise ValueError(f"a reward is no finite number: {dict(outcome.rewards)}")
            self.log.event(now, self.round, "rewards", "", outcome.rewards)
        for agent, how in outcome.ended.items():
            self.log.event(now, self.round, "ended", agent, how)
            if agent not in self._players:
                raise self._stranger(agent)
            self._retire(self._players[agent])
        for tick in outcome.timers:
            if tick <= now:
                raise WorldError(f"table {self.index}, tick {now}: a timer for tick {tick}, which is not later")
            if later := self._slot(tick):
                later.timer = True
        for wake in outcome.wakes:
            tick = wake.tick
            if tick < now:
                raise WorldError(f"table {self.index}, tick {now}: a wake of {wake.agent} at tick {tick}, in the past")
            player = self._players.get(wake.agent)
            if player is None:
                raise self._stranger(wake.agent)
            there = slot if tick == now and slot is not None else self._slot(tick)
            if there is not None:
                there.wakes[player] = there.wakes.get(player, False) or wake.interrupt

    # --- minds -----------------------------------------------------------------------------------

    def _wake(self, now: int, player: Player, interrupt: bool) -> None:
        """Ask an agent, unless it is thinking (then once more afterwards) or would answer too late."""
        if not player.live:
            return
        if player.decision is not None:
            if not interrupt or player.interrupts >= MAX_INTERRUPTS:
                player.again = True
                return
            self._drop(player)
            player.interrupts += 1
            self.counts["dropped"] += 1
        nth = player.wakes[1] if player.wakes[0] == now else 0
        think = player.think
        due = now + think.ticks(0.0 if think.constant else self._think_luck(player.id, now, nth))
        if due > self.until:
            return
        try:
            turn = self.world.observe(now, player.id)
        except Exception as error:
            raise self._raised("observe", error) from error
        if turn is None:
            return
        player.wakes = (now, nth + 1)
        slot = self._slot(due)
        assert slot is not None
        decision = Decision(self, player, player.agent, turn, now, nth, due, self._state)
        player.decision = decision
        slot.due.append(decision)
        streams = self.minds.sub("mind", player.id, now, nth)
        try:
            mind = player.agent.act(turn, streams)
        except Exception as error:
            self._decide(decision, _fault(turn, error))
        else:
            self._think(decision, mind, streams, None)

    def _think(
        self, decision: Decision, mind: Any, streams: Streams, completions: Sequence[Completion | None] | None
    ) -> None:
        """Advance a mind until it waits for calls or has decided; its exceptions become a fault."""
        try:
            while not (requests := mind.send(completions)):
                completions = ()
            requests = tuple(requests)
        except StopIteration as stop:
            self._decide(decision, stop.value)
        except Exception as error:
            self._decide(decision, _fault(decision.turn, error))
        else:
            self._ask(decision, mind, streams, requests)

    def _ask(self, decision: Decision, mind: Any, streams: Streams, requests: Sequence[Request]) -> None:
        """Start the calls that a mind waits for; what has happened does not wait for them."""
        self.log.hand_on()
        decision.waiting = Waiting(mind, streams, [None] * len(requests), len(requests))
        try:
            self._submit(decision, requests)
        except Unaskable as error:
            _close(mind)
            decision.waiting = None
            self._decide(decision, _fault(decision.turn, error))
        else:
            self._slots[decision.due].missing += 1

    def _decide(self, decision: Decision, answer: object) -> None:
        """Take a mind's answer; one that is not legal is a fault and becomes the default."""
        turn = decision.turn
        action = answer if isinstance(answer, Action) else _defaulted(turn, "faulted", "the mind returned no Action")
        if reason := self._unfit(turn, action):
            action = _defaulted(turn, "faulted", reason)
        decision.action = Action(
            answer=action.answer,
            how=action.how,
            reason=action.reason,
            state=action.state,
            recalls=action.recalls,
            feels=action.feels,
            agent=decision.player.id,
            seen=decision.seen,
            shows=turn.shows,
            thread=turn.thread,
        )

    def _unfit(self, turn: Turn, action: Action) -> str:
        """Why an action cannot stand; empty where it can."""
        try:
            if action.recalls or action.reason or action.feels is not None:
                encode_ids(action.recalls)
                action.reason.encode()
                (action.feels or "").encode()
            if action.answer == turn.default:
                return ""
        except Exception as error:
            return _line(error)
        try:
            reason = illegal(turn.format, action.answer)
        except Exception as error:
            raise self._raised("observe", error) from error
        return f"illegal answer: {reason}" if reason else ""

    def _force(self, now: int, decision: Decision, act: Act) -> None:
        """Put another answer in place of what was decided, if it is legal."""
        if reason := self._unfit(decision.turn, Action(answer=act.answer)):
            self.log.event(now, self.round, "change", "", {**change_json(act), "skipped": reason})
        elif decision.action is not None:
            decision.action = replace(decision.action, answer=act.answer, how="forced", reason="")

    def _drop(self, player: Player) -> None:
        """Forget a pending decision; the agent is as it was before."""
        decision = player.decision
        if decision is None:
            return
        player.decision = None
        decision.dropped = True
        if decision.waiting is not None:
            self._slots[decision.due].missing -= 1
            _close(decision.waiting.mind)

    def _drop_all(self) -> None:
        for player in self._order:
            self._drop(player)

    # --- the cast and the end -----------------------------------------------------------------------

    def _seat(self, player: Player) -> None:
        if player.id in self._players:
            raise WorldError(f"table {self.index}: the id {player.id} is taken; ids are never used again")
        player.place = len(self._order)
        self.alive += 1
        self._players[player.id] = player
        self._order.append(player)

    def _renew_minds(self) -> None:
        """Luck of the minds from now on; what the kernel adds to the world's later does not reach those at work."""
        self.minds = self._streams.apart().sub(*self._mind_path)
        self._think_luck = self.minds.by_wake("think")

    def _state_hash(self) -> bytes:
        try:
            state = dumps(self.world.state())
        except Exception as error:
            raise self._raised("state", error) from error
        return blake2b(state.encode(), digest_size=16).digest()

    def _stranger(self, agent: AgentId) -> WorldError:
        return WorldError(f"table {self.index}, tick {self.now}: the world names an unknown agent {agent!r}")

    def _retire(self, player: Player) -> None:
        self._drop(player)
        self.alive -= player.live
        player.live = player.again = False

    def _finish(self) -> None:
        """The end: whoever is still alive is truncated."""
        truncated = [player.id for player in self._order if player.live]
        self._drop_all()
        self.log.event(self.now, self.round, "end", "", {"truncated": truncated})
        self.log.mark(self.now, self.round)
        self._slots.clear()
        self.finished = True

    def _misfit(self, error: Exception) -> WorldError:
        name = type(self.world).__name__
        return WorldError(
            f"table {self.index}, tick {self.now}: {name} gave what does not fit: {type(error).__name__}: {error}"
        )

    def _raised(self, verb: str, error: Exception) -> WorldError:
        """What stops the run where the world raises, with the place named."""
        name = type(self.world).__name__
        return WorldError(f"table {self.index}, tick {self.now}: {name}.{verb} raised {type(error).__name__}: {error}")


def _close(mind: Any) -> None:
    """End a mind; what it does about that is of no more interest."""
    with suppress(Exception):
        mind.close()


def _fault(turn: Turn, error: Exception) -> Action:
    """The default, with what went wrong."""
    return _defaulted(turn, "faulted", _line(error))


def _line(error: Exception) -> str:
    """An exception in one line that is the same in every run: no memory addresses, no halves of surrogate pairs."""
    line = str(error).split("\n", 1)[0][:200].encode(errors="replace").decode()
    return re.sub(r"0x[0-9a-f]+", "0x…", f"{type(error).__name__}: {line}")


def _defaulted(turn: Turn, how: How, reason: str) -> Action:
    return Action(answer=turn.default, how=how, reason=reason)
