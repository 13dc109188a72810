"""Opinions on a record: how far they are apart, whether that grows, and whether they move towards what was seen.

Read are facts with an `opinion`, a number, in their data, `about` something; and facts with a `feeling`, a number,
`toward` a role. The pull of others compares the move of an agent from one opinion to its next with how far the mean of
what it was shown in between lies from where it stood. Opinions that are far out come back by themselves, and who stands
far out may see others who do: so the test shuffles only what moves and what was seen have beyond that. The placebo is
what was seen in the interval after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from statistics import fmean, pvariance
from typing import NamedTuple

import numpy as np
import polars as pl

from sim.metrics.chosen import both
from sim.metrics.frames import Frames, field, frames
from sim.metrics.provenance import made
from sim.metrics.society.polarisation import (
    Weighted,
    affective,
    bimodality,
    esteban_ray,
    weighted_bimodality,
    weighted_variance,
)
from sim.metrics.statistics.centred import Vector, centred_bootstrap
from sim.metrics.statistics.clusters import mean, ratio
from sim.metrics.statistics.dip import LEAST, dip, dip_test, spread
from sim.metrics.statistics.permutation import DRAWS, sign_flips, stratified
from sim.metrics.statistics.shares import estimated
from sim.types import AgentId, FactId, Measurement, Record

MANY = 40
"""Agents from which on those of a single table are drawn anew."""


class Opinion(NamedTuple):
    """What one agent thought about something, and what of others' it had seen since the last time."""

    table: int
    agent: AgentId
    about: str
    fact: FactId
    value: float
    seen: tuple[float, ...] = ()


class Move(NamedTuple):
    """From one opinion to the next of the same agent about the same."""

    table: int
    about: str
    before: float
    after: float
    seen: float
    """Mean of what others were seen to think in between."""
    later: float | None
    """The same of the interval after."""


def all(record: Record) -> Iterator[Measurement]:
    """Polarisation and its growth, feelings between roles, the pull of what was seen; without defaults too."""
    yield from both(opinionated)(record)


def opinionated(record: Record) -> Iterator[Measurement]:
    """All of it once."""
    held = opinions(record)
    yield from polarised(held)
    yield from pulled(moves(held))
    yield _affective(record)


def opinions(record: Record) -> list[Opinion]:
    """All opinions, in the order of the log."""
    read = frames(record)
    said = _numbers(read, "opinion", "about")
    place = {(table, fact): seq for table, fact, seq in made(read).select("tbl", "fact", "seq").iter_rows()}
    shown = read.exposures.join(said, on=["tbl", "fact"]).filter(pl.col("agent") != pl.col("actor"))
    views: dict[tuple[int, AgentId, str], list[tuple[int, float]]] = defaultdict(list)
    for table, agent, about, seq, value in shown.select("tbl", "agent", "about", "seq", "opinion").iter_rows():
        views[table, agent, about].append((seq, value))
    found, last = [], dict[tuple[int, AgentId, str], int]()
    for table, fact, agent, about, value in said.select("tbl", "fact", "actor", "about", "opinion").iter_rows():
        who, at = (table, agent, about), place.get((table, fact), -1)
        seen = sorted(each for seq, each in views.get(who, ()) if last.get(who, -1) < seq <= at)
        found.append(Opinion(table, agent, about, fact, value, tuple(seen)))
        last[who] = at
    return found


def moves(held: Sequence[Opinion]) -> list[Move]:
    """Of each agent from each opinion to its next, where it had seen others' in between."""
    chains: dict[tuple[int, AgentId, str], list[Opinion]] = defaultdict(list)
    for one in held:
        chains[one.table, one.agent, one.about].append(one)
    found = []
    for chain in chains.values():
        for place, (before, after) in enumerate(pairwise(chain)):
            after_that = chain[place + 2].seen if place + 2 < len(chain) else ()
            if after.seen:
                later = fmean(after_that) if after_that else None
                found.append(Move(after.table, after.about, before.value, after.value, fmean(after.seen), later))
    return found


