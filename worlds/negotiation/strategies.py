"""Baselines for alternating-offers bargaining: equilibrium, an even split, greed. They never speak."""

from __future__ import annotations

import math

from sim.streams import Streams
from sim.types import JSON, Action, Choice, Member, Mind, Turn


def proposer_share(mine: float, other: float, left: int | None) -> float:
    """Share of the pie that a proposer keeps in equilibrium, `left` rounds before the end (this one included).

    None, no end: (1 - d2) / (1 - d1 d2), and 1/2 where nobody discounts (Rubinstein 1982).
    Otherwise backward induction from x_T = 1 by x_t = 1 - d_responder x_{t+1}.
    """
    if left is None:
        return 0.5 if mine * other == 1 else (1 - other) / (1 - mine * other)
    share = 1.0
    for back in range(1, left):
        share = 1 - (other if (left - back) % 2 else mine) * share
    return share


def _offer(turn: Turn, gain: int) -> JSON:
    """An offer in the form that the turn asks for, without words; of a choice the largest that keeps no more."""
    if isinstance(turn.format, Choice):
        return max((option for option in turn.format.options if int(option) <= gain), key=int)
    return {**turn.default, "gain": gain}


class Rubinstein:
    """Plays the subgame-perfect equilibrium of the horizon that its view announces.

    Where the partner's discount is hidden it takes `assume`, and its own without that.
    """

    state: object = None

    def __init__(self, member: Member, assume: float | None = None) -> None:
        self._assume = assume

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Offer what the partner cannot better by waiting; accept what waiting would not better."""
        yield from ()
        view = turn.view
        pie, mine = view["pie"], view["discount"]
        other = view["partner_discount"] or self._assume or mine
        left = None if view["last_round"] is None else view["last_round"] - view["round"] + 1
        slack = 1e-9 * pie  # floats stand in for exact fractions
        if view["stage"] == "offer":
            return Action(answer=_offer(turn, math.floor(pie * proposer_share(mine, other, left) + slack)))
        if left == 1:
            return Action(answer="accept")
        later = mine * proposer_share(mine, other, None if left is None else left - 1)
        return Action(answer="accept" if view["offered"] >= pie * later - slack else "reject")


class FiftyFifty:
    """Offers half and accepts any offer of at least `threshold` of the pie."""

    state: object = None

    def __init__(self, member: Member, threshold: float = 0.4) -> None:
        self._threshold = threshold

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Split evenly, or judge by the threshold."""
        yield from ()
        pie = turn.view["pie"]
        if turn.view["stage"] == "offer":
            return Action(answer=_offer(turn, pie // 2))
        return Action(answer="accept" if turn.view["offered"] >= self._threshold * pie else "reject")


class Greedy:
    """Plays every round as if it were the last: asks for all but one unit and takes anything above nothing."""

    state: object = None

    def __init__(self, member: Member) -> None:
        pass

    def act(self, turn: Turn, streams: Streams) -> Mind:
        """Keep all but one, or take what there is."""
        yield from ()
        if turn.view["stage"] == "offer":
            return Action(answer=_offer(turn, turn.view["pie"] - 1))
        return Action(answer="accept" if turn.view["offered"] > 0 else "reject")
