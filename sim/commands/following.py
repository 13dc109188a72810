"""`agora measure RUN --follow`: the numbers of a run that goes on, as a live table or line after line into a pipe."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from types import FrameType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from sim.commands.failures import BadInput
from sim.commands.show import measurements
from sim.commands.terminal import plain, say
from sim.library import scenario_of, until
from sim.metrics.following import Moment, moments
from sim.quantities import milliseconds, readable
from sim.record.reader import Run
from sim.scenarios.located import shown
from sim.types import Secret


def followed(
    path: Path, metrics: Sequence[str], secrets: Sequence[Secret], every: str, everything: bool, quiet: bool
) -> None:
    """Show a run's numbers until it has ended, or until Ctrl-C; quietly: only the last. Raises BadInput.

    Ctrl-C ends it after the numbers that are being computed, again: at once.
    """
    rest = (milliseconds(every) or 0) / 1000
    if not rest:
        raise BadInput(f"--every {shown(every)} is no time to rest; write a duration like 500ms, 5s or 1m")
    picture = _Picture(path, everything)
    stop = _Stop()
    each = _paced(moments(path, metrics, secrets), rest, stop.asked)
    before = signal.signal(signal.SIGINT, stop)
    try:
        if quiet:
            say(*picture.lines(deque(each, maxlen=1)[0]))
        elif Console().is_terminal:
            with Live(auto_refresh=False) as live:
                for moment in each:
                    live.update(Group(*picture.drawn(moment)), refresh=True)
        else:
            for moment in each:
                say(*picture.lines(moment))
    except KeyboardInterrupt:
        stop.asked.set()
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.asked.is_set():
        say(plain(f"{path.stem} is no longer measured; what was, is kept. Go on: agora measure {path.stem} --follow"))


class _Stop:
    """Hears Ctrl-C. An exception could get lost in what is not ours; so the first one only asks."""

    def __init__(self) -> None:
        self.asked = Event()

    def __call__(self, _signal: int, _frame: FrameType | None) -> None:
        if self.asked.is_set():
            raise KeyboardInterrupt
        self.asked.set()


def _paced(each: Iterator[Moment], rest: float, stop: Event) -> Iterator[Moment]:
    """One after the other until it is to stop, with a rest that is no shorter than what it took to measure."""
    began = monotonic()
    for moment in each:
        yield moment
        if moment.status == "running" and stop.wait(max(rest, monotonic() - began)):
            return
        began = monotonic()


class _Picture:
    """A run's moments in words."""

    def __init__(self, path: Path, everything: bool) -> None:
        with Run(path) as run:
            manifest = run.manifest()
        self._tick_ms = manifest.tick_ms
        self._until = until(scenario_of(manifest))
        self._everything = everything
        self._told: tuple[object, ...] = ()

    def drawn(self, moment: Moment) -> Iterator[Any]:
        """For a terminal: how far the run is as a bar, and its numbers."""
        if moment.status != "running" or not self._until:
            yield self._head(moment)
        else:
            grid = Grid.grid(padding=(0, 2))
            bar = ProgressBar(total=self._until, completed=moment.mark.tick, width=30)
            grid.add_row(self._head(moment), bar)
            yield grid
        yield from self._numbers(moment)

    def lines(self, moment: Moment) -> Iterator[Any]:
        """For a pipe: the same without the bar, and nothing where nothing is new."""
        told = (moment.status, moment.mark)
        if told != self._told:
            self._told = told
            yield self._head(moment)
            yield from self._numbers(moment)

    def _head(self, moment: Moment) -> Text:
        if moment.status == "finished":
            return plain(f"{moment.run} is finished", "bold")
        if moment.status == "not started":
            return plain(f"{moment.run} is not started, so there is nothing to measure. Start it: agora resume "
                         f"{moment.run}")  # fmt: skip
        if not moment.found:
            return plain(f"{moment.run} is {moment.status}, and nothing has happened in it yet", "bold")
        at = readable(moment.mark.tick, self._tick_ms)
        of = ""
        if self._until:
            of = f" of {readable(self._until, self._tick_ms)} ({moment.mark.tick / self._until:.0%})"
        return plain(f"{moment.run} is {moment.status}: numbers so far, at {at}{of}", "bold")

    def _numbers(self, moment: Moment) -> Iterator[Any]:
        return measurements(moment.found, f"measure {moment.run}", self._everything)
