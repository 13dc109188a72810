"""Proposers and solvers: in one episode a proposer makes a task, and so many solvers try it.

The scenario's world is what makes a task of a proposal, and has the roles `proposer` and `solver`. Episodes from one
source task start alike; each of them is one proposed task, so its solvers are a group.
"""

from __future__ import annotations

from msgspec.structs import replace

from training.rollout import RolloutError, Stage, play
from training.slots import Propose
from training.trajectory import Row

PROPOSER, SOLVER = "proposer", "solver"
"""Roles."""


def play_proposals(stage: Stage, propose: Propose, tables: int) -> list[Row]:
    """Proposals at so many tables, each tried by as many solvers as the structure says. Raises RolloutError."""
    cast = [entry for _, entry in stage.scenario(tables, propose.proposals).entries]
    solvers = [entry.name for entry in cast if entry.role == SOLVER]
    proposers = [agent for entry in cast if entry.role == PROPOSER for agent in entry.agents]
    if len(solvers) != 1 or len(proposers) != 1:
        raise RolloutError(
            f"{stage.file}: the structure propose needs one agent of the role {PROPOSER} and one entry of the cast of "
            f"the role {SOLVER}; there are {len(proposers)} and {len(solvers)}"
        )
    rows = play(stage, tables, propose.proposals, [f"cast.{solvers[0]}.count={propose.attempts}"])
    return [replace(row, task=row.group, group=row.episode) for row in rows]
