"""How fast simulated time may pass: as fast as models answer, so many ticks a second, or step by step.

Nothing of it reaches the log: it only says when the next event may happen.
"""

from __future__ import annotations

from math import inf
from time import monotonic

LAG = 0.1
"""Seconds that simulated time may be behind the wall's and still catch up."""


class Pace:
    """Set by any thread, followed by the host's."""

    def __init__(self) -> None:
        self.paused = False
        self.speed = inf
        """Ticks a second; infinite: as fast as it goes."""
        self.slows = False
        """Whether events are held back at all."""
        self._events = 0
        """Events that may still happen while paused."""
        self._through = -1
        """Last tick whose events may happen while paused."""
        self._tick = 0.0
        """Where simulated time was at `_since`."""
        self._since: float | None = None
        """Wall time since which it has been running at `speed`; None: it stands, or nothing holds it back."""

    def pause(self) -> None:
        """Let no more events happen."""
        self._stand()
        self.paused = self.slows = True
        self._events, self._through = 0, -1

    def go(self) -> None:
        """Let events happen, as fast as the speed says."""
        self._stand()
        self.paused, self.slows = False, self.speed < inf

    def set_speed(self, ticks: float) -> None:
        """So many ticks a second; a model that is slower is waited for, and the time it took is not made up."""
        self._stand()
        self.speed = ticks
        self.slows = self.paused or ticks < inf

    def step(self, through: int | None = None) -> None:
        """Let one event happen, or those of all ticks up to one, and then no more."""
        if not self.paused:
            self.pause()
        if through is None:
            self._events += 1
        else:
            self._through = max(self._through, through)

    def reached(self, now: int) -> int:
        """The tick that simulated time has reached, where the last event was at `now`."""
        return max(now, int(self._position()))

    def wait(self, now: int, tick: int) -> float:
        """Seconds until an event at a tick may happen, the last one having been at `now`; 0: it happens now."""
        if self.paused:
            if tick > self._through and not self._events:
                return inf
            self._events = max(0, self._events - (tick > self._through))
            return 0.0
        if self.speed == inf:
            return 0.0
        if self._since is None:
            self._tick, self._since = max(self._tick, float(now)), monotonic()
        ahead = (tick - self._position()) / self.speed
        if ahead < -LAG:
            self._tick, self._since = float(tick), monotonic()
        return max(0.0, ahead)

    def _position(self) -> float:
        return self._tick if self._since is None else self._tick + (monotonic() - self._since) * self.speed

    def _stand(self) -> None:
        self._tick, self._since = self._position(), None
