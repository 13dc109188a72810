"""Opinions: agents on a graph say what they think, from −1 to 1, and see what those they listen to said last.

Who is asked in one turn answers at the same time as the others: an answer is seen from the next turn on, so who thinks
faster moves nobody. Left out on purpose: links that change, an outside world that proves an opinion right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from pydantic import BaseModel

from sim.answers import illegal
from sim.streams import Streams
from sim.types import (
    ALL,
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Fact,
    FactId,
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
from worlds.changes import changed
from worlds.happened import Happened
from worlds.notices import Notices
from worlds.opinions.answers import asked
from worlds.opinions.graphs import listening
from worlds.opinions.outcomes import METRICS
from worlds.opinions.settings import OpinionsParams, private
from worlds.opinions.words import news, rules, words

NOBODY: Audience = ()
"""Of facts that the record keeps and nobody sees."""


class Statement(NamedTuple):
    """What an agent said last."""

    opinion: float
    text: str
    fact: FactId


class Opinions:
    """One society of all seats, without rewards."""

    Params: ClassVar[type[BaseModel]] = OpinionsParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"rounds", "tolerance", "patience", "pause"})

    def __init__(self, params: OpinionsParams) -> None:
        self._given = params

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Link all, put their first opinions on record, ask. Raises ValueError where the cast does not fit."""
        self._params = self._given
        self._streams = streams
        self._agents = [seat.agent for seat in seats]
        self._roles = {seat.agent: seat.role for seat in seats}
        if self._params.feelings and len(set(self._roles.values())) != 2:
            raise ValueError("feelings: they are felt towards two roles, and the cast has another number of them")
        self._listens = listening(self._params, seats, streams)
        self._link()
        self._start = {
            seat.agent: private(seat, "opinion", 2 * streams.draw("opinion", seat.agent) - 1, -1) for seat in seats
        }
        self._stubborn = {seat.agent: private(seat, "stubbornness", 0.0, 0) for seat in seats}
        self._notices = Notices("a society of opinions", self._agents)
        self._rules = rules(self._params)
        self._format = asked(self._params.message_chars, self._params.feelings)
        self._said: dict[AgentId, Statement] = {}
        self._new: dict[AgentId, Statement] = {}
        self._asked: tuple[AgentId, ...] = ()
        self._met: tuple[AgentId, ...] = ()
        self._round, self._turn, self._opens = 0, 0, 0
        self._moved, self._quiet, self._facts = 0.0, 0, 0
        happened = Happened()
        links = [[agent, other] for agent in self._agents for other in self._listens[agent]]
        self._fact(happened, "graph", NOBODY, {"agents": list(self._agents), "listens": links})
        for agent in self._agents:
            self._said[agent] = self._stated(happened, agent, self._start[agent], "")
        self._round = 1
        if self._agents:
            self._ask(0, happened)
        return happened.outcome()

    def _link(self) -> None:
        """Who hears whom, and which pairs can meet, as the links are now."""
        place = {agent: n for n, agent in enumerate(self._agents)}
        hear: dict[AgentId, list[AgentId]] = {agent: [agent] for agent in self._agents}
        pairs: dict[tuple[AgentId, AgentId], None] = {}
        for agent, others in self._listens.items():
            for other in others:
                hear[other].append(agent)
                pairs[(agent, other) if place[agent] < place[other] else (other, agent)] = None
        everybody = len(self._agents)
        self._hear: dict[AgentId, Audience] = {
            agent: ALL if len(each) == everybody else tuple(each) for agent, each in hear.items()
        }
        self._pairs = list(pairs)

    def _fact(self, happened: Happened, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = "") -> FactId:
        happened.facts.append(Fact(id=self._facts, kind=kind, actor=actor, audience=to, data=data))
        self._facts += 1
        return self._facts - 1

    def _stated(self, happened: Happened, agent: AgentId, opinion: float, text: str) -> Statement:
        """A statement to all who listen, of the round in progress; before the first it is round 0."""
        data = {"about": self._params.about, "round": self._round, "opinion": opinion, "text": text}
        return Statement(opinion, text, self._fact(happened, "opinion", self._hear[agent], data, agent))

    def _ask(self, opens: int, happened: Happened) -> None:
        """Open the next turn: all, a pair of neighbours, or one."""
        self._turn, self._opens, self._new = self._turn + 1, opens, {}
        self._asked = self._drawn()
        happened.wakes += [Wake(agent=agent, tick=opens) for agent in self._asked]
        if not self._asked:
            self._end("alone", happened)

    def _drawn(self) -> tuple[AgentId, ...]:
        """Who is asked in this turn; nobody where no pair is left."""
        about = (self._round, self._turn)
        if self._params.schedule == "synchronous":
            return tuple(self._agents)
        if self._params.schedule == "agent":
            return (self._streams.choice(self._agents, "agent", *about),)
        if not self._pairs:
            return ()
        self._met = one, other = self._streams.choice(self._pairs, "pair", *about)
        return tuple(me for me, them in ((one, other), (other, one)) if them in self._listens[me])

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question of this turn; None where the agent is not asked, or has answered."""
        if agent not in self._asked or agent in self._new or now < self._opens:
            return None
        notices = self._notices.next(agent)
        own, others = self._said[agent], self._heard(agent)
        return Turn(
            agent=agent,
            now=now,
            view=self._view(agent, others, [text for _, text in notices]),
            format=self._format,
            default=self._as_before(own.opinion),
            render=words,
            recap=news,
            rules=self._rules,
            shows=(own.fact, *(self._said[other].fact for other in others), *(fact for fact, _ in notices)),
        )

    def _heard(self, agent: AgentId) -> tuple[AgentId, ...]:
        """Those whose last statements the agent sees in this turn: in a pair the other only."""
        if self._params.schedule == "pair":
            return tuple(other for other in self._met if other in self._listens[agent])
        return self._listens[agent]

    def _view(self, agent: AgentId, others: Sequence[AgentId], notices: list[str]) -> dict[str, JSON]:
        params = self._params
        weights = params.weights.get(agent)
        return {
            "round": self._round,
            "me": agent,
            "about": params.about,
            "ends": list(params.ends),
            "opinion": self._said[agent].opinion,
            "start": self._start[agent],
            "stubbornness": self._stubborn[agent],
            "others": [[other, self._said[other].opinion, self._said[other].text] for other in others],
            "weights": weights and [weights.get(each, 0.0) for each in (agent, *others)],
            "camp": self._roles[agent] if params.feelings else None,
            "camps": [self._roles[other] for other in others] if params.feelings else None,
            "chars": params.message_chars,
            "news": notices,
        }

    def _as_before(self, opinion: float) -> JSON:
        """The answer of an agent that gives none: it thinks what it thought, and says and feels nothing."""
        params = self._params
        text = {"text": ""} if params.message_chars else {}
        return {**text, "opinion": opinion, **({"own_camp": 0.0, "other_camp": 0.0} if params.feelings else {})}

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Take answers in; go on where all who were asked have answered."""
        happened = Happened()
        for action in actions:
            refusal = self._stale(action)
            happened.results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if not refusal:
                self._take(action, happened)
        if self._asked and len(self._new) == len(self._asked):
            self._close(now, happened)
        return happened.outcome()

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        agent = action.agent
        if agent not in self._asked or agent in self._new or action.seen < self._opens:
            return "that is not asked now"
        return illegal(self._format, action.answer) or ""

    def _take(self, action: Action, happened: Happened) -> None:
        agent, given = action.agent, action.answer
        self._notices.read(agent, action.shows)
        text = given.get("text", "")
        self._new[agent] = self._stated(happened, agent, float(given["opinion"]), text)
        if self._params.feelings and action.meant:
            for role in sorted(set(self._roles.values())):
                felt = given["own_camp" if role == self._roles[agent] else "other_camp"]
                data = {"round": self._round, "toward": role, "feeling": float(felt)}
                self._fact(happened, "feeling", (agent,), data, agent)

    def _close(self, now: int, happened: Happened) -> None:
        """The turn is over: what was said is seen from now on."""
        moves = [abs(new.opinion - self._said[agent].opinion) for agent, new in self._new.items()]
        self._moved = max([self._moved, *moves])
        self._said |= self._new
        if self._turn < self._params.turns(len(self._agents)):
            self._ask(now + self._params.pause, happened)
            return
        self._quiet = self._quiet + 1 if self._moved < self._params.tolerance else 0
        if self._quiet >= self._params.patience:
            self._end("settled", happened)
        elif self._round >= self._params.rounds:
            self._end("rounds", happened)
        else:
            self._round, self._turn, self._moved = self._round + 1, 0, 0.0
            self._ask(now + self._params.pause, happened)

    def _end(self, reason: str, happened: Happened) -> None:
        self._fact(happened, "end", ALL, {"reason": reason, "round": self._round})
        happened.ended |= dict.fromkeys(self._agents, "terminated")
        self._asked, self._new = (), {}

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set; Leave, after which the others go on. Raises ValueError for what cannot be done."""
        happened = Happened()
        match change:
            case Say():
                readers = self._notices.readers(change)
                fact = self._fact(happened, "notice", change.to, {"text": change.text})
                self._notices.post(readers, fact, change.text)
            case Set():
                self._params = changed(self._params, change, self.changeable, "a society of opinions")
            case Join():
                raise ValueError("nobody can join a society of opinions: who listens to whom is set")
            case Leave():
                self._leave(now, change.agent, happened)
        return happened.outcome()

    def _leave(self, now: int, agent: AgentId, happened: Happened) -> None:
        self._notices.known([agent])
        if agent not in self._agents:
            return
        going_on = bool(self._asked)
        self._agents.remove(agent)
        del self._listens[agent]
        self._listens = {each: tuple(x for x in others if x != agent) for each, others in self._listens.items()}
        self._link()
        self._asked = tuple(each for each in self._asked if each != agent)
        self._new.pop(agent, None)
        self._fact(happened, "exit", ALL, {"agent": agent, "round": self._round})
        if going_on and self._agents and len(self._new) == len(self._asked):
            self._close(now, happened)

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "agents": list(self._agents),
            "roles": dict(self._roles),
            "listens": {agent: list(others) for agent, others in self._listens.items()},
            "start": dict(self._start),
            "stubbornness": dict(self._stubborn),
            "said": {agent: list(one) for agent, one in self._said.items()},
            "new": {agent: list(one) for agent, one in self._new.items()},
            "asked": list(self._asked),
            "met": list(self._met),
            "round": self._round,
            "turn": self._turn,
            "opens": self._opens,
            "moved": self._moved,
            "quiet": self._quiet,
            "unread": self._notices.state(),
            "facts": self._facts,
        }
