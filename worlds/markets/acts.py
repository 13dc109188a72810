"""What a trader can answer: `{"act": "bid", "price": 95}`, `{"act": "cancel"}`, `{"act": "wait"}`.

Where several goods are traded the act names its good, `"bid pear"`, so that every good has limits of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, create_model

from sim.types import JSON, Form


def wait() -> JSON:
    """The answer that changes nothing, and the default."""
    return {"act": "wait"}


def name(act: str, good: str, goods: Mapping[str, JSON]) -> str:
    """The act on one of the goods."""
    return act if len(goods) == 1 else f"{act} {good}"


@lru_cache(maxsize=256)
def model(act: str, *, priced: bool) -> type[BaseModel]:
    """The pydantic model of one kind of answer."""
    fields: dict[str, Any] = {"act": (Literal[act], ...)}
    if priced:
        fields["price"] = (int, ...)
    return create_model(act.capitalize().replace(" ", "_"), __config__=ConfigDict(extra="forbid"), **fields)


def form(side: str, goods: Mapping[str, Mapping[str, JSON]]) -> Form:
    """Orders that may be placed now, within their limits; to cancel what stands; to wait. `goods` is as in the view."""
    models, narrow = [], {}
    for good, quotes in goods.items():
        if quotes["lowest"] is not None:
            models.append(model(name(side, good, goods), priced=True))
            narrow[f"{models[-1].__name__}.price"] = {"minimum": quotes["lowest"], "maximum": quotes["highest"]}
        if quotes["order"] is not None:
            models.append(model(name("cancel", good, goods), priced=False))
    return Form(models=(*models, model("wait", priced=False)), narrow=narrow)
