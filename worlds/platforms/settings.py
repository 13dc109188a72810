"""What a scenario can set of a forum."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from sim.quantities import Ticks
from worlds.platforms.rhythm import HOURS

JOINED = 5
"""Communities one member can be in."""


def _time(text: str) -> Any:
    """A default written as a duration."""
    return Field(default=text)


class ForumParams(BaseModel):
    """Parameters of a forum."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    communities: dict[Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,40}$")], str] = Field(min_length=1)
    """Name and what it is about; its channel id is `#name`."""
    closed: tuple[str, ...] = ()
    """Communities nobody can join: only their given members read them."""
    members: dict[str, tuple[str, ...]] = {}
    """Agent ids or roles who are in a community from the start."""
    joins: int = Field(default=2, ge=0, le=JOINED)
    """Communities everybody is in at the start; those not given are drawn for each member among the open ones."""
    visits: float = Field(default=4.0, gt=0)
    """Mean visits per member and day; a seat's private value `activity` multiplies it for that member."""
    spread: float = Field(default=1.19, ge=0, le=3)
    """Sigma of the lognormal activity of members, mean 1; 1.19 gives a Gini index of 0.60."""
    peak: float = Field(default=20.0, ge=0, lt=HOURS)
    """Hour of the day of most visits."""
    swing: float = Field(default=0.8, ge=0, le=1)
    """Height of the daily cosine: 0 is an even day, 1 has an hour without visits."""
    hours: tuple[Annotated[float, Field(ge=0)], ...] = ()
    """24 hourly rates, instead of the cosine."""
    day: Ticks = _time("1d")
    """Length of a day."""
    starts: Ticks = _time("8h")
    """Time of day at tick 0."""
    decade: Ticks = _time("12h30m")
    """Age that weighs as much as ten times the votes."""
    feed: int = Field(default=5, ge=1, le=20)
    """Posts shown in one turn."""
    thread: int = Field(default=6, ge=1, le=20)
    """Latest comments kept and shown of a post."""
    opens: int = Field(default=2, ge=0, le=10)
    """Posts a member can open in one visit."""
    notify: Literal["no", "wake", "interrupt"] = "wake"
    """What a direct message does to its recipient."""
    delay: Ticks = Field(default=1, ge=1)
    """How long after being sent it does so; at least a tick, or two who answer at once would stop the clock."""
    max_chars: int = Field(default=200, ge=1, le=2000)
    """Longest text."""

    @model_validator(mode="after")
    def _known(self) -> ForumParams:
        if unknown := {*self.closed, *self.members} - self.communities.keys():
            raise ValueError(f"no such community: {', '.join(sorted(unknown))}; known: {', '.join(self.communities)}")
        if self.hours and (len(self.hours) != HOURS or sum(self.hours) <= 0):
            raise ValueError(f"hours must hold {HOURS} rates, at least one above 0")
        if self.day < HOURS:
            raise ValueError(f"a day must have at least {HOURS} ticks")
        return self
