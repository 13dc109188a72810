"""A command of the command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


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
