"""Runs in processes of their own, paused before their first event and to be controlled through their channel."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.record.reader import Run
from sim.runs import go
from sim.steering.channel import NotRunning, connect, served

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "agents.llm", "agents.human", "agents.engines.synthetic"])


def until(true: Callable[[], Any]) -> None:
    """Wait for something that is sure to come."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.002)


class Process:
    """One run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = _CONTEXT.Process(target=_go, args=(path,))
        self._process.start()
        until(self._there)

    def _there(self) -> bool:
        try:
            with connect(self.path) as channel:
                return bool(channel.status()["phase"] == "running")
        except NotRunning:
            assert self._process.is_alive(), "it ended before anybody could control it"
            return False

    def kill(self) -> None:
        """As `kill -9` does; nothing happens to one that has ended."""
        self._process.kill()
        self._process.join(30)

    def ended(self) -> str:
        """How it ended."""
        self._process.join(60)
        assert self._process.exitcode == 0
        with Run(self.path) as run:
            return run.status


def _go(path: Path) -> None:
    go(path, attach=lambda session: session.pace.pause(), beside=served)
