"""A command of the command line, called in this process or in one of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

AGORA = Path(sys.executable).with_name("agora")


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of an error."""
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


Agora: TypeAlias = Callable[..., Said]
"""Runs a command; its runs are in the test's folder."""


class Process:
    """A command in a process of its own."""

    def __init__(self, folder: Path, *args: object) -> None:
        command = [AGORA, *map(str, args)]
        self.popen = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/bin:/bin"},
        )

    def interrupt(self) -> None:
        self.popen.send_signal(signal.SIGINT)

    def end(self, within: float = 60) -> Said:
        out, err = self.popen.communicate(timeout=within)
        return Said(self.popen.returncode, out, err)


def wait_until(there: Callable[[], bool], process: Process) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert process.popen.poll() is None, process.end()
        assert time.monotonic() < deadline
        time.sleep(0.1)
