"""What a command that fails tells its user: one line, and an exit code that says whose turn it is."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import typer

from sim.loading import loading

FAILED, BAD_INPUT, PAUSED, INTERRUPTED = 1, 2, 3, 130
_PLACE = FileExistsError | FileNotFoundError | PermissionError | NotADirectoryError | IsADirectoryError
_NO_PLACE = (errno.ENAMETOOLONG, errno.EROFS, errno.ELOOP)
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
    if loading():
        os._exit(code)  # an orderly end of the interpreter may crash what a thread does outside of it
    sys.exit(code)


def exit_code(app: Callable[[], object]) -> int:
    """Run the app; the exit code is 0, 1 (failed), 2 (bad input), 3 (paused) or 130 (interrupted)."""
    code = _came_to(app)
    return code if _printed() else code or FAILED


def _came_to(app: Callable[[], object]) -> int:
    try:
        app()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except KeyboardInterrupt:
        return _say("interrupted; nothing committed is lost", INTERRUPTED)
    except Exception as error:
        if isinstance(error, OSError) and (not _printed() or isinstance(error, BrokenPipeError)):
            return FAILED
        code = _code(error)
        if code is None:
            raise
        return _say(_told(error), code)
    return 0


def _told(error: Exception) -> str:
    """A failure in words; what cannot be written any more, a full disk's file or output, has no name."""
    if isinstance(error, OSError) and error.strerror and not error.filename:
        return f"cannot write: {error.strerror}; what was done before is kept"
    if isinstance(error, OSError) and error.strerror:
        hint = "; name a folder, or a place for one" if isinstance(error, FileExistsError | NotADirectoryError) else ""
        return f"{error.filename}: {error.strerror}{hint}"
    return str(error)


def _printed() -> bool:
    """Whether what was printed has got out. If not, it says so, but where nobody reads it any more."""
    if sys.stdout is None:  # it was closed from the start
        return True
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _say(f"standard output cannot be written: {error.strerror}; what was done is kept", FAILED)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  the interpreter flushes it at its end
        return False
    return True


def _code(error: Exception) -> int | None:
    """The exit code of a failure that is explained by its own text; None for a defect."""
    if isinstance(error, BadInput | _PLACE):
        return BAD_INPUT
    if isinstance(error, OSError):
        return BAD_INPUT if error.errno in _NO_PLACE else FAILED
    from sim.scenarios.located import ScenarioError

    if isinstance(error, ScenarioError):
        return BAD_INPUT
    from sim.conformance.findings import ConformanceError
    from sim.library import NoSuchRun
    from sim.log import Divergence
    from sim.record.committed import SchemaMismatch
    from sim.record.sqlite import FileFailure
    from sim.record.store import DiskFull, RecordFailure, RunLocked
    from sim.scenarios.resolve import ResolveError
    from sim.steering.channel import NotRunning
    from sim.steering.live import Refused
    from sim.studies.interview import NotAskable
    from sim.types import EngineFailure

    of_the_user = NoSuchRun | ResolveError | SchemaMismatch | RunLocked | ConformanceError
    if isinstance(error, of_the_user | NotRunning | Refused | NotAskable):
        return BAD_INPUT
    if isinstance(error, DiskFull):
        return PAUSED
    return FAILED if isinstance(error, Divergence | RecordFailure | FileFailure | EngineFailure) else None


def _say(text: str, code: int) -> int:
    with suppress(OSError):  # nobody can be told
        for line in text.split("\n"):
            typer.echo(f"agora: {visible(line)}", file=sys.stderr)
    return code
