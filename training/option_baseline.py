"""A baseline for every legal option: what it earned before corrects what it earned now (VR-MCCFR, Schmid et al. 2019).

Unbiased, as what is remembered comes from earlier updates. Where only one option was sampled, a baseline that all
options share cancels in Q − V everywhere but there; one for each option tells also the others apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import fsum
from typing import TypeAlias

from training.baselines import Compared
from training.keys import is_alone
from training.options import chosen
from training.trajectory import Row

Memory: TypeAlias = Mapping[str, tuple[float, float]]
"""By option: the mean of what it earned, and the discounted number of returns in it."""


def means(memory: Memory, options: Sequence[str]) -> list[float]:
    """b of every option; 0 where nothing is remembered."""
    return [memory[option][0] if option in memory else 0.0 for option in options]


def corrected(known: Sequence[float], baseline: Sequence[float], taken: int, gain: float, chance: float) -> list[float]:
    """Q(a) = known(a) + b(a) + [a = taken]·(G − b(a))/μ(a), of every option.

    `known` is the part of the reward that is known for all options, `gain` the rest, G, of the one that was taken with
    `chance` μ.
    """
    values = [mine + before for mine, before in zip(known, baseline, strict=True)]
    values[taken] += (gain - baseline[taken]) / chance
    return values


def remembered(memory: Memory, seen: Iterable[tuple[str, float]], keep: float) -> dict[str, tuple[float, float]]:
    """The memory after an update in which options had returns.

    An option's weight w becomes keep·w + n with n returns, its mean moves by Σ(G − mean)/w; others stay as they were.
    """
    found: dict[str, list[float]] = {}
    for option, gain in seen:
        found.setdefault(option, []).append(gain)
    after = dict(memory)
    for option, gains in found.items():
        mean, weight = memory.get(option, (0.0, 0.0))
        weight = keep * weight + len(gains)
        after[option] = (mean + fsum(gain - mean for gain in gains) / weight, weight)
    return after


def met(
    names: Sequence[str],
    keep: float,
    rows: Sequence[Row],
    compared: Mapping[int, Compared],
    memories: dict[str, Memory],
) -> dict[int, list[float]]:
    """b of every option of the compared rows, by their index; moves `memories`, by key, once all have met them.

    A unit is remembered once for each choice in it. Rows whose key is nobody else's meet 0 and are not remembered.
    """
    found = {index: means(memories.get(one.key, {}), rows[index].options) for index, one in compared.items()}
    seen: dict[str, dict[Hashable, tuple[str, float]]] = {}
    for index, one in compared.items():
        row = rows[index]
        if not is_alone(row, names):
            unit = (one.unit, row.options)
            seen.setdefault(one.key, {}).setdefault(unit, (row.options[chosen(row)], one.value))
    for key, units in seen.items():
        memories[key] = remembered(memories.get(key, {}), units.values(), keep)
    return found
