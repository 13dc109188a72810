"""A command of the command line, called in this process or in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

AGORA = Path(sys.executable).with_name("agora")
ROOT = Path(__file__).parents[1]


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
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
            process_group=0,
        )

    def interrupt(self) -> None:
        self.popen.send_signal(signal.SIGINT)

    def interrupt_all(self) -> None:
        """Ctrl-C as a terminal sends it: to the command and to all that it has started."""
        os.killpg(self.popen.pid, signal.SIGINT)

    def children(self) -> list[int]:
        """Processes that it has started and not yet seen to their end."""
        pid = self.popen.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]

    def end(self, within: float = 60) -> Said:
        out, err = self.popen.communicate(timeout=within)
        return Said(self.popen.returncode, out, err)


def wait_until(there: Callable[[], bool], process: Process) -> None:
    deadline = time.monotonic() + 60
    while not there():
        assert process.popen.poll() is None, process.end()
        assert time.monotonic() < deadline
        time.sleep(0.1)
