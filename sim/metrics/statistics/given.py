"""What functions of plain numbers are given: taken as lists, arrays too, or refused in one line.

NaN is never a number here, and infinity only where a function says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from math import fsum, inf, isnan, nan
from sys import float_info
from typing import Any, TypeVar

T = TypeVar("T")
LARGEST = float_info.max
"""Beyond it there is only infinity."""
ROUNDED = 1e-12
"""Part of a value below which a difference is none."""
ROUNDING = 1e-6
"""How far probabilities that add up to 1 may be from it."""


def numbers(name: str, values: Iterable[Any], least: float = -LARGEST, most: float = LARGEST) -> list[float]:
    """The values. Raises ValueError, which names them, for one that is no number from `least` to `most`."""
    given = list(values)
    try:
        found = list(map(float, given))
    except (TypeError, ValueError):
        found = [nan]
    ends = min(found, default=least), max(found, default=most)
    if isnan(sum(found)) or not least <= ends[0] <= ends[1] <= most:  # one is at fault, or infinities cancel out
        return [number(name, value, least, most) for value in given]
    return found


def number(name: str, value: Any, least: float = -LARGEST, most: float = LARGEST) -> float:
    """The value; as `numbers`."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = nan
    if not least <= found <= most:
        raise ValueError(f"{name}: {value!r} is not {_range(least, most)}")
    return found


def shares(name: str, values: Iterable[Any]) -> list[float]:
    """The values, each from 0 to 1."""
    return numbers(name, values, 0, 1)


def share(name: str, value: Any) -> float:
    """The value, from 0 to 1."""
    return number(name, value, 0, 1)


def truths(name: str, values: Iterable[Any]) -> list[bool]:
    """The values, each true or false, 1 or 0."""
    found = list(values)
    for value in found:
        if value not in (0, 1):
            raise ValueError(f"{name}: {value!r} is neither true nor false")
    return [bool(value) for value in found]


def whole(name: str, value: Any, least: int = 0) -> int:
    """The value, a whole number from `least` on."""
    found = number(name, value, least)
    if not found.is_integer():
        raise ValueError(f"{name}: {value!r} is not a whole number")
    return int(found)


def law(name: str, weights: Mapping[T, Any]) -> dict[T, float]:
    """Probabilities by what has them. Raises ValueError where one is negative or they do not add up to 1."""
    found = dict(zip(weights, shares(name, weights.values()), strict=True))
    if abs(fsum(found.values()) - 1) > ROUNDING:
        raise ValueError(f"{name}: probabilities add up to {fsum(found.values()):g}, not to 1")
    return found


def alike(**of: Sized) -> None:
    """Raises ValueError, which names them, where lengths are not the same."""
    if len({len(one) for one in of.values()}) > 1:
        raise ValueError("unequal lengths: " + ", ".join(f"{len(one)} {name}" for name, one in of.items()))


def share_of(part: Any, of: Any) -> float | None:
    """part/of; None where `of` is 0. Raises ValueError unless 0 <= part <= of."""
    if not 0 <= part < inf or not 0 <= of < inf or part > of > 0:
        raise ValueError(f"{part} of {of} is no share")
    return float(part / of) if of else None


def varies(values: Sequence[float]) -> bool:
    """Whether values differ by more than rounding."""
    return bool(values) and max(values) - min(values) > ROUNDED * max(map(abs, values))


def _range(least: float, most: float) -> str:
    kind = "a finite number" if LARGEST in (-least, most) else "a number"
    low = f" from {least:g}" if least > -LARGEST else ""
    return f"{kind}{low} to {most:g}" if most < LARGEST else kind + low
