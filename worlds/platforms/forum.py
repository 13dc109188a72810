"""A forum: communities, posts, comments, votes and direct messages, at the scale of a population.

Members come by a daily rhythm, read a page of the feed and do one thing. Nothing here loops over an
audience: posts wait on their community's shelf until a member comes and pulls them. All draws are keyed
by member, so one more member changes nobody else's visits.

Left out: following people, editing, search, and votes on comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel

from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Join,
    Leave,
    Metric,
    Outcome,
    Result,
    Say,
    Seat,
    Set,
    Turn,
    Wake,
)
from worlds.happened import Happened
from worlds.platforms.accounts import Account
from worlds.platforms.acts import NOTHING, offer
from worlds.platforms.board import Board
from worlds.platforms.feed import Line, Topic, page
from worlds.platforms.participation import active_share, posting_gini, rates, reciprocity, replies_per_post
from worlds.platforms.posters import Poster
from worlds.platforms.rhythm import HOURS, Rhythm, cosine, factor
from worlds.platforms.settings import JOINED, ForumParams
from worlds.platforms.words import RULES, news, words

__all__ = ["Forum", "Poster"]

LINES = 3
"""Messages, replies and notices shown in one turn, of each."""
SUGGESTIONS = 3
"""Communities proposed for joining in one turn."""


class Forum:
    """The world. Rewards are votes: +1 and −1 to the author of the post."""

    Params: ClassVar[type[BaseModel]] = ForumParams
    metrics: ClassVar[tuple[Metric, ...]] = (rates, replies_per_post, posting_gini, reciprocity, active_share)
    changeable: ClassVar[frozenset[str]] = frozenset(
        {"visits", "feed", "thread", "opens", "notify", "delay", "max_chars"}
    )

    def __init__(self, params: ForumParams) -> None:
        self._board = Board(params)
        self._rhythm = Rhythm.of(params.hours or cosine(params.peak, params.swing), params.day, params.starts)
        self._streams = Streams(0)

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Seat everybody in their communities and draw the first visits."""
        self._streams = streams
        self._board = Board(self._board.params)
        happened = Happened()
        for seat in seats:
            self._seat(0, seat, happened)
        return happened.outcome()

    # --- what a member sees ----------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """A page of the feed, what was written to the member, and the thread it has opened."""
        board = self._board
        account = board.accounts.get(agent)
        if account is None:
            return None
        opened = board.topics[account.opened] if board.readable(account, account.opened) else None
        feed = page((board.shelves[name] for name in account.communities), account.fresh, board.params.feed)
        feed = [topic for topic in feed if topic is not opened]
        notices = [n for n in board.notices if n.fact > account.noticed and _reaches(n.audience, account)][:LINES]
        replies = [line for line in account.replies if board.readable(account, line.topic)][:LINES]
        messages = account.inbox[:LINES]
        comments = opened.last[-board.params.thread :] if opened else []
        lines = [*messages, *replies, *comments]
        topics = [opened, *feed] if opened else feed
        thread = _item(opened, account) | {"comments": [_said(line) for line in comments]} if opened else None
        view = {
            "you": agent,
            "time": self._clock(now),
            "communities": list(account.communities),
            "karma": account.karma,
            "note": account.note,
            "notices": [notice.text for notice in notices],
            "messages": [_said(line) for line in messages],
            "replies": [_said(line) | {"post": line.topic} for line in replies],
            "thread": thread,
            "feed": [_item(topic, account) | {"comments": topic.comments} for topic in feed],
            "people": self._people(account, lines, topics),
            "joinable": [] if opened else self._suggest(account),
            "opens": board.params.opens - account.opens,
            "max_chars": board.params.max_chars,
        }
        shown = (*(n.fact for n in notices), *(line.fact for line in lines), *(topic.fact for topic in topics))
        return Turn(
            agent=agent,
            now=now,
            view=view,
            format=offer(view),
            default=NOTHING,
            render=words,
            recap=news,
            rules=RULES,
            shows=tuple(dict.fromkeys(shown)),
            thread=account.chain,
        )

    def _clock(self, now: int) -> str:
        params = self._board.params
        days, rest = divmod(now + params.starts, params.day)
        minutes = rest * HOURS * 60 // params.day
        return f"day {days + 1}, {minutes // 60:02}:{minutes % 60:02}"

    def _people(self, account: Account, lines: Sequence[Line], topics: Sequence[Topic]) -> list[AgentId]:
        """Whom the member can write to: those in view and its latest correspondents, where still here."""
        met = (*(line.author for line in lines), *(topic.author for topic in topics), *reversed(account.contacts))
        return [who for who in dict.fromkeys(met) if who != account.agent and who in self._board.accounts]

    def _suggest(self, account: Account) -> list[str]:
        """A few open communities, drawn anew for each chain of turns."""
        names = self._board.open
        if len(account.communities) >= JOINED or not names:
            return []
        draws = (self._streams.choice(names, "suggest", account.agent, account.chain, i) for i in range(SUGGESTIONS))
        return [name for name in dict.fromkeys(draws) if name not in account.communities]

    # --- what members do -------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Perform the acts, in drawn order: nobody's place in the cast pays."""
        board, happened = self._board, Happened()
        results: dict[AgentId, Result] = {}
        for action in sorted(actions, key=lambda action: self._streams.bits("order", now, action.agent)):
            account = board.accounts[action.agent]
            account.mark(action.shows)
            account.noticed = max((n.fact for n in board.notices if n.fact in account.read), default=account.noticed)
            account.note = board.perform(now, account, action.answer, happened)
            results[action.agent] = Result(status="stale", reason=account.note) if account.note else APPLIED
            self._follow(now, account, action, happened)
        happened.results = [results[action.agent] for action in actions]
        return happened.outcome()

    def _follow(self, now: int, account: Account, action: Action, happened: Happened) -> None:
        """The chain goes on after an `open`, else it ends; a visit that has been made is followed by the next."""
        if action.answer["act"] == "open" and not account.note:
            happened.wakes.append(Wake(agent=account.agent, tick=now))
        else:
            account.chain += 1
            account.opens = 0
            account.opened = ""
        if action.seen >= account.next:
            self._visit(now, account, happened)

    def _visit(self, now: int, account: Account, happened: Happened) -> None:
        """Draw the next visit. Those that would have come while the member was still here are skipped."""
        if account.activity == 0:
            return
        rate = self._board.params.visits * account.activity
        while account.next <= now:
            account.visit += 1
            uniform = self._streams.draw("visit", account.agent, account.visit)
            account.next = self._rhythm.after(account.next, rate, uniform)
        happened.wakes.append(Wake(agent=account.agent, tick=account.next))

    # --- who is there, and interventions -----------------------------------------------------------

    def _seat(self, now: int, seat: Seat, happened: Happened) -> None:
        """Open an account: its activity, its communities and its first visit."""
        board, params = self._board, self._board.params
        drawn = factor(params.spread, self._streams.draw("activity", seat.agent))
        own: JSON = seat.private.get("activity", 1.0)
        if isinstance(own, bool) or not isinstance(own, int | float) or own < 0:
            raise ValueError(f"{seat.agent}: the private value activity is a number of at least 0, not {own!r}")
        account = Account(seat.agent, drawn * own, now, noticed=board.facts - 1)
        board.accounts[seat.agent] = account
        given = [f"#{name}" for name, who in params.members.items() if seat.agent in who or seat.role in who]
        others = [name for name in self._streams.shuffled(board.open, "communities", seat.agent) if name not in given]
        for community in [*given, *others[: max(0, params.joins - len(given))]]:
            board.enter(account, community, happened)
        self._visit(now, account, happened)

    def change(self, now: int, change: Change) -> Outcome:
        """Say: a notice. Set: a parameter, durations in ticks. Join and Leave: a member comes or goes for good."""
        board, happened = self._board, Happened()
        match change:
            case Say(text=text, to=to):
                board.notify(text, to, happened)
                named = to if isinstance(to, tuple) else ()
                happened.wakes += [Wake(agent=agent, tick=now) for agent in named if agent in board.accounts]
            case Set(key=key, value=value):
                board.params = ForumParams.model_validate({**board.params.model_dump(), key: value})
                board.fact(happened, "set", "", (), key=key, value=value)
            case Join(seat=seat):
                board.fact(happened, "arrive", seat.agent, ALL)
                self._seat(now, seat, happened)
            case Leave(agent=agent):
                board.remove(agent, happened)
        return happened.outcome()

    def state(self) -> JSON:
        """Parameters, counters, accounts, posts on the shelves and notices."""
        return self._board.state()


def _reaches(audience: Audience, account: Account) -> bool:
    """Whether a member is in an audience."""
    if isinstance(audience, tuple):
        return account.agent in audience
    return audience == ALL or audience in account.communities


def _said(line: Line) -> dict[str, JSON]:
    return {"by": line.author, "text": line.text}


def _item(topic: Topic, account: Account) -> dict[str, JSON]:
    """A post as the member sees it."""
    return {
        "post": topic.id,
        "community": topic.community,
        "by": topic.author,
        "text": topic.text,
        "score": topic.score,
        "new": topic.fact not in account.read,
        "votable": topic.votable(account.agent),
    }
