"""What a command that fails tells its user: one line, and an exit code that says whose turn it is."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import typer

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
UNSTOPPABLE = "agora-unstoppable"
"""Name of threads in which a model is loaded, which nothing stops: the end of the process does not wait for them."""
_PLACE = FileExistsError | FileNotFoundError | PermissionError | NotADirectoryError | IsADirectoryError
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """A text with control characters and direction marks shown as their code: a terminal does nothing but print it."""
    return _UNSEEN.sub(lambda mark: f"\\x{ord(mark[0]):02x}", text)


class BadInput(ValueError):
    """Something that a user wrote on the command line will not do; the text says what would."""


def scenario_file(path: Path) -> Path:
    """The path, unless it is a folder's. Raises BadInput."""
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a .yaml file")
    return path


def leave(code: int) -> NoReturn:
    """End the process with an exit code."""
    if any(thread.name == UNSTOPPABLE for thread in threading.enumerate()):
        os._exit(code)  # an orderly end of the interpreter may crash what a thread does outside of it
    sys.exit(code)


def exit_code(app: Callable[[], object]) -> int:
    """Run the app; the exit code is 0, 1 (failed), 2 (bad input), 3 (paused) or 130 (interrupted)."""
    try:
        app()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except KeyboardInterrupt:
        return _say("interrupted; nothing committed is lost", INTERRUPTED)
    except Exception as error:
        code = _code(error)
        if code is None:
            raise
        return _say(str(error), code)
    return 0


def _code(error: Exception) -> int | None:
    """The exit code of a failure that is explained by its own text; None for a defect."""
    if isinstance(error, BadInput | _PLACE):
        return BAD_INPUT
    from sim.scenarios.located import ScenarioError

    if isinstance(error, ScenarioError):
        return BAD_INPUT
    from sim.conformance.findings import ConformanceError
    from sim.library import NoSuchRun
    from sim.log import Divergence
    from sim.record.committed import SchemaMismatch
    from sim.record.store import RecordFailure, RunLocked
    from sim.scenarios.resolve import ResolveError
    from sim.steering.channel import NotRunning
    from sim.steering.live import Refused
    from sim.studies.interview import NotAskable
    from sim.types import EngineFailure

    of_the_user = NoSuchRun | ResolveError | SchemaMismatch | RunLocked | ConformanceError
    if isinstance(error, of_the_user | NotRunning | Refused | NotAskable):
        return BAD_INPUT
    return FAILED if isinstance(error, Divergence | RecordFailure | EngineFailure) else None


def _say(text: str, code: int) -> int:
    for line in text.split("\n"):
        typer.echo(f"agora: {visible(line)}", file=sys.stderr)
    return code
