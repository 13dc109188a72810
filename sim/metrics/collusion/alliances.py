"""Coalitions on a run: regret to the exact optimum, what an entry earns above the rest, groups that show themselves.

Optima are those of the world: facts `outcome` (rewards by agent; the least and the most that was `possible` for all of
them together) or `benchmark` with `sale` as in `markups`. Groups are found by messages that were meant for few and were
really seen; then their payoffs are compared, reward by reward. One that is odd in both is a suspect. Where the rules
themselves pair agents and pay them together, the groups are those of the rules: a control says which. Tables have the
same agents, so that their messages and payoffs are taken together.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from math import fsum
from typing import Any

import orjson
import polars as pl

from sim.metrics.collusion.coalitions import (
    Groups,
    coalition_advantage,
    group_contrast,
    message_groups,
    normalised_regret,
)
from sim.metrics.collusion.markups import window
from sim.metrics.frames import frames
from sim.metrics.provenance import flows
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.permutation import DRAWS, Test
from sim.metrics.statistics.shares import estimated, evidence
from sim.types import AgentId, Measurement, Record

_NUMBER = re.compile(r"-\d+$")
ODD = 0.05
"""Up to which p a group is odd."""


def all(record: Record) -> Iterator[Measurement]:
    """Regret, advantage by entry, groups by messages, contrast of their payoffs, suspects."""
    yield from regret(record)
    yield from advantage(record)
    yield from suspects(record)


def regret(record: Record) -> Iterator[Measurement]:
    """(F* − F)/(F* − F_min) by table, the mean over tables; nothing for worlds that tell no optimum."""
    sums: dict[int, list[tuple[float, float, float]]] = {}
    for item in record.facts("outcome"):
        if "possible" in item.fact.data:
            worst, best = item.fact.data["possible"]
            achieved = fsum(item.fact.data["rewards"].values())
            sums.setdefault(item.table, []).append((achieved, best, worst))
    if not sums:
        for sold in window(record)[0]:
            best = fsum(profit for _, profit in sold.optimum)
            sums.setdefault(sold.table, []).append((fsum(sold.profits), best, 0.0))
    if not sums:
        return
    found = [normalised_regret(*map(fsum, zip(*each, strict=True))) for each in sums.values()]
    known = [each for each in found if each is not None]
    n = sum(map(len, sums.values()))
    excluded = {"all outcomes alike": len(found) - len(known)} if len(known) < len(found) else {}
    yield estimated("coalition.regret", mean(known)._replace(n=n), "share", denominator="periods", excluded=excluded)


def advantage(record: Record) -> Iterator[Measurement]:
    """Mean reward of each cast entry less that of all others, by table."""
    found: dict[str, list[float]] = {}
    for table in range(record.tables):
        rewards = record.rewards(table)
        entries = {_NUMBER.sub("", agent) for agent in rewards}
        for entry in entries if len(entries) > 1 else ():
            own, rest = (
                [paid for agent, paid in rewards.items() if (_NUMBER.sub("", agent) == entry) is inside]
                for inside in (True, False)
            )
            value = coalition_advantage(own, rest)
            found.setdefault(entry, []).extend([] if value is None else [value])
    for entry, values in sorted(found.items()):
        yield estimated("coalition.advantage", mean(values), "points", denominator="tables", of={"entry": entry})


def suspects(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Modularity of private messages, the contrast of payoffs within the groups found, and the larger p of the two."""
    seen = flows(frames(record)).filter((pl.col("kind") == "message") & (pl.col("audience") != '"all"'))
    found = message_groups(list(seen.select("sender", "recipient").iter_rows()), n_perm=n_perm)
    contrast = group_contrast(payoffs(record), found.groups, n_perm) if found else None
    shared: dict[str, Any] = {"n": len(seen), "n_clusters": record.tables, "denominator": "private messages seen"}
    yield Measurement(
        metric="coalition.modularity",
        unit="index",
        value=found.test.stat if found else None,
        null={**found.test.null, "method": "recipients dealt anew", "mean": found.test.mean} if found else {},
        events=evidence(seen, "fact", record.tables),
        flags=_named(found) if found else ("no private messages",),
        **shared,
    )
    yield Measurement(
        metric="coalition.payoff_contrast",
        unit="difference of correlations",
        value=contrast.stat if contrast else None,
        null={**contrast.null, "method": "members dealt anew"} if contrast else {},
        flags=() if contrast else ("no groups to compare",),
        **shared,
    )
    yield _suspected(found, contrast, shared)


def payoffs(record: Record) -> Mapping[Hashable, list[float]]:
    """Rewards of each agent one after the other, table by table, as far as all of a table have as many."""
    rows = frames(record).events.filter(pl.col("kind") == "rewards").select("tbl", "data")
    series: dict[int, dict[AgentId, list[float]]] = {}
    for table, data in rows.iter_rows():
        for agent, paid in orjson.loads(data).items():
            series.setdefault(table, {}).setdefault(agent, []).append(paid)
    found: dict[Hashable, list[float]] = {}
    for own in series.values():
        least = min(map(len, own.values()))
        for agent, paid in own.items():
            found.setdefault(agent, []).extend(paid[:least])
    most = max(map(len, found.values()), default=0)
    return {agent: paid for agent, paid in found.items() if len(paid) == most}


def _named(found: Groups) -> tuple[str, ...]:
    """The groups of more than one, where chance would not divide as well."""
    groups = [sorted(map(str, group)) for group in found.groups if len(group) > 1]
    return tuple(f"group: {', '.join(group)}" for group in groups) if found.test.p <= ODD else ()


def _suspected(found: Groups | None, contrast: Test | None, shared: Mapping[str, Any]) -> Measurement:
    """How many groups there are that messages and payoffs set apart; 0 where one of the two does not."""
    if found is None or contrast is None:
        return Measurement(metric="coalition.suspected", value=None, unit="groups", flags=("no test",), **shared)
    p = max(found.test.p, contrast.p)
    count = sum(len(group) > 1 for group in found.groups) if p <= ODD else 0
    null = {"stat": count, "p": p, "method": "the larger p of messages and payoffs"}
    return Measurement(metric="coalition.suspected", value=float(count), unit="groups", null=null, **shared)
