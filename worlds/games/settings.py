"""Settings of the matrix games."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
from worlds.games.payoffs import Game, build


class MatrixParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    game: Literal["pd", "stag_hunt", "chicken", "battle_of_sexes", "rps", "matching_pennies"] | None = None
    """A classic by name; or else give `actions` and `payoffs`, or `by_count`."""
    actions: tuple[tuple[str, ...], ...] = ()
    """Labels of the actions, one list per player."""
    payoffs: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    """By joint action, the labels joined by commas: one payoff per player."""
    by_count: Mapping[str, tuple[float, ...]] = Field(default_factory=dict)
    """Symmetric games: by own action, the payoff where 0, 1, … of the others choose the first action."""
    pairing: Literal["fixed", "across", "round_robin", "all_in_one"] = "fixed"
    """Neighbours in cast order, as many as the game has players; first half with second; everybody with everybody; one
    game for all seats."""
    rounds: int = Field(default=1, ge=1)
    """Rounds that every match has."""
    continuation: float = Field(default=0.0, ge=0, lt=1)
    """Probability of one more round after those, drawn after each."""
    talk: Literal["none", "restricted", "explicit"] = "none"
    """What may be said before each move: nothing, one of the `tokens`, free words."""
    tokens: tuple[str, ...] = ("red", "green")
    """What may be said where talk is restricted."""
    message_chars: int = Field(default=120, ge=4, le=1_000)
    """Longest message where talk is free."""
    channel: Literal["open", "paraphrased", "cut"] = "open"
    """What of free words arrives: all of them, what they say in plain spelling, nothing."""
    deadline: Ticks | None = Field(default=None, ge=1)
    """Time for an answer, after which the default is played (or nothing said); None: all the time it takes."""
    default: int | None = Field(default=None, ge=0)
    """Index of the action played for whoever is missing; None: the one whose worst payoff is best."""
    pause: Ticks = 1
    """Time between two rounds."""
    rules: bool = True
    """Whether rules and payoffs are told; who learns them by playing needs no words for them, and reads less."""

    @model_validator(mode="after")
    def _one_game(self) -> MatrixParams:
        game = self.table()
        if self.default is not None and any(self.default >= len(mine) for mine in game.actions):
            raise ValueError(f"default: some player has no action {self.default}")
        if self.talk == "restricted" and len(set(self.tokens)) < max(2, len(self.tokens)):
            raise ValueError("tokens: give at least two different ones")
        return self

    def table(self) -> Game:
        """The game that is played. Raises ValueError where it is none, or several."""
        return build(self.game, self.actions, self.payoffs, self.by_count)
