"""Baselines for riddles: two proposers and three solvers. Asked in the other role, they take the turn's default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sim.streams import Streams
from sim.types import JSON, Action, Choice, Member, Mind, Turn
from worlds.games.riddles_problems import Problem

# --- rules: pure functions ----------------------------------------------------------------------


def hardest(options: Sequence[str]) -> str:
    """The largest of the numbers; of the operations `times`, or else the last."""
    return "times" if "times" in options else options[-1]


def stated(view: Mapping[str, JSON]) -> Problem:
    """The problem that a solver sees."""
    return Problem(view["left"], view["operation"], view["right"])


def accuracy(digits: int, slip: float) -> float:
    """How often somebody is right who gets each digit wrong with the probability `slip`, independently."""
    return float((1 - slip) ** digits)


# --- agents -------------------------------------------------------------------------------------


class _Player:
    """Plays a rule in one role."""

    state: object = None

    def __init__(self, role: str, rule: Callable[[Mapping[str, JSON], Sequence[str], Streams], str]) -> None:
        self._role = role
        self._rule = rule

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Follow the rule."""
        yield from ()
        if turn.view["role"] != self._role or not isinstance(turn.format, Choice):
            return Action(answer=turn.default)
        return Action(answer=self._rule(turn.view, turn.format.options, streams))


class RandomProposer(_Player):
    """Draws each part of its problem, so that some have no answer."""

    def __init__(self, member: Member) -> None:
        super().__init__("proposer", lambda view, options, streams: streams.choice(options, "part"))


class HardestProposer(_Player):
    """Multiplies the largest number by itself."""

    def __init__(self, member: Member) -> None:
        super().__init__("proposer", lambda view, options, streams: hardest(options))


class Calculator(_Player):
    """Knows arithmetic."""

    def __init__(self, member: Member) -> None:
        super().__init__("solver", lambda view, options, streams: str(stated(view).answer))


class Guesser(_Player):
    """Chooses at random."""

    def __init__(self, member: Member) -> None:
        super().__init__("solver", lambda view, options, streams: streams.choice(options, "guess"))


class Slipping(_Player):
    """Knows arithmetic, but gets each digit of the problem wrong with the probability `slip`; then any wrong answer."""

    def __init__(self, member: Member, slip: float = 0.1) -> None:
        if not 0 <= slip <= 1:
            raise ValueError(f"slip: a probability is from 0 to 1, not {slip}")
        self._slip = slip
        super().__init__("solver", self._solve)

    def _solve(self, view: Mapping[str, JSON], options: Sequence[str], streams: Streams) -> str:
        problem = stated(view)
        right = str(problem.answer)
        if streams.draw("slip") < accuracy(problem.digits, self._slip):
            return right
        return streams.choice([option for option in options if option != right], "wrong")
