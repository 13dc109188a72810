"""A stored run, read-only: the record that metrics, transcripts and exports are made from.

Works while the run goes on (what is committed is there) and on a run that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import orjson
from msgspec.structs import replace
from sqlalchemy import and_, bindparam, case, func, select, tuple_

from sim.blobs import decode_ids
from sim.record.committed import ANSWER, Committed, Row, answer, equals, held, page, paged
from sim.record.schema import TABLES
from sim.record.sqlite import compiled
from sim.types import (
    JSON,
    Action,
    AgentId,
    Audience,
    CallKey,
    Completion,
    Fact,
    Member,
    Message,
    RecordedDecision,
    RecordedFact,
    Result,
    Seat,
    Secret,
    Usage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One model call: what was asked and what came of it."""

    key: CallKey
    purpose: str
    model: str
    """Name in the scenario's `models:`."""
    policy: str
    """The adapter asked for."""
    messages: tuple[Message, ...]
    format: str
    """JSON {"choice": options}, {"form": schema} or {"text": characters}."""
    sampling: Mapping[str, JSON]
    seed: int
    completion: Completion
    source: str
    """engine, parent or repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    """A fact, and when an agent was first shown it."""

    tick: int
    """Tick at which the turn that showed it was seen."""
    decision: int
    """Seq of the decision of that turn."""
    fact: RecordedFact


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How a run went, in numbers."""

    decisions: Mapping[str, Mapping[str, int]]
    """By answer format (choice, form, text; "" where no model was asked), then by how they came about."""
    stale: int
    """Decisions that were no longer legal when due."""
    calls: Mapping[str, int]
    """By purpose, those of dropped decisions included."""
    sources: Mapping[str, int]
    """Calls by where the completion came from: engine, parent, repeat."""
    failed: int
    """Calls that came back with an error."""
    cut: int
    """Answers that ended at the length limit."""
    tokens: Usage
    """Sums over all calls."""


