"""What can be asked of a run that is going on, from another thread of its process.

Pause, speed and steps never enter the log; what is done to the world does, as `sim.steering.live` says.
`sim.steering.channel` offers the same to other processes.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as TooLong
from contextlib import suppress
from typing import Any, TypeVar

from sim.host import Host
from sim.quantities import readable
from sim.runs import Session
from sim.scenarios.located import nearest, shown
from sim.steering.live import KINDS, Refused, intervene
from sim.steering.people import answer, questions
from sim.types import JSON

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that an order waits for the event which is happening."""
COMMANDS = ("status", "pause", "go", "step", "speed", "stop", "answer")
COUNTS = ("decisions", "retried", "defaulted", "faulted", "stale")


class Control:
    """Commands to a session. They may come from any thread; what touches the world is done between two events."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        """Orders that have not been followed."""
        self.over = False
        """Whether the run has ended."""

    def close(self) -> None:
        """The run has ended: what waits is refused, and what comes."""
        with self._lock:
            self.over = True
            for order in self._waiting:
                order.cancel()

    def obey(self, command: JSON) -> JSON:
        """Do what a command says, its kind in `do`, its arguments beside it. Raises Refused."""
        match command:
            case {"do": "status"}:
                return self.status()
            case {"do": "pause"}:
                return self.pause()
            case {"do": "go"}:
                return self.go()
            case {"do": "step"}:
                return self.step(command.get("by", "event"))
            case {"do": "speed"}:
                return self.speed(command.get("speed"))
            case {"do": "stop"}:
                return self.stop(command.get("now") is True)
            case {"do": "answer", "question": str(question)}:
                return self.answer(question, command.get("answer"))
            case {"do": do} if do in (*KINDS, "join"):
                spec = {key: value for key, value in command.items() if key != "table"}
                return self.intervene(spec, command.get("table"))
        do = command.get("do") if isinstance(command, dict) else command
        raise Refused(f"do: {shown(do)} is no command; {nearest(str(do), (*COMMANDS, *KINDS))}")

    # --- time ---------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Let nothing more happen; models go on answering what they were asked."""
        self._session.pace.pause()

    def go(self) -> None:
        """Go on after a pause."""
        self._session.pace.go()

    def step(self, by: str = "event") -> None:
        """Let one event happen, or all of the next tick that has any (`tick`), and then nothing more."""
        if by not in ("event", "tick"):
            raise Refused(f"by: {shown(by)} is no step; write event or tick")

        def step() -> None:
            going = [table.next for table in self._session.tables if not table.finished]
            self._session.pace.step(min(going, default=0) if by == "tick" else None)

        self._order(step)

    def speed(self, speed: float | None) -> None:
        """So many simulated seconds a second; None: as fast as it goes."""
        if speed is not None and not (type(speed) in (int, float) and 0 < speed < math.inf):
            raise Refused(f"speed: {shown(speed)} is no speed; write simulated seconds a second, or null for no limit")
        assert self._session.plan is not None
        self._session.pace.set_speed(math.inf if speed is None else speed * 1000 / self._session.plan.tick_ms)

    def stop(self, now: bool = False) -> None:
        """End the session after the event that is happening; calls in flight are waited for, unless it is to be now."""
        self._host.stop = "now" if now else "tick"

    # --- the world ----------------------------------------------------------------------------------

    def intervene(self, spec: Mapping[str, JSON], table: int | None = None) -> list[JSON]:
        """An intervention as in a scenario file, at the next moment; what it came to, with its tick."""
        if table is not None and type(table) is not int:
            raise Refused(f"table: {shown(table)} is no table; write its number")
        return self._order(lambda: intervene(self._session, spec, table))

    # --- people -------------------------------------------------------------------------------------

    def questions(self) -> list[dict[str, JSON]]:
        """What people are asked at the moment, the oldest first."""
        return questions(self._session) if self._session.phase == "running" else []

    def answer(self, question: str, given: JSON) -> None:
        """Answer a question, by its id or its agent's; it is committed when this returns."""
        host = self._host
        answer(self._session, question, given)
        with suppress(Refused):  # the run has ended with this answer, and commits all it has
            self._order(host.pump)

    # --- looking ------------------------------------------------------------------------------------

    def status(self) -> dict[str, JSON]:
        """How the run stands; the keys are told in `sim.steering.channel.Channel.status`."""
        session, pace = self._session, self._session.pace
        assert session.plan is not None
        tick_ms, until = session.plan.tick_ms, session.plan.until
        tables, host, calls = session.tables, session.host, session.calls
        going = [table.now for table in tables if not table.finished]
        now = min(going, default=max((table.now for table in tables), default=0))
        counts: Counter[str] = Counter()
        for table in tables:
            counts.update({key: table.counts[key] for key in COUNTS})
        return {
            "run": session.path.stem,
            "phase": "stopping" if host and host.stop else session.phase,
            "paused": pace.paused,
            "waiting": host is not None and host.waiting,
            "speed": None if math.isinf(pace.speed) else pace.speed * tick_ms / 1000,
            "tick": now,
            "time": readable(now, tick_ms),
            "until": until,
            "tick_ms": tick_ms,
            "events": host.events if host else 0,
            "tables": len(session.plan.tables),
            "going": len(going),
            "counts": {key: counts[key] for key in COUNTS},
            "questions": self.questions(),
            "in_flight": calls.in_flight if calls else 0,
            "calls": calls.submitted if calls else 0,
            "spent": calls.spent if calls else 0,
        }

    # --- the host's thread --------------------------------------------------------------------------

    @property
    def _host(self) -> Host:
        if self._session.host is None or self._session.phase != "running":
            raise Refused(f"the run is {self._session.phase}; try again in a moment")
        return self._session.host

    def _order(self, do: Callable[[], T]) -> T:
        """Have something done on the host's thread between two events. A Refused is ours, all else is the run's end."""
        done: Future[T] = Future()

        def order() -> None:
            if not done.set_running_or_notify_cancel():
                return
            try:
                done.set_result(do())
            except Refused as refused:
                done.set_exception(refused)
            except BaseException as error:
                done.set_exception(Refused(f"the run broke: {error}"))
                raise

        host = self._host
        with self._lock:
            if self.over:
                raise Refused("the run has ended")
            self._waiting.add(done)
            host.orders.put(order)
        try:
            return done.result(PATIENCE)
        except TooLong:
            if done.cancel():
                raise Refused("an event is taking its time; try again later") from None
            return done.result()
        except CancelledError:
            raise Refused("the run has ended") from None
        finally:
            with self._lock:
                self._waiting.discard(done)
