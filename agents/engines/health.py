"""When to try again, and for how long an endpoint has shown no sign of life."""

from __future__ import annotations

import random

LONGEST_WAIT = 900.0
"""Seconds; an endpoint that asks to wait longer is out of quota for now."""
_LONGEST_BACKOFF = 30.0


class Health:
    """Trouble since the last sign of life, and the pause before the next attempt. Times in seconds of one clock."""

    def __init__(self, patience: float, backoff: float) -> None:
        self.patience = patience
        """Seconds without a sign of life after which the endpoint is dead."""
        self.trouble = ""
        """The latest error since the last sign of life."""
        self._since: float | None = None
        self._backoff = backoff
        # Jitter keeps many processes from trying again in step; nothing that is recorded depends on it.
        self._jitter = random.Random()

    def lively(self) -> None:
        """The endpoint has spoken sense, if only to refuse."""
        self.trouble, self._since = "", None

    def troubled(self, error: str, now: float) -> None:
        """An attempt met an error that says nothing about the request."""
        self.trouble = error
        self._since = now if self._since is None else self._since

    def dead(self, now: float) -> bool:
        """Whether patience has run out."""
        return self._since is not None and now - self._since >= self.patience

    def delay(self, failures: int, wait: float | None = None) -> float:
        """Seconds before attempt `failures` + 1: doubling, jittered, at least what the endpoint asks for."""
        longest = min(_LONGEST_BACKOFF, self.patience / 4)
        backoff = min(self._backoff * 2.0 ** min(failures - 1, 16), longest) * self._jitter.uniform(0.5, 1.0)
        return min(max(backoff, wait or 0.0), LONGEST_WAIT)
