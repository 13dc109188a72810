"""A platform: the feed, one post's thread, and how busy the members are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from sim.record.browse import Filter
from sim.types import RecordedFact
from ui.data import Moment, audience
from ui.facts import fact_line
from ui.markup import Html, chip, clipped, hint, prose, show, tag
from ui.parts import choice, paged

NAME = "Feed"
NEEDS: tuple[frozenset[str], ...] = (frozenset({"post"}),)
PAGE = 8
"""Posts of a page."""
REPLIES = 40
"""Comments of a thread that are shown."""
ANSWERS = 20_000
"""Most comments and votes that are counted for a page of posts."""
ALL = "all communities"


def draw(now: Moment) -> None:
    """A page of posts, newest first, and the thread of one of them."""
    left, right = st.columns([3, 2])
    with left:
        place = int(st.session_state.get("page-feed", 0))
        wanted = _wanted(now)
        posts = _page(now, place, wanted)
        counts = _answers(now, posts)
        if not posts:
            hint("Nobody has posted yet.")
        show(*(_post(now, one, counts[one.fact.id]) for one in posts))
        paged("feed", len(posts) == PAGE)
    with right:
        _thread(now, posts)
        _direct(now)


def _wanted(now: Moment) -> Filter:
    communities = now.run.params.get("communities")
    names = [ALL, *(f"#{one}" for one in communities)] if isinstance(communities, dict) else [ALL]
    chosen = choice("Community", names, "community") if len(names) > 2 else ALL
    return Filter(kinds=("post", "notice"), audience="" if chosen == ALL else chosen)


def _page(now: Moment, place: int, wanted: Filter) -> list[RecordedFact]:
    """Page by page from the newest, each starting where the one before has ended."""
    key = ("feed-starts", now.run.path.name, now.table, wanted)
    starts: dict[object, list[int]] = st.session_state.setdefault("feed-starts", {})
    known = starts.setdefault((*key, now.seq), [now.seq])
    while len(starts) > 8:
        starts.pop(next(iter(starts)))
    while len(known) <= place:
        before = now.last(PAGE, wanted=wanted) if not known else _before(now, known[-1], wanted)
        if not before:
            break
        known.append(before[-1].seq - 1)
    return _before(now, known[min(place, len(known) - 1)], wanted)


def _before(now: Moment, upto: int, wanted: Filter) -> list[RecordedFact]:
    return [one for one in now.run.last_facts(now.table, upto, PAGE, wanted) if now.sees(one)]


def _answers(now: Moment, posts: Sequence[RecordedFact]) -> dict[int, Counter[str]]:
    """Comments, up-votes and down-votes of posts, so far."""
    counts: dict[int, Counter[str]] = {one.fact.id: Counter() for one in posts}
    if posts:
        after = min(one.seq for one in posts)
        for one in now.run.answers_to(now.table, list(counts), ("comment", "vote"), after, now.seq, ANSWERS):
            way = one.fact.data.get("way", 0)
            word = one.fact.kind if one.fact.kind == "comment" else "up" if way > 0 else "down"
            counts[one.fact.answers[0]][word] += 1
    return counts


def _post(now: Moment, one: RecordedFact, counts: Counter[str]) -> Html:
    head = tag(
        "div",
        tag("b", clipped(one.fact.actor, 60) or "from outside"),
        chip(audience(one)),
        tag("span", f"{now.time(one.tick)} · {_name(one)}", cls="dim"),
        cls="row",
    )
    votes = counts["up"] - counts["down"]
    foot = f"{votes:+d} votes" if votes else "0 votes"
    foot += f" · {_many(counts['comment'], 'comment')}"
    return tag("div", head, prose(str(one.fact.data.get("text", ""))), tag("div", foot, cls="dim"), cls="card")


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _name(one: RecordedFact) -> str:
    return clipped(str(one.fact.data.get("post", f"fact {one.fact.id}")), 20)


def _thread(now: Moment, posts: Sequence[RecordedFact]) -> None:
    shown = [one for one in posts if one.fact.kind == "post"]
    by_name = {_name(one): one for one in shown}
    name = choice(
        "Thread",
        list(by_name),
        "post",
        lambda one: f"{one}: {by_name[one].fact.actor}, {by_name[one].fact.data.get('text')}",
    )
    if name is None:
        return
    post = by_name[name]
    replies = now.run.answers_to(now.table, [post.fact.id], ("comment",), post.seq, now.seq, REPLIES)
    show(_post(now, post, _answers(now, [post])[post.fact.id]), *(_reply(now, one) for one in replies))
    if not replies:
        show(tag("div", "Nobody has commented yet.", cls="dim"))


def _reply(now: Moment, one: RecordedFact) -> Html:
    head = tag("div", tag("b", clipped(one.fact.actor, 60)), tag("span", now.time(one.tick), cls="dim"), cls="row")
    return tag("div", head, prose(str(one.fact.data.get("text", ""))), cls="card quiet reply")


def _direct(now: Moment) -> None:
    messages = now.last(5, "message")
    if messages:
        show(tag("h2", "Latest direct messages"), *(fact_line(now, one) for one in messages))
