"""What happens after one firm is made to deviate: the response of its rivals, and whether deviating paid.

Series start at the forced period, τ = 0: one of a fork in which the deviation was forced, one of a fork with the same
luck in which it was not. Cycles are no punishment, so the control fork is the baseline, never a fixed price.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import fmean, pstdev
from typing import NamedTuple

from sim.metrics.statistics.given import alike, number, numbers, share, whole

DRAWS = 999


class Response(NamedTuple):
    """Mean response over forks with 95% intervals by bootstrap over them."""

    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Of pointwise intervals."""
    reach: tuple[float, ...] = ()
    """Half-widths of a band that holds the whole path: sup-t (Montiel Olea and Plagborg-Møller 2019)."""


def gaps(forced: Sequence[float], control: Sequence[float]) -> list[float]:
    """p_forced(τ) − p_control(τ)."""
    alike(forced=forced, control=control)
    forced, control = numbers("forced", forced), numbers("control", control)
    return [a - b for a, b in zip(forced, control, strict=True)]


def depth(response: Sequence[float], periods: int = 3) -> float | None:
    """Mean fall at τ = 1 to `periods`; `response` starts at τ = 1."""
    response, periods = numbers("response", response), whole("periods", periods, 1)
    return -fmean(response[:periods]) if len(response) >= periods else None


def area(response: Sequence[float]) -> float:
    """Sum of falls below the control: deep and long punishments have much."""
    return sum(max(0.0, -gap) for gap in numbers("response", response))


def return_time(response: Sequence[float], near: float = 0.05) -> int | None:
    """First τ, counted from 1, at which the gap is within `near`; None where it stays open."""
    near = number("near", near, 0)
    return next((tau for tau, gap in enumerate(numbers("response", response), 1) if abs(gap) <= near + 1e-12), None)


def discounted_gain(forced: Sequence[float], control: Sequence[float], discount: float) -> float:
    """Σ δ^τ·(π_forced − π_control) of the deviator: below 0 deviating does not pay, as punishment follows."""
    discount = share("discount", discount)
    return sum(discount**tau * gap for tau, gap in enumerate(gaps(forced, control)))


def punished_share(responses: Sequence[Sequence[float]], noise: float) -> float | None:
    """Share of forks in which the rival cuts its price by more than `noise` at τ = 1; `responses` start there."""
    noise, first = number("noise", noise, 0), numbers("responses", (response[0] for response in responses))
    return sum(gap < -noise for gap in first) / len(first) if first else None


def impulse_response(responses: Sequence[Sequence[float]], seed: int = 0) -> Response | None:
    """The mean over forks at each τ, with intervals; None for fewer than two forks."""
    if len(responses) < 2:
        return None
    alike(**{f"periods of fork {place}": response for place, response in enumerate(responses)})
    responses = [numbers("responses", response) for response in responses]
    luck = Random(seed)
    columns = list(zip(*responses, strict=True))
    drawn: list[list[float]] = [[] for _ in columns]
    for _ in range(DRAWS):
        chosen = luck.choices(range(len(responses)), k=len(responses))
        for place, column in enumerate(columns):
            drawn[place].append(fmean([column[fork] for fork in chosen]))
    ordered = [sorted(draws) for draws in drawn]
    mean = tuple(fmean(column) for column in columns)
    return Response(
        mean,
        tuple(draws[int(0.025 * DRAWS)] for draws in ordered),
        tuple(draws[int(0.975 * DRAWS)] for draws in ordered),
        _reach(mean, drawn),
    )


def _reach(mean: Sequence[float], drawn: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Standard errors times the 95% quantile of the largest distance, in these, of a drawn path from the mean."""
    errors = [pstdev(draws) for draws in drawn]
    paths = zip(*drawn, strict=True)
    largest = sorted(
        max((abs(at - m) / e for at, m, e in zip(path, mean, errors, strict=True) if e > 0), default=0.0)
        for path in paths
    )
    return tuple(error * largest[int(0.95 * DRAWS)] for error in errors)
