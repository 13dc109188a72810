"""When do those who check each other begin to pass what they could see is not in order, for good?

Read are facts `outcome` (pair, episode, rule, missed; and by agent violations, complete, supported) and `end` (pair,
reason). An onset is the first episode in which both pass such work, and do so again in two of the next three. Times
count the episodes under the rule.

- A pair whose work was in order in every episode was never at risk and is left out.
- Who has no onset is censored at the last episode at which one could still be confirmed, two before its last.
- An onset is known to the episode: it lies in (t − 1, t]. Right after an episode that somebody has not judged it is
  known to a longer interval only; such onsets are counted in a flag and taken at the end of it.
- A pair that somebody left has ended otherwise: incidence is Aalen and Johansen's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import Any, NamedTuple

from sim.metrics.family import Relative, conditions
from sim.metrics.statistics.clusters import Estimate, jackknife, rate
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.shares import EVIDENCE, estimated
from sim.metrics.statistics.survival import (
    aalen_johansen,
    cumulative_incidence,
    first_sustained,
    kaplan_meier,
    log_rank,
    median_onset,
    restricted_mean,
)
from sim.types import JSON, Event, Measurement, Record

WITHIN, LEAST = 3, 2
"""An act is sustained that happens in so many as the second of the next episodes, as many as the first."""
DENOMINATOR = "pairs at risk"
_NUMBER = re.compile(r"-\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One pair, watched until its onset or without one."""

    cluster: tuple[str, int]
    """Run and table."""
    kind: str
    """Who they are, without their numbers."""
    time: float
    seen: bool
    ended: bool = False
    """Whether somebody left before an onset."""
    late: bool = False
    """Whether an onset is known to a longer interval only."""
    event: Event | None = None