_cast, _facts, _decisions, _events, _calls = (
    TABLES[name].c for name in ("cast", "facts", "decisions", "events", "calls")
)
_MEMBERS = compiled(select(TABLES["cast"]).where(_cast.tbl == bindparam("tbl")).order_by(_cast.place))
_TABLES = compiled(select(func.max(_cast.tbl)))
_FACTS = paged(TABLES["facts"], *equals(TABLES["facts"], "tbl"))
_FACTS_OF_KIND = paged(TABLES["facts"], *equals(TABLES["facts"], "tbl", "kind"))
_FACTS_TO = paged(TABLES["facts"], *equals(TABLES["facts"], "tbl", "audience"))
_DECISIONS = paged(TABLES["decisions"], *equals(TABLES["decisions"], "tbl"))
_DECISIONS_OF = paged(TABLES["decisions"], *equals(TABLES["decisions"], "tbl", "agent"))
_EVENTS = paged(TABLES["events"], *equals(TABLES["events"], "tbl", "kind"))
_ASKED = ("tbl", "agent", "tick", "nth", "call", "purpose", "model", "policy", "messages", "format", "sampling", "seed")
_RECORDED = select(*(_calls[name] for name in (*_ASKED, "source")), *ANSWER)
_CALLS = compiled(_RECORDED.where(*equals(TABLES["calls"], "tbl", "agent", "tick", "nth")).order_by(_calls.call))
_KEY = tuple(_calls[name] for name in _ASKED[:5])
_ALL_CALLS = page(_RECORDED.where(tuple_(*_KEY) > tuple_(*map(bindparam, CallKey._fields))).order_by(*_KEY))
_FORMAT = case(
    *((_calls.format.startswith(f'{{"{kind}"'), kind) for kind in ("choice", "form", "text")), else_=""
).label("format")
_LAST_CALL = and_(
    *(_calls.tbl == _decisions.tbl, _calls.agent == _decisions.agent, _calls.tick == _decisions.seen),
    *(_calls.nth == _decisions.nth, _calls.call == _decisions.calls - 1),
)
_BY_HOW = (
    select(_FORMAT, _decisions.how, _decisions.status, func.count())
    .select_from(TABLES["decisions"].outerjoin(TABLES["calls"], _LAST_CALL))
    .group_by(_FORMAT, _decisions.how, _decisions.status)
)
_BY_CALL = select(
    *(_calls.purpose, _calls.source, _calls.finish, func.count()),
    *(func.sum(_calls[name]) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")),
).group_by(_calls.purpose, _calls.source, _calls.finish)


class Run(Committed):
    """One run file. Holds no transaction between queries and no more than a page of rows.

    `secrets` are further ones that metrics shall look for, as if their holders had always had them.
    """

    def __init__(self, path: Path, secrets: Sequence[Secret] = ()) -> None:
        super().__init__(path)
        self._told: dict[AgentId, tuple[Secret, ...]] = {}
        for secret in secrets:
            self._told[secret.holder] = (*self._told.get(secret.holder, ()), secret)

    @property
    def status(self) -> str:
        """running, paused, interrupted, failed or finished; interrupted if it says running and nobody holds it."""
        status = self.manifest().status
        if status == "running" and not held(self.path):
            status = self.manifest().status  # it may have ended between the two looks
            return "interrupted" if status == "running" else status
        return status

    # --- what metrics read ----------------------------------------------------------------------------

    @property
    def params(self) -> Mapping[str, JSON]:
        """The world's parameters, durations in ticks."""
        return self.manifest().params

    @property
    def tables(self) -> int:
        """Number of tables."""
        last = self._rows(_TABLES)[0][0]
        return 0 if last is None else int(last) + 1

    def cast(self, table: int = 0) -> Sequence[Member]:
        """Members in cast order, joiners last."""
        members = [_member(row) for row in self._rows(_MEMBERS, (table,))]
        if not self._told:
            return members
        return [replace(one, secrets=(*one.secrets, *self._told.get(one.seat.agent, ()))) for one in members]

    def facts(self, kind: str | None = None, table: int | None = None) -> Iterator[RecordedFact]:
        """Facts in table order, then log order."""
        for one in self._each(table):
            rows = self._paged(_FACTS, one) if kind is None else self._paged(_FACTS_OF_KIND, one, kind)
            yield from map(fact_of, rows)

    def decisions(self, table: int | None = None, agent: AgentId | None = None) -> Iterator[RecordedDecision]:
        """Decisions that were stepped, of one agent where given, in table order, then log order."""
        for one in self._each(table):
            rows = self._paged(_DECISIONS, one) if agent is None else self._paged(_DECISIONS_OF, one, agent)
            yield from map(decision_of, rows)

    def rewards(self, table: int = 0) -> Mapping[AgentId, float]:
        """Sum of rewards by agent."""
        sums: dict[AgentId, float] = {}
        for _seq, _tick, data in self.events("rewards", table):
            for agent, reward in data.items():
                sums[agent] = sums.get(agent, 0.0) + reward
        return sums

    def events(self, kind: str, table: int = 0) -> Iterator[tuple[int, int, JSON]]:
        """Seq, tick and data of the kernel's own events of a kind; of `ended`, the data is agent and how."""
        for _tbl, seq, tick, _round, _kind, agent, data in self._paged(_EVENTS, table, kind):
            value = orjson.loads(data)
            yield seq, tick, (agent, value) if kind == "ended" else value

    def _each(self, table: int | None) -> Iterable[int]:
        return range(self.tables) if table is None else (table,)

    # --- what people read -----------------------------------------------------------------------------

    def seen_by(self, agent: AgentId, table: int = 0) -> Iterator[Exposure]:
        """Every fact that an agent was shown, once, in the order of the decisions that first showed them."""
        first: dict[int, RecordedDecision] = {}
        for decision in self.decisions(table, agent):
            for shown in decision.action.shows:
                first.setdefault(shown, decision)
        facts = {recorded.fact.id: recorded for recorded in self.facts(table=table) if recorded.fact.id in first}
        for shown, decision in first.items():
            yield Exposure(tick=decision.action.seen, decision=decision.seq, fact=facts[shown])

    def channel(self, audience: Audience, table: int = 0) -> Iterator[RecordedFact]:
        """Facts with exactly this audience: `"all"`, a channel, or a tuple of agents in its order."""
        yield from map(fact_of, self._paged(_FACTS_TO, table, orjson.dumps(audience).decode()))

    def calls_of(self, decision: RecordedDecision) -> Sequence[RecordedCall]:
        """The model calls of a decision, in order."""
        key = (decision.table, decision.action.agent, decision.action.seen, decision.nth)
        return [self._call(row, self.text_of) for row in self._rows(_CALLS, key)]

    def calls(self) -> Iterator[RecordedCall]:
        """Every model call, by key; a text that many share is read once."""
        text_of = cache(self.text_of)
        after: Sequence[object] = (-1, "", -1, -1, -1)
        while rows := self._rows(_ALL_CALLS, after):
            yield from (self._call(row, text_of) for row in rows)
            after = rows[-1][:5]

    def _call(self, row: Row, text_of: Callable[[str], str]) -> RecordedCall:
        key, (purpose, model, policy, messages, form, sampling, seed, source) = row[:5], row[5:13]
        return RecordedCall(
            key=CallKey(*key),
            purpose=purpose,
            model=model,
            policy=policy,
            messages=tuple(Message(role=role, text=text_of(name)) for role, name in orjson.loads(messages)),
            format=self.format_text(form),
            sampling=orjson.loads(sampling),
            seed=seed,
            completion=answer(row[13:])[1],
            source=source,
        )

    def counts(self) -> Counts:
        """Decisions, calls and tokens over all tables."""
        decisions: dict[str, dict[str, int]] = {}
        stale = 0
        for form, how, status, count in self._all(_BY_HOW):
            by_how = decisions.setdefault(form, {})
            by_how[how] = by_how.get(how, 0) + count
            stale += count * (status == "stale")
        calls = self._all(_BY_CALL)
        prompt, cached, completion = (sum(row[column] for row in calls) for column in (4, 5, 6))
        return Counts(
            decisions=decisions,
            stale=stale,
            calls=_summed(calls, 0),
            sources=_summed(calls, 1),
            failed=_summed(calls, 2).get("error", 0),
            cut=_summed(calls, 2).get("length", 0),
            tokens=Usage(prompt=prompt, cached=cached, completion=completion),
        )


def _summed(rows: Iterable[Row], column: int) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in rows:
        sums[row[column]] = sums.get(row[column], 0) + row[3]
    return sums


def _member(row: Row) -> Member:
    _tbl, _place, agent, role, private, public, persona, secrets, model, _think, _joined, past = row
    seat = Seat(agent=agent, role=role, private=orjson.loads(private), public=orjson.loads(public))
    known = msgspec.convert(orjson.loads(secrets), tuple[Secret, ...])
    return Member(seat=seat, persona=orjson.loads(persona), secrets=known, model=model, past=past)


def fact_of(row: Row) -> RecordedFact:
    """A row of `facts`."""
    table, seq, tick, _round, number, kind, actor, audience, data, answers = row
    to = orjson.loads(audience)
    fact = Fact(
        id=number,
        kind=kind,
        actor=actor,
        audience=to if isinstance(to, str) else tuple(to),
        data=orjson.loads(data),
        answers=decode_ids(answers),
    )
    return RecordedFact(table=table, seq=seq, tick=tick, fact=fact)


def decision_of(row: Row) -> RecordedDecision:
    """A row of `decisions`."""
    table, seq, tick, _round, agent, seen, nth, answered, how, reason, status, why, *rest = row
    shows, recalls, thread, key, calls, _digest, state, feels = rest
    action = Action(
        answer=orjson.loads(answered),
        how=how,
        reason=reason,
        recalls=decode_ids(recalls),
        feels=feels,
        agent=agent,
        seen=seen,
        shows=decode_ids(shows),
        thread=thread,
    )
    result = Result(status=status, reason=why)
    return RecordedDecision(
        table=table, seq=seq, tick=tick, nth=nth, action=action, result=result, calls=calls, key=key, state=state
    )
