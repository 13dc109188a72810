"""How near to its goals an agent decides: words that its answers share with them.

An agent's goals are those of its persona, the subgoal that it set itself last, and the task that its view showed or
its memory recalled last, a fact of the kind `task`. Who has none is near to nothing, which is not the same as far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from statistics import fmean

import polars as pl

from sim.metrics.analysis.uncertainty import Place
from sim.metrics.frames import Frames, frames, texts
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, Measurement, Record


def goal_similarity(goal: str, text: str) -> float | None:
    """Shared words over all words of both (Jaccard 1912), whatever their case; None where one has no words."""
    one, other = (set(re.findall(r"\w+", each.casefold())) for each in (goal, text))
    return len(one & other) / len(one | other) if one and other else None


def nearness(record: Record) -> dict[Place, float]:
    """Of each decision with words, of an agent with goals, how similar its answer is to them."""
    read = frames(record)
    personas = {
        (table, member.seat.agent): _told(member.persona.get("goals"))
        for table in range(record.tables)
        for member in record.cast(table)
    }
    tasks, aims = _tasks(read), _subgoals(read)
    found = {}
    rows = read.decisions.select("tbl", "seq", "agent", "answer").sort("tbl", "seq")
    for table, seq, agent, answer in rows.iter_rows():
        goals = personas.get((table, agent), ""), aims.get((table, seq), ""), tasks.get((table, seq), "")
        near = goal_similarity("\n".join(goals), texts(answer))
        if near is not None:
            found[table, seq] = near
    return found


def near_goals(record: Record) -> Iterator[Measurement]:
    """Mean similarity of answers to the goals of who gave them, by table."""
    found = nearness(record)
    by_table: dict[int, list[float]] = {}
    for (table, _), near in found.items():
        by_table.setdefault(table, []).append(near)
    left = len(frames(record).decisions) - len(found)
    yield estimated(
        "goals.similarity",
        mean([fmean(own) for own in by_table.values()])._replace(n=len(found)),
        "share of words",
        denominator="answers in words, of agents with goals",
        excluded={"no goals, or no words": left} if left else {},
    )


def _told(goals: JSON) -> str:
    return goals if isinstance(goals, str) else "\n".join(map(str, goals or ()))


def _tasks(read: Frames) -> dict[Place, str]:
    """Of each decision the latest task that it could use."""
    told = read.facts.filter(pl.col("kind") == "task").select("tbl", pl.col("id").alias("fact"), "data")
    used = pl.concat([read.shows, read.recalls]).join(told, on=["tbl", "fact"]).sort("fact")
    last = used.group_by("tbl", "seq").agg(pl.col("data").last())
    return {(table, seq): texts(data) for table, seq, data in last.iter_rows()}


def _subgoals(read: Frames) -> dict[Place, str]:
    """Of each decision the subgoal that its agent had set itself last."""
    said = read.calls.filter((pl.col("purpose") == "subgoal") & (pl.col("finish") != "error"))
    set_at: Mapping[tuple[int, AgentId, int, int], str] = {
        (*key,): text for *key, text in said.select("tbl", "agent", "tick", "nth", "text").iter_rows()
    }
    last: dict[tuple[int, AgentId], str] = {}
    found = {}
    for table, seq, agent, seen, nth in (
        read.decisions.sort("tbl", "seq").select("tbl", "seq", "agent", "seen", "nth").iter_rows()
    ):
        last[table, agent] = set_at.get((table, agent, seen, nth), last.get((table, agent), ""))
        found[table, seq] = last[table, agent]
    return found
