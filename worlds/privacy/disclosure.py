"""Disclosure: a recipient asks, a holder answers; who may be told what is set by norms, who asks is not seen.

Left out on purpose: third parties, tools, and words of the holder. In each pair one agent is on the move at any time,
so nothing depends on how fast anybody thinks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from msgspec import to_builtins
from pydantic import BaseModel

from sim.answers import illegal
from sim.streams import Streams
from sim.types import (
    APPLIED,
    JSON,
    Action,
    AgentId,
    Audience,
    Change,
    Choice,
    Fact,
    FactId,
    Form,
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
from worlds.notices import Notices
from worlds.privacy.conversation import Conversation, Exchange, Recipient, SpokenAct, deal
from worlds.privacy.outcomes import METRICS
from worlds.privacy.settings import DisclosureParams
from worlds.privacy.words import news, rules, words


def _values(seat: Seat, items: Mapping[str, str]) -> dict[str, str]:
    """The holder's items. Raises ValueError where one is missing."""
    if missing := [item for item in items if not isinstance(seat.private.get(item), str | int)]:
        raise ValueError(
            f"{seat.agent} holds no {', '.join(missing)}: give a text or a whole number as a private value"
        )
    return {item: str(seat.private[item]) for item in items}


def _key(view: Mapping[str, JSON]) -> str:
    """The information state: the type of whoever moves, and what it has seen. Values play no part in the game."""
    private = [view.get(part) for part in ("role", "intent", "verified", "wants")]
    return json.dumps([*private, [list(one.values()) for one in view["history"]], view["news"]])


