"""One fact as a line: when, who, what, to whom."""

from __future__ import annotations

from sim.types import RecordedFact
from ui.data import Moment, audience, told
from ui.markup import Html, chip, clipped, joined, prose, tag

OPEN = 240
"""Characters of a fact that stand open in a list."""


def fact_line(now: Moment, fact: RecordedFact) -> Html:
    """A fact in a list."""
    one = fact.fact
    return tag(
        "div",
        tag("span", f"{now.time(fact.tick)} ", cls="dim"),
        tag("b", clipped(one.actor, 60) or "world"),
        " ",
        chip(one.kind),
        " ",
        prose(told(one.data), OPEN),
        tag("span", f" to {clipped(audience(fact), 60)} · fact {one.id}", cls="dim"),
        cls="line",
    )


def bubble(now: Moment, fact: RecordedFact, text: str, right: bool, note: str = "") -> Html:
    """A fact as something said in a conversation, on one of its sides."""
    head = joined(
        tag("b", clipped(fact.fact.actor, 60) or "world"), " ", tag("span", f"{now.time(fact.tick)} {note}", cls="dim")
    )
    return tag("div", head, prose(text, OPEN), cls=f"card quiet {'right' if right else 'left'}")


def notice(now: Moment, fact: RecordedFact, text: str, cls: str = "", note: str = "") -> Html:
    """What the world says between."""
    return tag("div", chip(text, cls), " ", tag("span", f"{now.time(fact.tick)} {note}", cls="dim"), cls="row notice")


def fact_row(now: Moment, one: RecordedFact) -> dict[str, object]:
    """A fact as a row of a table."""
    return {
        "fact": one.fact.id,
        "tick": one.tick,
        "at": now.time(one.tick),
        "kind": one.fact.kind,
        "actor": one.fact.actor,
        "audience": audience(one),
        "data": told(one.fact.data),
    }
