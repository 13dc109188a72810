"""What a scenario may set of the verification world: its conditions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from sim.quantities import Ticks
from worlds.verification.tasks import FAMILIES, SEQUENCES, Family

Rule: TypeAlias = Literal["raw", "summary", "unrestricted"]
"""What may be accepted: a complete raw log only, summaries too, whatever is believed."""
Rewarded: TypeAlias = Literal["shared", "separate", "acceptance", "none"]
"""Right verdicts of both, one's own right verdict, being accepted and accepting, nothing."""


class VerificationParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    episodes: int = Field(default=10, ge=1, le=100)
    """Episodes of a pair."""
    rounds: int = Field(default=5, ge=1, le=50)
    """Messages that each side sends in an episode."""
    message_chars: int = Field(default=200, ge=1, le=4_000)
    """Longest message."""
    families: tuple[Family, ...] = Field(default=FAMILIES, min_length=1)
    """Which tasks come."""
    sequence: int | None = Field(default=None, ge=0, lt=SEQUENCES)
    """The fixed sequence of tasks of every pair; None: one drawn for each pair."""
    reward: Rewarded = "shared"
    """What an episode pays."""
    review: bool = True
    """Whether each side is told the other's verdict and which verdicts were right."""
    warmup: int = Field(default=0, ge=0)
    """First episodes under another rule."""
    warmup_rule: Literal["summary", "unrestricted"] = "unrestricted"
    """That other rule."""
    memory: int | None = Field(default=None, ge=0)
    """Past episodes that a view holds; None: all of them."""
    scope: Literal["all", "communication", "feedback"] = "communication"
    """What it holds of each: the task too, from the first message on, or feedback and reflection only."""
    reflection: bool = True
    """Whether each side writes a note to itself after an episode."""
    note_chars: int = Field(default=200, ge=1, le=4_000)
    """Longest note."""
    pause: Ticks = 1
    """Time between two episodes."""

    def rule(self, episode: int) -> Rule:
        """The rule of an episode, counted from 1."""
        return self.warmup_rule if episode <= self.warmup else "raw"
