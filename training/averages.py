"""Average policies of neural fictitious self-play: each imitates what its best response has done so far.

A best response's decisions go into a reservoir in episode order, and as many of those kept, drawn anew, are what the
average learns from by cross entropy (Heinrich and Silver 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sim.streams import Streams
from sim.types import JSON
from training.estimate import Estimate, estimate
from training.matchup import name_of
from training.nfsp import Reservoir
from training.recipe import Recipe
from training.slots import CE, NFSP, NoCorrection, NoTrust, Ratio
from training.trajectory import Row


class Lesson(NamedTuple):
    """What one average learns from in one update."""

    rows: list[Row]
    found: Estimate


def responding(recipe: Recipe) -> Recipe:
    """The best response's own part of a recipe."""
    return recipe.model_copy(update={"extra": tuple(one for one in recipe.extra if not _of_reservoir(one))})


def imitating(recipe: Recipe) -> Recipe:
    """The average's part: nothing but the cross entropy on what the reservoir holds."""
    terms = tuple(
        CE(kind="ce", weight=one.weight) for one in recipe.extra if isinstance(one, CE) and _of_reservoir(one)
    )
    nothing: dict[str, object] = dict.fromkeys(("reward", "credit", "modulation", "filter", "curriculum"), ())
    plain = {
        "ratio": Ratio(denominator="none"),
        "trust": NoTrust(kind="none"),
        "correction": NoCorrection(kind="none"),
    }
    return recipe.model_copy(update={**nothing, **plain, "extra": terms})


class Averages:
    """The reservoirs of the averages, by the average's name; `of`: whose average each one is."""

    def __init__(self, recipe: Recipe, of: Mapping[str, str], streams: Streams) -> None:
        capacity = recipe.actors.reservoir if isinstance(recipe.actors, NFSP) else 1
        self._recipe, self._of, self._streams = imitating(recipe), dict(of), streams
        self.reservoirs = {name: Reservoir(capacity=capacity) for name in of}

    def __contains__(self, policy: str) -> bool:
        return policy in self._of

    def __len__(self) -> int:
        return len(self._of)

    def lesson(self, average: str, rows: Sequence[Row], update: int) -> Lesson:
        """Take in what its best response did in an update, in this order, and draw as much of what is kept."""
        luck = self._streams.sub(average)
        seen = [
            row for row in rows if row.trained and row.valid and row.ids and name_of(row.policy) == self._of[average]
        ]
        kept = self.reservoirs[average] = self.reservoirs[average].added(seen, luck)
        drawn = kept.drawn(len(seen), luck, "update", update) if kept.slots else []
        # Each is an episode by itself, so that minibatches are parts of them.
        drawn = [replace(row, episode=str(number)) for number, row in enumerate(drawn)]
        return Lesson(drawn, estimate(self._recipe, drawn))

    def numbers(self) -> dict[str, float]:
        """What the reservoirs hold."""
        return {f"reservoir {name}": float(len(one.slots)) for name, one in self.reservoirs.items()}

    def to_json(self) -> JSON:
        """For a checkpoint."""
        return {name: one.to_json() for name, one in self.reservoirs.items()}

    def restore(self, data: JSON) -> None:
        """From a checkpoint. Raises msgspec.ValidationError."""
        self.reservoirs = {name: Reservoir.from_json(one) for name, one in data.items()}


def _of_reservoir(extra: object) -> bool:
    return isinstance(extra, CE) and extra.labels == "reservoir"
