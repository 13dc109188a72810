"""Gains from trade, welfare, and who gets the surplus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum, prod

from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import ROUNDED, number, numbers
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record


def greatest_gains(values: Sequence[float], costs: Sequence[float]) -> float:
    """Largest sum of value − cost of single units that can be traded: the best buyers with the best sellers."""
    values, costs = numbers("values", values), numbers("costs", costs)
    pairs = zip(sorted(values, reverse=True), sorted(costs), strict=False)
    return fsum(max(0.0, value - cost) for value, cost in pairs)


def efficiency(values: Sequence[float], costs: Sequence[float], trades: Sequence[tuple[float, float]]) -> float | None:
    """Realised over greatest gains; trades are (value, cost), those at a loss count negative. None: nothing to gain.

    Raises ValueError where trades gain more than could be gained.
    """
    possible = greatest_gains(values, costs)
    gained = fsum(number("trades", value) - number("trades", cost) for value, cost in trades)
    if gained > possible + ROUNDED * max(1.0, possible):
        raise ValueError(f"trades gain {gained:g}, more than the {possible:g} that could be gained")
    return gained / possible if possible else None


def seller_share(value: float, cost: float, price: float) -> float | None:
    """(price − cost)/(value − cost): the seller's part of the surplus; None where there is none."""
    value, cost, price = numbers("value, cost and price", (value, cost, price))
    return (price - cost) / (value - cost) if value != cost else None


def welfare_ratio(utilities: Sequence[float], optimum: float) -> float | None:
    """Sum of utilities over the greatest possible: the inverse of the price of anarchy, for play in equilibrium.

    None for nobody, and where nothing could be had.
    """
    utilities, optimum = numbers("utilities", utilities), number("optimum", optimum, 0)
    return fsum(utilities) / optimum if utilities and optimum else None


def nash_welfare(utilities: Sequence[float]) -> float | None:
    """Geometric mean of utilities; None where one is negative, for two of these would make a positive product."""
    utilities = numbers("utilities", utilities)
    if not utilities or min(utilities) < 0:
        return None
    return float(prod(utilities) ** (1 / len(utilities)))


def welfare(record: Record) -> Iterator[Measurement]:
    """Sum (utilitarian) and least (egalitarian) of the agents' rewards, means over tables. Rewards must compare."""
    sums, least = [], []
    agents = 0
    for table in range(record.tables):
        given = record.rewards(table)
        earned = [given.get(member.seat.agent, 0.0) for member in record.cast(table)]
        if given and earned:
            agents += len(earned)
            sums.append(sum(earned))
            least.append(min(earned))
    for name, values in (("utilitarian", sums), ("egalitarian", least)):
        yield estimated(f"welfare.{name}", mean(values)._replace(n=agents), "reward", denominator="tables")
