"""Until where two runs share their luck: what a fork and its control have in common, and what is theirs alone.

Draws are keyed, so luck itself is never lost; what can be lost is that both sides ask for the same draws. Of that a
record shows three things. Its log says from which tick on something else happens, interventions themselves aside. Its
decisions say which turns only one side has: their think times and seeds, keyed by agent and wake tick, stand beside
nothing. Its calls say whether one request, of one seed to the same weights, got two answers, as from a server whose
batches change what it says; of two forks without a change that is all that can differ. What a world's own draws were
about is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from sim.metrics.family import Relative
from sim.metrics.frames import frames
from sim.types import AgentId, Measurement, Record

NEVER = "alike to the end"
"""Flag of a tick that does not come."""
_TURN = ("tbl", "agent", "seen", "nth")
_CALL = ("tbl", "agent", "tick", "nth", "call", "digest")


class Traces(NamedTuple):
    """What a record shows of a run's luck, as frames."""

    log: pl.DataFrame
    """tbl, place, tick, hash: what was decided, what happened, what it was worth, in order; no intervention."""
    turns: pl.DataFrame
    """tbl, agent, seen, nth: the turns on which a decision was performed."""
    calls: pl.DataFrame
    """A call's key, the digest of its request, a hash of its answer."""


class Place(NamedTuple):
    """Where two runs part, at the table at which they do so first."""

    tick: int
    table: int
    agent: AgentId = ""


class Parted(NamedTuple):
    """From where on two runs differ; None: nowhere."""

    logs: Place | None
    """In anything that was decided or happened; an intervention itself is nothing of the kind, what it says is."""
    turns: Place | None
    """In who has a turn at a tick."""
    answers: Place | None
    """In what was answered to one and the same request."""
    either: int
    """Turns that either has."""
    both: int
    """Those that both have."""


def traces(record: Record) -> Traces:
    """What there is to compare."""
    read = frames(record)
    kinds = (
        (read.decisions, ("agent", "seen", "nth", "answer", "how", "status")),
        (read.facts, ("kind", "actor", "audience", "data")),
        (read.events.filter(pl.col("kind").is_in(("rewards", "ended"))), ("kind", "agent", "data")),
    )
    rows = [frame.select("tbl", "seq", "tick", pl.struct("tick", *told).hash().alias("hash")) for frame, told in kinds]
    place = pl.int_range(pl.len()).over("tbl").alias("place")
    return Traces(
        pl.concat(rows).sort("tbl", "seq").select("tbl", place, "tick", "hash"),
        read.decisions.select(_TURN),
        read.calls.select(*_CALL, pl.struct("text", "error").hash().alias("answer")),
    )


def parted(one: Traces, other: Traces) -> Parted:
    """Where two runs part; whichever comes first."""
    log = one.log.join(other.log, on=["tbl", "place"], how="full", coalesce=True, suffix="_other")
    differ = log.filter(pl.col("hash").ne_missing(pl.col("hash_other")))
    asked = one.calls.join(other.calls, on=_CALL, suffix="_other")
    otherwise = asked.filter(pl.col("answer") != pl.col("answer_other"))
    sides = ((one.turns, other.turns), (other.turns, one.turns))
    alone = pl.concat([own.join(theirs, on=_TURN, how="anti") for own, theirs in sides])
    both = (len(one.turns) + len(other.turns) - len(alone)) // 2
    nobody = pl.lit("").alias("agent")
    return Parted(
        logs=_first(differ.select(pl.min_horizontal("tick", "tick_other").alias("tick"), "tbl", nobody)),
        turns=_first(alone.select("seen", "tbl", "agent")),
        answers=_first(otherwise.select("tick", "tbl", "agent")),
        either=both + len(alone),
        both=both,
    )


def _first(places: pl.DataFrame) -> Place | None:
    return None if places.is_empty() else Place(*min(places.iter_rows()))


def pairs(runs: Sequence[Relative]) -> list[tuple[Relative, Relative]]:
    """Runs of one luck, each beside the first of them: a parent before its forks, no change before any."""
    parents = {one.id: one for one in runs}

    def luck(one: Relative) -> tuple[object, ...]:
        above = luck(parents[one.parent]) if one.parent else (one.scenario.get("seed"),)
        return (*above, one.tick, one.replicate) if one.replicate else above

    groups: dict[tuple[object, ...], list[Relative]] = {}
    for one in sorted(runs, key=lambda one: (bool(one.change), bool(one.parent))):
        groups.setdefault(luck(one), []).append(one)
    return [(group[0], one) for group in groups.values() for one in group[1:]]


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """Of any two runs that share their luck from where on they part, and which share of their turns both have.

    Two forks with one luck and no change part nowhere, unless an engine answers one question in two ways.
    """
    found = pairs(runs)
    if not found:
        flags = ("no two runs share their luck",)
        yield Measurement(metric="luck.turns_shared", value=None, unit="share", n_clusters=0, flags=flags)
    for one, other in found:
        yield from measured(parted(traces(one.record), traces(other.record)), {"first": one.id, "second": other.id})


def measured(found: Parted, of: dict[str, str]) -> Iterator[Measurement]:
    """The tick from which on two runs of the same luck differ: in what was decided or happened (logs), in who has a
    turn (turns), in what was answered to one and the same request (answers); and the share of turns that both have."""
    kinds = (("logs", found.logs), ("turns", found.turns), ("answers", found.answers))
    for name, place in kinds:
        yield Measurement(
            metric=f"luck.{name}_apart",
            value=None if place is None else float(place.tick),
            unit="tick",
            n=1,
            flags=(NEVER,) if place is None else (),
            of=of,
        )
    yield Measurement(
        metric="luck.turns_shared",
        value=found.both / found.either if found.either else None,
        unit="share",
        n=found.either,
        denominator="turns that either of two runs has",
        of=of,
    )
