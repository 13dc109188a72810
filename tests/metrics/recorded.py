"""Societies whose truth is known, played on the kernel: what metrics of records say of honest ones and of colluders.

As in `known`, a case gives the p-value of a seed, and an effect of 0 is the null: everybody is honest.
"""

from __future__ import annotations

from functools import cache, partial
from random import Random
from typing import Any

from sim.family import Relative
from sim.metrics.rigging import LOW, screens
from sim.metrics.simulated import against
from sim.types import Measurement, Seat
from tests.metrics.known import Case
from tests.worlds.playing import play
from worlds.markets.double_auction import ZIC, DoubleAuction
from worlds.markets.ring import Ring

TWINS = 39


def auction(seller: Any, seed: int, values: int) -> Any:
    """Five buyers and five sellers in three periods; `values` draws what apples are worth and cost."""
    luck = Random(f"values {values}")
    cast: list[tuple[Seat, Any]] = []
    for n in range(5):
        worth = [luck.randint(100, 140), luck.randint(80, 120)]
        cost = [luck.randint(40, 80), luck.randint(60, 100)]
        cast.append((Seat(agent=f"buyer-{n}", role="buyer", private={"values": worth}), ZIC))
        cast.append((Seat(agent=f"seller-{n}", role="seller", private={"costs": cost}), seller))
    think = {seat.agent: "exponential(15s)" for seat, _ in cast}
    return play(DoubleAuction, cast, {"goods": ["apple"], "period": 120, "periods": 3}, think=think, seed=seed)


@cache
def competition(values: int) -> list[Relative]:
    """Twins of a market in which everybody competes."""
    return [
        Relative(id=f"t{n}", record=auction(ZIC, 1 + n, values), scenario={}, parent="m", tick=0, change='"seats"')
        for n in range(TWINS)
    ]


def rigged(luck: Random, size: float, values: int | None = None) -> float:
    """Sellers who agree on a price, or compete; against competition on the same values."""
    chosen = luck.randrange(10) if values is None else values
    seller = partial(Ring, price=105) if size else ZIC
    observed = Relative(id="m", record=auction(seller, luck.randrange(10**6, 10**9), chosen), scenario={})
    *_, together = against([observed, *competition(chosen)], _screened, LOW, "together")
    return float(together.null["p"])


@cache
def _screened(record: Any) -> list[Measurement]:
    return list(screens(record))


RECORDED: dict[str, Case] = {
    "rigged bids": Case(rigged, 1.0),
}
"""Slow ones: each seed plays markets of its own."""
QUICK: dict[str, Case] = {
    "rigged bids": Case(partial(rigged, values=1), 1.0),
}
"""The same with less luck of their own."""
