"""Rounds of matrix games as facts tell them, for metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sim.types import AgentId, FactId, Record
from worlds.games.payoffs import Game, build


class Round(NamedTuple):
    """One round of a match."""

    table: int
    fact: FactId
    number: int
    moves: Mapping[AgentId, str]
    """By agent, in the order of the game's players."""
    payoffs: Mapping[AgentId, float]
    missed: frozenset[AgentId]
    """Whose moves were not their own."""


def matches(record: Record) -> dict[tuple[int, int], list[Round]]:
    """Rounds by table and match, in order."""
    found: dict[tuple[int, int], list[Round]] = defaultdict(list)
    for item in record.facts("round"):
        data = item.fact.data
        own = Round(item.table, item.fact.id, data["round"], data["moves"], data["payoffs"], frozenset(data["missed"]))
        found[item.table, data["match"]].append(own)
    return found


def game_of(record: Record) -> Game:
    """The game that a record's parameters name."""
    params = record.params
    return build(params["game"], params["actions"], params["payoffs"], params["by_count"])
