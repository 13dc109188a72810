"""What one can do on a forum, and which of it is open to a reader of a given view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from sim.types import JSON, Form

Written = Annotated[str, Field(min_length=1, max_length=2000)]
"""Bounded further in every turn."""
Name = Annotated[str, Field(min_length=1, max_length=80)]
"""An id; every turn names the possible ones."""
NOTHING = {"act": "pass"}
"""The default."""


class _Act(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Post(_Act):
    """Start a topic in a community."""

    act: Literal["post"] = "post"
    community: Name
    text: Written


class Comment(_Act):
    """Answer a post for all its community to read."""

    act: Literal["comment"] = "comment"
    post: Name
    text: Written


class Vote(_Act):
    """Raise or lower a post of somebody else, once."""

    act: Literal["vote"] = "vote"
    post: Name
    way: Literal["up", "down"]


class Message(_Act):
    """Write to one person; nobody else can read it."""

    act: Literal["message"] = "message"
    to: Name
    text: Written


class Open(_Act):
    """Read what was answered to a post; one may act again at once."""

    act: Literal["open"] = "open"
    post: Name


class Join(_Act):
    """Become a member of a community."""

    act: Literal["join"] = "join"
    community: Name


class Leave(_Act):
    """Leave a community, but never the last one."""

    act: Literal["leave"] = "leave"
    community: Name


class Pass(_Act):
    """Do nothing more in this visit."""

    act: Literal["pass"] = "pass"


WRITTEN = (Post, Comment, Message)
"""The acts with a text."""


def offer(view: Mapping[str, JSON]) -> Form:
    """The acts that this view allows, each field narrowed to what the view shows."""
    thread = view["thread"]
    items = [thread, *view["feed"]] if thread else view["feed"]
    shown = [item["post"] for item in items]
    votable = [item["post"] for item in items if item["votable"]]
    answered = [item["post"] for item in view["feed"] if item["comments"]] if view["opens"] else []
    options: tuple[tuple[type[BaseModel], str, list[str]], ...] = (
        (Post, "community", view["communities"]),
        (Comment, "post", shown),
        (Vote, "post", votable),
        (Message, "to", view["people"]),
        (Open, "post", answered),
        (Join, "community", view["joinable"]),
        (Leave, "community", view["communities"] if len(view["communities"]) > 1 and not thread else []),
    )
    allowed = [option for option in options if option[2]]
    models = [model for model, _, _ in allowed]
    narrow: dict[str, dict[str, JSON]] = {
        f"{model.__name__}.{name}": {"enum": values} for model, name, values in allowed
    }
    narrow |= {f"{model.__name__}.text": {"maxLength": view["max_chars"]} for model in models if model in WRITTEN}
    return Form(models=(*models, Pass), narrow=narrow)
