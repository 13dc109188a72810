"""What credit and rewards may need beside the rows, worked out elsewhere: values, reference and judge numbers.

All are aligned with the rows by index. A field that no slot of the recipe asks for stays empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from sim.types import Tokens

PerRow: TypeAlias = tuple[float, ...]
"""One number a row."""
PerToken: TypeAlias = tuple[tuple[float, ...], ...]
"""A tuple a row, one number for each of its `ids`."""
PerOption: TypeAlias = tuple[tuple[float, ...], ...]
"""A tuple a row, one number for each of its `options`."""


class Values(Struct, frozen=True, kw_only=True):
    """A critic's values."""

    rows: tuple[tuple[float, ...], ...]
    """A row's value at each of its `ids`, or its one value, of the state that its turn starts from."""
    after: PerRow = ()
    """Value of the state after the row, read where a trajectory was cut short."""


class Extras(Struct, frozen=True, kw_only=True):
    """Arrays beside the rows."""

    values: Mapping[str, Values] = {}
    """By the critic's head."""
    q: PerOption = ()
    """Value of every legal option, where it is known; else it is estimated from what was sampled."""
    policy: PerToken = ()
    """log π of the sampled tokens; empty: the rows' own."""
    reference: PerToken = ()
    """log π_ref of the sampled tokens."""
    reference_options: PerOption = ()
    """log π_ref of the options."""
    truth_before: PerRow = ()
    """Mean log-probability of the true answer's tokens, given what was known before the row."""
    truth_after: PerRow = ()
    """The same after the row and what the environment replied."""
    counterfactual: PerOption = ()
    """Reward that each option would have earned at this row, all else as it was."""
    judge: PerRow = ()
    """A judge's score."""
    states: tuple[Tokens, ...] = ()
    """What critics read that see the world's whole state; empty where nobody learns."""


NO_EXTRAS = Extras()
