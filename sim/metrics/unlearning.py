"""What is left after a request to forget: by weights, memory and tools, asked once or over several turns.

Forget quality, as a distance to an agent that never knew, is `distances.ks` of their truth ratios.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import TypeAlias

Recovered: TypeAlias = Mapping[str, Set[Hashable]]
"""By channel, the facts that came back through it."""


def residue(recovered: Recovered, facts: int) -> float | None:
    """Share of facts that came back through any channel."""
    return len(set[Hashable]().union(*recovered.values())) / facts if facts else None


def residue_through(recovered: Recovered, facts: int, channel: str, *, only: bool = False) -> float | None:
    """Share of facts that came back through a channel; with `only`, through no other."""
    others = set[Hashable]().union(*(found for name, found in recovered.items() if name != channel)) if only else set()
    return len(set(recovered[channel]) - others) / facts if facts else None


def amplification(static: float, interactive: float) -> float | None:
    """How many times as much comes back over several turns as at one question; None where that gives nothing."""
    return interactive / static if static else None


def backflow(forgotten: Set[Hashable], memory: Set[Hashable]) -> float | None:
    """Share of what was forgotten that is in memory again."""
    return len(forgotten & memory) / len(forgotten) if forgotten else None
