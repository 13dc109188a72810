"""The host: runs many tables side by side on shared engines, with no barrier between them.

One thread. A table advances while its next event is ready; completions are delivered as they arrive,
from a queue that the engines feed; the thread waits only when no table can advance, or when the pace says so.
Between two events it does what other threads have ordered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Literal

from sim.calls import Arrival, Calls
from sim.kernel import Table
from sim.steering.pace import Pace
from sim.types import EngineFailure

PATIENCE = 0.2
"""Seconds between looks at the stop flag and at orders while waiting for models."""
NOTICE = 0.03
"""The same while the pace holds events back."""


class Paused(Exception):
    """The run stopped before its end and can be resumed; the cause is in the text."""


class RecordEnds(Exception):
    """A replay without engines reached a call that the record does not hold."""


class Host:
    """Runs tables to their end, or until asked to stop. `idle` is called before each wait for models."""

    def __init__(
        self,
        calls: Calls,
        *,
        budget: int | None = None,
        idle: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        self.calls = calls
        self.tables: Sequence[Table] = ()
        self.stop: Literal["", "tick", "now"] = ""
        """Set by others: "tick" stops before the next event and keeps the calls in flight; "now" drops them."""
        self.events = 0
        """How many have happened."""
        self.waiting = False
        """Whether no table can advance before a model answers."""
        self.orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        """What other threads want to be done on this one, between two events."""
        self.pace = pace or Pace()
        self._budget = budget
        self._idle = idle
        self._ready: deque[Table] = deque()
        self._parked: set[int] = set()
        self._last = inf

    def run(self, tables: Sequence[Table], last: float = inf) -> None:
        """Start the tables and run them all to their end, or through the tick `last`.

        Raises `Paused` (stop asked for, budget spent), `EngineFailure`, `WorldError` or `Divergence`.
        """
        self.tables, self._last = tables, last
        paused = False
        try:
            for table in tables:
                table.start()
                self._place(table)
            while self._ready or self._parked:
                self.pump()
                self._obey()
                self._check()
                if going := self._next():
                    going.advance()
                    self.events += 1
                    self._place(going)
        except Paused:
            paused = True
            raise
        finally:
            for table in tables:
                table.close()
            self._keep_arrived(wait=paused)

    def _next(self) -> Table | None:
        """A table that can advance now; None after a wait for a model or for the pace."""
        if not self._ready:
            self._wait(PATIENCE)
            return None
        if not self.pace.slows:
            return self._ready.popleft()
        table = min(self._ready, key=attrgetter("next"))
        if held := self.pace.wait(table.now, table.next):
            self._wait(min(held, NOTICE))
            return None
        self._ready.remove(table)
        return table

    def _obey(self) -> None:
        """Do what other threads have ordered; it may give a table an earlier next event."""
        while not self.orders.empty():
            self.orders.get()()
            for table in [one for one in self.tables if one.index in self._parked and one.ready]:
                self._parked.remove(table.index)
                self._ready.append(table)

    def _place(self, table: Table) -> None:
        if table.finished or table.next > self._last:
            return
        if table.ready:
            self._ready.append(table)
        else:
            self._parked.add(table.index)

    def pump(self) -> None:
        """Deliver every completion that has arrived."""
        inbox = self.calls.inbox
        while not inbox.empty():
            self._deliver(inbox.get())

    def _deliver(self, arrival: Arrival) -> None:
        completion = self.calls.receive(arrival)
        table = arrival.decision.table
        table.deliver(arrival.decision, arrival.place, completion)
        if table.index in self._parked and table.ready:
            self._parked.remove(table.index)
            self._ready.append(table)

    def _wait(self, most: float) -> None:
        """Sleep until a completion arrives, at most so many seconds."""
        self.waiting = not self._ready
        if self.waiting and not self.calls.in_flight and self.calls.inbox.empty():
            raise RecordEnds("the record holds no completion for a call that the next event needs")
        self._idle()
        try:
            with suppress(Empty):
                self._deliver(self.calls.inbox.get(timeout=most))
        finally:
            self.waiting = False

    def _check(self) -> None:
        if self.stop:
            raise Paused("stopped by the user")
        if self._budget is not None and self.calls.spent >= self._budget:
            raise Paused(f"the budget of {self._budget} tokens is spent ({self.calls.spent})")

    def _keep_arrived(self, wait: bool) -> None:
        """Record what has arrived but nobody waits for (it is paid for); with `wait`, also what is in flight.

        People are not waited for: they are asked again.
        """
        inbox, calls = self.calls.inbox, self.calls
        while not inbox.empty() or (wait and calls.in_flight > calls.people and self.stop != "now"):
            with suppress(Empty, EngineFailure):
                self.calls.receive(inbox.get(timeout=PATIENCE))
