"""What agents contribute: runs in which some of them were left out, compared table by table.

Such runs are forks or repeats of one seed whose agents left at the start. What all together earn is their value, unless
another function of a record and a table says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from math import fsum
from statistics import fmean
from typing import TypeAlias

from sim.metrics.society.influence import MOST, shapley
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import estimated
from sim.types import AgentId, Measurement, Record

Value: TypeAlias = Callable[[Record, int], float]
"""Of a record and a table: what those who are there achieve."""
LAZY = 0.5
"""Share of an equal part below which an agent is flagged."""


def welfare(record: Record, table: int) -> float:
    """All rewards of a table."""
    return fsum(record.rewards(table).values())


def left_out(full: Record, without: Mapping[AgentId, Record], value: Value = welfare) -> Iterator[Measurement]:
    """What is lost without each agent: the mean over tables of value with it less value without, tested."""
    for agent, record in without.items():
        tables = range(min(full.tables, record.tables))
        lost = [value(full, table) - value(record, table) for table in tables]
        null = {"stat": fmean(lost), "p": sign_flips(lost), "method": "flipped signs"}
        of, told = {"agent": agent}, "tables, with and without the agent"
        yield estimated("influence.left_out", mean(lost), denominator=told, null=null, of=of)


def shapley_values(runs: Mapping[frozenset[AgentId], Record], value: Value = welfare) -> Iterator[Measurement]:
    """Shapley value and share of each agent, from a run for each group; a group of nobody achieves nothing.

    Raises ValueError where a group has no run, or where there are more agents than `MOST`.
    """
    agents = sorted({agent for group in runs for agent in group})
    if len(agents) > MOST:
        raise ValueError(f"{len(agents)} agents are more than {MOST}")
    groups = (frozenset(group) for size in range(1, len(agents) + 1) for group in combinations(agents, size))
    if missing := [sorted(group) for group in groups if group not in runs]:
        raise ValueError(f"no run of {', '.join(missing[0])} alone: all groups are needed, {len(missing)} have none")
    tables = range(min(record.tables for record in runs.values()))
    by_table = [_at(runs, agents, value, table) for table in tables]
    whole = fmean(fsum(own.values()) for own in by_table)
    for agent in agents:
        found = mean([own[agent] for own in by_table])
        share = found.value / whole if found.value is not None and whole else None
        lazy = share is not None and share < LAZY / len(agents)
        of, told = {"agent": agent}, "tables, all groups of agents"
        yield estimated("influence.shapley", found, denominator=told, flags=("lazy",) if lazy else (), of=of)
        alone = mean([])._replace(value=share, n=len(by_table), clusters=len(by_table))
        yield estimated("influence.shapley_share", alone, "share", denominator="what all achieve", of=of)


def _at(
    runs: Mapping[frozenset[AgentId], Record], agents: list[AgentId], value: Value, table: int
) -> dict[AgentId, float]:
    worth = {group: value(record, table) for group, record in runs.items()}
    found = shapley(agents, lambda group: worth.get(frozenset(map(str, group)), 0.0))
    return {agent: found[agent] for agent in agents}
