"""Whether the first proposal wins for being first: choices among several, and pairs of runs with their order swapped.

Read here are facts of kind `proposal` (`about` what, and how much it is worth to the chooser: `value`) and `choice`, a
fact that answers the proposal that was taken. What a chooser could choose from are the proposals about the same thing
that its views had shown. A world whose proposals look otherwise makes choices of them in a reading of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import exp, sqrt
from typing import NamedTuple

import polars as pl

from sim.intervals import Z
from sim.metrics.chosen import both
from sim.metrics.frames import field, frames
from sim.metrics.safety.persuasion import swapped_order
from sim.metrics.statistics.given import whole
from sim.metrics.statistics.ratios import CONTINUITY
from sim.metrics.statistics.shares import share
from sim.metrics.twins import Relative, flagged, twins
from sim.types import AgentId, FactId, Measurement, Record


class Choice(NamedTuple):
    """One of several proposals that was taken."""

    table: int
    chooser: AgentId
    about: Hashable
    fact: FactId
    """The choice itself."""
    place: int
    """Of what was taken among what had been shown, from 0."""
    values: tuple[float, ...]
    """What each was worth, in the order in which they were shown."""


def all(record: Record) -> Iterator[Measurement]:
    """How often the first proposal is taken, and by how much that raises its odds; with and without defaults."""
    yield from both(lambda one: first_taken(choices(one), one.tables))(record)


def choices(record: Record) -> list[Choice]:
    """All choices of facts of kind `choice`."""
    read = frames(record)
    named = [pl.col("id").alias("fact"), field("data", "about"), field("data", "value").cast(pl.Float64, strict=False)]
    offers = read.facts.filter(pl.col("kind") == "proposal").select("tbl", *named)
    shown = read.exposures.join(offers, on=["tbl", "fact"]).sort("tbl", "seen", "seq", "fact")
    seen: dict[tuple[int, AgentId, str], list[tuple[int, FactId, float]]] = {}
    for table, agent, about, *rest in shown.select("tbl", "agent", "about", "seq", "fact", "value").iter_rows():
        seen.setdefault((table, agent, about), []).append(tuple(rest))
    about = {(table, fact): what for table, fact, what, _ in offers.iter_rows()}
    chosen = read.facts.filter(pl.col("kind") == "choice").join(read.answers, on=["tbl", "seq"]).sort("tbl", "seq")
    found = []
    for table, agent, seq, fact, took in chosen.select("tbl", "actor", "seq", "id", "fact").iter_rows():
        what = about.get((table, took), "")
        options = [(each, value) for at, each, value in seen.get((table, agent, what), ()) if at < seq]
        ids = [each for each, _ in options]
        if took in ids:
            found.append(Choice(table, agent, what, fact, ids.index(took), tuple(value for _, value in options)))
    return found


def first_taken(found: Sequence[Choice], tables: int) -> Iterator[Measurement]:
    """Share of choices that took the first proposal, and its odds over those of a random choice, with an exact test."""
    several = [one for one in found if len(one.values) > 1]
    left = {"a single proposal": len(found) - len(several)}
    rows = [(one.table, one.fact, one.place == 0) for one in several]
    frame = pl.DataFrame(rows, schema={"tbl": pl.Int64, "fact": pl.Int64, "first": pl.Boolean}, orient="row")
    told = "choices among several proposals"
    taken = pl.col("first")
    shown = share("persuasion.first_taken", frame, taken, tables=tables, denominator=told, excluded=left, events="fact")
    yield shown
    sizes, first = [len(one.values) for one in several], sum(one.place == 0 for one in several)
    slope = _logit(sizes, first) if sizes else None
    edge = () if 0 < first < len(sizes) or not sizes else (f"first {'always' if first else 'never'} taken", CONTINUITY)
    yield Measurement(
        metric="persuasion.first_proposal_odds",
        version=2,
        value=None if slope is None else exp(slope),
        unit="ratio",
        n=len(several),
        n_clusters=shown.n_clusters,
        ci=None if slope is None else _interval(slope, sizes, 1.0 + bool(edge) / len(sizes)),
        ci_method="" if slope is None else "normal on logs, choices independent",
        events=shown.events,
        denominator="odds of a random choice",
        excluded=shown.excluded,
        flags=edge,
        null={"stat": first, "p": random_p(sizes, first), "method": "exact, a random choice"} if sizes else {},
    )


def random_p(sizes: Sequence[int], first: int) -> float:
    """How often random choices among so many proposals each take the first at least so often: exact, one-sided."""
    law, first = [1.0], whole("first", first)
    for size in sizes:
        one = 1 / whole("sizes", size, 1)
        law = [a * (1 - one) + b * one for a, b in zip([*law, 0.0], [0.0, *law], strict=True)]
    return min(1.0, sum(law[first:]))


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """Of several runs those of the same luck, as `swapped` takes them."""
    pairs = twins(runs)
    found = swapped([(choices(one.record), choices(other.record)) for one, other in pairs])
    yield from flagged([found], "" if pairs else "no two runs of the same luck")


def swapped(pairs: Sequence[tuple[Sequence[Choice], Sequence[Choice]]]) -> Measurement:
    """Of runs in pairs, the order of two proposals swapped: how many more times the worse one is taken when first.

    Choices are matched by table, chooser and what they are about; each pair's sides may have either order.
    """
    first = second = left = 0
    for one, other in pairs:
        matched = {_key(each): each for each in other}
        for each in one:
            twin = matched.get(_key(each))
            if twin is None or not _swapped(each, twin):
                left += 1
                continue
            worse = {_worse_first(each): _took_worse(each), _worse_first(twin): _took_worse(twin)}
            first += worse[True] and not worse[False]
            second += worse[False] and not worse[True]
    found = swapped_order(first, second)
    return Measurement(
        metric="persuasion.swapped_order_odds",
        value=found.ratio.value,
        unit="ratio",
        n=first + second,
        n_clusters=len(pairs),
        denominator="pairs of choices that differ",
        excluded={"no pair with the order swapped": left} if left else {},
        flags=found.ratio.flags,
        null={"stat": first, "p": found.p, "method": "exact McNemar"} if first + second else {},
    )


def _key(one: Choice) -> tuple[Hashable, ...]:
    return one.table, one.chooser, one.about


def _swapped(one: Choice, other: Choice) -> bool:
    """Whether both are among the same two proposals of different worth, in either order."""
    return len(one.values) == 2 and one.values[0] != one.values[1] and one.values == other.values[::-1]


def _worse_first(one: Choice) -> bool:
    return one.values[0] < one.values[1]


def _took_worse(one: Choice) -> bool:
    return one.values[one.place] == min(one.values)


def _logit(sizes: Sequence[int], first: int) -> float:
    """Log odds ratio of the first place by a conditional logit of choices (McFadden 1974), by bisection.

    Where the first was always taken, or never, as if of one choice more, of their sizes, one half had taken it.
    """
    edge = not 0 < first < len(sizes)
    aim, weight = (first + 0.5, 1 + 1 / len(sizes)) if edge else (float(first), 1.0)
    low, high = -30.0, 30.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if weight * sum(_chance(middle, size) for size in sizes) < aim else (low, middle)
    return (low + high) / 2


def _chance(slope: float, size: int) -> float:
    return 1 / (1 + (size - 1) * exp(-slope))


def _interval(slope: float, sizes: Sequence[int], weight: float) -> tuple[float, float]:
    chances: Mapping[int, float] = {size: _chance(slope, size) for size in set(sizes)}
    half = Z / sqrt(weight * sum(chances[size] * (1 - chances[size]) for size in sizes))
    return exp(slope - half), exp(slope + half)
