"""Where theory says that two who bargain end: the points of Nash and of Kalai and Smorodinsky; how far off it was.

What can be agreed on are the outcomes that are named, pairs of utilities, and all lotteries among them: the feasible
set is their convex hull. An outcome or lottery that leaves somebody with less than without a deal is no candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement
from math import dist
from typing import TypeAlias

from sim.metrics.society.bargaining import nash_product
from sim.metrics.statistics.given import ROUNDED, alike, numbers

Point: TypeAlias = tuple[float, float]
"""Utilities of both."""


def nash_point(outcomes: Sequence[Sequence[float]], disagreement: Sequence[float]) -> Point | None:
    """Where (u₁ − d₁)(u₂ − d₂) is largest (Nash 1950); None where no outcome is better for both."""
    return _best(outcomes, disagreement, lambda x, y: x * y, _steepest)


def kalai_smorodinsky(outcomes: Sequence[Sequence[float]], disagreement: Sequence[float]) -> Point | None:
    """Where both get the same part, the largest, of the most that each could hope for (Kalai and Smorodinsky 1975).

    None where no outcome is better for both.
    """
    gains, (d1, d2) = _gains(outcomes, disagreement)
    most = _ideal(gains)
    if most is None or min(most) <= 0 or nash_point(outcomes, disagreement) is None:
        return None
    found = _best([(x / most[0], y / most[1]) for x, y in gains], (0, 0), min, _even)
    return (d1 + found[0] * most[0], d2 + found[1] * most[1]) if found else None


def ideal(outcomes: Sequence[Sequence[float]], disagreement: Sequence[float]) -> Point | None:
    """The most that each could get where the other gets at least what it has without a deal; None for no such deal."""
    gains, (d1, d2) = _gains(outcomes, disagreement)
    most = _ideal(gains)
    return (d1 + most[0], d2 + most[1]) if most else None


def nash_product_ratio(
    utilities: Sequence[float], disagreement: Sequence[float], outcomes: Sequence[Sequence[float]]
) -> float | None:
    """Nash product over the largest one that is feasible; None where somebody is worse off than without a deal.

    For a surplus that can be transferred `bargaining.nash_ratio` has it of any number of agents.
    """
    found, point = nash_product(utilities, disagreement), nash_point(outcomes, disagreement)
    largest = nash_product(point, disagreement) if point else None
    return found / largest if found is not None and largest else None


def apart(utilities: Sequence[float], point: Sequence[float]) -> float:
    """Euclidean distance from a solution, in the unit of utilities, which have to compare."""
    alike(utilities=utilities, point=point)
    return dist(numbers("utilities", utilities), numbers("point", point))


def _gains(outcomes: Sequence[Sequence[float]], disagreement: Sequence[float]) -> tuple[list[Point], Point]:
    """Outcomes as gains over no deal. Raises ValueError unless they are of two."""
    alike(**{f"utilities of outcome {place}": one for place, one in enumerate([disagreement, *outcomes])})
    if len(disagreement) != 2:
        raise ValueError(f"{len(disagreement)} who bargain are not two")
    d1, d2 = numbers("disagreement", disagreement)
    pairs = [numbers("outcomes", one) for one in outcomes]
    return [(x - d1, y - d2) for x, y in pairs], (d1, d2)


def _best(
    outcomes: Sequence[Sequence[float]],
    disagreement: Sequence[float],
    worth: Callable[[float, float], float],
    inside: Callable[[Point, Point], Sequence[float]],
) -> Point | None:
    """The best of the hull by gains, which lies at an outcome or where a lottery of two is best."""
    gains, (d1, d2) = _gains(outcomes, disagreement)
    known = [one for one in _corners(gains, inside) if min(one) >= 0]
    best = max(known, key=lambda one: worth(*one), default=(0.0, 0.0))
    span = max((max(map(abs, one)) for one in gains), default=0.0)
    return (d1 + best[0], d2 + best[1]) if min(best) > ROUNDED * span else None


def _corners(gains: Sequence[Point], inside: Callable[[Point, Point], Sequence[float]]) -> Iterator[Point]:
    """Outcomes, and the lotteries of each two that are asked for by what the second is drawn with."""
    for one, other in combinations_with_replacement(gains, 2):
        yield one
        for s in inside(one, other):
            if 0 <= s <= 1:
                yield one[0] + s * (other[0] - one[0]), one[1] + s * (other[1] - one[1])


def _ideal(gains: Sequence[Point]) -> Point | None:
    served = [(x, y) for x, y in _corners(gains, _crossings) if min(x, y) >= -ROUNDED * max(abs(x), abs(y), 1.0)]
    return (max(x for x, _ in served), max(y for _, y in served)) if served else None


def _steepest(one: Point, other: Point) -> list[float]:
    """Where the product is flat between two gains."""
    dx, dy = other[0] - one[0], other[1] - one[1]
    return [-(one[0] * dy + one[1] * dx) / (2 * dx * dy)] if dx * dy < 0 else []


def _even(one: Point, other: Point) -> list[float]:
    """Where both gain the same."""
    tilt = (other[0] - one[0]) - (other[1] - one[1])
    return [(one[1] - one[0]) / tilt] if tilt else []


def _crossings(one: Point, other: Point) -> list[float]:
    """Where either gains nothing."""
    return [one[side] / (one[side] - other[side]) for side in (0, 1) if one[side] != other[side]]
