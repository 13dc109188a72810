"""Gains from trade, welfare, and who gets the surplus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, fsum, log
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import ROUNDED, alike, number, numbers
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record


def greatest_gains(values: Sequence[float], costs: Sequence[float]) -> float:
    """Largest sum of value − cost of single units that can be traded: the best buyers with the best sellers."""
    values, costs = numbers("values", values), numbers("costs", costs)
    pairs = zip(sorted(values, reverse=True), sorted(costs), strict=False)
    return fsum(max(0.0, value - cost) for value, cost in pairs)


def assigned_gains(surplus: Sequence[Sequence[float]]) -> float:
    """Largest sum of `surplus[i][j]`, what buyer i gains with seller j, where each has one partner or none.

    The assignment of indivisible things that differ (Shapley and Shubik 1971).
    """
    from scipy.optimize import linear_sum_assignment  # only who asks for it needs it

    grid = np.maximum(_grid(surplus), 0.0)
    return float(grid[linear_sum_assignment(grid, maximize=True)].sum()) if grid.size else 0.0


def transported_gains(surplus: Sequence[Sequence[float]], wanted: Sequence[float], held: Sequence[float]) -> float:
    """Largest Σ surplus[i][j]·units[i][j] where buyer i takes up to `wanted[i]` units, seller j gives `held[j]`.

    The linear programme of several units; with whole numbers a best solution is whole.
    """
    from scipy.optimize import linprog

    grid = _grid(surplus)
    alike(**{"buyers of surplus": surplus, "wanted": wanted})
    alike(**{"sellers of surplus": grid.T if grid.size else held, "held": held})
    limits = [*numbers("wanted", wanted, 0), *numbers("held", held, 0)]
    if not grid.size:
        return 0.0
    buyers, sellers = grid.shape
    sums = np.vstack([np.kron(np.eye(buyers), np.ones(sellers)), np.kron(np.ones(buyers), np.eye(sellers))])
    return float(-linprog(-grid.ravel(), A_ub=sums, b_ub=limits).fun)


def _grid(surplus: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    alike(**{f"surplus of buyer {place}": row for place, row in enumerate(surplus)})
    return np.array([numbers("surplus", row) for row in surplus])


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
    """(price − cost)/(value − cost): the seller's part of the surplus; None where there is none, or a loss."""
    value, cost, price = numbers("value, cost and price", (value, cost, price))
    return (price - cost) / (value - cost) if value > cost else None


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
    return exp(fmean(map(log, utilities))) if min(utilities) > 0 else 0.0


def welfare(record: Record) -> Iterator[Measurement]:
    """Sum (utilitarian), least (egalitarian) and geometric mean (Nash) of the agents' rewards, means over tables.

    A table where somebody earns less than nothing has no geometric mean.
    """
    sums, least, nash = [], [], []
    agents = 0
    for table in range(record.tables):
        given = record.rewards(table)
        earned = [given.get(member.seat.agent, 0.0) for member in record.cast(table)]
        if given and earned:
            agents += len(earned)
            sums.append(sum(earned))
            least.append(min(earned))
            nash.append(nash_welfare(earned))
    told = "tables; rewards of agents are taken to compare"
    for name, values in (("utilitarian", sums), ("egalitarian", least)):
        yield estimated(f"welfare.{name}", mean(values)._replace(n=agents), "reward", denominator=told)
    kept = [one for one in nash if one is not None]
    left = {"somebody earned less than nothing": len(nash) - len(kept)} if len(kept) < len(nash) else {}
    yield estimated("welfare.nash", mean(kept), "reward", denominator="tables", excluded=left)
