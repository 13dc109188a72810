"""What a firm answers: one of the levels, a number, or either with a new page of its notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from sim.types import JSON, Choice, Form, Format

NOTES = ("plans", "insights")
"""What a notebook keeps from period to period."""

_LONGEST = 4_000


class Notes(BaseModel):
    """What you see, your plans and insights for later, and your choice."""

    model_config = ConfigDict(extra="forbid")

    observations: str = Field(max_length=_LONGEST, description="what you see in the market")
    """Thought aloud, and not kept."""
    plans: str = Field(max_length=_LONGEST, description="plans for the next periods, kept for you")
    """Kept."""
    insights: str = Field(max_length=_LONGEST, description="what you have learnt, kept for you")
    """Kept."""


class Number(BaseModel):
    """Your choice."""

    model_config = ConfigDict(extra="forbid")


@lru_cache
def _model(chooses: Literal["price", "quantity"], noted: bool, level: bool) -> type[BaseModel]:
    """The form with the choice last, after the thoughts that lead to it."""
    told = f"your {chooses}"
    kind: Any = (str, Field(max_length=40, description=told)) if level else (float, Field(ge=0, description=told))
    base = Notes if noted else Number
    name = f"{'Noted' if noted else ''}{chooses.title()}"
    return create_model(name, __base__=base, __doc__=base.__doc__, **{chooses: kind})


def asked(
    chooses: Literal["price", "quantity"], options: Sequence[str], ceiling: float, note_chars: int | None
) -> Format:
    """The format of a firm's answer; options are none where the choice is free, note_chars None without notebook."""
    if options and note_chars is None:
        return Choice(options=tuple(options))
    model = _model(chooses, note_chars is not None, bool(options))
    name = model.__name__
    narrow: dict[str, Mapping[str, JSON]] = {
        f"{name}.{chooses}": {"enum": list(options)} if options else {"maximum": ceiling}
    }
    if note_chars is not None:
        narrow |= {f"{name}.{field}": {"maxLength": note_chars} for field in Notes.model_fields}
    return Form(models=(model,), narrow=narrow)


def answer(format: Format, chosen: float | str, chooses: str, notes: Mapping[str, str]) -> JSON:
    """An answer of that format: what is chosen, and the notebook as it stands."""
    if isinstance(format, Choice):
        return chosen
    if isinstance(format, Form) and issubclass(format.models[0], Notes):
        return {"observations": "", **notes, chooses: chosen}
    return {chooses: chosen}
