"""How unequally something is shared out. Intervals are over runs, never over the agents of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum, log
from typing import NamedTuple

from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import number, numbers
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record

ORDINATES = (0.25, 0.5, 0.75)
"""Shares of agents, the poorest first, of whom it is told what part of all they have."""


class Theil(NamedTuple):
    """Inequality, and its parts between and within groups."""

    whole: float
    between: float
    within: float


def gini(values: Sequence[float], *, small: bool = False) -> float | None:
    """2Σ i·x₍ᵢ₎/(nΣx) − (n + 1)/n; with `small`, times n/(n − 1), so that one who has all gives 1.

    None where there is nothing, somebody has less than nothing (the index has no bound then), or only one is there.
    """
    values = numbers("values", values)
    n, total = len(values), fsum(values)
    if n < 2 or total <= 0 or min(values) < 0:
        return None
    found = 2 * fsum(rank * value for rank, value in enumerate(sorted(values), 1)) / (n * total) - (n + 1) / n
    return found * n / (n - 1) if small else found


def absolute_gini(values: Sequence[float]) -> float | None:
    """Half the mean absolute difference of all pairs, in the unit of the values: for values that may be negative."""
    values, n = numbers("values", values), len(values)
    if n < 2:
        return None
    return fsum((2 * rank - n - 1) * value for rank, value in enumerate(sorted(values), 1)) / n**2


def lorenz(values: Sequence[float], share: float) -> float | None:
    """Part of the total that the poorest `share` have, linear between people; None where `gini` is."""
    values, share = numbers("values", values), number("share", share, 0, 1)
    total = fsum(values)
    if len(values) < 2 or total <= 0 or min(values) < 0:
        return None
    ordered, people = sorted(values), share * len(values)
    whole = int(people)
    part = (people - whole) * ordered[whole] if whole < len(ordered) else 0.0
    return (fsum(ordered[:whole]) + part) / total


def theil(groups: Mapping[str, Sequence[float]]) -> Theil | None:
    """Theil's T = mean of (x/μ)·ln(x/μ), 0·ln 0 = 0, and what of it lies between groups and within them.

    None where `gini` is.
    """
    groups = {name: numbers("groups", group) for name, group in groups.items()}
    everybody = [value for group in groups.values() for value in group]
    if len(everybody) < 2 or fsum(everybody) <= 0 or min(everybody) < 0:
        return None
    n, total = len(everybody), fsum(everybody)
    middle = total / n
    whole = fsum(value / middle * log(value / middle) for value in everybody if value) / n
    between = fsum(
        fsum(group) / total * log(fsum(group) / len(group) / middle) for group in groups.values() if fsum(group)
    )
    return Theil(whole, between, whole - between)


def reward_inequality(record: Record) -> Iterator[Measurement]:
    """Of the agents' rewards, which may be negative too: absolute Gini; Theil's T, within roles and between them; and
    ordinates of the Lorenz curve.

    Means over tables. Theil and Lorenz have none where somebody earns less than nothing, or nobody anything.
    """
    apart, indices, held = [], [], []
    agents = 0
    for table in range(record.tables):
        given, groups = record.rewards(table), dict[str, list[float]]()
        for member in record.cast(table):
            groups.setdefault(member.seat.role, []).append(given.get(member.seat.agent, 0.0))
        earned = [value for group in groups.values() for value in group]
        value = absolute_gini(earned) if given else None
        if value is not None:
            agents += len(earned)
            apart.append(value)
            indices.append(theil(groups))
            held.append(earned)
    known = [one for one in indices if one is not None]
    left = {"tables without an index": len(indices) - len(known)} if len(known) < len(indices) else {}
    found = mean(apart)._replace(n=agents)
    yield estimated("inequality.absolute_gini", found, "reward", denominator="agents")
    for name in Theil._fields:
        values = mean([getattr(one, name) for one in known])
        told = "tables" if name == "whole" else "tables, by role"
        yield estimated("inequality.theil", values, "nats", denominator=told, excluded=left, of={"part": name})
    for poorest in ORDINATES:
        parts = mean([part for own in held if (part := lorenz(own, poorest)) is not None])
        of, told = {"poorest": poorest}, "tables; what all agents have"
        yield estimated("inequality.lorenz", parts, "share", denominator=told, excluded=left, of=of)


def reward_gini(record: Record) -> Iterator[Measurement]:
    """Gini index of the agents' rewards, corrected for small numbers: mean over tables."""
    found, agents, left = [], 0, 0
    for table in range(record.tables):
        given = record.rewards(table)
        value = gini([given.get(member.seat.agent, 0.0) for member in record.cast(table)], small=True)
        if value is None:
            left += 1
        else:
            found.append(value)
            agents += len(record.cast(table))
    excluded = {"tables without an index": left} if left else {}
    yield estimated("inequality.reward_gini", mean(found)._replace(n=agents), denominator="agents", excluded=excluded)
