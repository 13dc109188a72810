"""What an agent answers: a number, with words before it and feelings after it where they are asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from sim.types import Form

_LONGEST = 1_000


class Stated(BaseModel):
    """What you think now."""

    model_config = ConfigDict(extra="forbid")


@lru_cache
def _model(text: bool, feelings: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    if text:
        fields["text"] = (str, Field(max_length=_LONGEST, description="what you say about it"))
    fields["opinion"] = (float, Field(ge=-1, le=1, description="your opinion, from -1 to 1"))
    if feelings:
        fields["own_camp"] = (float, Field(ge=-1, le=1, description="how you feel about your own side, from -1 to 1"))
        fields["other_camp"] = (float, Field(ge=-1, le=1, description="how you feel about the other side"))
    return create_model("Opinion", __base__=Stated, __doc__=Stated.__doc__, **fields)


def asked(message_chars: int, feelings: bool) -> Form:
    """The form of an answer; no words where they may have no character."""
    narrow = {"Opinion.text": {"maxLength": message_chars}} if message_chars else {}
    return Form(models=(_model(bool(message_chars), feelings),), narrow=narrow)
