"""How many calls an endpoint is sent at once, and when it may be sent none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


class Limiter:
    """Concurrency that grows while calls succeed and others wait, and shrinks only when told "too many requests".

    Until the first refusal every success adds 1 (the limit doubles in each round trip, however slow the endpoint);
    after it every success adds 1/limit (1 in each round trip). A burst of refusals halves the limit once. Time is given
    by the caller, in seconds of any one clock.
    """

    def __init__(self, start: int, most: int) -> None:
        if not 1 <= start <= most:
            raise ValueError(f"concurrency ({start}, {most}): expected 1 <= start <= most")
        self._size = float(start)
        self._most = most
        self._shrunk_at = -math.inf
        self._held_until = -math.inf

    @property
    def limit(self) -> int:
        """Calls that may be under way."""
        return int(self._size)

    def held(self, now: float) -> float:
        """Seconds for which nothing may be sent."""
        return max(0.0, self._held_until - now)

    def succeeded(self, waiting: bool) -> None:
        """A call was answered; `waiting`: others would have been sent had the limit been higher."""
        if waiting:
            step = 1.0 if self._shrunk_at == -math.inf else 1.0 / self._size
            self._size = min(float(self._most), self._size + step)

    def refused(self, sent: float, now: float, wait: float) -> None:
        """A call sent at `sent` was refused for its rate; send nothing for `wait` seconds."""
        self._held_until = max(self._held_until, now + wait)
        if sent > self._shrunk_at:  # older calls belong to the burst that has been answered for
            self._size = max(1.0, self._size / 2)
            self._shrunk_at = now


def retry_after(headers: Mapping[str, str], wall: float) -> float | None:
    """Seconds that a reply asks to wait, from `retry-after-ms` or `retry-after` (seconds or an HTTP date).

    `headers` has lower-case names; `wall` is the time of the epoch clock in seconds. None where nothing usable is said.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            seconds = float(text) * scale
        except ValueError:
            seconds = _until(text, wall)
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str, wall: float) -> float:
    """Seconds from `wall` to an HTTP date; NaN where it is none."""
    try:
        return parsedate_to_datetime(date).timestamp() - wall
    except (ValueError, OverflowError):
        return math.nan
