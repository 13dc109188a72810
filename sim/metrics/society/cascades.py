"""Cascades: how something is passed on from one to the next, as trees.

Trees follow what was really seen: of several parents the one counts that was observed last. A cascade of one has no
virality.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple, TypeAlias

import polars as pl

from sim.metrics.frames import frames
from sim.metrics.society.tails import FEWEST, vuong
from sim.metrics.statistics.clusters import mean, rate
from sim.metrics.statistics.given import numbers
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record

Tree: TypeAlias = Mapping[Hashable, Hashable | None]
"""Parent of each node, None for a root; parents are nodes of it too."""


class Cascade(NamedTuple):
    """The shape of one tree."""

    size: int
    depth: int
    """Edges from the root to the farthest node."""
    breadth: int
    """Most nodes at one depth."""
    virality: float | None
    """Mean distance of pairs of nodes (Goel et al. 2016); None for a single node."""


def cascades(tree: Tree) -> list[Cascade]:
    """The shapes of a forest's trees, by size, the largest first.

    Raises ValueError where a parent is no node, or nodes have no root.
    """
    children: dict[Hashable, list[Hashable]] = defaultdict(list)
    for node, parent in tree.items():
        if parent is not None:
            children[parent].append(node)
    if missing := children.keys() - tree.keys():
        raise ValueError(f"the parent {min(map(repr, missing))} is no node")
    found = [_cascade(node, children) for node, parent in tree.items() if parent is None]
    if left := len(tree) - sum(one.size for one in found):
        raise ValueError(f"{left} nodes are their own ancestors")
    return sorted(found, key=lambda one: (-one.size, -one.depth, -one.breadth))


def structural_virality(tree: Tree) -> float | None:
    """Mean distance over pairs of nodes of one tree; None for a single node or none. Raises ValueError for several."""
    found = cascades(tree)
    if len(found) > 1:
        raise ValueError(f"{len(found)} trees, not one")
    return found[0].virality if found else None


def time_to_half(times: Sequence[float]) -> float | None:
    """How long after its first node a cascade has half of its nodes."""
    ordered = sorted(numbers("times", times))
    return ordered[(len(ordered) + 1) // 2 - 1] - ordered[0] if ordered else None


def _cascade(root: Hashable, children: Mapping[Hashable, Sequence[Hashable]]) -> Cascade:
    """One walk down, then sizes of subtrees up: an edge above s of n nodes is part of s(n − s) paths."""
    levels = [[root]]
    while below := [child for node in levels[-1] for child in children.get(node, ())]:
        levels.append(below)
    n = sum(map(len, levels))
    sizes: dict[Hashable, int] = {}
    for level in reversed(levels):
        for node in level:
            sizes[node] = 1 + sum(sizes[child] for child in children.get(node, ()))
    paths = sum(size * (n - size) for size in sizes.values())
    return Cascade(n, len(levels) - 1, max(map(len, levels)), 2 * paths / (n * (n - 1)) if n > 1 else None)


def threads(record: Record) -> Iterator[Measurement]:
    """Cascades of facts that answer facts: mean size, depth, breadth, virality, time to half over tables; share of one.

    A fact that answers several follows the one that its actor saw last. The tail, above 0 where a power law fits sizes
    better than a lognormal, takes cascades for independent, those of one table too.
    """
    shapes = [cascades(tree) for tree in _answering(record).values()]
    told = "facts that answer no other"
    for name, unit in (("size", "facts"), ("depth", "steps"), ("breadth", "facts"), ("virality", "steps")):
        kept = [[value for one in table if (value := getattr(one, name)) is not None] for table in shapes]
        single = sum(map(len, shapes)) - sum(map(len, kept))
        found = mean([fmean(values) for values in kept if values])._replace(n=sum(map(len, kept)))
        excluded = {"cascades of one": single} if single else {}
        yield estimated(f"cascade.{name}", found, unit, denominator=told, excluded=excluded)
    halves = [[time for one in table if (time := time_to_half(one)) is not None] for table in _times(record)]
    found = mean([fmean(values) for values in halves if values])._replace(n=sum(map(len, halves)))
    yield estimated("cascade.time_to_half", found, "ticks", denominator=told)
    sizes = [one.size for table in shapes for one in table]
    tail = vuong(sizes)
    yield Measurement(
        metric="cascade.tail",
        value=tail.ratio if tail else None,
        unit="nats",
        n=len(sizes),
        n_clusters=len(shapes),
        ci=tail.ci if tail else None,
        ci_method="bootstrap over cascades" if tail else "",
        denominator=told,
        flags=() if tail else (f"fewer than {FEWEST} cascades, or all alike",),
        null={"stat": tail.ratio, "p": tail.p, "method": "Vuong, a power law against a lognormal"} if tail else {},
    )
    alone = rate([sum(one.size == 1 for one in table) for table in shapes], [len(table) for table in shapes])
    yield estimated("cascade.share_of_one", alone, "share", denominator=told)


def _times(record: Record) -> list[list[list[int]]]:
    """By table, when the facts of each cascade of two or more were made."""
    ticks = {(table, fact): tick for table, fact, tick in frames(record).facts.select("tbl", "id", "tick").iter_rows()}
    found = []
    for table, tree in _answering(record).items():
        roots: dict[Hashable, Hashable] = {}
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for node, parent in tree.items():
            roots[node] = node if parent is None else roots[parent]
            groups[roots[node]].append(ticks[table, int(str(node))])
        found.append([own for own in groups.values() if len(own) > 1])
    return found


def _answering(record: Record) -> dict[int, Tree]:
    """Of each table the facts with the one that each answers: of several, which its actor saw last, or the latest."""
    read = frames(record)
    seen = read.exposures.select("tbl", "fact", pl.col("agent").alias("actor"), "seen")
    answered = read.answers.join(read.facts.select("tbl", "seq", "actor"), on=["tbl", "seq"])
    ordered = answered.join(seen, on=["tbl", "fact", "actor"], how="left").sort("seen", "fact", nulls_last=False)
    latest = ordered.group_by("tbl", "seq").agg(pl.col("fact").last())
    trees: dict[int, dict[Hashable, Hashable | None]] = defaultdict(dict)
    for table, fact, parent in (
        read.facts.join(latest, on=["tbl", "seq"], how="left")
        .sort("tbl", "seq")
        .select("tbl", "id", "fact")
        .iter_rows()
    ):
        trees[table][fact] = parent
    return dict(trees)
