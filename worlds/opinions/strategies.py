"""The rules of opinion dynamics as agents without a model: what each does is a pure function.

They read their own opinion and what others said last, say nothing in words, and feel as near to a side as they think.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from statistics import fmean

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.opinions.settings import number

# --- rules: pure functions ----------------------------------------------------------------------


def degroot(own: float, others: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Σ w_j·x_j / Σ w_j, its own first; all alike where there are no weights (DeGroot 1974)."""
    if weights is None:
        return fmean((own, *others))
    total = fsum(weights)
    return fsum(w * x for w, x in zip(weights, (own, *others), strict=True)) / total if total else own


def friedkin_johnsen(start: float, stubbornness: float, pulled: float) -> float:
    """(1 − s)·Σ w_j·x_j + s·x(0) (Friedkin and Johnsen 1990)."""
    return (1 - stubbornness) * pulled + stubbornness * start


def hegselmann_krause(own: float, others: Sequence[float], epsilon: float) -> float:
    """Mean of all that lie within ε, itself among them (Hegselmann and Krause 2002)."""
    return fmean([own, *(x for x in others if abs(x - own) <= epsilon)])


def deffuant(own: float, other: float, epsilon: float, mu: float) -> float:
    """x + μ·(y − x) where |y − x| < ε (Deffuant et al. 2000)."""
    return own + mu * (other - own) if abs(other - own) < epsilon else own


def felt(own: float, theirs: Sequence[float]) -> float:
    """1 less the mean distance to what a side thinks: 1 for alike, −1 for opposite ends; 0 where none is heard."""
    return 1 - fmean(abs(x - own) for x in theirs) if theirs else 0.0


# --- agents -------------------------------------------------------------------------------------


def _opinions(view: Mapping[str, JSON]) -> list[float]:
    return [opinion for _, opinion, _ in view["others"]]


def _say(turn: Turn, opinion: float) -> Action:
    """An opinion in the form that the turn asks for."""
    view = turn.view
    answer: dict[str, JSON] = {"opinion": min(1.0, max(-1.0, opinion))}  # a mean can be off by a rounding
    if view["chars"]:
        answer = {"text": "", **answer}
    if view["camps"] is not None:
        heard = list(zip(view["camps"], _opinions(view), strict=True))
        for name, own in (("own_camp", True), ("other_camp", False)):
            answer[name] = felt(view["opinion"], [x for camp, x in heard if (camp == view["camp"]) == own])
    return Action(answer=answer)


class DeGroot:
    """The weighted mean of its own opinion and those it hears."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Average."""
        yield from ()
        return _say(turn, degroot(turn.view["opinion"], _opinions(turn.view), turn.view["weights"]))


class FriedkinJohnsen:
    """The same, held back at where it started by its private value `stubbornness`."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Average, and hold on."""
        yield from ()
        view = turn.view
        pulled = degroot(view["opinion"], _opinions(view), view["weights"])
        return _say(turn, friedkin_johnsen(view["start"], view["stubbornness"], pulled))


class HegselmannKrause:
    """The mean of all opinions within `epsilon` of its own."""

    state: object = None

    def __init__(self, member: Member, epsilon: float = 0.5) -> None:
        self._epsilon = number("epsilon", epsilon)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Average those near by."""
        yield from ()
        return _say(turn, hegselmann_krause(turn.view["opinion"], _opinions(turn.view), self._epsilon))


class Deffuant:
    """Goes a share `mu` of the way to one that it hears, if that is nearer than `epsilon`; of several it draws one."""

    state: object = None

    def __init__(self, member: Member, epsilon: float = 0.5, mu: float = 0.5) -> None:
        self._epsilon, self._mu = number("epsilon", epsilon), number("mu", mu, most=1)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Meet."""
        yield from ()
        own, others = turn.view["opinion"], _opinions(turn.view)
        return _say(turn, deffuant(own, streams.choice(others, "met"), self._epsilon, self._mu) if others else own)


class Voter:
    """Takes over the opinion of one that it hears, drawn at random (Clifford and Sudbury 1973)."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Copy."""
        yield from ()
        return _say(turn, streams.choice(_opinions(turn.view) or [turn.view["opinion"]], "copied"))
