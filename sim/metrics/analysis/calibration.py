"""Whether probabilities are right. With fewer than 50 predictions only the Brier score says something.

Read are facts of any kind with a `probability`, that its actor stated, and an `outcome`, true or false, which a world
tells once it is known. The tables of a run are the clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, log
from statistics import fmean
from typing import Any, NamedTuple

from sim.intervals import FEW, t_quantile
from sim.metrics.analysis.reliability import BINS, binned, plain, recalibration, unbiased
from sim.metrics.statistics.centred import DRAWS, METHOD, centred_bootstrap
from sim.metrics.statistics.clusters import Estimate, ratio
from sim.metrics.statistics.discrimination import Scored, Sums, scored
from sim.metrics.statistics.given import alike, shares, truths
from sim.metrics.statistics.permutation import sign_flips
from sim.metrics.statistics.shares import estimated
from sim.types import JSON, AgentId, FactId, Measurement, Record

ENOUGH = 50
"""Predictions from which on more than the Brier score is said."""
WITHIN = {"uncertainty": (0.0, 0.25), "ece_debiased": (-inf, inf), "auc": (0.0, 1.0)}
"""Numbers with an interval by drawing tables anew, and between what they are."""


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


def murphy(given: Sequence[float], happened: Sequence[bool]) -> Murphy | None:
    """The parts of the Brier score."""
    alike(given=given, happened=happened)
    return parts(scored(shares("given", given), happened).sums())


def parts(sums: Sums) -> Murphy | None:
    """`murphy` from the sums of equal predictions."""
    size, p, y = (each[sums.size > 0] for each in sums)
    n = size.sum()
    if not n:
        return None
    base = y.sum() / n
    found = size @ (p / size - y / size) ** 2 / n, size @ (y / size - base) ** 2 / n, base * (1 - base)
    return Murphy(*map(float, found))


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


def all(record: Record, draws: int = DRAWS) -> Iterator[Measurement]:
    """Brier score and its parts, log loss, calibration errors, overconfidence, the line that would mend predictions
    and how well they tell what happens; and the first by agent."""
    found, left = stated(record)
    yield from measured(found, {"no probability, or no outcome": left} if left else {}, draws)
    agents = sorted({one.agent for one in found})
    for agent in agents if len(agents) > 1 else ():
        own = [one for one in found if one.agent == agent]
        yield _mean("brier", own, [(one.given - one.happened) ** 2 for one in own], of={"agent": agent})


def measured(found: Sequence[Stated], excluded: Mapping[str, int], draws: int = DRAWS) -> Iterator[Measurement]:
    """Stated probabilities against what happened: Brier score and its parts (reliability − resolution + uncertainty),
    log loss, calibration errors, slope and intercept, AUC. How sure the likelier side was, less how often it came to
    pass, is tested by flipping the signs of tables.

    Distances that noise only makes larger (reliability, resolution, `ece`) have no interval: drawn anew from right
    predictions it never holds their 0. That of `ece_debiased` does.
    """
    given, happened, tables = (
        [one.given for one in found],
        [one.happened for one in found],
        [one.table for one in found],
    )
    yield _mean("brier", found, [(one.given - one.happened) ** 2 for one in found], excluded)
    enough = len(found) >= ENOUGH
    few = () if enough else (f"fewer than {ENOUGH} predictions",)
    yield _log_loss(found if enough else [], len(found), few)
    alone, bins, told = scored(given, happened), binned(given, happened), (f"{BINS} bins",)
    values: dict[str, tuple[Scored, Callable[[Sums], float | None], str, tuple[str, ...]]] = {
        "reliability": (alone, lambda sums: _part(sums, 0), "score", ()),
        "resolution": (alone, lambda sums: _part(sums, 1), "score", ()),
        "uncertainty": (alone, lambda sums: _part(sums, 2), "score", ()),
        "ece": (bins, plain, "share", told),
        "ece_debiased": (bins, unbiased, "squared share", told),
        "auc": (alone, Sums.auroc, "", ("all happened, or nothing did",) * (len(set(happened)) < 2)),
    }
    for name, (units, value, unit, flags) in values.items():
        whole = value(units.sums()) if enough else None
        known = whole is not None and name in WITHIN
        ci = centred_bootstrap(tables, units.drawn(value), draws, ends=WITHIN[name]) if known else None
        lone = (FEW,) if known and len(set(tables)) < 2 else ()
        estimate = Estimate(whole, len(found), len(set(tables)), ci=ci, method=METHOD if ci else "")
        yield estimated(f"calibration.{name}", estimate, unit, (*few, *flags, *lone), denominator="predictions")
    yield from _line(found if enough else [], len(found), few)
    if enough:
        yield _mean("overconfidence", found, [one.overconfidence for one in found], unit="share", test=True)
    else:
        unknown = Estimate(None, len(found))
        yield estimated("calibration.overconfidence", unknown, "share", few, denominator="predictions")


def _log_loss(found: Sequence[Stated], n: int, flags: tuple[str, ...]) -> Measurement:
    """Mean over predictions, tables as clusters; none where something happened that was ruled out."""
    given, happened = [one.given for one in found], [one.happened for one in found]
    if log_loss(given, happened) is None:
        why = flags or ("something happened that was ruled out",)
        return estimated("calibration.log_loss", Estimate(None, n), "nats", why, denominator="predictions")
    return _mean(
        "log_loss", found, [-log(p if y else 1 - p) for p, y in zip(given, happened, strict=True)], unit="nats"
    )


def _line(found: Sequence[Stated], n: int, few: tuple[str, ...]) -> Iterator[Measurement]:
    """Slope and intercept, with errors robust to tables: a fit for each draw of a bootstrap takes too long."""
    tables = [one.table for one in found]
    line = recalibration([one.given for one in found], [one.happened for one in found], tables)
    flags = few or (() if line else ("no line: predictions of 0 or 1, all alike, or told apart without fault",))
    clusters = len(set(tables))
    for place, name in enumerate(("intercept", "slope")):
        known = Estimate(
            None if line is None else line[place], n, clusters, flags=(FEW,) if line and clusters < 2 else ()
        )
        if line is not None and clusters > 1:
            half = t_quantile(0.95, clusters - 1) * line[place + 2]
            known = known._replace(ci=(line[place] - half, line[place] + half), method="t, sandwich over tables")
        yield estimated(f"calibration.{name}", known, "", flags, denominator="predictions")


def _part(sums: Sums, place: int) -> float | None:
    found = parts(sums)
    return None if found is None else found[place]


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
