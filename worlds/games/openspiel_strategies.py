"""Baselines for OpenSpiel games: policies as tables, Kuhn poker's equilibria among them, and minimax at tic-tac-toe.

`agents.scripted:RandomLegal` plays every game uniformly at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from sim.streams import Streams
from sim.types import Action, Choice, Member, Mind, Turn
from worlds.games.strategies import drawn

# --- tables ---------------------------------------------------------------------------------------

KUHN_BETS = ("0:0", "0:1", "0:2", "0:0pb", "0:1pb", "0:2pb", "1:0p", "1:1p", "1:2p", "1:0b", "1:1b", "1:2b")
"""Information states of Kuhn poker for two: player, card from 0 (jack) to 2 (king), what was said."""


def kuhn(bets: Iterable[float]) -> dict[str, dict[str, float]]:
    """A policy for Kuhn poker from the probabilities to bet, in the order of `KUHN_BETS`."""
    return {key: {"pass": 1 - bet, "bet": bet} for key, bet in zip(KUHN_BETS, bets, strict=True)}


def kuhn_nash(alpha: float) -> dict[str, dict[str, float]]:
    """The equilibria of Kuhn poker (Kuhn 1950): the first player bluffs with the jack with probability `alpha`.

    The second player has one only. The game is worth -1/18 to the first. Raises ValueError outside [0, 1/3].
    """
    if not 0 <= alpha <= 1 / 3:
        raise ValueError(f"alpha is from 0 to 1/3, not {alpha}")
    first = (alpha, 0, 3 * alpha, 0, alpha + 1 / 3, 1)
    second = (1 / 3, 0, 1, 0, 1 / 3, 1)
    return kuhn((*first, *second))


# --- tic-tac-toe ------------------------------------------------------------------------------------

_LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


@cache
def value(board: str, mark: str) -> int:
    """What a board of nine cells is worth to whoever moves next and marks with `mark`: 1, 0 or -1."""
    other = "o" if mark == "x" else "x"
    if any(all(board[int(cell)] == other for cell in line) for line in _LINES):
        return -1
    return max((-value(after, other) for after in _marked(board, mark)), default=0)


def best(board: str, mark: str) -> tuple[int, ...]:
    """The best moves, as indices among the empty cells."""
    values = [-value(after, "o" if mark == "x" else "x") for after in _marked(board, mark)]
    return tuple(index for index, each in enumerate(values) if each == max(values))


def _marked(board: str, mark: str) -> list[str]:
    return [f"{board[:cell]}{mark}{board[cell + 1 :]}" for cell in range(9) if board[cell] == "."]


# --- agents -----------------------------------------------------------------------------------------


class Tabular:
    """A policy by information state: `with: {table: {"0:2": {bet: 1, pass: 0}, …}}`; elsewhere uniform."""

    def __init__(self, member: Member, table: Mapping[str, Mapping[str, float]]) -> None:
        for key, row in table.items():
            if min(row.values(), default=0) < 0 or abs(sum(row.values()) - 1) > 1e-6:
                raise ValueError(f"{key!r}: probabilities are not negative and add up to 1, unlike {dict(row)}")
        self._table = table
        self.state: object = None

    def policy(self, turn: Turn) -> dict[str, float]:
        """The probability of every option. Raises ValueError where the table names what is not legal."""
        assert isinstance(turn.format, Choice)
        options = turn.format.options
        row = self._table.get(turn.key or "")
        if row is None:
            return dict.fromkeys(options, 1 / len(options))
        if wrong := sorted(set(row) - set(options)):
            raise ValueError(f"{turn.key!r}: {', '.join(wrong)} is not among {', '.join(options)}")
        return {option: row.get(option, 0.0) for option in options}

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw."""
        yield from ()
        policy = self.policy(turn)
        return Action(answer=list(policy)[drawn(list(policy.values()), streams.draw("move"))])


class KuhnNash(Tabular):
    """An equilibrium of Kuhn poker for two, in either seat."""

    def __init__(self, member: Member, alpha: float = 0.0) -> None:
        super().__init__(member, kuhn_nash(alpha))


class AlwaysBet(Tabular):
    """Kuhn poker: bets whatever it holds."""

    def __init__(self, member: Member) -> None:
        super().__init__(member, kuhn([1.0] * len(KUHN_BETS)))


class AlwaysPass(Tabular):
    """Kuhn poker: passes whatever it holds."""

    def __init__(self, member: Member) -> None:
        super().__init__(member, kuhn([0.0] * len(KUHN_BETS)))


class Minimax:
    """Tic-tac-toe: one of the best moves, all alike likely."""

    def __init__(self, member: Member) -> None:
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Look ahead to the end."""
        yield from ()
        board = ["."] * 9
        for n, cell in enumerate(re.findall(r"\d", turn.view["known"])):
            board[int(cell)] = "xo"[n % 2]
        moves = best("".join(board), "xo"[turn.view["me"]])
        return Action(answer=turn.view["options"][streams.choice(moves, "move")])
