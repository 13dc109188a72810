"""Where what an agent knew came from: exposures, the origin of a decision, and what became of secrets."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass

from sim.record.browse import Browse, Filter
from sim.types import AgentId, FactId, Member, RecordedDecision, RecordedFact, Secret

DEPTH = 3
"""Decisions that an origin is followed back through."""
MOST = 40
"""Steps of an origin that are shown."""
DECISIONS = 1_500
"""Last decisions that a network of exposures is made of."""
TELLINGS = 20
"""Facts in which a secret is looked up, the first ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A decision with the facts behind it, and the decisions behind those."""

    decisions: dict[int, RecordedDecision]
    """By seq."""
    facts: dict[FactId, RecordedFact]
    arrows: list[tuple[tuple[str, int], tuple[str, int]]]
    """From what came first: pairs of ("fact", id) or ("decision", seq)."""
    cut: bool
    """Whether there was more than is shown."""


def origin(run: Browse, start: RecordedDecision) -> Origin:
    """What a decision was made on, followed back through whoever said it."""
    found = Origin(decisions={start.seq: start}, facts={}, arrows=[], cut=False)
    queue, cut = deque([(start, 0)]), False
    while queue:
        decision, depth = queue.popleft()
        shown = sorted({*decision.action.shows, *decision.action.recalls}, reverse=True)
        room = max(0, MOST - len(found.facts) - len(found.decisions))
        cut = cut or len(shown) > room
        facts = run.facts_by_id(decision.table, shown[:room])
        for number, fact in facts.items():
            found.arrows.append((("fact", number), ("decision", decision.seq)))
            if number in found.facts:
                continue
            found.facts[number] = fact
            maker = maker_of(run, fact)
            if maker is None:
                continue
            found.arrows.append((("decision", maker.seq), ("fact", number)))
            if maker.seq not in found.decisions:
                found.decisions[maker.seq] = maker
                if depth + 1 < DEPTH:
                    queue.append((maker, depth + 1))
    return Origin(decisions=found.decisions, facts=found.facts, arrows=found.arrows, cut=cut)


def maker_of(run: Browse, fact: RecordedFact) -> RecordedDecision | None:
    """The decision that a fact came from: its actor's last one before it, at the same tick."""
    if not fact.fact.actor:
        return None
    made = run.last_decisions(fact.table, fact.seq, 1, fact.fact.actor) if _acts_at(run, fact) else []
    return made[0] if made and made[0].tick == fact.tick else None


def _acts_at(run: Browse, fact: RecordedFact) -> bool:
    """Whether its actor has made any decision at that tick, looked up in few rows."""
    near = run.last_decisions(fact.table, fact.seq, 50)
    return any(one.tick == fact.tick and one.action.agent == fact.fact.actor for one in near)


def exposures(run: Browse, table: int, upto: int) -> Counter[tuple[AgentId, AgentId]]:
    """How often the last decisions showed an agent what another one did: (actor, who saw it)."""
    decisions = run.last_decisions(table, upto, DECISIONS)
    wanted = {shown for one in decisions for shown in one.action.shows}
    if not wanted:
        return Counter()
    newest = run.last_facts(table, upto, 10 * DECISIONS)
    actor = {one.fact.id: one.fact.actor for one in newest if one.fact.id in wanted}
    counts: Counter[tuple[AgentId, AgentId]] = Counter()
    for one in decisions:
        counts.update(
            (by, one.action.agent)
            for by in (actor.get(shown, "") for shown in one.action.shows)
            if by and by != one.action.agent
        )
    return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A fact with the words of a secret in it."""

    fact: RecordedFact
    learnt: dict[AgentId, tuple[int, int]]
    """Who was shown it: seq and tick of the first decision made on it. The holder is left out."""


def tellings(run: Browse, table: int, secret: Secret, upto: int) -> list[Telling]:
    """The first facts whose data has a secret's value in it as a word; whether it was meant is for metrics to say."""
    word = re.compile(rf"(?<![\w.]){re.escape(secret.value)}(?![\w])", re.IGNORECASE)
    found: list[Telling] = []
    after = -1
    while len(found) < TELLINGS:
        page = run.next_facts(table, after, TELLINGS, Filter(text=secret.value))
        for fact in page:
            if fact.seq > upto or len(found) == TELLINGS:
                return found
            if any(word.search(str(value)) for value in fact.fact.data.values()):
                learnt = run.shown_to(table, fact, upto)
                learnt.pop(secret.holder, None)
                found.append(Telling(fact=fact, learnt=learnt))
        if len(page) < TELLINGS:
            return found
        after = page[-1].seq
    return found


def entitled(secret: Secret, agent: Member, channel: str) -> bool:
    """Whether the norms of a secret let an agent learn it, by its id, its role or the channel."""
    allowed = {str(norm.get("to", "")) for norm in secret.norms}
    return bool({agent.seat.agent, agent.seat.role, channel, "all"} & allowed)
