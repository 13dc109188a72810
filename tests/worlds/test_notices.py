"""What is said from outside waits until it was seen; what may be set is set, what may not is named."""

from __future__ import annotations

from typing import ClassVar

import pytest
from pydantic import BaseModel, ValidationError

from sim.types import ALL, Say, Set
from worlds.changes import changed
from worlds.notices import AT_ONCE, Notices


class Pie(BaseModel):
    size: int = 10
    cuts: int = 2
    changeable: ClassVar[frozenset[str]] = frozenset({"size"})


def told(notices: Notices, *texts: str, to: str | tuple[str, ...] = ALL) -> None:
    for fact, text in enumerate(texts):
        notices.post(notices.readers(Say(text=text, to=to)), fact, text)


def test_a_notice_waits_for_the_view_that_shows_it() -> None:
    notices = Notices("a game", ["a", "b"])
    told(notices, "frost", "thaw")
    notices.read("a", (0, 7))
    assert [notice.text for notice in notices.next("a")] == ["thaw"]
    assert [notice.text for notice in notices.next("b")] == ["frost", "thaw"]
    assert notices.state() == {"a": [[1, "thaw"]], "b": [[0, "frost"], [1, "thaw"]]}


def test_one_view_shows_the_oldest_only() -> None:
    notices = Notices("a game", ["a"])
    told(notices, *map(str, range(AT_ONCE + 3)))
    assert [notice.fact for notice in notices.next("a")] == list(range(AT_ONCE))


def test_only_those_named_read_it() -> None:
    notices = Notices("a game", ["a", "b"])
    told(notices, "psst", to=("b",))
    assert not notices.next("a")
    assert notices.next("b")


@pytest.mark.parametrize(
    ("to", "why"), [("#talk", "a game has no channel '#talk'"), (("a", "z", "y"), "nobody here is called z, y")]
)
def test_whom_it_cannot_reach_is_said(to: str | tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Notices("a game", ["a"]).readers(Say(text="hello", to=to))


def test_nobody_comes_twice() -> None:
    notices = Notices("a game", ["a"])
    notices.admit("b")
    with pytest.raises(ValueError, match="b has been here before"):
        notices.admit("b")


def test_a_setting_is_changed_in_a_copy() -> None:
    pie = Pie()
    assert changed(pie, Set(key="size", value=20), Pie.changeable, "a pie") == Pie(size=20)
    assert pie.size == 10


def test_what_is_set_for_good_is_named() -> None:
    with pytest.raises(ValueError, match=r"a pie can change \['size'\] while running, not 'cuts'"):
        changed(Pie(), Set(key="cuts", value=3), Pie.changeable, "a pie")
    with pytest.raises(ValidationError, match="size"):
        changed(Pie(), Set(key="size", value="round"), Pie.changeable, "a pie")
