"""Alternating-offers bargaining over a pie, many independent pairs side by side (Rubinstein 1982).

Left out on purpose: outside options and more than two sides at one pie. In each pair one agent is on the move at
any time, so nothing depends on how fast anybody thinks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.quantities import Ticks
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
from worlds.changes import changed
from worlds.negotiation.offers import Negotiation, Offer, SpokenOffer, gains
from worlds.negotiation.outcomes import METRICS
from worlds.negotiation.words import news, rules, words
from worlds.notices import Notices

UNLIMITED = 100_000
"""Rounds after which even a bargaining "without limit" ends with no deal."""


def _discount(value: JSON) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"a discount is a number above 0 and at most 1, not {value!r}")
    return float(value)


class BargainingParams(BaseModel):
    """Settings of the world."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pie: int = Field(default=100, ge=1)
    """Units to divide."""
    discounts: tuple[float, float] = (0.9, 0.9)
    """Of the first and the second mover, in (0, 1]; a seat's private value `discount` goes before it."""
    max_rounds: int | None = Field(default=None, ge=1, le=UNLIMITED)
    """Rounds before it ends with no deal; None: no limit is announced (there is one far away)."""
    complete_information: bool = True
    """Whether each side sees the other's discount."""
    step: int | None = Field(default=None, ge=1)
    """Offers are a choice among its multiples, for minds that can only choose; None: any whole number of units."""
    messages: bool = False
    """Whether an offer carries words."""
    message_chars: int = Field(default=160, ge=1, le=1_000)
    """Longest message."""
    pairing: Literal["pairs", "across"] = "pairs"
    """Neighbours in cast order, or the first half of the cast (who move first) with the second half."""
    pause: Ticks = 1
    """Time between a refusal and the next offer."""

    @model_validator(mode="after")
    def _discounts_in_range(self) -> BargainingParams:
        for value in self.discounts:
            _discount(value)
        if self.step is not None and (self.messages or self.pie % self.step):
            raise ValueError(
                f"step {self.step}: it must divide the pie of {self.pie}, and a choice carries no messages"
            )
        return self

    @property
    def choices(self) -> tuple[str, ...]:
        """The offers as a choice, by what the proposer keeps; none where it is free to name a number."""
        return () if self.step is None else tuple(map(str, range(0, self.pie + 1, self.step)))


