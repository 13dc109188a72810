"""The entropies of earlier answers by turn: the middle of the band that an entropy is held in (EPO).

A policy's turn number has the mean over all its learnt tokens so far, those of the present update included. Tokens
that had no alternative have no entropy; they count in no mean and are held in no band.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import TypeAlias

from training.keys import learnable
from training.matchup import name_of
from training.readout import Said
from training.rows import Floats
from training.trajectory import Row

History: TypeAlias = Mapping[str, tuple[float, float]]
"""By policy and turn, as text: the sum of entropies in nats, and the number of tokens in it."""


def extended(history: History, rows: Sequence[Row], said: Sequence[Said]) -> dict[str, tuple[float, float]]:
    """The history with what weights say of these rows."""
    seen: dict[str, list[float]] = {}
    for row, one in zip(rows, said, strict=True):
        if learnable(row):
            seen.setdefault(_key(row), []).extend(each for each in one.entropies if each > 0)
    after = dict(history)
    for key, entropies in seen.items():
        total, tokens = history.get(key, (0.0, 0.0))
        after[key] = (total + fsum(entropies), tokens + len(entropies))
    return after


def centres(history: History, rows: Sequence[Row], said: Sequence[Said]) -> list[Floats]:
    """H̄ of every token of the rows; 0 where it had no alternative."""
    found: list[Floats] = []
    for row, one in zip(rows, said, strict=True):
        total, tokens = history.get(_key(row), (0.0, 0.0))
        found.append(tuple(total / tokens if each > 0 else 0.0 for each in one.entropies))
    return found


def _key(row: Row) -> str:
    return f"{name_of(row.policy)} {row.turn}"
