"""What the page may do to runs, each on a press of a button and never on a look: start, go on, stop, measure, fork.

Commands run as processes of their own, as they would in a terminal: they outlive the page.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.commands.failures import visible
from sim.library import files
from sim.record.committed import held
from sim.steering.channel import Channel, NotRunning, connect
from sim.steering.live import Refused

PASSWORD = "AGORA_UI_PASSWORD"
"""Environment variable that holds the password of the page."""
SOON = 60.0
"""Seconds within which a new run's file is there, or the command has said why not."""
_WORLD = re.compile(r"^world:", re.MULTILINE)
_AGORA = "from sim.commands.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Started:
    """A process on its way."""

    process: subprocess.Popen[bytes]
    output: Path
    """What it prints."""

    def text(self) -> str:
        """What it has printed so far, the last of it."""
        return visible(self.output.read_bytes()[-4_000:].decode("utf-8", "replace")).strip()


def command(*words: str, where: Path | None = None) -> Started:
    """Start `agora …`, on the runs of a folder where one is given."""
    log = tempfile.NamedTemporaryFile(prefix="agora-", suffix=".log", delete=False)  # noqa: SIM115
    with log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _AGORA, *words[:1], *(("--runs", str(where)) if where else ()), *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={key: value for key, value in os.environ.items() if key not in (PASSWORD, "AGORA_RUNS")},
        )
    return Started(process, Path(log.name))


def finished(*words: str, where: Path | None = None, patience: float = 180.0) -> str:
    """Run a command to its end and return what it printed. Raises Refused."""
    started = command(*words, where=where)
    try:
        code = started.process.wait(patience)
    except subprocess.TimeoutExpired:
        started.process.kill()
        started.process.wait()
        raise Refused(f"agora {words[0]} took more than {patience:.0f} s") from None
    text = started.text()
    started.output.unlink(missing_ok=True)
    if code:
        raise Refused(text or f"agora {words[0]} ended with exit code {code}")
    return text


def start(scenario: Path, sets: Sequence[str], where: Path, name: str, budget: int | None) -> None:
    """Start a run and wait until its file is there. Raises Refused."""
    words = ["run", str(scenario), "--quiet", "--name", name, *(part for one in sets for part in ("--set", one))]
    if budget:
        words += ["--budget", str(budget)]
    started = command(*words, where=where)
    path = where / f"{name}.db"
    _wait(started, lambda: path.exists() and held(path))


def resume(name: str, where: Path) -> None:
    """Go on with a run in a process of its own, and wait until it holds the file. Raises Refused."""
    path = where / f"{name}.db"
    _wait(command("resume", name, "--quiet", where=where), lambda: held(path))


def follow(name: str, where: Path) -> Started:
    """Measure a run while it goes on, in a process of its own that ends with the run."""
    return command("measure", name, "--follow", "--quiet", where=where)


def _wait(started: Started, there: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while time.monotonic() < end and not there():
        code = started.process.poll()
        if code is not None:
            if code and not there():
                raise Refused(started.text() or f"ended with exit code {code}")
            return
        time.sleep(0.1)


def stop(path: Path, pid: int | None) -> None:
    """Ask whoever writes a run to stop before the next event. Raises Refused where nobody does."""
    try:
        with connect(path) as run:
            run.stop()
    except NotRunning:  # it has no channel, or has none yet
        if pid is None or not held(path):
            raise Refused("nobody is writing this run") from None
        try:
            os.kill(pid, signal.SIGINT)
        except (ProcessLookupError, PermissionError) as problem:
            raise Refused(f"process {pid} cannot be stopped from here: {problem.strerror}") from problem


def told(path: Path, do: Callable[[Channel], object]) -> None:
    """Tell a run that is going on what to do. Raises Refused, also where nobody runs it."""
    try:
        with connect(path) as run:
            do(run)
    except NotRunning as gone:
        raise Refused(str(gone)) from gone


def status(path: Path) -> dict[str, Any] | None:
    """How a run says that it stands, as `sim.steering.channel.Channel.status` tells; None where nobody runs it."""
    try:
        with connect(path) as run:
            return run.status()
    except (NotRunning, Refused):
        return None


def fork(name: str, at: str, changes: Sequence[str], replicates: int, where: Path) -> None:
    """Fork a run so many times with changes and as often without; all of them run. Raises Refused.

    `changes`: words of the command line, such as `--set`, `price_high=150`.
    """
    for words in (list(changes), []):
        there = len(files(where))
        started = command(*("fork", name, "--at", at, "--replicates", str(replicates), "--quiet", *words), where=where)
        _wait(started, lambda there=there: len(files(where)) >= there + replicates)  # type: ignore[misc]


def scenarios() -> list[Path]:
    """Scenario files in the working folder and below its `scenarios`, else those that come with the install.

    Those that are made for training come last.
    """
    own = Path("scenarios")
    base = own if own.is_dir() else Path(__file__).parents[1] / "scenarios"
    found = [*sorted(base.rglob("*.yaml")), *sorted(Path().glob("[!.]*.yaml"))]
    worlds = [path for path in found if _WORLD.search(path.read_text(encoding="utf-8", errors="replace"))]
    return sorted(worlds, key=lambda path: path.stem.endswith("_train"))
