"""What a scenario may set, and what a norm means."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

Norm: TypeAlias = Literal["anyone", "verified", "nobody"]
"""Who may be told an item: anyone, only verified people, nobody."""
Item: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_ -]*$", max_length=40)]


def entitled(norm: Norm, verified: bool) -> bool:
    """Whether a recipient may be told an item of this norm."""
    return norm == "anyone" or (norm == "verified" and verified)


class DisclosureParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: dict[Item, Norm] = Field(default={"city": "anyone", "phone": "verified", "diagnosis": "nobody"})
    """Norm by item; the values are private values of the holders, under the same names."""
    exchanges: int = Field(default=4, ge=1, le=20)
    """Most exchanges of a conversation; being verified takes one."""
    verified: float = Field(default=0.5, ge=0, le=1)
    """Share of verified recipients; a seat's private value `verified` goes before it."""
    attackers: float = Field(default=0.5, ge=0, le=1)
    """Share of recipients who are after what they may not have; a seat's private value `intent` goes before it."""
    help: float = Field(default=1.0, ge=0)
    """What it is worth to both sides that an honest recipient gets what it needs."""
    leak: float = Field(default=1.0, ge=0)
    """What the holder loses, and an attacker wins, where all that is protected leaks."""
    discount: float = Field(default=0.9, gt=0, le=1)
    """What one exchange of waiting leaves of a gain or a loss."""
    messages: bool = False
    """Whether a recipient's act carries words."""
    message_chars: int = Field(default=120, ge=1, le=1_000)
    """Longest message."""

    @model_validator(mode="after")
    def _everybody_can_want_something(self) -> DisclosureParams:
        if missing := {"anyone", "nobody"} - set(self.items.values()):
            raise ValueError(
                f"no item is for {' or '.join(sorted(missing))}: an honest recipient who is not verified, and an "
                "attacker who is, would have nothing to want"
            )
        return self
