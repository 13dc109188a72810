"""When something begins: Kaplan–Meier curves of onset, of those at risk, censored at the horizon; competing ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import erfc, exp, log, sqrt
from typing import NamedTuple, TypeAlias

from sim.intervals import Z
from sim.metrics.statistics.given import alike, number, truths

Times: TypeAlias = Sequence[tuple[float, bool]]
"""For each unit at risk, when its onset was seen or, with False, until when none was."""
ROUNDING = 1e-12
"""A share as near to 0 or 1 is that."""


class Step(NamedTuple):
    """The curve from one time on."""

    time: float
    survival: float
    ci: tuple[float, float] | None
    """By log(−log) with Greenwood's variance; None where the curve is 0 or 1."""


def kaplan_meier(times: Times) -> list[Step]:
    """S(t) = Π (1 − d/n) over onset times (Kaplan and Meier 1958)."""
    times = _known(times)
    survival, spread, steps = 1.0, 0.0, []
    for time, onsets, at_risk in _onsets(times):
        survival *= 1 - onsets / at_risk
        spread += onsets / (at_risk * (at_risk - onsets)) if at_risk > onsets else 0.0
        steps.append(Step(time, survival, _interval(survival, spread)))
    return steps


def survival_at(times: Times, time: float) -> float | None:
    """Share still without an onset after a time; None where nobody was at risk."""
    if not times:
        return None
    return next((step.survival for step in reversed(kaplan_meier(times)) if step.time <= time), 1.0)


def median_onset(times: Times) -> float | None:
    """First time with survival of at most one half; None where it is not reached."""
    return next((step.time for step in kaplan_meier(times) if step.survival <= 0.5 + ROUNDING), None)


def restricted_mean(times: Times, horizon: float) -> float | None:
    """Area under the curve up to a horizon: mean time without an onset within it."""
    if not times:
        return None
    total, before, survival = 0.0, 0.0, 1.0
    for step in kaplan_meier(times):
        if step.time >= horizon:
            break
        total += (step.time - before) * survival
        before, survival = step.time, step.survival
    return total + (horizon - before) * survival


def incidence(times: Times) -> float | None:
    """Share with an onset by the horizon."""
    times = _known(times)
    return sum(seen for _, seen in times) / len(times) if times else None


class Incidence(NamedTuple):
    """The share with an event of one kind by a time."""

    time: float
    share: float
    ci: tuple[float, float] | None
    """By log(−log); None where the share is 0 or 1."""


def aalen_johansen(times: Times, ended: Sequence[bool]) -> list[Incidence]:
    """Share with an onset at each time of one, where some end otherwise (Aalen and Johansen 1978).

    `ended`: who of those without an onset did. They are at risk no longer, and not merely unseen: 1 − S(t) would count
    them as some that may still begin. The variance is by the delta method (Marubini and Valsecchi 1995), Greenwood's
    where nobody ends otherwise.
    """
    alike(times=times, ended=ended)
    times, ended = _known(times), truths("ended", ended)
    share, still = 0.0, 1.0
    past: list[tuple[float, float, int, int, int]] = []
    steps = []
    for time in sorted({t for t, _ in times}):
        at_risk = sum(t >= time for t, _ in times)
        onsets = sum(t == time and seen for t, seen in times)
        ends = sum(t == time and end and not seen for (t, seen), end in zip(times, ended, strict=True))
        share += still * onsets / at_risk
        past.append((share, still, onsets, onsets + ends, at_risk))
        still *= 1 - (onsets + ends) / at_risk
        if onsets:
            steps.append(Incidence(time, share, _interval(share, _variance(share, past) / share**2)))
    return steps


def _variance(share: float, past: Sequence[tuple[float, float, int, int, int]]) -> float:
    total = 0.0
    for then, still, onsets, events, n in past:
        since = share - then
        total += since**2 * events / (n * (n - events)) if events < n else 0.0
        total += still**2 * onsets * (n - onsets) / n**3 - 2 * since * still * onsets / n**2
    return max(0.0, total)


def cumulative_incidence(times: Times, ended: Sequence[bool]) -> float | None:
    """Share with an onset in the end, as `aalen_johansen` has it; None where nobody was at risk."""
    if not times:
        return None
    steps = aalen_johansen(times, ended)
    return steps[-1].share if steps else 0.0


def log_rank(one: Times, other: Times) -> float | None:
    """Two-sided p that two groups have one curve (Mantel 1966); None without onsets to compare."""
    one, other = _known(one), _known(other)
    gap = spread = 0.0
    for time, onsets, at_risk in _onsets([*one, *other]):
        first = sum(t >= time for t, _ in one)
        seen = sum(t == time and is_onset for t, is_onset in one)
        gap += seen - onsets * first / at_risk
        if at_risk > 1:
            share = first / at_risk
            spread += onsets * share * (1 - share) * (at_risk - onsets) / (at_risk - 1)
    return erfc(abs(gap) / sqrt(2 * spread)) if spread else None


def first_sustained(happened: Sequence[bool], within: int = 3, least: int = 2) -> int | None:
    """First round, from 1, of an act that also happens in `least` of the next `within` rounds; None for none."""
    return next(
        (t for t, now in enumerate(happened, 1) if now and sum(happened[t : t + within]) >= least),
        None,
    )


def _known(times: Times) -> Times:
    """Times from 0 on, each with whether an onset was seen."""
    ends = [number("times", time, 0) for time, _ in times]
    return list(zip(ends, truths("onsets seen", [seen for _, seen in times]), strict=True))


def _onsets(times: Times) -> Iterator[tuple[float, int, int]]:
    """Time, onsets and how many are at risk, at each time with an onset."""
    for time in sorted({t for t, seen in times if seen}):
        yield time, sum(t == time and seen for t, seen in times), sum(t >= time for t, _ in times)


def _interval(survival: float, spread: float) -> tuple[float, float] | None:
    if not ROUNDING < survival < 1 - ROUNDING:
        return None
    half = Z * sqrt(spread) / abs(log(survival))
    return survival ** exp(half), survival ** exp(-half)
