"""The state of a forum and the rules of what members do in it.

An act either happens, and leaves a fact, or comes to nothing and says why: the forum may have changed
since the member looked. No rule loops over an audience.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from sim.types import ALL, JSON, AgentId, Audience, Fact, FactId, Wake
from worlds.happened import Happened
from worlds.platforms.accounts import Account
from worlds.platforms.feed import Line, Shelf, Topic, hot
from worlds.platforms.settings import JOINED, ForumParams

NOTICES = 10
"""Notices kept for members who have not come yet."""


class Notice(NamedTuple):
    """Something said from outside."""

    fact: FactId
    text: str
    audience: Audience


Rule: TypeAlias = Callable[[int, Account, JSON, Happened], str]
"""Performs an act at a tick and gives the reason why it could not be done, or nothing."""


class Board:
    """Everything a forum holds but its clock."""

    def __init__(self, params: ForumParams) -> None:
        self.params = params
        self.facts = 0
        """Facts so far."""
        self.posts = 0
        """Posts so far."""
        self.accounts: dict[AgentId, Account] = {}
        self.topics: dict[str, Topic] = {}
        """Posts on a shelf, by id."""
        self.shelves = {f"#{name}": Shelf() for name in params.communities}
        self.open = [f"#{name}" for name in params.communities if name not in params.closed]
        self.notices: list[Notice] = []
        self._rules: dict[str, Rule] = {
            "post": self._post,
            "comment": self._comment,
            "vote": self._vote,
            "message": self._message,
            "open": self._read,
            "join": self._join,
            "leave": self._leave,
            "pass": self._pass,
        }

    def perform(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        """Perform an act; the reason why it came to nothing, or an empty text."""
        return self._rules[answer["act"]](now, account, answer, happened)

    def readable(self, account: Account, topic: str) -> bool:
        """Whether a post is on a shelf of the member's."""
        there = self.topics.get(topic)
        return there is not None and there.community in account.communities

    def enter(self, account: Account, community: str, happened: Happened) -> None:
        """Make a member of a community."""
        account.communities.append(community)
        self.fact(happened, "join", account.agent, ALL, channel=community)

    def remove(self, agent: AgentId, happened: Happened) -> None:
        """Close an account; what it wrote stays."""
        for community in self.accounts.pop(agent).communities:
            self.fact(happened, "leave", agent, ALL, channel=community)
        self.fact(happened, "depart", agent, ALL)

    def notify(self, text: str, audience: Audience, happened: Happened) -> None:
        """Put up a notice for an audience."""
        notice = Notice(self.fact(happened, "notice", "", audience, text=text), text, audience)
        self.notices = [*self.notices, notice][-NOTICES:]

    def fact(
        self,
        happened: Happened,
        kind: str,
        actor: AgentId,
        audience: Audience,
        answers: tuple[FactId, ...] = (),
        **data: JSON,
    ) -> FactId:
        """Something has happened; gives its id."""
        fact = Fact(id=self.facts, kind=kind, actor=actor, audience=audience, data=data, answers=answers)
        self.facts += 1
        happened.facts.append(fact)
        return fact.id

    def state(self) -> JSON:
        """Parameters, counters, accounts, posts on the shelves and notices."""
        return {
            "params": self.params.model_dump(mode="json"),
            "facts": self.facts,
            "posts": self.posts,
            "accounts": [account.state() for account in self.accounts.values()],
            "topics": [topic.state() for topic in self.topics.values()],
            "shelves": {
                name: {"topics": [topic.id for topic in shelf.topics], "newest": list(shelf.newest)}
                for name, shelf in self.shelves.items()
            },
            "notices": [
                [n.fact, n.text, n.audience if isinstance(n.audience, str) else list(n.audience)] for n in self.notices
            ],
        }

    # --- the acts ---------------------------------------------------------------------------------

    def _post(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        community, text = answer["community"], answer["text"]
        if reason := self._unfit(text) or self._outside(account, community):
            return reason
        self.posts += 1
        number = self.posts
        fact = self.fact(happened, "post", account.agent, community, post=f"p{number}", community=community, text=text)
        score = hot(0, now, self.params.decade)
        topic = Topic(number, fact, community, account.agent, text, now, score)
        self.topics[topic.id] = topic
        account.mark([fact])
        if fallen := self.shelves[community].add(topic):
            del self.topics[fallen.id]
        return ""

    def _comment(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        topic, text = self.topics.get(answer["post"]), answer["text"]
        if topic is None:
            return f"{answer['post']} is archived"
        if reason := self._unfit(text) or self._outside(account, topic.community):
            return reason
        fact = self.fact(
            happened,
            "comment",
            account.agent,
            topic.community,
            (topic.fact,),
            post=topic.id,
            author=topic.author,
            text=text,
        )
        line = Line(fact, account.agent, text, topic.id)
        topic.comments += 1
        topic.last = [*topic.last, line][-self.params.thread :]
        account.mark([fact])
        author = self.accounts.get(topic.author)
        if author and author is not account:
            author.answered(line)
        return ""

    def _vote(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        topic = self.topics.get(answer["post"])
        if topic is None:
            return f"{answer['post']} is archived"
        if not topic.votable(account.agent):
            return f"you cannot vote on {topic.id}, or have voted"
        if reason := self._outside(account, topic.community):
            return reason
        way = 1 if answer["way"] == "up" else -1
        # Only the voter knows who voted how; everybody else sees the score.
        self.fact(happened, "vote", account.agent, (account.agent,), (topic.fact,), post=topic.id, way=way)
        topic.votes[account.agent] = way
        topic.score += way
        self.shelves[topic.community].rerank(topic, hot(topic.score, topic.created, self.params.decade))
        if author := self.accounts.get(topic.author):
            author.karma += way
            happened.rewards[author.agent] = happened.rewards.get(author.agent, 0.0) + way
        return ""

    def _message(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        to, text = self.accounts.get(answer["to"]), answer["text"]
        if to is None or to is account:
            return f"{answer['to']} is not here"
        if reason := self._unfit(text):
            return reason
        fact = self.fact(happened, "message", account.agent, (account.agent, to.agent), to=to.agent, text=text)
        to.receive(Line(fact, account.agent, text))
        account.meet(to.agent)
        to.meet(account.agent)
        if self.params.notify != "no":
            interrupt = self.params.notify == "interrupt"
            happened.wakes.append(Wake(agent=to.agent, tick=now + self.params.delay, interrupt=interrupt))
        return ""

    def _read(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        if not self.readable(account, answer["post"]):
            return f"{answer['post']} is archived"
        if account.opens >= self.params.opens:
            return "you have opened enough for one visit"
        account.opens += 1
        account.opened = answer["post"]
        return ""

    def _join(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        community = answer["community"]
        if community in account.communities or community not in self.open or len(account.communities) >= JOINED:
            return f"you cannot join {community}"
        self.enter(account, community, happened)
        return ""

    def _leave(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        community = answer["community"]
        if reason := self._outside(account, community):
            return reason
        if len(account.communities) == 1:
            return f"{community} is your last community"
        account.communities.remove(community)
        self.fact(happened, "leave", account.agent, ALL, channel=community)
        return ""

    def _pass(self, now: int, account: Account, answer: JSON, happened: Happened) -> str:
        return ""

    def _unfit(self, text: str) -> str:
        if not text.strip():
            return "the text is empty"
        most = self.params.max_chars
        return "" if len(text) <= most else f"the text is longer than {most} characters"

    def _outside(self, account: Account, community: str) -> str:
        return "" if community in account.communities else f"you are not in {community}"
