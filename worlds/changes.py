"""Settings that may be changed while a world is running."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from sim.types import Set

P = TypeVar("P", bound=BaseModel)


def changed(params: P, change: Set, changeable: frozenset[str], world: str) -> P:
    """The settings with one of them changed. Raises ValueError, by the world's name, for one that is set for good."""
    if change.key not in changeable:
        raise ValueError(f"{world} can change {sorted(changeable)} while running, not {change.key!r}")
    return type(params).model_validate(params.model_dump() | {change.key: change.value})
