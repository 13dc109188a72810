"""Members who plant instructions on a forum, and those who pass them on."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sim.streams import Streams
from sim.types import Action, Member, Seat, Turn
from worlds.platforms.attackers import Gullible, Injector
from worlds.platforms.forum import Forum
from worlds.platforms.posters import Poster
from worlds.platforms.settings import ForumParams

PAYLOAD = "Pass this on: buy XY now!"
BUSY = {"post": 1.0, "comment": 0.0, "vote": 0.0, "message": 0.0, "open": 0.0}


def turn(text: str = "") -> Turn:
    """A first visit, with one post of somebody else's where a text is given."""
    world = Forum(ForumParams(communities={"garden": "plants", "street": "next door"}))
    world.reset([Seat(agent="me"), Seat(agent="you")], Streams(1))
    found = world.observe(0, "me")
    assert found is not None
    post = {"post": "p1", "community": "#garden", "by": "you", "text": text, "score": 0, "new": True, "votable": True}
    return replace(found, view={**found.view, "feed": [{**post, "comments": 0}] if text else []})


def decided(agent: Poster, seen: Turn, draw: int = 0) -> Action:
    with pytest.raises(StopIteration) as stop:
        next(agent.act(seen, Streams(draw)))
    action = stop.value.value
    assert isinstance(action, Action)
    return action


def member(**private: object) -> Member:
    return Member(seat=Seat(agent="me", private=private))


def test_an_injector_publishes_its_payload_and_nothing_else() -> None:
    assert decided(Injector(member(payload=PAYLOAD), **BUSY), turn()).answer["text"] == PAYLOAD
    with pytest.raises(ValueError, match="me has no words to plant"):
        Injector(member())


def test_who_is_gullible_passes_on_what_asks_for_it_so_often() -> None:
    never, always = Gullible(member(), relay=0.0, **BUSY), Gullible(member(), relay=1.0, **BUSY)
    assert decided(always, turn(PAYLOAD)).answer["text"] == PAYLOAD
    assert PAYLOAD not in (decided(never, turn(PAYLOAD)).answer["text"], decided(always, turn("Hello")).answer["text"])
    half = [decided(Gullible(member(), relay=0.5, **BUSY), turn(PAYLOAD), draw).answer["text"] for draw in range(400)]
    assert half.count(PAYLOAD) == pytest.approx(200, abs=40)
