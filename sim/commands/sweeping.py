"""Many stored runs side by side, to their ends: how `agora sweep` starts them, and `agora resume` goes on with them.

Runs with models share their engines, in one process, so that their calls make one batch; others get a process each.
Ctrl-C once stops all of them after the next event, twice at once; those that were not begun are left as they are.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from sim.commands.failures import exit_code
from sim.commands.progress import watched
from sim.cores import cores
from sim.library import measure, scenario_of, status_of
from sim.quantities import readable
from sim.record.reader import Run
from sim.runs import Session, go
from sim.scenarios.scenario_schema import Scenario
from sim.steering.channel import served
from sim.voices import Pool

AT_ONCE = 8
"""Runs with models that go on together unless a number is given; of others, as many as there are cores."""
LOOK = 0.1
"""Seconds between looks at what has ended."""
SHOWN = 12
"""Runs going on that are shown."""
_PRELOADED = ["sim.commands.sweeping", "sim.metrics.honesty", "simpy"]


class Playing(Protocol):
    """A run that goes on beside the others."""

    def over(self) -> bool:
        """Whether it has ended, however."""

    def stop(self) -> None:
        """Ask it to stop before its next event; again: at once."""


class Apart:
    """A run in a process of its own."""

    def __init__(self, path: Path) -> None:
        os.environ.setdefault("PYTHONSAFEPATH", "1")  # a json.py in the folder at hand is not taken for Python's own
        context: Any = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._process: BaseProcess = context.Process(target=_alone, args=(path,), name=path.stem)
        # Ctrl-C waits until the process knows what to do with it. The tracker's start unblocks it, so it comes first.
        ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def over(self) -> bool:
        """Whether it has ended, however."""
        return not self._process.is_alive()

    def stop(self) -> None:
        """Ask it to stop before its next event; again: at once."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGINT)


def _alone(path: Path) -> None:
    """A process's work. It leaves the terminal's group, whose Ctrl-C is for who started it, and stops when they die."""
    with suppress(OSError):
        os.setpgrp()
    Thread(target=_stop_if_left_alone, daemon=True).start()
    exit_code(lambda: watched(partial(_heeding, path), quiet=True))


def _heeding(path: Path, attach: Callable[[Session], None]) -> Session:
    """As `_played`, from here on with an ear for Ctrl-C."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return _played(path, attach)


def _stop_if_left_alone() -> None:
    """Once who started this process is dead, stop before the next event: agora resume is to find the run free."""
    if starter := parent_process():
        starter.join()
        os.kill(os.getpid(), signal.SIGINT)


class Together:
    """A run in a thread of this process, on engines that others use too; people are asked by each run itself."""

    def __init__(self, path: Path, scenario: Scenario, pools: dict[Path, Pool]) -> None:
        pool = pools.setdefault(scenario.base, Pool(scenario.base))
        models = {name: settings for name, settings in scenario.models.items() if not settings.person}
        self._engines = {name: pool.engine(settings) for name, settings in models.items()}
        self._session: Session | None = None
        self._stops = 0
        play = partial(_played, path, self._attach, engines=self._engines)
        self._thread = Thread(target=exit_code, args=(play,), name=path.stem)
        self._thread.start()

    def _attach(self, session: Session) -> None:
        self._session = session

    def over(self) -> bool:
        """Whether it has ended, however."""
        if self._stops and self._session is not None and (host := self._session.host) is not None:
            host.stop = "tick" if self._stops == 1 else "now"
            for engine in self._engines.values():
                engine.give_up()
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to stop before its next event; again: at once."""
        self._stops += 1


def _played(path: Path, attach: Callable[[Session], None], **settings: Any) -> Session:
    """To the end, and measured there."""
    session = go(path, attach=attach, beside=served, **settings)
    if session.status == "finished":
        measure(path)
    return session


def _scenario(path: Path) -> Scenario:
    with Run(path) as run:
        return scenario_of(run.manifest())


def play(paths: Sequence[Path], jobs: int | None = None, quiet: bool = False) -> None:
    """Bring runs to their ends, so many at once; those finished already stay as they are.

    Where one pauses, no more are begun: what it lacks, an engine or a key, the next would lack too.
    """
    scenarios = {path: _scenario(path) for path in paths}  # one that cannot be read says so before any is begun
    modelled = any(scenario.models for scenario in scenarios.values())
    pools: dict[Path, Pool] = {}

    def start(path: Path) -> Playing:
        return Together(path, scenarios[path], pools) if modelled else Apart(path)

    board = Board(paths, jobs or (AT_ONCE if modelled else cores()), start)
    before = signal.signal(signal.SIGINT, board.interrupt)
    try:
        with (
            nullcontext() if quiet else Live(board, console=Console(stderr=True), refresh_per_second=2, transient=True)
        ):
            board.play()
    finally:
        signal.signal(signal.SIGINT, before)
        for pool in pools.values():
            pool.close()


class Board:
    """Which runs are waiting, going on and over; as a picture, a bar and a line for each that goes on."""

    def __init__(self, paths: Sequence[Path], jobs: int, start: Callable[[Path], Playing]) -> None:
        self._count, self._over = len(paths), 0
        self._jobs = jobs
        self._start = start
        self._waiting = deque(paths)
        self._going: dict[Path, Playing] = {}
        self._interrupts = 0
        """Those not passed on yet."""
        self._stopping = False

    def play(self) -> None:
        """Until none goes on and none is waiting."""
        while self._waiting or self._going:
            while self._waiting and len(self._going) < self._jobs and not self._interrupts:
                path = self._waiting.popleft()
                self._going[path] = self._start(path)
            time.sleep(LOOK)
            while self._interrupts:
                self._interrupts -= 1
                self._stopping = True
                self._waiting.clear()
                for one in self._going.values():
                    one.stop()
            for path in [path for path, one in self._going.items() if one.over()]:
                del self._going[path]
                self._over += 1
                if status_of(path) == "paused":
                    self._waiting.clear()

    def interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        """Begin no more, and stop those that go on."""
        self._interrupts += 1

    def __rich__(self) -> Any:
        grid = Grid.grid(padding=(0, 2))
        bar = ProgressBar(total=self._count, completed=self._over, width=40)
        grid.add_row(f"{self._over} of {self._count} runs", bar)
        lines = [Text(f"  {path.stem}  {_reached(path)}") for path in list(self._going)[:SHOWN]]
        if self._stopping:
            lines.append(Text("  stopping; calls in flight are waited for (Ctrl-C again: stop now)", style="yellow"))
        return Group(grid, *lines)


def _reached(path: Path) -> str:
    """Where a run is in simulated time, as far as it is committed."""
    with Run(path) as run:
        now = min(max(run.last_tick(table), 0) for table in range(run.tables))
        return f"simulated {readable(now, run.manifest().tick_ms)}"