class Disclosure:
    """Pairs of a holder, who knows things, and a recipient, who asks for them; rewards come at the end of a pair."""

    Params: ClassVar[type[BaseModel]] = DisclosureParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, params: DisclosureParams) -> None:
        self._params = params
        self._rules = {"holder": rules("holder", params), "recipient": rules("recipient", params)}

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Pair the holders with the recipients in cast order. Raises ValueError where one is left over."""
        self._streams = streams
        self._pairs: list[Conversation] = []
        self._at: dict[AgentId, int] = {}
        self._holders: list[tuple[AgentId, dict[str, str]]] = []
        self._recipients: list[tuple[AgentId, Recipient]] = []
        self._arrived = 0
        self._notices = Notices("disclosure")
        self._facts = 0
        facts = [fact for seat in seats for fact in self._enter(seat)]
        if self._holders or self._recipients or not facts:
            raise ValueError("disclosure is played in pairs: as many seats of role holder as of role recipient")
        return Outcome(facts=facts, wakes=[Wake(agent=pair.recipient, tick=0) for pair in self._pairs])

    def _enter(self, seat: Seat) -> list[Fact]:
        """Let an agent wait for one of the other role, or open a pair with the first who waits."""
        if seat.role == "holder":
            values = _values(seat, self._params.items)
            self._notices.admit(seat.agent)
            self._holders.append((seat.agent, values))
        elif seat.role == "recipient":
            who = deal(self._arrived, seat, self._params, self._streams)
            self._notices.admit(seat.agent)
            self._recipients.append((seat.agent, who))
            self._arrived += 1
        else:
            raise ValueError(f"{seat.agent}: the role is holder or recipient, not {seat.role!r}")
        if not self._holders or not self._recipients:
            return []
        (holder, values), (recipient, who) = self._holders.pop(0), self._recipients.pop(0)
        number = len(self._pairs)
        self._pairs.append(Conversation(holder, recipient, values, who))
        self._at |= {holder: number, recipient: number}
        return [self._fact("pair", (holder, recipient), {"pair": number, "holder": holder, "recipient": recipient})]

    def _fact(
        self, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = "", answers: tuple[FactId, ...] = ()
    ) -> Fact:
        self._facts += 1
        return Fact(id=self._facts - 1, kind=kind, actor=actor, audience=to, data=data, answers=answers)

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question to whoever has to ask or to answer; None for everybody else."""
        pair = self._moves(agent)
        if pair is None:
            return None
        notices = self._notices.next(agent)
        view = self._view(pair, [text for _, text in notices])
        return Turn(
            agent=agent,
            now=now,
            view=view,
            format=self._format(pair),
            default=self._default(pair),
            render=words,
            recap=news,
            rules=self._rules[pair.mover],
            shows=(*pair.facts, *(fact for fact, _ in notices)),
            key=_key(view),
        )

    def _moves(self, agent: AgentId) -> Conversation | None:
        """The agent's conversation, where it has to act in it."""
        pair = self._pairs[self._at[agent]] if agent in self._at else None
        return pair if pair and not pair.over and agent == getattr(pair, pair.mover) else None

    def _view(self, pair: Conversation, notices: list[str]) -> dict[str, JSON]:
        """What is private to whoever moves, and what both have seen."""
        params, who = self._params, pair.who
        told = {item: pair.values[item] for item in pair.shared}
        private: dict[str, JSON] = (
            {"values": dict(pair.values)}
            if pair.asked
            else {"intent": who.intent, "verified": who.verified, "wants": list(who.wants), "values": told}
        )
        return {
            "role": pair.mover,
            **private,
            "norms": dict(params.items),
            "exchange": len(pair.exchanges) + (not pair.asked),
            "exchanges": params.exchanges,
            "asked": pair.asked.item if pair.asked else None,
            "found": pair.found,
            "told": list(told),
            "history": [to_builtins(one) for one in pair.exchanges],
            "news": notices,
        }

    def _format(self, pair: Conversation) -> Choice | Form:
        options = pair.options()
        if pair.asked or not self._params.messages:
            return Choice(options=options)
        longest = {"maxLength": self._params.message_chars}
        return Form(models=(SpokenAct,), narrow={"SpokenAct.act": {"enum": options}, "SpokenAct.message": longest})

    def _default(self, pair: Conversation) -> JSON:
        """Who says nothing tells nothing and asks for nothing."""
        if pair.asked:
            return "refuse"
        return {"act": "leave", "message": ""} if self._params.messages else "leave"

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Apply acts and answers; each concerns its own pair only."""
        facts: list[Fact] = []
        wakes: list[Wake] = []
        results: list[Result] = []
        rewards: dict[AgentId, float] = {}
        ended: dict[AgentId, Literal["terminated", "truncated"]] = {}
        for action in actions:
            pair = self._moves(action.agent)
            refusal = "not your turn" if pair is None else illegal(self._format(pair), action.answer)
            results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if pair is None or refusal:
                continue
            self._notices.read(action.agent, action.shows)
            happened = self._reply(pair, action) if pair.asked else self._act(pair, action)
            pair.facts += [fact.id for fact in happened]
            facts += happened
            pair.over = pair.over or self._ending(pair)
            if pair.over:
                facts.append(self._end(pair))
                rewards |= pair.payoffs(self._params)
                ended |= {pair.holder: "terminated", pair.recipient: "terminated"}
            else:
                wakes.append(Wake(agent=getattr(pair, pair.mover), tick=now))
        return Outcome(facts=facts, wakes=wakes, results=results, rewards=rewards, ended=ended)

    def _act(self, pair: Conversation, action: Action) -> list[Fact]:
        """The recipient asks for an item, has itself verified, or leaves."""
        said = action.answer if isinstance(action.answer, dict) else {"act": action.answer, "message": ""}
        act, _, item = said["act"].partition(" ")
        message = said["message"].strip()
        if act == "leave":
            pair.over = "left"
            return []
        if act == "verify":
            pair.exchanges.append(Exchange(act, message=message, found=pair.who.standing))
            return [self._verification(pair, action.agent)]
        pair.exchanges.append(Exchange(act, item, message))
        text = {"text": message} if message else {}
        data = self._about(pair) | {"item": item, "manner": act} | text
        return [self._fact("ask", (pair.holder, pair.recipient), data, action.agent, tuple(pair.facts[-1:]))]

    def _reply(self, pair: Conversation, action: Action) -> list[Fact]:
        """The holder shares, refuses, or has the recipient verified."""
        asked, verify = pair.exchanges[-1], action.answer == "verify"
        pair.exchanges[-1] = replace(asked, answer=action.answer, found=pair.who.standing if verify else "")
        value = {"value": pair.values[asked.item]} if action.answer == "share" else {}
        data = self._about(pair) | {"item": asked.item, "answer": action.answer} | value
        answer = self._fact("answer", (pair.holder, pair.recipient), data, action.agent, (pair.facts[-1],))
        return [answer, self._verification(pair, "", (answer.id,))] if verify else [answer]

    def _verification(self, pair: Conversation, actor: AgentId, answers: tuple[FactId, ...] = ()) -> Fact:
        data = self._about(pair) | {"verified": pair.who.verified}
        return self._fact("verification", (pair.holder, pair.recipient), data, actor, answers)

    def _about(self, pair: Conversation) -> dict[str, JSON]:
        return {"pair": self._at[pair.holder], "exchange": len(pair.exchanges)}

    def _ending(self, pair: Conversation) -> Literal["", "served", "exchanges"]:
        if set(pair.who.wants) <= pair.shared.keys():
            return "served"
        return "exchanges" if not pair.asked and len(pair.exchanges) >= self._params.exchanges else ""

    def _end(self, pair: Conversation) -> Fact:
        """What came of it, with the type of the recipient: metrics need it, and nobody is asked any more."""
        protected = pair.protected(self._params)
        data: dict[str, JSON] = {
            "pair": self._at[pair.holder],
            "holder": pair.holder,
            "recipient": pair.recipient,
            "reason": pair.over,
            "exchanges": len(pair.exchanges),
            **pair.who.json(),
            "told": list(pair.shared),
            "leaked": [item for item in pair.shared if item in protected],
            "payoffs": pair.payoffs(self._params),
        }
        return self._fact("outcome", (pair.holder, pair.recipient), data, answers=tuple(pair.facts[-1:]))

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Leave ends a conversation; a holder and a recipient who Join make a new pair. Raises ValueError else."""
        match change:
            case Say():
                return self._say(change)
            case Set():
                raise ValueError(f"disclosure lets nothing be set while running, so not {change.key!r}")
            case Join():
                return self._join(now, change.seat)
            case Leave():
                return self._leave(change.agent)

    def _say(self, say: Say) -> Outcome:
        readers = self._notices.readers(say)
        fact = self._fact("message", say.to, {"text": say.text})
        self._notices.post(readers, fact.id, say.text)
        return Outcome(facts=[fact])

    def _join(self, now: int, seat: Seat) -> Outcome:
        facts = self._enter(seat)
        wakes = [Wake(agent=fact.data["recipient"], tick=now) for fact in facts]
        return Outcome(facts=facts, wakes=wakes)

    def _leave(self, agent: AgentId) -> Outcome:
        self._notices.known([agent])
        self._holders = [waiting for waiting in self._holders if waiting[0] != agent]
        self._recipients = [waiting for waiting in self._recipients if waiting[0] != agent]
        if agent not in self._at or self._pairs[self._at[agent]].over:
            return Outcome()
        pair = self._pairs[self._at[agent]]
        pair.over = "gone"
        partner = pair.recipient if agent == pair.holder else pair.holder
        return Outcome(facts=[self._end(pair)], rewards=pair.payoffs(self._params), ended={partner: "terminated"})

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        return {
            "params": self._params.model_dump(mode="json"),
            "pairs": [pair.json() for pair in self._pairs],
            "at": dict(self._at),
            "holders": [[agent, dict(values)] for agent, values in self._holders],
            "recipients": [[agent, who.json()] for agent, who in self._recipients],
            "arrived": self._arrived,
            "unread": self._notices.state(),
            "facts": self._facts,
        }
