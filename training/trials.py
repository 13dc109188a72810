"""Trials: attempts at one start, one after the other. In each an agent knows how those before went, in its own words.

Every attempt is a run. What a learner remembered at its end, and what it earned, stands in the next run's cast; with
`reflect` it begins that one by a call in which it says what it makes of it, and learns from that too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from sim.runs import Session, create
from sim.types import AgentId
from training.rollout import RolloutError, Stage, finished, learners, read
from training.slots import Trial
from training.trajectory import Row, earned


def play_trials(stage: Stage, trial: Trial, tables: int) -> list[Row]:
    """Trials at so many tables; the rows of all attempts, one after the other. Raises RolloutError."""
    found: list[Row] = []
    past: dict[tuple[int, AgentId], str] = {}
    scenario = stage.scenario(tables, trial.size)
    entries = learners(scenario, stage)
    agents = {agent for entry in entries for agent in entry.agents}
    if trial.reflect:
        settings = [f"cast.{entry.name}.with.reflect=true" for entry in entries]
        scenario = stage.scenario(tables, trial.size, settings)
    for attempt in range(trial.attempts):
        path = create(scenario, stage.folder, f"{stage.run}-{attempt + 1}", past=past, luck=attempt)
        session = finished(path, stage)
        rows = read(path, stage)
        past = remembered(session, rows, agents, attempt)
        found += [_placed(row, stage.run, trial, attempt) for row in rows]
    return found


def remembered(
    session: Session, rows: Sequence[Row], agents: Collection[AgentId], attempt: int
) -> dict[tuple[int, AgentId], str]:
    """What these agents take along from a run that was played just now, by table. Raises RolloutError."""
    assert session.plan is not None
    paid = earned(rows)
    run = session.path.stem
    found = {}
    for table in session.plan.tables:
        for player in table.players:
            if player.id in agents:
                text = getattr(player.agent.state, "text", "")
                if not text and (f"{run}:{table.table}", player.id) in paid:
                    raise RolloutError(
                        f"{session.path}: {player.id} remembers nothing of its attempt; the structure trial needs "
                        "agents with a memory, as agents.llm:LLMAgent with memory_tokens above 0"
                    )
                reward = paid.get((f"{run}:{table.table}", player.id), 0.0)
                found[table.table, player.id] = f"{text}\nThat was attempt {attempt + 1}: you earned {reward:g}."
    return found


def _placed(row: Row, run: str, trial: Trial, attempt: int) -> Row:
    """The row with its place in a trial; trials from one start are one group."""
    table = int(row.episode.rpartition(":")[2])
    group = f"{run}/{table // trial.size}"
    return replace(row, trial=f"{run}:{table}", attempt=attempt, group=group, task=group)
