"""Baselines for herding: the Bayesian of information cascades, the truthful, conformists, the stubborn, confederates.

Beliefs are over the options of a question, in their order, all alike likely before anything is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isclose

from sim.streams import Streams
from sim.types import JSON, Action, Member, Mind, Turn
from worlds.opinions.settings import number

# --- rules: pure functions ----------------------------------------------------------------------


def posterior(belief: Sequence[float], signal: int, accuracy: float) -> list[float]:
    """Belief after a signal that is right with probability `accuracy`, else each other option with the same."""
    slip = (1 - accuracy) / (len(belief) - 1)
    weights = [b * (accuracy if place == signal else slip) for place, b in enumerate(belief)]
    total = sum(weights)
    return [weight / total for weight in weights] if total else list(belief)


def best(belief: Sequence[float]) -> list[int]:
    """The likeliest options, several where they tie."""
    most = max(belief)
    return [place for place, b in enumerate(belief) if isclose(b, most, rel_tol=1e-9)]


def observed(belief: Sequence[float], choice: int, accuracy: float) -> list[float]:
    """Public belief after the choice of one who saw it, had a signal and drew lots at ties (Bikhchandani et al. 1992).

    In a cascade a choice tells nothing. One that nobody would make there is taken for its maker's signal.
    """
    n = len(belief)
    chosen = [best(posterior(belief, signal, accuracy)) for signal in range(n)]
    slip = (1 - accuracy) / (n - 1)
    likely = [
        sum(
            (accuracy if signal == truth else slip) / len(options)
            for signal, options in enumerate(chosen)
            if choice in options
        )
        for truth in range(n)
    ]
    weights = [b * p for b, p in zip(belief, likely, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights] if total else posterior(belief, choice, accuracy)


def majority(answers: Sequence[str]) -> str | None:
    """The answer that most gave; None where there is none, or several are given alike often."""
    counted = Counter(answers).most_common(2)
    if not counted or (len(counted) > 1 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]


# --- agents -------------------------------------------------------------------------------------


def _own(view: Mapping[str, JSON], streams: Streams) -> tuple[str, float]:
    """What an agent would answer alone, and how probable it is; a guess where it has no signal."""
    if view["signal"] is None:
        return streams.choice(view["options"], "guess"), 1 / len(view["options"])
    return view["signal"], view["accuracy"]


def _answer(answer: str, probability: float) -> Action:
    return Action(answer={"answer": answer, "probability": min(1.0, max(0.0, probability))})


class Bayesian:
    """Weighs its signal with what the answers before it tell if those who gave them did the same; lots at ties."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Answer what is likeliest."""
        yield from ()
        view = turn.view
        options, accuracy = view["options"], view["accuracy"]
        belief = [1 / len(options)] * len(options)
        if accuracy is not None:
            for _, answer in view["seen"]:
                belief = observed(belief, options.index(answer), accuracy)
            belief = posterior(belief, options.index(view["signal"]), accuracy)
        chosen = streams.choice(best(belief), "tie")
        return _answer(options[chosen], belief[chosen])


class Truthful:
    """Answers its own signal, whatever others say, and states `confidence`, or the signal's accuracy."""

    state: object = None

    def __init__(self, member: Member, confidence: float | None = None) -> None:
        self._confidence = None if confidence is None else number("confidence", confidence, most=1)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Say what it knows."""
        yield from ()
        answer, probability = _own(turn.view, streams)
        return _answer(answer, probability if self._confidence is None else self._confidence)


class Conformist:
    """With probability `p` answers what most before it did, else its own signal."""

    state: object = None

    def __init__(self, member: Member, p: float = 0.5) -> None:
        self._p = number("p", p, most=1)

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Give in, or not."""
        yield from ()
        own, probability = _own(turn.view, streams)
        most = majority([answer for _, answer in turn.view["seen"]])
        gives_in = most is not None and streams.draw("gives in") < self._p
        return _answer(most if gives_in and most else own, probability)


class Stubborn:
    """Always the same `answer`; its own signal where that is none of the options."""

    state: object = None

    def __init__(self, member: Member, answer: str) -> None:
        self._answer = answer

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Say it again."""
        yield from ()
        own, probability = _own(turn.view, streams)
        return _answer(self._answer if self._answer in turn.view["options"] else own, probability)


class Confederate:
    """Answers as planned; its own signal where nothing is."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Play its part."""
        yield from ()
        own, probability = _own(turn.view, streams)
        return _answer(turn.view["plan"] or own, probability)
