"""Baselines for matrix games: the classics of the repeated prisoner's dilemma, and learners.

"Cooperate" is the first action. With several opponents a classic takes a round as defection if any of them
defected. Baselines stay silent where talk is free and say the first token where it is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn

# --- rules: pure functions ----------------------------------------------------------------------


def theirs(view: Mapping[str, JSON]) -> list[int]:
    """What the others did in the last rounds, oldest first: the highest action index among them."""
    return [max(action for seat, action in enumerate(joint) if seat != view["me"]) for joint in view["recent"]]


def values(view: Mapping[str, JSON], smoothing: float = 0.0) -> list[float]:
    """Summed own payoff of each action against all that the others played (each joint action `smoothing` more)."""
    me, sums = view["me"], [0.0] * len(view["actions"][view["me"]])
    times: dict[tuple[int, ...], float] = {}
    for key, count in view["tally"].items():
        others = _others(key, me)
        times[others] = times.get(others, 0.0) + count
    for key, payoff in view["payoffs"].items():
        sums[int(key.split(",")[me])] += payoff * (times.get(_others(key, me), 0.0) + smoothing)
    return sums


def _others(key: str, me: int) -> tuple[int, ...]:
    joint = [int(part) for part in key.split(",")]
    return (*joint[:me], *joint[me + 1 :])


def matching(regrets: Sequence[float]) -> tuple[float, ...]:
    """Regret matching: play in proportion to positive regret, uniformly where there is none (Hart, Mas-Colell 2000)."""
    positive = [max(0.0, regret) for regret in regrets]
    total = sum(positive)
    return tuple(p / total if total else 1 / len(positive) for p in positive)


def hedge(losses: Sequence[float], horizon: int) -> tuple[float, ...]:
    """Hedge: weights of experts after cumulative losses in [0, 1] a round, eta = sqrt(8 ln d / T).

    Regret is at most sqrt(T ln d / 2) (Cesa-Bianchi, Lugosi 2006).
    """
    eta = math.sqrt(8 * math.log(len(losses)) / horizon)
    best = min(losses)
    weights = [math.exp(-eta * (loss - best)) for loss in losses]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def drawn(weights: Sequence[float], uniform: float) -> int:
    """The index at which a uniform in [0, 1) falls among weights that sum to 1."""
    reached = 0.0
    for index, weight in enumerate(weights):
        reached += weight
        if uniform < reached:
            return index
    return max(range(len(weights)), key=weights.__getitem__)


def critical_discount(temptation: float, reward: float, punishment: float) -> float:
    """Discount from which grim trigger deters defection: (T - R) / (T - P)."""
    return (temptation - reward) / (temptation - punishment)


# --- agents -------------------------------------------------------------------------------------


def _play(turn: Turn, index: int, state: object = None) -> Mind:
    """The action of that index where a move is asked; silence where talk is."""
    yield from ()
    if turn.view["phase"] == "talk":
        return Action(answer=turn.default)
    return Action(answer=turn.view["actions"][turn.view["me"]][index], state=state)


class Fixed:
    """Always the same action, by its label: `with: {action: defect}`."""

    state: object = None

    def __init__(self, member: Member, action: str) -> None:
        self._action = action

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Play it; a label the game does not have is an error."""
        return _play(turn, turn.view["actions"][turn.view["me"]].index(self._action))


class TitForTat:
    """Cooperates first, then does what the other did last."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Copy."""
        return _play(turn, theirs(turn.view)[-1] if turn.view["recent"] else 0)


class SuspiciousTitForTat:
    """Defects first, then does what the other did last."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Copy, after a first defection."""
        return _play(turn, theirs(turn.view)[-1] if turn.view["recent"] else 1)


class TitForTwoTats:
    """Defects only after two defections in a row."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Forgive one."""
        last = theirs(turn.view)[-2:]
        return _play(turn, int(len(last) == 2 and all(last)))


class Grim:
    """Cooperates until the other has defected once, then never again."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Forgive nothing."""
        me = turn.view["me"]
        return _play(turn, int(any(any(_others(key, me)) for key in turn.view["tally"])))


class WinStayLoseShift:
    """Keeps its action after a good round, else takes the next one (Pavlov).

    A round is good if it paid at least `aspiration`; without one, the mean of its own payoffs in the game.
    """

    state: object = None

    def __init__(self, member: Member, aspiration: float | None = None) -> None:
        self._aspiration = aspiration

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Stay or shift."""
        view = turn.view
        if not view["recent"]:
            return _play(turn, 0)
        own, payoffs = view["recent"][-1][view["me"]], view["payoffs"].values()
        aspiration = sum(payoffs) / len(payoffs) if self._aspiration is None else self._aspiration
        shift = view["got"] < aspiration
        return _play(turn, (own + shift) % len(view["actions"][view["me"]]))


class Random:
    """Every action with the same probability."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw."""
        return _play(turn, streams.integer(0, len(turn.view["actions"][turn.view["me"]]) - 1, "move"))


class BestResponse:
    """Best response to how often the others have played what (fictitious play); uniform belief at first."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """The first of the best."""
        sums = values(turn.view, smoothing=0.0 if turn.view["tally"] else 1.0)
        return _play(turn, sums.index(max(sums)))


@dataclass(frozen=True, slots=True)
class Average:
    """What a regret matcher has played in its current match."""

    match: int
    rounds: int
    sums: tuple[float, ...]
    """Sum of its mixed strategies."""

    @property
    def strategy(self) -> tuple[float, ...]:
        """The average strategy, the one that converges."""
        return tuple(part / self.rounds for part in self.sums)


class RegretMatching:
    """Plays in proportion to positive regret; its state is the `Average` of what it played."""

    def __init__(self, member: Member) -> None:
        self.state: object = None

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Draw from the matched strategy."""
        view = turn.view
        mixed = matching([value - view["total"] for value in values(view)])
        before = self.state
        if not isinstance(before, Average) or before.match != view["match"]:
            before = Average(view["match"], 0, (0.0,) * len(mixed))
        sums = tuple(a + b for a, b in zip(before.sums, mixed, strict=True))
        return _play(turn, drawn(mixed, streams.draw("move")), Average(before.match, before.rounds + 1, sums))