class Bargaining:
    """Pairs divide a pie by alternating offers; waiting makes it worth less.

    Rewards are fractions of the pie, given once, when a pair's bargaining ends.
    """

    Params: ClassVar[type[BaseModel]] = BargainingParams
    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    changeable: ClassVar[frozenset[str]] = frozenset({"max_rounds", "complete_information"})

    def __init__(self, params: BargainingParams) -> None:
        self._given = params

    def reset(self, seats: Sequence[Seat], streams: Streams) -> Outcome:
        """Pair the seats and ask every first mover. Raises ValueError where one is left over."""
        if len(seats) % 2 or not seats:
            raise ValueError(f"bargaining is played in pairs: {len(seats)} seats leave somebody alone")
        self._params = self._given
        self._pairs: list[Negotiation] = []
        self._at: dict[AgentId, int] = {}
        self._waiting: Seat | None = None
        self._notices = Notices("bargaining", [seat.agent for seat in seats])
        self._facts = 0
        half = len(seats) // 2
        across = self._params.pairing == "across"
        first, second = (seats[:half], seats[half:]) if across else (seats[::2], seats[1::2])
        opened = [self._open(0, *couple) for couple in zip(first, second, strict=True)]
        return Outcome(facts=[fact for fact, _ in opened], wakes=[wake for _, wake in opened])

    def _open(self, now: int, first: Seat, second: Seat) -> tuple[Fact, Wake]:
        agents = (first.agent, second.agent)
        ours, theirs = self._params.discounts
        number = len(self._pairs)
        discounts = (
            _discount(first.private.get("discount", ours)),
            _discount(second.private.get("discount", theirs)),
        )
        self._pairs.append(Negotiation(agents, discounts))
        self._at |= dict.fromkeys(agents, number)
        fact = self._fact("pair", agents, {"pair": number, "agents": list(agents)})
        return fact, Wake(agent=first.agent, tick=now)

    def _fact(
        self, kind: str, to: Audience, data: dict[str, JSON], actor: AgentId = "", answers: tuple[FactId, ...] = ()
    ) -> Fact:
        self._facts += 1
        return Fact(id=self._facts - 1, kind=kind, actor=actor, audience=to, data=data, answers=answers)

    # --- what they see ---------------------------------------------------------------------------

    def observe(self, now: int, agent: AgentId) -> Turn | None:
        """The question to whoever has to offer or to answer; None for everybody else."""
        if agent not in self._at:
            return None
        pair = self._pairs[self._at[agent]]
        if pair.over or pair.agents[pair.mover] != agent:
            return None
        notices = self._notices.next(agent)
        return Turn(
            agent=agent,
            now=now,
            view=self._view(pair, [text for _, text in notices]),
            format=self._format(pair),
            default=self._default(pair),
            render=words,
            recap=news,
            rules=rules(self._params.pie, self._params.messages),
            shows=(*pair.facts, *(fact for fact, _ in notices)),
            key=self._key(pair),
        )

    def _key(self, pair: Negotiation) -> str | None:
        """Discounts and offers so far; None where words are said, and from round 3 on: the view forgets old offers."""
        if self._params.messages or pair.round > 2:
            return None
        me = pair.mover
        theirs = pair.discounts[1 - me] if self._params.complete_information else "?"
        refused = "" if pair.refused is None else f"{pair.refused} rejected "
        return f"{me}:{pair.discounts[me]},{theirs}:{refused}{'' if pair.gain is None else pair.gain}".strip()

    def _view(self, pair: Negotiation, notices: list[str]) -> dict[str, JSON]:
        pie, limit, me = self._params.pie, self._params.max_rounds, pair.mover
        return {
            "stage": "offer" if pair.gain is None else "answer",
            "round": pair.round,
            "last_round": None if limit is None else max(limit, pair.round),
            "pie": pie,
            "partner": pair.agents[1 - me],
            "discount": pair.discounts[me],
            "partner_discount": pair.discounts[1 - me] if self._params.complete_information else None,
            "refused": pair.refused,
            "offered": None if pair.gain is None else pie - pair.gain,
            "message": pair.message,
            "news": notices,
        }

    def _format(self, pair: Negotiation) -> Choice | Form:
        if pair.gain is not None:
            return Choice(options=("accept", "reject"))
        if self._params.choices:
            return Choice(options=self._params.choices)
        form = SpokenOffer if self._params.messages else Offer
        narrow: dict[str, dict[str, JSON]] = {f"{form.__name__}.gain": {"minimum": 0, "maximum": self._params.pie}}
        if self._params.messages:
            narrow["SpokenOffer.message"] = {"maxLength": self._params.message_chars}
        return Form(models=(form,), narrow=narrow)

    def _default(self, pair: Negotiation) -> JSON:
        """Who says nothing gives nothing and agrees to nothing."""
        if pair.gain is not None:
            return "reject"
        if self._params.choices:
            return str(self._params.pie)
        return {"gain": self._params.pie} | ({"message": ""} if self._params.messages else {})

    # --- what happens ------------------------------------------------------------------------------

    def step(self, now: int, actions: Sequence[Action]) -> Outcome:
        """Apply offers and answers; each concerns its own pair only."""
        facts: list[Fact] = []
        wakes: list[Wake] = []
        results: list[Result] = []
        rewards: dict[AgentId, float] = {}
        ended: dict[AgentId, Literal["terminated", "truncated"]] = {}
        for action in actions:
            refusal = self._stale(action)
            results.append(Result(status="stale", reason=refusal) if refusal else APPLIED)
            if refusal:
                continue
            self._notices.read(action.agent, action.shows)
            pair = self._pairs[self._at[action.agent]]
            offering = pair.gain is None
            facts += [self._propose(pair, action)] if offering else self._reply(pair, action)
            if pair.over:
                rewards |= self._rewards(pair)
                ended |= dict.fromkeys(pair.agents, "terminated")
            else:
                wakes.append(Wake(agent=pair.agents[pair.mover], tick=now + (0 if offering else self._params.pause)))
        return Outcome(facts=facts, wakes=wakes, results=results, rewards=rewards, ended=ended)

    def _stale(self, action: Action) -> str:
        """Why an action cannot be applied, or nothing."""
        if action.agent not in self._at:
            return "not at a table"
        pair = self._pairs[self._at[action.agent]]
        if pair.over:
            return "the bargaining is over"
        if pair.agents[pair.mover] != action.agent:
            return "not your turn"
        if pair.gain is not None:
            return "" if action.answer in ("accept", "reject") else "an offer is open: accept or reject"
        return "" if self._gain(action.answer) is not None else f"not an offer from 0 to {self._params.pie}"

    def _gain(self, answer: JSON) -> int | None:
        """What the proposer keeps by an answer; None where it is no offer."""
        if self._params.choices:
            return int(answer) if answer in self._params.choices else None
        gain = answer.get("gain") if isinstance(answer, dict) else None
        if isinstance(gain, int) and not isinstance(gain, bool) and 0 <= gain <= self._params.pie:
            return gain
        return None

    def _about(self, pair: Negotiation) -> dict[str, JSON]:
        return {"pair": self._at[pair.agents[0]], "round": pair.round}

    def _propose(self, pair: Negotiation, action: Action) -> Fact:
        mine = self._gain(action.answer)
        assert mine is not None
        pair.gain = mine
        pair.message = action.answer["message"].strip() if self._params.messages else ""
        said = {"text": pair.message} if pair.message else {}
        data = self._about(pair) | {"gain": mine, "rest": self._params.pie - mine} | said
        fact = self._fact("offer", pair.agents, data, action.agent, pair.before[1:])
        pair.offer = fact.id
        return fact

    def _reply(self, pair: Negotiation, action: Action) -> list[Fact]:
        assert pair.offer is not None
        reply = self._fact(action.answer, pair.agents, self._about(pair), action.agent, (pair.offer,))
        if action.answer == "accept":
            pair.over = "deal"
        elif pair.round >= (self._params.max_rounds or UNLIMITED):
            pair.over = "rounds"
        else:
            pair.refuse(reply.id)
            return [reply]
        return [reply, self._end(pair, (reply.id,))]

    def _end(self, pair: Negotiation, answers: tuple[FactId, ...] = ()) -> Fact:
        data = self._about(pair) | {"agents": list(pair.agents)}
        if pair.over != "deal":
            return self._fact("no_deal", pair.agents, data | {"reason": pair.over}, answers=answers)
        shares = dict(zip(pair.agents, pair.shares(self._params.pie), strict=True))
        return self._fact("deal", pair.agents, data | {"shares": shares, "gains": self._rewards(pair)}, answers=answers)

    def _rewards(self, pair: Negotiation) -> dict[AgentId, float]:
        if pair.over != "deal":
            return dict.fromkeys(pair.agents, 0.0)
        pie = self._params.pie
        return dict(zip(pair.agents, gains(pair.shares(pie), pie, pair.discounts, pair.round), strict=True))

    # --- interventions -----------------------------------------------------------------------------

    def change(self, now: int, change: Change) -> Outcome:
        """Say; Set; Leave ends a pair without a deal; two who Join make a new pair. Raises ValueError otherwise."""
        match change:
            case Say():
                return self._say(change)
            case Set():
                self._params = changed(self._params, change, self.changeable, "bargaining")
                return Outcome()
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
        _discount(seat.private.get("discount", 1.0))
        self._notices.admit(seat.agent)
        if self._waiting is None:
            self._waiting = seat
            return Outcome()
        first, self._waiting = self._waiting, None
        fact, wake = self._open(now, first, seat)
        return Outcome(facts=[fact], wakes=[wake])

    def _leave(self, agent: AgentId) -> Outcome:
        self._notices.known([agent])
        if self._waiting is not None and self._waiting.agent == agent:
            self._waiting = None
        if agent not in self._at or self._pairs[self._at[agent]].over:
            return Outcome()
        pair = self._pairs[self._at[agent]]
        pair.over = "left"
        partner = pair.agents[1 - pair.agents.index(agent)]
        return Outcome(facts=[self._end(pair)], rewards=self._rewards(pair), ended={partner: "terminated"})

    def state(self) -> JSON:
        """Everything, as a fresh JSON value."""
        waiting = self._waiting
        return {
            "params": self._params.model_dump(mode="json"),
            "pairs": [pair.json() for pair in self._pairs],
            "at": dict(self._at),
            "waiting": None if waiting is None else {"agent": waiting.agent, "private": dict(waiting.private)},
            "unread": self._notices.state(),
            "facts": self._facts,
        }