def polarised(held: Sequence[Opinion], n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Of last opinions: variance, Esteban and Ray's index, bimodality, dip; and the growth of the variance.

    Of a single table variance and bimodality have an interval by drawing its agents, if there are many: of 20 it holds
    the variance of normal opinions in 87 of 100 tries, of 40 in 91. It and the test of the dip take the opinions of
    agents for independent. Steps of a scale, which would look like modes, are told from all opinions
    about the thing.
    """
    first: dict[tuple[int, str], dict[AgentId, float]] = defaultdict(dict)
    last: dict[tuple[int, str], dict[AgentId, float]] = defaultdict(dict)
    scale: dict[tuple[int, str], list[float]] = defaultdict(list)
    for one in held:
        scale[one.table, one.about].append(one.value)
        first[one.table, one.about].setdefault(one.agent, one.value)
        last[one.table, one.about][one.agent] = one.value
    ends = {key: list(own.values()) for key, own in last.items() if len(own) > 1}
    left = {"a single opinion": len(last) - len(ends)} if len(last) > len(ends) else {}
    told = "tables; opinions of all agents about one thing"
    indices: dict[str, tuple[str, Callable[[Sequence[float]], float | None], Weighted | None]] = {
        "variance": ("opinion²", pvariance, weighted_variance),
        "esteban_ray": ("index, α = 1.3, K = 1", esteban_ray, None),
        "bimodality": ("coefficient", bimodality, weighted_bimodality),
    }
    for name, (unit, index, weighted) in indices.items():
        values = {key: at for key, own in ends.items() if (at := index(own)) is not None}
        over_tables = mean(_by_table(values))
        of_one = [last[key] for key in sorted(values)] if over_tables.clusters == 1 else []
        if weighted and len({agent for own in of_one for agent in own}) >= MANY:
            ci = _of_one(of_one, weighted, n_perm)
            over_tables = over_tables._replace(ci=ci, method="centred bootstrap over agents" if ci else "")
        yield estimated(f"polarisation.{name}", over_tables, unit, denominator=told, excluded=left)
    even = {key: spread(own, scale[key]) for key, own in ends.items()}
    dips = {key: found for key, own in even.items() if (found := dip(own)) is not None}
    p = dip_test(list(even.values()), n_perm)
    yield estimated(
        "polarisation.dip",
        mean(_by_table(dips)),
        "share",
        denominator=told,
        excluded=left,
        flags=() if dips else (f"fewer than {LEAST} opinions about one thing",),
        version=2,
        null={} if p is None else {"stat": fmean(dips.values()), "p": p, "method": "uniform samples", "n_perm": n_perm},
    )
    grown = {key: pvariance(own) - pvariance(list(first[key].values())) for key, own in ends.items()}
    growth = _by_table(grown)
    null = {"stat": fmean(growth), "p": sign_flips(growth), "method": "flipped signs"} if len(growth) > 1 else {}
    yield estimated("polarisation.growth", mean(growth), "opinion²", denominator=told, excluded=left, null=null)


def _of_one(held: Sequence[Mapping[AgentId, float]], index: Weighted, draws: int) -> tuple[float, float] | None:
    """Interval of an index at a single table, the mean over what there are opinions about: agents are drawn."""
    everybody = sorted({agent for own in held for agent in own}, key=lambda one: [own.get(one, inf) for own in held])
    agents = [agent for own in held for agent in everybody if agent in own]
    known = [np.array([own[agent] for agent in everybody if agent in own]) for own in held]
    ends = np.cumsum([len(own) for own in known])[:-1]

    def drawn(weights: Vector) -> float | None:
        parts = [index(own, times) for own, times in zip(known, np.split(weights, ends), strict=True)]
        there = [part for part in parts if part is not None]
        return fmean(there) if there else None

    return centred_bootstrap(agents, drawn, draws, ends=(0.0, inf))


def pulled(found: Sequence[Move], n_perm: int = DRAWS) -> Iterator[Measurement]:
    """How far opinions move of the way to the mean of what was seen; and the same of what was seen only afterwards."""
    later = [one._replace(seen=one.later) for one in found if one.later is not None]
    for name, kept in (("pull", found), ("placebo_pull", later)):
        parts: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for one in kept:
            gap = one.seen - one.before
            parts[one.table][0] += gap * (one.after - one.before)
            parts[one.table][1] += gap * gap
        ordered = [parts[table] for table in sorted(parts)]
        value = ratio([part for part, _ in ordered], [whole for _, whole in ordered])._replace(n=len(kept))
        told = "moves of opinions, by the square of the distance to what was seen"
        null = _shuffled(kept, n_perm) if value.value is not None else {}
        yield estimated(f"persuasion.{name}", value, "share of the way", denominator=told, null=null, version=2)


def _shuffled(kept: Sequence[Move], n_perm: int) -> Mapping[str, object]:
    """Whether opinions move with what was seen, beyond what both owe to where they stood (Freedman and Lane 1983).

    What is left of what was seen is shuffled among the moves about one thing at one table.
    """
    groups: dict[tuple[int, str], list[Move]] = defaultdict(list)
    for one in kept:
        groups[one.table, one.about].append(one)
    seen, moved, strata = [], [], []
    for key, own in groups.items():
        before = [one.before for one in own]
        seen += beyond([one.seen for one in own], before)
        moved += beyond([one.after - one.before for one in own], before)
        strata += [key] * len(own)

    def together(labels: Sequence[float], rest: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(labels, rest, strict=True))

    return stratified(seen, moved, strata, together, n_perm).null


def beyond(y: Sequence[float], x: Sequence[float]) -> list[float]:
    """Residuals of y on x by least squares; of x all alike, distances from the mean of y."""
    middle, level = fmean(x), fmean(y)
    spread_of_x = sum((each - middle) ** 2 for each in x)
    together = sum((a - middle) * (b - level) for a, b in zip(x, y, strict=True))
    slope = together / spread_of_x if spread_of_x else 0.0
    return [b - level - slope * (a - middle) for a, b in zip(x, y, strict=True)]


def _affective(record: Record) -> Measurement:
    """Mean feeling towards the own role less that towards others, by table."""
    read = frames(record)
    felt = _numbers(read, "feeling", "toward").join(
        read.cast.select("tbl", pl.col("agent").alias("actor"), "role"), on=["tbl", "actor"]
    )
    gaps = []
    for _, rows in sorted(felt.partition_by("tbl", as_dict=True).items()):
        own = rows.filter(pl.col("toward") == pl.col("role"))["feeling"].to_list()
        gap = affective(own, rows.filter(pl.col("toward") != pl.col("role"))["feeling"].to_list())
        gaps += [] if gap is None else [gap]
    null = {"stat": fmean(gaps), "p": sign_flips(gaps), "method": "flipped signs"} if len(gaps) > 1 else {}
    found = mean(gaps)._replace(n=len(felt))
    return estimated("polarisation.affective", found, "feeling", denominator="feelings towards roles", null=null)


def _numbers(read: Frames, name: str, other: str) -> pl.DataFrame:
    """tbl, fact, actor, and two fields of facts that have the first, a number."""
    rows = read.facts.sort("tbl", "seq").with_columns(
        field("data", name).cast(pl.Float64, strict=False), field("data", other).fill_null("")
    )
    return rows.drop_nulls(name).select("tbl", pl.col("id").alias("fact"), "actor", name, other)


def _by_table(values: Mapping[tuple[int, str], float]) -> list[float]:
    """Means over what tables have opinions about."""
    tables: dict[int, list[float]] = defaultdict(list)
    for (table, _), value in sorted(values.items()):
        tables[table].append(value)
    return [fmean(own) for own in tables.values()]
