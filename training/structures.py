"""What an update rolls out: the structure of a recipe, played on a stage."""

from __future__ import annotations

from typing import NamedTuple

from training.branching import play_tree
from training.rollout import Stage, play
from training.slots import Group, Structure, Tree
from training.trajectory import Row


class Start(NamedTuple):
    """What one start comes to."""

    episodes: int
    """All of its branches and attempts included."""
    tables: int
    """Those that are set up at once."""


def start(structure: Structure) -> Start:
    """How much is played from one start."""
    match structure:
        case Group():
            return Start(structure.size, structure.size)
        case Tree():
            return Start(structure.size + structure.nodes * structure.branches, structure.size)
    return Start(1, 1)


def rollout(stage: Stage) -> list[Row]:
    """Play a matchup, whose `tables` are those of `start` for every start, and read its rows. Raises RolloutError."""
    structure = stage.recipe.structure
    tables, alike = stage.matchup.tables, start(structure).tables
    match structure:
        case Tree():
            return play_tree(stage, structure, tables)
    return play(stage, tables, alike)
