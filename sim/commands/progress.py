"""What a user sees while a command works, and how Ctrl-C reaches it."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from sim.commands.failures import visible
from sim.quantities import readable
from sim.runs import Session

REFRESH = 4
"""Pictures a second."""


def watched(start: Callable[[Callable[[Session], None]], Session], quiet: bool) -> Session:
    """Run something that attaches a session, with a live display; Ctrl-C asks it to stop, twice to stop now."""
    console = Console(stderr=True)
    display = _Display()
    before = signal.signal(signal.SIGINT, display.interrupt)
    try:
        if quiet:
            return start(display.attach)
        with Live(display, console=console, refresh_per_second=REFRESH, transient=True):
            return start(display.attach)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def working(what: str, quiet: bool = False) -> Iterator[None]:
    """A spinner beside what is being done."""
    with Console(stderr=True, quiet=quiet).status(Text(what)):
        yield


class _Display:
    """The session as a picture, drawn anew from its counters each time."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._began = monotonic()
        self._tokens: list[tuple[float, int]] = []

    def attach(self, session: Session) -> None:
        """Show this session."""
        self.session = session

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Once: stop before the next event; again: now; before the run has begun, or an engine is there: at once."""
        host = self.session.host if self.session else None
        pool = self.session.pool if self.session else None
        starting = pool is not None and any(engine.starting for engine in pool.engines.values())
        if host is None or starting or host.stop == "now":
            raise KeyboardInterrupt
        host.stop = "now" if host.stop else "tick"

    def __rich__(self) -> Any:
        session = self.session
        if session is None or session.plan is None:
            return Text("reading the scenario …")
        lines = [self._head(session)]
        if session.calls is not None and session.tables:
            lines += [self._time(session), self._counts(session)]
        lines += [Text(f"  {visible(status)}", style="yellow") for status in self._engines(session)]
        if session.host is not None and session.host.stop:
            waiting = session.calls.in_flight if session.calls else 0
            lines.append(Text(f"  stopping; {waiting} calls in flight (Ctrl-C again: stop now)", style="yellow"))
        return Group(*lines)

    def _head(self, session: Session) -> Text:
        elapsed = readable(round(monotonic() - self._began), 1000)
        phase = "waiting for answers" if session.host and session.host.waiting else session.phase
        phase = "paused" if session.pace.paused and session.phase == "running" else phase
        return Text.assemble((session.path.stem, "bold"), f"  {phase}  {elapsed}")

    def _time(self, session: Session) -> Any:
        """Simulated time of the table that is furthest behind."""
        assert session.plan is not None
        going = [table.now for table in session.tables if not table.finished]
        now = min(going, default=max(table.now for table in session.tables))
        grid = Grid.grid(padding=(0, 2))
        cells: list[Any] = [f"  simulated {readable(now, session.plan.tick_ms)}"]
        if session.plan.until:
            cells.append(ProgressBar(total=session.plan.until, completed=now, width=30))
            cells.append(f"of {readable(session.plan.until, session.plan.tick_ms)}")
        if len(session.tables) > 1:
            cells.append(f"tables {len(session.tables) - len(going)}/{len(session.tables)} done")
        grid.add_row(*cells)
        return grid

    def _counts(self, session: Session) -> Text:
        calls = session.calls
        assert calls is not None
        counts: Counter[str] = Counter()
        for table in session.tables:
            counts.update({key: table.counts[key] for key in ("decisions", "retried", "defaulted", "faulted", "stale")})
        parts = [f"{counts['decisions']:,} decisions"]
        parts += [f"{counts[key]:,} {key}" for key in ("retried", "defaulted", "faulted", "stale") if counts[key]]
        if calls.submitted:
            parts += [
                f"{calls.in_flight} calls in flight",
                f"{calls.submitted:,} calls",
                f"{self._rate(session):,.0f} tokens/s",
            ]
        if calls.reused:
            parts.append(f"{calls.reused:,} from the record")
        return Text("  " + " · ".join(parts))

    def _rate(self, session: Session) -> float:
        """Sampled tokens per second over the last ten seconds."""
        assert session.calls is not None
        now = monotonic()
        self._tokens = [(at, n) for at, n in self._tokens if now - at < 10] + [(now, session.calls.completion_tokens)]
        (first, before), (last, after) = self._tokens[0], self._tokens[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def _engines(self, session: Session) -> list[str]:
        engines = session.pool.engines.values() if session.pool else ()
        if session.phase == "starting":
            return [f"starting {engine.name} …" for engine in engines]
        return [status for engine in engines if (status := engine.status())]
