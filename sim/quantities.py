"""One grammar for durations and distributions in scenario files.

Durations: `0`, `250ms`, `20s`, `10m`, `1h30m`, `2d`, `1w`; a bare integer counts ticks.
Distributions: a constant, `uniform(a, b)`, `integer(a, b)`, `normal(mean, sd)`, `lognormal(median, sigma)`,
`exponential(mean)`, `choice(a, b, …)`; their arguments are numbers or durations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
"""Milliseconds."""

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_CALL = re.compile(r"([a-z]+)\((.*)\)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
DURATION_HELP = "a duration like 250ms, 20s, 10m, 1h30m or 2d"
DISTRIBUTION_HELP = (
    "a number, a duration, uniform(a, b), integer(a, b), normal(mean, sd), lognormal(median, sigma), "
    "exponential(mean) or choice(a, b, …)"
)


def milliseconds(text: str) -> float | None:
    """Length of a duration text, or None if it is not one."""
    text = text.strip()
    parts = list(_PART.finditer(text))
    if not parts or "".join(part.group() for part in parts) != text:
        return None
    return sum(float(part[1]) * UNITS[part[2]] for part in parts)


def ticks(value: object, tick_ms: float) -> int:
    """A duration in whole ticks, halves up. Raises ValueError, also for one below half a tick that is not 0."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"{value} is negative; write {DURATION_HELP}")
        return value
    length = milliseconds(value) if isinstance(value, str) else None
    if length is None:
        if isinstance(value, str) and value.strip().isdecimal():
            return int(value)
        raise ValueError(f"{value!r} is not {DURATION_HELP}, or a whole number of ticks")
    count = math.floor(length / tick_ms + 0.5)
    if count == 0 and length > 0:
        raise ValueError(f"{value!r} is shorter than half a tick; write 0 or choose a smaller clock.tick")
    return count


def readable(count: int, tick_ms: float) -> str:
    """A tick count as a duration text with at most two units."""
    rest = round(count * tick_ms)
    if rest == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        many, rest = divmod(rest, UNITS[unit])
        if many:
            parts.append(f"{many}{unit}")
    return "".join(parts[:2])


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution given by its inverse CDF."""

    text: str
    """As written."""
    name: str
    """constant, uniform, …"""
    args: tuple[Any, ...]
    quantile: Callable[[float], Any]
    """Value at a uniform in [0, 1)."""
    constant: bool = False
    """Whether it takes no luck."""

    def ticks(self, uniform: float) -> int:
        """A think time: 0 only for a literal 0, otherwise at least 1."""
        value: float = self.quantile(uniform)
        whole = int(value + 0.5)
        if whole > 0:
            return whole
        return 0 if value == 0 and self.constant else 1


def distribution(value: object, tick_ms: float | None = None) -> Distribution:
    """Read a distribution; with `tick_ms`, durations in it become ticks. Raises ValueError.

    `lognormal(median, sigma)` has median `median` and sigma of the logarithm; `exponential(mean)` its mean.
    """
    if isinstance(value, Distribution):
        return value
    text = str(value).strip()
    call = _CALL.fullmatch(text)
    if call is None:
        constant = _argument(value if not isinstance(value, str) else text, tick_ms)
        return Distribution(text, "constant", (constant,), lambda _u: constant, constant=True)
    name = call[1]
    args = tuple(_argument(part.strip(), tick_ms) for part in call[2].split(",")) if call[2].strip() else ()
    if name == "choice" and args:
        return Distribution(text, name, args, lambda u: args[int(u * len(args))])
    numbers = [float(arg) for arg in args if isinstance(arg, int | float) and not isinstance(arg, bool)]
    if name not in _FAMILIES or len(numbers) != len(args) or len(args) != _FAMILIES[name][0]:
        raise ValueError(f"{text!r} is not {DISTRIBUTION_HELP}")
    _, valid, build = _FAMILIES[name]
    if not valid(*numbers):
        raise ValueError(f"{text!r}: its arguments are out of order or not positive; expected {DISTRIBUTION_HELP}")
    return Distribution(text, name, args, build(*numbers))


def _argument(value: object, tick_ms: float | None) -> Any:
    """A number, a duration in ticks, or a bare word."""
    if not isinstance(value, str):
        return value
    if _NUMBER.fullmatch(value):
        return float(value) if any(c in value for c in ".eE") else int(value)
    length = milliseconds(value)
    if length is not None:
        if tick_ms is None:
            raise ValueError(f"{value!r} is a duration where a plain number is wanted")
        return ticks(value, tick_ms)
    if not re.fullmatch(r"[\w .#-]+", value):
        raise ValueError(f"{value!r} is not {DISTRIBUTION_HELP}")
    return value


def _integer(low: float, high: float) -> Callable[[float], int]:
    first, count = int(low), int(high - low + 1)
    return lambda u: first + int(u * count)


def _normal(mean: float, sd: float) -> Callable[[float], float]:
    inverse = NormalDist(mean, sd).inv_cdf
    return lambda u: inverse(u or 2.0**-54)


def _lognormal(median: float, sigma: float) -> Callable[[float], float]:
    inverse = NormalDist(math.log(median), sigma).inv_cdf
    return lambda u: math.exp(inverse(u or 2.0**-54))


_FAMILIES: dict[str, tuple[int, Callable[..., bool], Callable[..., Callable[[float], Any]]]] = {
    "uniform": (2, lambda a, b: a <= b, lambda a, b: lambda u: a + (b - a) * u),
    "integer": (2, lambda a, b: a <= b and a % 1 == 0 == b % 1, _integer),
    "normal": (2, lambda mean, sd: sd > 0, _normal),
    "lognormal": (2, lambda median, sigma: median > 0 and sigma > 0, _lognormal),
    "exponential": (1, lambda mean: mean > 0, lambda mean: lambda u: -mean * math.log1p(-u)),
}


def tick_of(info: ValidationInfo) -> float:
    """Milliseconds per tick of the scenario under validation (1 s where there is none)."""
    return float((info.context or {}).get("tick_ms", 1_000))


Ticks = Annotated[int, BeforeValidator(lambda value, info: ticks(value, tick_of(info)))]
"""A field of a scenario or of a world's `Params` that is written as a duration and held in ticks."""
