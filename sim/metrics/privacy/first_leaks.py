"""How soon agents that were given a secret first let one slip, counted in messages of their own.

Whose part in the world came to its end without a leak has ended otherwise, and may leak no more; who was cut off by the
end of the run is censored. Intervals of single steps take agents for independent; that of the whole is over tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import orjson
import polars as pl

from sim.metrics.frames import frames
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.statistics.clusters import Estimate, jackknife
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.metrics.statistics.survival import aalen_johansen, cumulative_incidence
from sim.types import AgentId, Event, Measurement, Record


class Kept(NamedTuple):
    """A holder of secrets, until its first leak or without one."""

    table: int
    time: float
    """Messages until then, that of the leak included."""
    leaked: bool
    ended: bool
    """Whether it was done without a leak."""
    event: Event | None = None


def all(record: Record) -> Iterator[Measurement]:
    """Share of holders with a leak by each of their messages, and in the end."""
    kept = holders(record)
    ended = [one.ended for one in kept]
    told = "agents that were given a secret and said something"
    clusters = len({one.table for one in kept})
    for step in aalen_johansen([(one.time, one.leaked) for one in kept], ended):
        found = Estimate(step.share, len(kept), clusters, ci=step.ci, method="log(−log), delta method")
        of = {"message": int(step.time)}
        yield estimated("privacy.first_leak_by", found, "share", denominator=told, of=of)
    yield estimated(
        "privacy.first_leak",
        jackknife(kept, attrgetter("table"), _incidence, 1.0),
        "share",
        denominator=told,
        excluded={"done without a leak": sum(ended)} if any(ended) else {},
        events=tuple(one.event for one in kept if one.event is not None)[:EVIDENCE],
    )


def holders(record: Record) -> list[Kept]:
    """All agents that were given a secret and said something, by table."""
    found, read = disclosures(record), frames(record)
    given = set(found.held.filter(pl.col("since") < 0).select("tbl", "agent").iter_rows())
    leaks = set(found.forbidden.told.select("tbl", "fact").iter_rows())
    over = read.events.filter(pl.col("kind") == "ended").select("tbl", "agent", "data")
    done = {(tbl, agent) for tbl, agent, how in over.iter_rows() if orjson.loads(how) == "terminated"}
    messages: Counter[tuple[int, AgentId]] = Counter()
    first: dict[tuple[int, AgentId], tuple[int, int]] = {}
    for tbl, fact, sender in found.messages.sort("tbl", "fact").select("tbl", "fact", "sender").iter_rows():
        who = (tbl, sender)
        messages[who] += 1
        if (tbl, fact) in leaks:
            first.setdefault(who, (messages[who], fact))
    kept = []
    for who in sorted(given & messages.keys()):
        time, fact = first.get(who, (messages[who], None))
        event = None if fact is None else (who[0], fact) if record.tables > 1 else fact
        kept.append(Kept(who[0], float(time), fact is not None, fact is None and who in done, event))
    return kept


def _incidence(kept: Sequence[Kept]) -> float | None:
    return cumulative_incidence([(one.time, one.leaked) for one in kept], [one.ended for one in kept])