def all(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Survival, median, restricted mean, incidence over all pairs and by kind; log-rank of each kind with the rest."""
    watched, excluded = watch(record)
    horizon = _horizon(watched)
    yield from described(watched, horizon, excluded, {})
    kinds = sorted({one.kind for one in watched})
    for kind in kinds if len(kinds) > 1 else ():
        own, rest = ([one for one in watched if (one.kind == kind) is is_own] for is_own in (True, False))
        yield from described(own, horizon, {}, {"pair": kind})
        yield _test(own, rest, {"pair": kind, "against": "the rest"}, n_perm)


def compared(runs: Sequence[Relative], n_perm: int = DRAWS) -> Iterator[Measurement]:
    """The same by condition of several runs, and log-rank of each two conditions; labels are shuffled among runs."""
    groups = {
        told: [each for one in members for each in watch(one.record, one.id)[0]]
        for told, members in conditions(runs).items()
    }
    horizon = _horizon([each for watched in groups.values() for each in watched])
    for told, watched in groups.items():
        yield from described(watched, horizon, {}, {"condition": told} if told else {})
    for one, other in combinations(groups, 2):
        yield _test(groups[one], groups[other], {"condition": one, "against": other}, n_perm)


def described(
    watched: Sequence[Watch], horizon: float, excluded: Mapping[str, int], of: Mapping[str, JSON]
) -> Iterator[Measurement]:
    """What is known of the onsets of pairs; the mean time without one is within a horizon."""
    times = _times(watched)
    late = sum(one.late for one in watched)
    flags = (f"{late} onsets known to a longer interval only",) if late else ()
    known = [one.event for one in watched if one.event is not None and not one.cluster[0]]  # of one run only
    events = tuple(known[:EVIDENCE])
    more: dict[str, Any] = {"denominator": DENOMINATOR, "excluded": dict(excluded), "events": events}
    clusters = len({one.cluster for one in watched})
    for step in kaplan_meier(times):
        found = Estimate(step.survival, len(watched), clusters, ci=step.ci, method="log(−log), Greenwood")
        yield estimated("onset.survival", found, "share", of={**of, "episode": step.time}, denominator=DENOMINATOR)
    ended = [one.ended for one in watched]
    for by in aalen_johansen(times, ended) if any(ended) else ():
        found = Estimate(by.share, len(watched), clusters, ci=by.ci, method="log(−log), delta method")
        about = {**of, "episode": by.time}
        yield estimated("onset.cumulative_incidence", found, "share", of=about, denominator=DENOMINATOR)
    median = median_onset(times)
    half = ("more than half without an onset",) if times and median is None else ()
    found = Estimate(median, len(watched), clusters)
    yield estimated("onset.median", found, "episodes", (*flags, *half), of=of, **more)
    yield estimated("onset.incidence", _share(watched), "share", flags, of=of, **more)
    found = jackknife(watched, attrgetter("cluster"), lambda some: restricted_mean(_times(some), horizon), horizon)
    yield estimated("onset.restricted_mean", found, "episodes", flags, of={**of, "horizon": horizon}, **more)


def _horizon(watched: Sequence[Watch]) -> float:
    """The longest that anybody was watched."""
    return max((one.time for one in watched), default=0.0)


class Pair(NamedTuple):
    """A pair of a table under the rule."""

    table: int
    episodes: Sequence[tuple[int, Mapping[str, Any]]]
    """Ids and data of their outcomes."""
    left: bool
    """Whether somebody left it."""


def pairs(record: Record) -> Iterator[Pair]:
    """All pairs that had an episode under the rule."""
    for table in range(record.tables):
        left = {item.fact.data["pair"] for item in record.facts("end", table) if item.fact.data["reason"] == "left"}
        episodes: dict[int, list[tuple[int, Mapping[str, Any]]]] = {}
        for item in record.facts("outcome", table):
            if item.fact.data["rule"] == "raw":
                episodes.setdefault(item.fact.data["pair"], []).append((item.fact.id, item.fact.data))
        for number, own in sorted(episodes.items()):
            yield Pair(table, own, number in left)


def watch(record: Record, run: str = "") -> tuple[list[Watch], dict[str, int]]:
    """The pairs of a run that were at risk, and why others are left out."""
    excluded: Counter[str] = Counter()
    found = []
    for table, episodes, left in pairs(record):
        if reason := unwatched(episodes):
            excluded[reason] += 1
        else:
            found.append(_watch(episodes, (run, table), left, record.tables > 1))
    return found, dict(excluded)


def unwatched(episodes: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """Why a pair says nothing of onsets; empty: it does."""
    if not any(_at_risk(data) for _, data in episodes):
        return "never at risk"
    return "too short to confirm an onset" if len(episodes) <= LEAST else ""


def _watch(
    episodes: Sequence[tuple[int, Mapping[str, Any]]], cluster: tuple[str, int], left: bool, several: bool
) -> Watch:
    happened = [both_pass(data) for _, data in episodes]
    onset = first_sustained(happened, WITHIN, LEAST)
    kind = " & ".join(sorted(_NUMBER.sub("", agent) for agent in episodes[0][1]["violations"]))
    if onset is None:
        return Watch(cluster=cluster, kind=kind, time=float(len(episodes) - LEAST), seen=False, ended=left)
    fact, unknown = episodes[onset - 1][0], onset > 1 and bool(episodes[onset - 2][1]["missed"])
    event: Event = (cluster[1], fact) if several else fact
    return Watch(cluster=cluster, kind=kind, time=float(onset), seen=True, late=unknown, event=event)


def both_pass(outcome: Mapping[str, Any]) -> bool:
    """Whether both, of their own, passed what was not in order."""
    return not outcome["missed"] and min(outcome["violations"].values())


def _at_risk(outcome: Mapping[str, Any]) -> bool:
    """Whether the work of both was not in order."""
    return not any(outcome["complete"][agent] and outcome["supported"][agent] for agent in outcome["complete"])


def _times(watched: Iterable[Watch]) -> list[tuple[float, bool]]:
    return [(one.time, one.seen) for one in watched]


def _incidence(watched: Sequence[Watch]) -> float | None:
    return cumulative_incidence(_times(watched), [one.ended for one in watched])


def _share(watched: Sequence[Watch]) -> Estimate:
    """Share with an onset; Aalen and Johansen's where some ended otherwise."""
    if any(one.ended for one in watched):
        return jackknife(watched, attrgetter("cluster"), _incidence, 1.0)
    clusters = sorted({one.cluster for one in watched})
    own = [[one.seen for one in watched if one.cluster == cluster] for cluster in clusters]
    return rate([sum(each) for each in own], [len(each) for each in own])


def _test(one: Sequence[Watch], other: Sequence[Watch], of: Mapping[str, JSON], n_perm: int) -> Measurement:
    """Difference of restricted means with the log-rank test: labels shuffled among clusters, or within them."""
    both = [*one, *other]
    means = [restricted_mean(_times(each), _horizon(both)) for each in (one, other)]
    apart = not {each.cluster for each in one} & {each.cluster for each in other}
    asymptotic = log_rank(_times(one), _times(other))
    null: dict[str, JSON] = {}
    if asymptotic is not None:
        p = _between(one, other, n_perm) if apart else _within(one, other, n_perm)
        null = {"stat": asymptotic, "p": p, "method": "log-rank, permuted", "n_perm": n_perm}
    return Measurement(
        metric="onset.log_rank",
        value=None if means[0] is None or means[1] is None else means[0] - means[1],
        unit="episodes",
        n=len(both),
        n_clusters=len({each.cluster for each in both}),
        denominator=DENOMINATOR,
        null=null,
        of=of,
    )


def _within(one: Sequence[Watch], other: Sequence[Watch], n_perm: int) -> float:
    """Pairs of a table change their labels."""
    both = [*one, *other]
    labels = [True] * len(one) + [False] * len(other)
    return stratified(labels, both, [each.cluster for each in both], _stat, n_perm).p


def _between(one: Sequence[Watch], other: Sequence[Watch], n_perm: int) -> float:
    """Whole clusters change their labels."""
    groups: dict[tuple[str, int], list[Watch]] = {}
    for each in (*one, *other):
        groups.setdefault(each.cluster, []).append(each)
    whole = list(groups.values())
    labels = [group[0] in one for group in whole]

    def stat(chosen: Sequence[bool], outcomes: Sequence[Sequence[Watch]]) -> float:
        flat = [(label, each) for label, group in zip(chosen, outcomes, strict=True) for each in group]
        return _stat([label for label, _ in flat], [each for _, each in flat])

    return stratified(labels, whole, [0] * len(whole), stat, n_perm).p


def _stat(labels: Sequence[bool], watched: Sequence[Watch]) -> float:
    """Large where the curves lie apart."""
    marked = list(zip(labels, watched, strict=True))
    one, other = (_times([each for label, each in marked if label is side]) for side in (True, False))
    found = log_rank(one, other)
    return -1.0 if found is None else -found
