"""Which tokens were allowed where: the distribution that each token of a row was sampled from.

A choice's support comes from the one choice mask, `agents.engines.choices`, that of bounded free text from the engine's
lexicon. Left out: what a JSON schema allows, so forms are learnt from the model's own log-probabilities only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from agents.engines.choices import ChoiceMask
from sim.types import Tokens
from training.trajectory import Row

Allowed: TypeAlias = tuple[Tokens, ...] | None
"""Allowed token ids at each sampled position; None: the whole vocabulary at all of them."""
Masks: TypeAlias = Callable[[tuple[str, ...]], ChoiceMask]
"""The choice mask of a row's options."""
Texts: TypeAlias = Callable[[tuple[int, int], Tokens], tuple[Tokens, ...]]
"""Banned token ids at each sampled position of a free text, from its bounds (`Row.bounds`) and ids."""


class Distribution(NamedTuple):
    """What the tokens of a row are scored under."""

    allowed: Allowed
    temperature: float
    """Divides the logits."""
    banned: tuple[Tokens, ...] = ()
    """Where the whole vocabulary is allowed: but for these, at each sampled position; empty: nothing is banned."""


def choice_masks(encode: Callable[[str], Sequence[int]], end: int) -> Masks:
    """Masks over one model's vocabulary, each made once; the arguments are those of `ChoiceMask`."""
    return cache(lambda options: ChoiceMask(options, encode, end))


def distribution(row: Row, mask: Masks, texts: Texts | None = None, *, unmasked: bool = False) -> Distribution:
    """The distribution that the row's recorded log-probabilities are of, and that the learner has to use.

    A choice: its mask, at the row's temperature. Free text: the whole vocabulary, at temperature 1 where the record
    holds the model's own ("raw") log-probabilities, else but for what `texts` says. `unmasked` says that free text was
    sampled without any mask, so that "processed" ones are only tempered.

    Raises ValueError where the record's distribution cannot be had again, or a token was not allowed.
    """
    where = f"episode {row.episode!r}, seat {row.seat!r}, turn {row.turn}"
    if not row.temperature > 0:
        raise ValueError(f"{where}: log-probabilities at temperature {row.temperature} are not defined")
    if not row.options:
        if row.distribution == "processed" and not unmasked and texts is not None and row.bounds is not None:
            banned = texts(row.bounds, row.ids)
            _check(row.ids, [token in each for token, each in zip(row.ids, banned, strict=True)], where)
            return Distribution(None, row.temperature, banned)
        if row.distribution == "processed" and not unmasked:
            raise ValueError(
                f"{where}: its log-probabilities are of masked free text, and the mask is not in the row; "
                "record raw ones, or give the engine's `texts`, or say `unmasked` if none was used"
            )
        return Distribution(None, 1.0 if row.distribution == "raw" else row.temperature)
    if row.distribution == "raw" and row.logprobs:
        raise ValueError(f"{where}: a choice is sampled through its mask, but its log-probabilities are without it")
    allowed = mask(row.options).along(row.ids)
    _check(row.ids, [token not in each for token, each in zip(row.ids, allowed, strict=True)], where)
    return Distribution(allowed, row.temperature)


def _check(ids: Tokens, barred: Sequence[bool], where: str) -> None:
    for position, (token, wrong) in enumerate(zip(ids, barred, strict=True)):
        if wrong:
            raise ValueError(f"{where}: token {token} at position {position} is not allowed by its format")
