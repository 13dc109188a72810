"""When people are online: an inhomogeneous Poisson process whose rate follows the hour of the day.

A visit is found by inverting the integral of the rate, so the n-th visit of an agent is a function of
the one before and of one uniform: nobody else's visits enter.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist

HOURS = 24


def cosine(peak: float, swing: float) -> tuple[float, ...]:
    """Share of the day's activity in each hour for the rate 1 + swing·cos(2π(h − peak)/24), integrated exactly."""

    def until(hour: float) -> float:
        turn = 2 * math.pi / HOURS
        return hour / HOURS + swing * (math.sin(turn * (hour - peak)) + math.sin(turn * peak)) / (2 * math.pi)

    return tuple(until(hour + 1) - until(hour) for hour in range(HOURS))


def factor(spread: float, uniform: float) -> float:
    """How active one person is against the mean: lognormal with mean 1 and sigma `spread`."""
    if spread == 0:
        return 1.0
    return math.exp(spread * NormalDist().inv_cdf(uniform or 2.0**-54) - spread * spread / 2)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Activity over a day as a piecewise constant rate with mean 1 per day."""

    day: int
    """Ticks per day."""
    starts: int
    """Time of day at tick 0, in ticks."""
    shares: tuple[float, ...]
    """Cumulative share of a day's activity at the start of each hour, and 1 at the end."""

    @classmethod
    def of(cls, hours: Sequence[float], day: int, starts: int) -> Rhythm:
        """From 24 hourly rates in any unit."""
        total = math.fsum(hours)
        return cls(day, starts, (0.0, *(min(1.0, part / total) for part in accumulate(hours))))

    def activity(self, tick: float) -> float:
        """Integral of the rate up to a tick: it grows by 1 per day."""
        days, rest = divmod(tick + self.starts, self.day)
        hour, within = divmod(rest * HOURS / self.day, 1)
        low, high = self.shares[int(hour)], self.shares[int(hour) + 1]
        return days + low + (high - low) * within

    def tick(self, activity: float) -> float:
        """The time at which the integral reaches a value: the inverse of `activity`."""
        days = math.floor(activity)
        part = activity - days
        hour = min(bisect_right(self.shares, part) - 1, HOURS - 1)
        low, high = self.shares[hour], self.shares[hour + 1]
        within = (part - low) / (high - low) if high > low else 1.0
        return (days + (hour + within) / HOURS) * self.day - self.starts

    def after(self, tick: int, visits: float, uniform: float) -> int:
        """The next visit after a tick, at `visits` a day on average: exponential in activity, at least a tick later."""
        return max(tick + 1, math.floor(self.tick(self.activity(tick) - math.log1p(-uniform) / visits) + 0.5))
