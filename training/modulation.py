"""Modulation: what happens to advantages between credit and loss; only tokens that are learnt from matter to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, field_validator

from sim.scenarios.strict import Many, Strict
from training.filtering import Kept, groups_of, spread
from training.keys import KEYS, key_of
from training.slots import Positive
from training.trajectory import Row

Numbers: TypeAlias = Sequence[Sequence[float]]
"""A sequence a row, one number for each of its `ids`."""
Mask: TypeAlias = Sequence[Sequence[bool]]


class GroupStd(Strict):
    """A × std of the returns of the row's group, by the largest such std (RAGEN-2)."""

    kind: Literal["group_std"]
    ddof: Literal[0, 1] = 1


class KeptRatio(Strict):
    """A × (groups kept / groups), or its square root (RAGEN-2)."""

    kind: Literal["kept_ratio"]
    shape: Literal["linear", "sqrt"] = "linear"


class EntropyCoefficient(Strict):
    """A × c(h), c = h^power by its mean over rows, h the row's mean −log μ.

    Unverified: AEM rescales by surprisal so that c is 1 in the mean, but its own form of c is not known.
    """

    kind: Literal["entropy"]
    power: float = 1.0


class Whiten(Strict):
    """(A − mean) / (std + eps) over what is learnt from, among rows of one key."""

    kind: Literal["whiten"]
    by: Many[str] = ()
    """Keys as in credit; empty: the whole batch."""
    unit: Literal["token", "row"] = "token"
    """What counts once: a token, or a row with the mean over its tokens."""
    centre: bool = True
    ddof: Literal[0, 1] = 1
    eps: Positive = 1e-8

    @field_validator("by")
    @classmethod
    def _known(cls, by: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in by if name not in KEYS]:
            raise ValueError(f"{unknown[0]!r} is nothing that rows are keyed by; choose of {', '.join(KEYS)}")
        return by


class Limit(Strict):
    """A cut to [−most, most]."""

    kind: Literal["clip"]
    most: Positive


Modulation: TypeAlias = Annotated[
    GroupStd | KeptRatio | EntropyCoefficient | Whiten | Limit, Field(discriminator="kind")
]


def modulated(
    modulations: Sequence[Modulation],
    rows: Sequence[Row],
    rewards: Sequence[float],
    advantages: Numbers,
    mask: Mask,
    kept: Kept,
) -> list[list[float]]:
    """The advantages after all modulations in order; 0 where the mask is false. Returns are made of `rewards`."""
    groups = groups_of(rows, rewards=rewards)
    result = [list(each) for each in advantages]
    for one in modulations:
        factors = _factors(one, rows, groups, kept, mask)
        for index, factor in enumerate(factors):
            result[index] = [factor * advantage for advantage in result[index]]
        if isinstance(one, Whiten):
            _whiten(one, rows, result, mask)
        elif isinstance(one, Limit):
            result = [[max(-one.most, min(one.most, advantage)) for advantage in each] for each in result]
    return [
        [advantage if learnt else 0.0 for advantage, learnt in zip(each, here, strict=True)]
        for each, here in zip(result, mask, strict=True)
    ]


def _factors(
    one: Modulation, rows: Sequence[Row], groups: Mapping[str, Mapping[tuple[int, ...], float]], kept: Kept, mask: Mask
) -> list[float]:
    """What each row's advantages are multiplied with."""
    if isinstance(one, GroupStd):
        stds = {group: spread(list(units.values()), one.ddof) for group, units in groups.items()}
        most = max(stds.values(), default=0.0)
        return [stds.get(key_of(row, ("group",), row.episode), 0.0) / most if most else 0.0 for row in rows]
    if isinstance(one, KeptRatio):
        left = {key_of(rows[index], ("group",), rows[index].episode) for index in kept.indices}
        ratio = len(left) / len(groups) if groups else 0.0
        return [sqrt(ratio) if one.shape == "sqrt" else ratio] * len(rows)
    if isinstance(one, EntropyCoefficient):
        heights = [
            (-fsum(row.logprobs) / len(row.logprobs)) ** one.power if any(here) and row.logprobs else None
            for row, here in zip(rows, mask, strict=True)
        ]
        known = [height for height in heights if height is not None]
        mean = fsum(known) / len(known) if known else 0.0
        return [height / mean if height is not None and mean else 1.0 for height in heights]
    return [1.0] * len(rows)


def _whiten(one: Whiten, rows: Sequence[Row], result: list[list[float]], mask: Mask) -> None:
    families: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if any(mask[index]):
            families[key_of(row, one.by, row.episode)].append(index)
    for indices in families.values():
        learnt = [[a for a, here in zip(result[i], mask[i], strict=True) if here] for i in indices]
        flat = (
            [fsum(each) / len(each) for each in learnt] if one.unit == "row" else [a for each in learnt for a in each]
        )
        mean = fsum(flat) / len(flat) if one.centre else 0.0
        std = spread(flat, one.ddof)
        for index in indices:
            result[index] = [(advantage - mean) / (std + one.eps) for advantage in result[index]]
