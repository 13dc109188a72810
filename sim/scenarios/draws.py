"""What a scenario file may have drawn: private values, secrets and think times, all of them finite."""

from __future__ import annotations

import math
import re
from functools import lru_cache

from sim.quantities import Distribution, distribution, milliseconds
from sim.scenarios.located import shown

_CALL = re.compile(r"[a-z]+\(.*\)", re.DOTALL)
_EDGES = (0.0, 0.5, 1 - 2.0**-53)
"""Uniforms at which a distribution must have a finite value."""


@lru_cache(maxsize=1024)
def drawable(text: str, tick_ms: float | None) -> Distribution | None:
    """The distribution that a text is; None: it stands for itself.

    `name(…)` is a distribution; a duration is a number of ticks, unless `tick_ms` is None. Raises ValueError.
    """
    written = text.strip()
    if not _CALL.fullmatch(written) and (tick_ms is None or milliseconds(written) is None):
        return None
    return finite(written, tick_ms)


def think_time(value: str | int | float, tick_ms: float) -> Distribution:
    """A think time in ticks. Raises ValueError where it could be a word or, but for a normal's tail, negative."""
    think = finite(value, tick_ms)
    numbers = list(think.args) if think.name == "choice" else [think.quantile(uniform) for uniform in _EDGES]
    if not all(isinstance(number, int | float) for number in numbers):
        raise ValueError(f"{think.text!r} holds a word; expected numbers of ticks or durations")
    if think.name != "normal" and min(numbers) < 0:
        raise ValueError(f"{think.text!r} can be negative; nobody thinks for less than 0 ticks")
    return think


def finite(value: str | int | float, tick_ms: float | None) -> Distribution:
    """A distribution all of whose values are finite. Raises ValueError."""
    try:
        found = distribution(value, tick_ms)
        values = [*found.args, *(found.quantile(uniform) for uniform in _EDGES)]
    except OverflowError:
        values = [math.inf]
    if any(isinstance(each, float) and not math.isfinite(each) for each in values):
        raise ValueError(f"{shown(value)} has values that are not finite; use smaller arguments")
    return found
