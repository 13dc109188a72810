"""An emotion of an agent: a Markov chain over a few words, which moves once a decision and is told to the model.

As an emotional policy is written in EvoEmo (arXiv 2509.04310): where it starts, and the probability of every move.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from sim.types import JSON

SETTINGS = ("start", "moves")
LONGEST = 40
"""Characters of a word."""
_NEAR = 1e-6
"""How far the sum of probabilities may be from 1."""


class Emotion:
    """A chain over words of the file's own, such as joy, anger, fear, sadness, surprise, disgust and neutral.

    `settings`: `start`, a word or the probability of every word; `moves`, by word the probabilities of the next one.
    Without `moves` it stays as it starts. Raises ValueError.
    """

    def __init__(self, settings: Mapping[str, JSON]) -> None:
        if not isinstance(settings, Mapping) or "start" not in settings or {*settings} - {*SETTINGS}:
            raise ValueError(f"emotion: {settings!r}; expected {{start: neutral}}, or start and moves")
        start, moves = settings["start"], settings.get("moves")
        self._start = _row({start: 1} if isinstance(start, str) else start, "start")
        if moves is None:
            moves = {word: {word: 1} for word in self._start}
        if not isinstance(moves, Mapping):
            raise ValueError(f"emotion: moves: {moves!r}; expected a row of probabilities for every emotion")
        self._moves = {word: _row(row, f"moves: {word}") for word, row in moves.items()}
        for row in (self._start, *self._moves.values()):
            if lost := [word for word, share in row.items() if share and word not in self._moves]:
                raise ValueError(f"emotion: moves: {lost[0]} can be felt and has no row; expected one for it")

    def after(self, now: str | None, uniform: float) -> str:
        """What is felt next, by a uniform in [0, 1). Who felt nothing, or something else, begins at the start."""
        row = self._start if now is None else self._moves.get(now, self._start)
        left = uniform * fsum(row.values())
        likely = [(word, share) for word, share in row.items() if share]
        for word, share in likely:
            if left < share:
                return word
            left -= share
        return likely[-1][0]  # the shares, rounded, were a little short


def told(word: str) -> str:
    """What the model reads."""
    return f"You feel {word}."


def _row(row: JSON, where: str) -> dict[str, float]:
    """Probabilities by word, in an order that does not depend on the file's."""
    if not isinstance(row, Mapping) or not all(_is_share(share) for share in row.values()):
        raise ValueError(f"emotion: {where}: {row!r}; expected the probability of every emotion, from 0 to 1")
    for word in row:
        if not isinstance(word, str) or not word.isprintable() or not 0 < len(word.strip()) <= LONGEST:
            raise ValueError(f"emotion: {where}: {word!r}; expected a word of at most {LONGEST} characters")
    if abs((total := fsum(row.values())) - 1) > _NEAR:
        raise ValueError(f"emotion: {where}: the probabilities sum to {total:.7g}; expected 1")
    return {word: float(row[word]) for word in sorted(row)}


def _is_share(share: JSON) -> bool:
    return isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
