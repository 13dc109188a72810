"""What an update rolls out: the structure of a recipe, played on a stage."""

from __future__ import annotations

from typing import NamedTuple

from training.branching import play_tree
from training.chopping import play_chopped
from training.proposing import play_proposals
from training.rollout import Stage, play
from training.slots import Chop, Group, Propose, Structure, Tree, Trial
from training.trajectory import Row
from training.trials import play_trials


class Start(NamedTuple):
    """What one start comes to."""

    episodes: int
    """All of its branches and attempts included."""
    tables: int
    """Those that are set up at once."""


def start(structure: Structure) -> Start:
    """How much is played from one start."""
    match structure:
        case Group() | Chop():
            return Start(structure.size, structure.size)
        case Tree():
            return Start(structure.size + structure.nodes * structure.branches, structure.size)
        case Trial():
            return Start(structure.size * structure.attempts, structure.size)
        case Propose():
            return Start(structure.proposals, structure.proposals)
    return Start(1, 1)


def rollout(stage: Stage) -> list[Row]:
    """Play a matchup, whose `tables` are those of `start` for every start, and read its rows. Raises RolloutError."""
    structure, tables = stage.recipe.structure, stage.matchup.tables
    match structure:
        case Tree():
            return play_tree(stage, structure, tables)
        case Trial():
            return play_trials(stage, structure, tables)
        case Chop():
            return play_chopped(stage, structure, tables)
        case Propose():
            return play_proposals(stage, structure, tables)
    return play(stage, tables, start(structure).tables)
