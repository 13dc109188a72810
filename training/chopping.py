"""Long episodes cut into pieces by summaries: each takes the place of what an agent remembered before it (SUPO).

The agent's memory budget is where it is cut. A summary stands in a row of its own, of the decision that it precedes; so
all pieces, summaries included, have the return of their episode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from sim.types import AgentId
from training.rollout import Stage, learners, play
from training.slots import Chop
from training.trajectory import Row


def play_chopped(stage: Stage, chop: Chop, tables: int) -> list[Row]:
    """Episodes at so many tables. Raises RolloutError."""
    scenario = stage.scenario(tables, chop.size)
    budget = [f"cast.{entry.name}.with.memory_tokens={chop.context}" for entry in learners(scenario, stage)]
    return capped(play(stage, tables, chop.size, budget), chop.summaries)


def capped(rows: Sequence[Row], most: int) -> list[Row]:
    """The rows, where a seat that needed more summaries in its episode counts as truncated."""
    summaries = Counter((row.episode, row.seat) for row in rows if row.has("summary"))
    last: dict[tuple[str, AgentId], int] = {}
    for row in rows:
        last[row.episode, row.seat] = max(row.turn, last.get((row.episode, row.seat), 0))
    return [
        replace(row, ended="truncated")
        if summaries[seat := (row.episode, row.seat)] > most and row.turn == last[seat]
        else row
        for row in rows
    ]
