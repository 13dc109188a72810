"""What rows are compared by: tuples of their fields, as text."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

from training.trajectory import Row

KEYS = (
    *("episode", "group", "task", "family", "trial", "attempt", "parent", "turn", "seat", "role"),
    *("policy", "policy_hash", "opponents", "key", "state", "anchor"),
)
"""What rows can be keyed by: fields of `Row`, and `anchor`, its information state or else the state's hash."""
NAMELESS = frozenset({"group", "task", "trial", "parent", "key", "state", "anchor"})
"""Where these are empty, the row is in no group."""


def learnable(row: Row) -> bool:
    """Whether anything can be learnt from the row: the learner's own, legal answer."""
    return row.trained and row.valid and bool(row.ids)


def key_value(row: Row, name: str) -> Hashable:
    """What a row has under one of `KEYS`."""
    if name == "anchor":
        return row.key or row.state
    value: Hashable = getattr(row, name)
    return value


def is_alone(row: Row, names: Sequence[str]) -> bool:
    """Whether one of `NAMELESS` is empty, so that the row shares its key with none."""
    return any(name in NAMELESS and not key_value(row, name) for name in names)


def key_of(row: Row, names: Sequence[str], alone: str) -> str:
    """The row's key as text; where it `is_alone`, a key of its own that `alone` tells apart."""
    values = [key_value(row, name) for name in names]
    if is_alone(row, names):
        values.append(f"alone {alone}")
    return json.dumps(values, ensure_ascii=False)
