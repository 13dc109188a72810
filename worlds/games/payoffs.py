"""Games in normal form: the classics by name, or a table of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

Joint = tuple[int, ...]
"""One action index per player."""

LARGEST = 4_096
"""Cells a game's table may have: ten players with two actions fit, thirteen do not."""

_SYMMETRIC: dict[str, tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]] = {
    "pd": (("cooperate", "defect"), ((3, 0), (5, 1))),
    "stag_hunt": (("stag", "hare"), ((2, 0), (1, 1))),
    "chicken": (("swerve", "straight"), ((3, 1), (4, 0))),
    "rps": (("rock", "paper", "scissors"), ((0, -1, 1), (1, 0, -1), (-1, 1, 0))),
}
"""Labels, and what the row player gets; the column player gets the transpose."""

_OTHERS: dict[str, tuple[tuple[str, ...], dict[Joint, tuple[float, float]]]] = {
    "battle_of_sexes": (("opera", "football"), {(0, 0): (3, 2), (0, 1): (0, 0), (1, 0): (0, 0), (1, 1): (2, 3)}),
    "matching_pennies": (("heads", "tails"), {(0, 0): (1, -1), (0, 1): (-1, 1), (1, 0): (-1, 1), (1, 1): (1, -1)}),
}

NAMES = (*_SYMMETRIC, *_OTHERS)
"""The games that can be had by name."""
COOPERATIVE = frozenset({"pd", "stag_hunt", "chicken"})
"""Named games whose first action is the cooperative one."""


@dataclass(frozen=True)
class Game:
    """Actions and payoffs of every player."""

    actions: tuple[tuple[str, ...], ...]
    """Labels by player."""
    table: Mapping[Joint, tuple[float, ...]]
    """Payoffs by joint action."""
    by_count: bool = False
    """Whether only one's own action and the number of others at the first action matter."""

    @property
    def players(self) -> int:
        """How many play it."""
        return len(self.actions)

    @cached_property
    def views(self) -> tuple[dict[str, float], ...]:
        """By player: own payoff by joint action, written "0,1"."""
        return tuple({text(joint): own[me] for joint, own in self.table.items()} for me in range(self.players))

    @cached_property
    def safe(self) -> Joint:
        """By player, the action whose worst payoff is best (the first of several)."""
        return tuple(max(range(len(mine)), key=lambda a: self._worst(me, a)) for me, mine in enumerate(self.actions))

    def _worst(self, me: int, action: int) -> float:
        return min(own[me] for joint, own in self.table.items() if joint[me] == action)


def text(joint: Sequence[int]) -> str:
    """A joint action as a JSON key: "0,1"."""
    return ",".join(map(str, joint))


def named(name: str) -> Game:
    """One of the classics."""
    if name in _SYMMETRIC:
        labels, rows = _SYMMETRIC[name]
        both = product(range(len(labels)), repeat=2)
        return Game((labels, labels), {(a, b): (rows[a][b], rows[b][a]) for a, b in both})
    labels, table = _OTHERS[name]
    return Game((labels, labels), table)


def explicit(actions: Sequence[Sequence[str]], payoffs: Mapping[str, Sequence[float]]) -> Game:
    """A game from its cells, `{"C,D": [0, 5], …}`. Raises ValueError where cells lack or are too many."""
    labels = tuple(tuple(mine) for mine in actions)
    if len(labels) < 2 or any(not mine or len(set(mine)) < len(mine) for mine in labels):
        raise ValueError("actions: give at least two players, each with a list of different labels")
    if any("," in label or not label.strip() for mine in labels for label in mine):
        raise ValueError("actions: a label is a word without commas")
    given = {tuple(part.strip() for part in key.split(",")): tuple(own) for key, own in payoffs.items()}
    table = {}
    for joint in product(*(range(len(mine)) for mine in labels)):
        cell = tuple(mine[a] for mine, a in zip(labels, joint, strict=True))
        own = given.pop(cell, None)
        if own is None or len(own) != len(labels):
            raise ValueError(f"payoffs: {','.join(cell)!r} needs {len(labels)} payoffs, one per player")
        table[joint] = own
    if given:
        raise ValueError(f"payoffs: {','.join(next(iter(given)))!r} is no joint action of this game")
    return Game(labels, table)


def counted(by_count: Mapping[str, Sequence[float]]) -> Game:
    """A symmetric game: by own action, the payoff where 0, 1, … of the others choose the first action."""
    labels, rows = tuple(by_count), tuple(map(tuple, by_count.values()))
    players = len(rows[0]) if rows else 0
    if len(labels) < 2 or players < 2 or any(len(row) != players for row in rows):
        raise ValueError(
            "by_count: give at least two actions, each with one payoff for 0, 1, … others: as many as players"
        )
    if len(labels) ** players > LARGEST:
        raise ValueError(f"by_count: {players} players with {len(labels)} actions make more than {LARGEST} cells")
    table = {}
    for joint in product(range(len(labels)), repeat=players):
        first = joint.count(0)
        table[joint] = tuple(rows[a][first - (a == 0)] for a in joint)
    return Game((labels,) * players, table, by_count=True)


def build(
    game: str | None,
    actions: Sequence[Sequence[str]],
    payoffs: Mapping[str, Sequence[float]],
    by_count: Mapping[str, Sequence[float]],
) -> Game:
    """The game that the settings of the world name. Raises ValueError unless it is exactly one."""
    if [game is not None, bool(payoffs), bool(by_count)].count(True) != 1:
        raise ValueError(f"name one game: game (one of {', '.join(NAMES)}), or actions with payoffs, or by_count")
    if game is not None:
        return named(game)
    return explicit(actions, payoffs) if payoffs else counted(by_count)
