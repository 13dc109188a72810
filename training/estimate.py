"""From rows to what the loss reads: rewards, credit, filter and modulation of a recipe, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from training.credit import START, Estimator, credit
from training.extras import NO_EXTRAS, Extras
from training.filtering import Kept, select
from training.modulation import modulated
from training.recipe import Recipe
from training.reward import rewards
from training.trajectory import Row


class Estimate(Struct, frozen=True, kw_only=True):
    """What an update knows of its rows, aligned with them by index."""

    advantages: tuple[tuple[float, ...], ...]
    """One for each of a row's `ids`."""
    mask: tuple[tuple[bool, ...], ...]
    """Which of them credit reaches, in rows that are kept."""
    options: tuple[tuple[float, ...], ...]
    """One for each of a row's `options`, where all legal options get credit; else empty."""
    targets: Mapping[str, tuple[tuple[float, ...], ...]]
    """By critic, as many as it has values of the row; empty: no target."""
    rewards: tuple[float, ...]
    """The rows' rewards, all sources together."""
    kept: Kept
    state: Estimator
    """For the next update."""


def estimate(
    recipe: Recipe,
    rows: Sequence[Row],
    extras: Extras = NO_EXTRAS,
    state: Estimator = START,
    update: int = 0,
    versions: Mapping[str, int] | None = None,
) -> Estimate:
    """The estimate for the update after so many. Pure; raises ValueError where a slot lacks what it reads.

    `versions` holds the newest version of each adapter, which only the filter `stale` reads.
    """
    streams = rewards(recipe.reward, rows, extras, update)
    paid = streams.total() if recipe.reward else [row.reward for row in rows]
    found = credit(rows, streams, recipe.credit, extras, state, update)
    kept = select(recipe.filter, rows, paid, found.tokens, versions)
    alive = set(kept.indices)
    mask = tuple(each if index in alive else (False,) * len(each) for index, each in enumerate(found.mask))
    tokens = modulated(recipe.modulation, rows, paid, found.tokens, mask, kept)
    return Estimate(
        advantages=tuple(map(tuple, tokens)),
        mask=mask,
        options=tuple(each if index in alive else () for index, each in enumerate(found.options)),
        targets=found.targets,
        rewards=tuple(paid),
        kept=kept,
        state=found.state,
    )
