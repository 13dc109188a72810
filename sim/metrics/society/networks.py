"""Who deals with whom, as graphs: reciprocity, assortativity, clustering, communities and how sure they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from statistics import fmean
from typing import Any, NamedTuple

import networkx as nx
import polars as pl

from sim.metrics.frames import frames
from sim.metrics.provenance import flows
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.partitions import STARTS, consensus
from sim.metrics.statistics.permutation import p_value
from sim.metrics.statistics.shares import by, estimated
from sim.types import Measurement, Record

Edge = tuple[Hashable, Hashable]


REWIRED = 99
"""Graphs that a modularity is held against: 999, as other tests have, take 3 s of CPU time at 16 nodes, 20 at 40."""


class Communities(NamedTuple):
    """A partition, and whether a graph of the same degrees at random would divide as well."""

    groups: tuple[frozenset[Hashable], ...]
    modularity: float
    p: float


def reciprocity(edges: Sequence[Edge]) -> float | None:
    """Share of distinct directed edges whose reverse is there too; loops are left out."""
    there = {(a, b) for a, b in edges if a != b}
    return sum((b, a) in there for a, b in there) / len(there) if there else None


def assortativity(edges: Sequence[Edge], group: Mapping[Hashable, Hashable]) -> float | None:
    """(Tr e − Σ a·b)/(1 − Σ a·b) of the mixing matrix of groups, undirected (Newman 2003); None where one has all.

    Two nodes have one edge, however often it is named; loops are left out.
    """
    linked = _graph(edges).edges
    if missing := {node for edge in linked for node in edge} - group.keys():
        raise ValueError(f"group: {min(map(repr, missing))} has none")
    ends = [(group[a], group[b]) for a, b in linked] + [(group[b], group[a]) for a, b in linked]
    if not ends:
        return None
    share = Counter(a for a, _ in ends)
    chance = sum((count / len(ends)) ** 2 for count in share.values())
    inside = sum(a == b for a, b in ends) / len(ends)
    return (inside - chance) / (1 - chance) if chance < 1 else None


def clustering(edges: Sequence[Edge]) -> float | None:
    """Mean share of pairs of neighbours that are linked (Watts and Strogatz 1998), undirected."""
    graph = _graph(edges)
    return float(nx.average_clustering(graph)) if len(graph) else None


def modularity(edges: Sequence[Edge], groups: Sequence[Set[Hashable]]) -> float | None:
    """Share of edges within groups beyond that of a random graph of the same degrees (Newman and Girvan 2004)."""
    graph = _graph(edges)
    if not graph.number_of_edges():
        return None
    if sorted(map(repr, graph)) != sorted(repr(node) for group in groups for node in group):
        raise ValueError("groups: not every node is in exactly one")
    return float(nx.community.modularity(graph, groups))


def communities(
    edges: Sequence[Edge], restarts: int = STARTS, n_perm: int = REWIRED, seed: int = 0
) -> Communities | None:
    """What several Louvain partitions agree on; one search of the graph against one of each rewired with its degrees.

    p is at least 1/(n_perm + 1); more draws than by default take time, as rewiring and dividing a graph does.
    """
    graph = _graph(edges)
    if not graph.number_of_edges():
        return None
    agreed, groups = consensus(graph, restarts, seed)
    once, _ = consensus(graph, 1, seed)
    under_null = []
    for draw in range(n_perm):
        rewired = graph.copy()
        if graph.number_of_edges() > 1:
            _rewire(rewired, 5 * graph.number_of_edges(), seed + draw)
        under_null.append(consensus(rewired, 1, seed)[0])
    return Communities(tuple(frozenset(group) for group in groups), agreed, p_value(once, under_null))


def pair_f1(found: Sequence[Set[Hashable]], truth: Sequence[Set[Hashable]]) -> float | None:
    """F1 of pairs that are put together, against those that belong together."""
    own, right = _pairs(found), _pairs(truth)
    return 2 * len(own & right) / (len(own) + len(right)) if own or right else None


def adjusted_rand(found: Sequence[Set[Hashable]], truth: Sequence[Set[Hashable]]) -> float | None:
    """Agreement of two partitions beyond chance (Hubert and Arabie 1985)."""
    _same_items(found, truth)
    n = sum(map(len, truth))
    every = n * (n - 1) / 2
    own, right = _pairs(found), _pairs(truth)
    if not every:
        return None
    chance = len(own) * len(right) / every
    most = (len(own) + len(right)) / 2
    return (len(own & right) - chance) / (most - chance) if most != chance else 1.0


def answering(record: Record) -> Iterator[Measurement]:
    """Of who answered whom: reciprocity, assortativity by role, clustering; means over tables."""
    read = frames(record)
    told = read.facts.filter(pl.col("actor") != "").select("tbl", "seq", "id", "actor")
    links = read.answers.join(told, on=["tbl", "seq"]).join(
        told.select("tbl", pl.col("id").alias("fact"), pl.col("actor").alias("to")), on=["tbl", "fact"]
    )
    links = links.filter(pl.col("actor") != pl.col("to")).select("tbl", "actor", "to").unique()
    roles = {(table, agent): role for table, agent, role in read.cast.select("tbl", "agent", "role").iter_rows()}
    names = ("reciprocity", "role_assortativity", "clustering")
    found: dict[str, list[float]] = {name: [] for name in names}
    for table, rows in by(links, "tbl"):
        edges: list[Edge] = list(rows.select("actor", "to").sort("actor", "to").iter_rows())
        group = {agent: role for (at, agent), role in roles.items() if at == table}
        values = (reciprocity(edges), assortativity(edges, group), clustering(edges))
        for name, value in zip(names, values, strict=True):
            found[name] += [] if value is None else [value]
    for name in names:
        yield estimated(f"network.{name}", mean(found[name])._replace(n=len(links)), denominator="pairs who answered")


def private_groups(record: Record, n_perm: int = REWIRED) -> Iterator[Measurement]:
    """Groups that talk among themselves: modularity of who really saw messages meant for few, by table, against chance.

    The flags name the groups of three or more.
    """
    seen = flows(frames(record)).filter(pl.col("audience").str.starts_with("["))
    for table, rows in by(seen, "tbl"):
        edges: list[Edge] = list(rows.select("sender", "recipient").unique().sort("sender", "recipient").iter_rows())
        found = communities(edges, n_perm=n_perm)
        if found is None:
            continue
        groups = sorted(", ".join(sorted(map(str, group))) for group in found.groups if len(group) > 2)
        yield Measurement(
            metric="network.private_modularity",
            value=found.modularity,
            n=len(rows),
            denominator="private messages seen",
            flags=tuple(f"group: {group}" for group in groups),
            null={"stat": found.modularity, "p": found.p, "method": "rewired with the same degrees", "n_perm": n_perm},
            of={"table": table},
        )


def mean_degree(edges: Sequence[Edge]) -> float | None:
    """Neighbours of a node, on average, undirected."""
    graph = _graph(edges)
    return fmean(degree for _, degree in graph.degree()) if len(graph) else None


def _graph(edges: Sequence[Edge]) -> Any:
    graph = nx.Graph()
    graph.add_edges_from(sorted(((a, b) for a, b in edges if a != b), key=repr))
    return graph


def _rewire(graph: Any, swaps: int, seed: int) -> None:
    """Swap ends of edges, so that degrees stay; as many as can be found."""
    try:
        nx.double_edge_swap(graph, nswap=swaps, max_tries=20 * swaps, seed=seed)
    except nx.NetworkXException:
        return


def _same_items(found: Sequence[Set[Hashable]], truth: Sequence[Set[Hashable]]) -> None:
    """Raises ValueError where two partitions are not of the same items, each of them once."""
    one, other = (Counter(item for group in groups for item in group) for groups in (found, truth))
    if one != other or max(one.values(), default=1) > 1:
        raise ValueError("groups: not two partitions of the same items")


def _pairs(groups: Sequence[Set[Hashable]]) -> set[frozenset[Hashable]]:
    return {frozenset((a, b)) for group in groups for a in group for b in group if a != b}
