"""The keyed baseline: (G − b)/s against what shares a key. It is the difference between nine papers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, sqrt
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field

from sim.scenarios.strict import Strict
from training.slots import Positive, Share


class Zero(Strict):
    """b = 0."""

    kind: Literal["zero"]


class Mean(Strict):
    """b = mean over the key's units."""

    kind: Literal["mean"]


class LeaveOneOut(Strict):
    """b = mean over the key's other units."""

    kind: Literal["loo"]


class EMA(Strict):
    """b ← α·b + (1−α)·G after each unit in episode order, from 0; a unit is compared with b before its own update."""

    kind: Literal["ema"]
    alpha: Share = 0.95


class Critic(Strict):
    """b = V, per token where the critic has a value for each."""

    kind: Literal["critic"]


class ByOption(Strict):
    """b(a) = discounted mean of what the option earned in earlier updates under the key (`training.option_baseline`).

    For returns `q`, with unit `turn`.
    """

    kind: Literal["option"]
    keep: Share = 0.9
    """What an update leaves of the weight of earlier returns."""


Baseline: TypeAlias = Annotated[Zero | Mean | LeaveOneOut | EMA | Critic | ByOption, Field(discriminator="kind")]


class One(Strict):
    """s = 1."""

    kind: Literal["one"]


class Std(Strict):
    """s = standard deviation over the key's units, n − ddof in its denominator, plus eps."""

    kind: Literal["std"]
    ddof: Literal[0, 1] = 1
    eps: Positive = 1e-6


class ByMean(Strict):
    """s = mean over the key's units; the advantage is 0 where that is not above 0 (MaxRL)."""

    kind: Literal["mean"]


class FamilyStd(Std):
    """s = standard deviation of G − b over the units of the row's task family, about their mean, plus eps."""

    kind: Literal["family_std"]  # type: ignore[assignment]


Scale: TypeAlias = Annotated[One | Std | ByMean | FamilyStd, Field(discriminator="kind")]


class Compared(Struct, frozen=True):
    """One row, as it is compared with others."""

    value: float
    """G."""
    stat: float
    """What its unit puts into the statistics."""
    key: str
    unit: Hashable
    family: str = ""
    counts: bool = True
    """Whether its unit enters the statistics; where not, it is compared with those that do."""


def keyed_baseline(
    compared: Sequence[Compared], baseline: Baseline, scale: Scale, ema: Mapping[str, float]
) -> tuple[list[float], dict[str, float]]:
    """(G − b)/s of every row, and the moving baselines afterwards.

    They come in episode order. Each unit counts once, with its first row. Where b or s is a statistic over a key
    with fewer than two units, the advantage is 0: nothing is there to compare with. `ema` is by key. Raises ValueError
    for the baselines of a critic and of options, which are none of a key.
    """
    groups: dict[str, dict[Hashable, float]] = {}
    for one in compared:
        if one.counts:
            groups.setdefault(one.key, {}).setdefault(one.unit, one.stat)
    means = {key: mean(list(units.values())) for key, units in groups.items()}
    before, after = _moving(compared, baseline, ema)
    centred = []
    for one in compared:
        if isinstance(baseline, EMA):
            centred.append(one.value - before.get(one.unit, after.get(one.key, 0.0)))
        elif isinstance(baseline, Zero):
            centred.append(one.value)
        else:
            centred.append(_centred(one, groups.get(one.key, {}), means.get(one.key, 0.0), baseline))
    return _scaled(compared, centred, scale), after


def _moving(
    compared: Sequence[Compared], baseline: Baseline, ema: Mapping[str, float]
) -> tuple[dict[Hashable, float], dict[str, float]]:
    """The moving baseline that each unit met, and those afterwards."""
    met: dict[Hashable, float] = {}
    now = dict(ema)
    if isinstance(baseline, EMA):
        for one in compared:
            if one.counts and one.unit not in met:
                met[one.unit] = now.get(one.key, 0.0)
                now[one.key] = baseline.alpha * met[one.unit] + (1 - baseline.alpha) * one.stat
    return met, now


def mean(values: Sequence[float]) -> float:
    """The mean; exactly the value where all are equal, so that equal returns have advantages of exactly 0."""
    return min(max(fsum(values) / len(values), min(values)), max(values))


def _centred(one: Compared, units: Mapping[Hashable, float], average: float, baseline: Baseline) -> float:
    """G minus the mean of the key's units, or of its others; 0 where it is alone."""
    if isinstance(baseline, Critic | ByOption):
        raise ValueError(f"the baseline {baseline.kind} is not one of a key")
    if len(units) < 2:
        return 0.0
    if isinstance(baseline, LeaveOneOut) and one.unit in units:
        average += (average - units[one.unit]) / (len(units) - 1)
    return one.value - average


def _scaled(compared: Sequence[Compared], centred: Sequence[float], scale: Scale) -> list[float]:
    if isinstance(scale, One):
        return list(centred)
    family = isinstance(scale, FamilyStd)
    units: dict[str, dict[Hashable, float]] = {}
    for one, value in zip(compared, centred, strict=True):
        if one.counts:
            baseline = one.value - value
            name, number = (one.family, one.stat - baseline) if family else (one.key, one.stat)
            units.setdefault(name, {}).setdefault(one.unit, number)
    scales = {name: _scale(list(numbers.values()), scale) for name, numbers in units.items()}
    found = [scales.get(one.family if family else one.key) for one in compared]
    return [0.0 if each is None else value / each for value, each in zip(centred, found, strict=True)]


def _scale(values: Sequence[float], scale: Std | ByMean) -> float | None:
    """s; None where there is nothing to divide by, so the advantage is 0."""
    if len(values) < 2:
        return None
    average = mean(values)
    if isinstance(scale, ByMean):
        return average if average > 0 else None
    return sqrt(fsum((value - average) ** 2 for value in values) / (len(values) - scale.ddof)) + scale.eps
