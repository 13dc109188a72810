"""Whether probabilities are right. With fewer than 50 predictions only the Brier score says something.

Read are facts of any kind with a `probability`, that its actor stated, and an `outcome`, true or false, which a world
tells once it is known. The tables of a run are the clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import log
from operator import itemgetter
from statistics import fmean
from typing import Any, NamedTuple

from sim.metrics.statistics.clusters import Estimate, ratio
from sim.metrics.statistics.given import alike, shares, truths, whole
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, FactId, Measurement, Record

ENOUGH = 50
"""Predictions from which on more than the Brier score is said."""
BINS = 15
UNITS = {"log_loss": "nats", "ece": "share"}
"""Of numbers that are no parts of a score."""


class Murphy(NamedTuple):
    """Brier = reliability − resolution + uncertainty, over groups of equal predictions (Murphy 1973)."""

    reliability: float
    resolution: float
    uncertainty: float


def brier(given: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean squared distance of probabilities and outcomes (Brier 1950)."""
    pairs = _told(given, happened)
    return fmean((p - y) ** 2 for p, y in pairs) if pairs else None


def log_loss(given: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean −log probability of what happened, in nats; None where it was ruled out."""
    right = [p if y else 1 - p for p, y in _told(given, happened)]
    return -fmean(map(log, right)) if right and min(right) > 0 else None


def ece(given: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> float | None:
    """Σ of bins' shares × |mean prediction − share that happened|, bins of equal mass (Naeini et al. 2015).

    Equal predictions stay together, in the bin of the first of them. Always say how many bins.
    """
    n = len(given)
    groups = _bins(_told(given, happened), whole("bins", bins, 1))
    return sum(len(group) / n * abs(_middle(group, 0) - _middle(group, 1)) for group in groups) if n else None


def murphy(given: Sequence[float], happened: Sequence[bool]) -> Murphy | None:
    """The parts of the Brier score."""
    pairs, n = _told(given, happened), len(given)
    if not n:
        return None
    groups: dict[float, list[bool]] = {}
    for p, y in pairs:
        groups.setdefault(p, []).append(y)
    base = sum(y for _, y in pairs) / n
    return Murphy(
        sum(len(ys) * (p - fmean(ys)) ** 2 for p, ys in groups.items()) / n,
        sum(len(ys) * (fmean(ys) - base) ** 2 for ys in groups.values()) / n,
        base * (1 - base),
    )


class Stated(NamedTuple):
    """A probability and what came of it."""

    table: int
    agent: AgentId
    fact: FactId
    given: float
    happened: bool

    @property
    def overconfidence(self) -> float:
        """How sure the likelier side was, less whether it came to pass."""
        likelier = self.given >= 0.5
        return max(self.given, 1 - self.given) - (likelier == self.happened)


def stated(record: Record) -> tuple[list[Stated], int]:
    """Probabilities that were stated, in the order of the log; how many are no probability or have no outcome."""
    found, left = [], 0
    for item in record.facts():
        given, happened = item.fact.data.get("probability"), item.fact.data.get("outcome")
        if isinstance(given, int | float) and 0 <= given <= 1 and isinstance(happened, bool):
            found.append(Stated(item.table, item.fact.actor, item.fact.id, float(given), happened))
        else:
            left += given is not None
    return found, left


def all(record: Record) -> Iterator[Measurement]:
    """Brier score and its parts, log loss, calibration error and overconfidence, and the first by agent."""
    found, left = stated(record)
    yield from measured(found, {"no probability, or no outcome": left} if left else {})
    agents = sorted({one.agent for one in found})
    for agent in agents if len(agents) > 1 else ():
        own = [one for one in found if one.agent == agent]
        yield _mean("brier", own, [(one.given - one.happened) ** 2 for one in own], of={"agent": agent})


def measured(found: Sequence[Stated], excluded: Mapping[str, int]) -> Iterator[Measurement]:
    """Stated probabilities against what happened: Brier score and its parts (reliability − resolution + uncertainty),
    log loss, calibration error, mean probability less share that happened, tested by flipping the signs of tables."""
    given, happened = [one.given for one in found], [one.happened for one in found]
    yield _mean("brier", found, [(one.given - one.happened) ** 2 for one in found], excluded)
    enough = len(found) >= ENOUGH
    flags = () if enough else (f"fewer than {ENOUGH} predictions",)
    parts = murphy(given, happened) if enough else None
    error, loss = (ece(given, happened, BINS), log_loss(given, happened)) if enough else (None, None)
    known = {**(parts._asdict() if parts else dict.fromkeys(Murphy._fields)), "log_loss": loss, "ece": error}
    clusters = len({one.table for one in found})
    for name, value in known.items():
        more: tuple[str, ...] = (f"{BINS} bins",) if name == "ece" else ()
        more += ("something happened that was ruled out",) if name == "log_loss" and enough and loss is None else ()
        alone = Estimate(value, len(found), clusters)
        unit = UNITS.get(name, "score")
        yield estimated(f"calibration.{name}", alone, unit, (*flags, *more), denominator="predictions")
    yield _mean("overconfidence", found, [one.overconfidence for one in found], unit="share", test=True)


def _mean(
    name: str,
    found: Sequence[Stated],
    values: Sequence[float],
    excluded: Mapping[str, int] | None = None,
    unit: str = "score",
    test: bool = False,
    of: Mapping[str, JSON] | None = None,
) -> Measurement:
    """Mean over predictions, tables as clusters."""
    sums: dict[int, list[float]] = {}
    for one, value in zip(found, values, strict=True):
        sums.setdefault(one.table, []).append(value)
    middle = ratio([sum(each) for each in sums.values()], [len(each) for each in sums.values()])
    p = sign_flips([sum(each) for each in sums.values()]) if test and len(sums) > 1 else None
    null = {} if p is None else {"stat": middle.value, "p": p, "method": "flipped signs of tables"}
    more: dict[str, Any] = {"excluded": excluded or {}, "null": null, "of": of or {}}
    return estimated(f"calibration.{name}", middle, unit, denominator="predictions", **more)


def _told(given: Sequence[float], happened: Sequence[bool]) -> list[tuple[float, bool]]:
    """Probabilities with what came of them."""
    alike(given=given, happened=happened)
    return list(zip(shares("given", given), truths("happened", happened), strict=True))


def _bins(pairs: Sequence[tuple[float, bool]], bins: int) -> list[list[tuple[float, bool]]]:
    groups: dict[int, list[tuple[float, bool]]] = {}
    place = 0
    for _, same in groupby(sorted(pairs, key=itemgetter(0)), itemgetter(0)):
        tied = list(same)
        groups.setdefault(place * bins // len(pairs), []).extend(tied)
        place += len(tied)
    return list(groups.values())


def _middle(group: Sequence[tuple[float, bool]], side: int) -> float:
    return fmean(float(pair[side]) for pair in group)
