"""What agents contribute: runs in which some of them were left out, compared table by table.

Such runs have the same luck: forks whose agents left at the start, or runs of one seed with fewer in their cast. What
all together earn is their value, unless another function of a record and a table says it. Clusters are the families of
runs of the same luck; of a single one its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum
from statistics import fmean
from typing import TypeAlias

import polars as pl

from sim.metrics.frames import field, frames
from sim.metrics.society.influence import MOST, lazy, shapley
from sim.metrics.statistics.clusters import mean, ratio
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import by, estimated
from sim.metrics.twins import Relative, same_luck
from sim.types import AgentId, Measurement, Record

Value: TypeAlias = Callable[[Record, int], float]
"""Of a record and a table: what those who are there achieve."""
Family: TypeAlias = Mapping[frozenset[AgentId], Record]
"""Runs of the same luck, by who is there."""


def welfare(record: Record, table: int) -> float:
    """All rewards of a table."""
    return fsum(record.rewards(table).values())


def compared(runs: Sequence[Relative], value: Value = welfare) -> Iterator[Measurement]:
    """What is lost without each agent, and Shapley values where each group of agents has a run."""
    families = [{there(one.record): one.record for one in group} for group in same_luck(runs)]
    yield from left_out(families, value)
    yield from shapley_values(families, value)


def tokens(record: Record) -> Iterator[Measurement]:
    """Each agent's share of the tokens that models sampled for all: much of it without influence is talk."""
    calls = frames(record).calls.group_by("tbl", "agent").agg(pl.col("completion_tokens").sum())
    sums = {table: float(own["completion_tokens"].sum()) for table, own in by(calls, "tbl")}
    for agent, own in by(calls, "agent"):
        parts = dict(own.select("tbl", "completion_tokens").iter_rows())
        found = ratio([parts.get(table, 0) for table in sums], list(sums.values()))
        told, of = "sampled tokens of all agents", {"agent": agent}
        yield estimated("influence.token_share", found, "share", denominator=told, of=of)


def there(record: Record) -> frozenset[AgentId]:
    """The cast, less whom an intervention had leave."""
    told = frames(record).events.filter(pl.col("kind") == "change").select(field("data", "do"), field("data", "agent"))
    gone = set(told.filter(pl.col("do") == "leave")["agent"])
    cast = {member.seat.agent for table in range(record.tables) for member in record.cast(table)}
    return frozenset(cast - gone)


def left_out(families: Sequence[Family], value: Value = welfare) -> Iterator[Measurement]:
    """What is lost without each agent: the mean of value with it less value without, tested."""
    everybody = _everybody(families)
    for agent in sorted(everybody):
        others, lost = everybody - {agent}, []
        for runs in families:
            if everybody in runs and others in runs:
                with_, without = runs[everybody], runs[others]
                tables = range(min(with_.tables, without.tables))
                lost.append([value(with_, table) - value(without, table) for table in tables])
        each = [fmean(one) for one in lost] if len(lost) > 1 else [gap for one in lost for gap in one]
        null = {"stat": fmean(each), "p": sign_flips(each), "method": "flipped signs"} if each else {}
        flags = () if each else ("no run without it beside one of all",)
        of, told = {"agent": agent}, "tables, with and without the agent"
        yield estimated("influence.left_out", mean(each), denominator=told, flags=flags, null=null, of=of)


def shapley_values(families: Sequence[Family], value: Value = welfare) -> Iterator[Measurement]:
    """Shapley value and share of each agent, from a run for each group; a group of nobody achieves nothing."""
    agents = sorted(_everybody(families))
    missing = 0 if len(agents) > MOST else min((_missing(runs, agents) for runs in families), default=0)
    whole = [] if len(agents) > MOST else [runs for runs in families if not _missing(runs, agents)]
    units = [_tables(runs, agents, value) for runs in whole]
    rows = [_mean(tables) for tables in units] if len(units) > 1 else [one for tables in units for one in tables]
    total = fmean(fsum(own.values()) for own in rows) if rows else 0.0
    why = f"more than {MOST} agents" if len(agents) > MOST else f"{missing} groups of agents without a run"
    for agent in agents:
        found = mean([own[agent] for own in rows])
        share = found.value / total if found.value is not None and total else None
        flags = ("lazy",) if lazy(len(agents), share) else () if rows else (why,)
        of, told = {"agent": agent}, "tables, all groups of agents"
        yield estimated("influence.shapley", found, denominator=told, flags=flags, of=of)
        alone = mean([])._replace(value=share, n=len(rows), clusters=len(rows))
        yield estimated("influence.shapley_share", alone, "share", denominator="what all achieve", of=of)


def _everybody(families: Sequence[Family]) -> frozenset[AgentId]:
    return frozenset(agent for runs in families for group in runs for agent in group)


def _missing(runs: Family, agents: Sequence[AgentId]) -> int:
    """How many groups of agents have no run."""
    groups = (frozenset(group) for size in range(1, len(agents) + 1) for group in combinations(agents, size))
    return sum(group not in runs for group in groups)


def _tables(runs: Family, agents: list[AgentId], value: Value) -> list[dict[AgentId, float]]:
    """Shapley values at each table."""
    return [_at(runs, agents, value, table) for table in range(min(record.tables for record in runs.values()))]


def _at(runs: Family, agents: list[AgentId], value: Value, table: int) -> dict[AgentId, float]:
    worth = {group: value(record, table) for group, record in runs.items()}
    found = shapley(agents, lambda group: worth.get(frozenset(map(str, group)), 0.0))
    return {agent: found[agent] for agent in agents}


def _mean(tables: Sequence[Mapping[AgentId, float]]) -> dict[AgentId, float]:
    return {agent: fmean(own[agent] for own in tables) for agent in tables[0]}
