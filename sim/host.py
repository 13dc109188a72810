"""The host: runs many tables side by side on shared engines, with no barrier between them.

One thread. A table advances while its next event is ready; completions are delivered as they arrive,
from a queue that the engines feed; the thread waits only when no table can advance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty
from typing import Literal

from sim.calls import Arrival, Calls
from sim.kernel import Table
from sim.types import EngineFailure

PATIENCE = 0.2
"""Seconds between looks at the stop flag while waiting for models."""


class Paused(Exception):
    """The run stopped before its end and can be resumed; the cause is in the text."""


class RecordEnds(Exception):
    """A replay without engines reached a call that the record does not hold."""


class Host:
    """Runs tables to their end, or until asked to stop. `idle` is called before each wait for models."""

    def __init__(self, calls: Calls, *, budget: int | None = None, idle: Callable[[], None] = lambda: None) -> None:
        self.calls = calls
        self.tables: Sequence[Table] = ()
        self.stop: Literal["", "tick", "now"] = ""
        """By a signal handler: "tick" stops before the next event and keeps the calls in flight; "now" drops them."""
        self.waiting = False
        """Whether no table can advance before a model answers."""
        self._budget = budget
        self._idle = idle
        self._ready: deque[Table] = deque()
        self._parked: set[int] = set()

    def run(self, tables: Sequence[Table]) -> None:
        """Start the tables and run them all to their end.

        Raises `Paused` (stop asked for, budget spent), `EngineFailure`, `WorldError` or `Divergence`.
        """
        self.tables = tables
        paused = False
        try:
            for table in tables:
                table.start()
                self._place(table)
            while self._ready or self._parked:
                self.pump()
                self._check()
                if not self._ready:
                    self._wait()
                    continue
                table = self._ready.popleft()
                table.advance()
                self._place(table)
        except Paused:
            paused = True
            raise
        finally:
            for table in tables:
                table.close()
            self._keep_arrived(wait=paused)

    def _place(self, table: Table) -> None:
        if table.finished:
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

    def _wait(self) -> None:
        """Sleep until a completion arrives."""
        if not self.calls.in_flight and self.calls.inbox.empty():
            raise RecordEnds("the record holds no completion for a call that the next event needs")
        self._idle()
        self.waiting = True
        try:
            with suppress(Empty):
                self._deliver(self.calls.inbox.get(timeout=PATIENCE))
        finally:
            self.waiting = False

    def _check(self) -> None:
        if self.stop:
            raise Paused("stopped by the user")
        if self._budget is not None and self.calls.spent >= self._budget:
            raise Paused(f"the budget of {self._budget} tokens is spent ({self.calls.spent})")

    def _keep_arrived(self, wait: bool) -> None:
        """Record what has arrived but nobody waits for (it is paid for); with `wait`, also what is in flight."""
        inbox = self.calls.inbox
        while not inbox.empty() or (wait and self.calls.in_flight and self.stop != "now"):
            with suppress(Empty, EngineFailure):
                self.calls.receive(inbox.get(timeout=PATIENCE))
