"""How much people do on a forum, how unevenly, and whether they answer each other.

Read from the facts alone. A member is on the forum from the start, or its `arrive` fact, until its
`depart` fact or the last thing in the table's log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sim.types import AgentId, FactId, Measurement, Record
from worlds.evidence import cited, places

Member: TypeAlias = tuple[int, AgentId]
"""Table and agent."""
WRITING = ("post", "comment", "message")
ACTS = (*WRITING, "vote")


def rates(record: Record) -> Iterator[Measurement]:
    """Posts, comments, votes and messages per member and day; `n` counts members."""
    days, members = _presence(record)
    for kind in ACTS:
        events = list(places(record.facts(kind)))
        value = len(events) / days if days else None
        yield _measure(record, f"{kind}s_per_agent_day", value, members, events, "1/day")


def replies_per_post(record: Record) -> Iterator[Measurement]:
    """Comments over posts; `n` counts posts."""
    comments = list(places(record.facts("comment")))
    posts = sum(1 for _ in record.facts("post"))
    yield _measure(
        record, "replies_per_post", len(comments) / posts if posts else None, posts, comments, "replies a post"
    )


def posting_gini(record: Record) -> Iterator[Measurement]:
    """Gini index of posts and comments over members: 0 if all write as much, near 1 if few write all."""
    counts: Counter[Member] = Counter(dict.fromkeys(_members(record), 0))
    events = []
    for kind in ("post", "comment"):
        for row in record.facts(kind):
            counts[row.table, row.fact.actor] += 1
            events.append((row.table, row.fact.id))
    yield _measure(record, "posting_gini", gini(list(counts.values())), len(counts), events, "index")


def reciprocity(record: Record) -> Iterator[Measurement]:
    """Share of pairs (who commented on a post of whom) that also hold the other way; `n` counts pairs."""
    pairs: dict[tuple[int, AgentId, AgentId], list[FactId]] = defaultdict(list)
    for row in record.facts("comment"):
        author = row.fact.data["author"]
        if author != row.fact.actor:
            pairs[row.table, row.fact.actor, author].append(row.fact.id)
    mutual = [pair for pair in pairs if (pair[0], pair[2], pair[1]) in pairs]
    events = sorted((pair[0], fact) for pair in mutual for fact in pairs[pair])
    yield _measure(record, "reciprocity", len(mutual) / len(pairs) if pairs else None, len(pairs), events, "share")


def active_share(record: Record) -> Iterator[Measurement]:
    """Share of members who wrote or voted at least once; the events are each one's first acts of a kind."""
    firsts: dict[Member, FactId] = {}
    for kind in ACTS:
        for row in record.facts(kind):
            firsts.setdefault((row.table, row.fact.actor), row.fact.id)
    members = len(_members(record))
    events = sorted((who[0], fact) for who, fact in firsts.items())
    yield _measure(record, "active_share", len(firsts) / members if members else None, members, events, "share")


def gini(counts: Sequence[float]) -> float | None:
    """Mean absolute difference of all pairs over twice the mean; None if nothing is counted, or only one member's."""
    total, n = sum(counts), len(counts)
    if n < 2 or not total:
        return None
    return sum((2 * rank - n - 1) * count for rank, count in enumerate(sorted(counts), 1)) / (n * total)


def _members(record: Record) -> list[Member]:
    return [(table, member.seat.agent) for table in range(record.tables) for member in record.cast(table)]


def _presence(record: Record) -> tuple[float, int]:
    """Days that members were there, added up, and how many members."""
    ends: dict[int, int] = defaultdict(int)
    came: dict[Member, int] = {}
    went: dict[Member, int] = {}
    for row in record.facts():
        ends[row.table] = max(ends[row.table], row.tick)
        if row.fact.kind == "arrive":
            came[row.table, row.fact.actor] = row.tick
        elif row.fact.kind == "depart":
            went[row.table, row.fact.actor] = row.tick
    for decision in record.decisions():
        ends[decision.table] = max(ends[decision.table], decision.tick)
    members = _members(record)
    ticks = sum(went.get(who, ends[who[0]]) - came.get(who, 0) for who in members)
    return ticks / record.params["day"], len(members)


def _measure(
    record: Record, metric: str, value: float | None, n: int, events: Iterable[tuple[int, FactId]], unit: str = ""
) -> Measurement:
    return Measurement(
        metric=metric, value=value, unit=unit, n=n, n_clusters=record.tables, events=cited(record, events)
    )
