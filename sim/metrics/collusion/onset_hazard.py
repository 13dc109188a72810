"""What makes an onset more likely: hazards by episode, by what one of both did before, by condition.

A row is an episode of a pair that has not begun yet (`sim.metrics.collusion.onset`), up to its onset or the last at
which one could still be confirmed. Errors are clustered by table, in a single table by pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from sim.metrics.collusion.onset import LEAST, WITHIN, both_pass, pairs, unwatched
from sim.metrics.family import Relative, conditions
from sim.metrics.statistics.glm import hazard_ratios
from sim.metrics.statistics.survival import first_sustained
from sim.types import JSON, Measurement, Record

EPISODE, BEFORE = "episode, e times later", "one of both passed it the time before"
"""Covariates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """One episode at risk."""

    cluster: tuple[str, int]
    """Run and table."""
    pair: int
    began: bool
    episode: int
    """From 1."""
    before: bool
    """Whether at least one of the pair passed what was not in order in the episode before."""


def all(record: Record) -> Iterator[Measurement]:
    """Hazard ratios of later episodes and of one who passes it already."""
    yield from measured(periods(record), {})


def compared(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """The same over several runs, and of each condition to the first."""
    groups = {
        told: [each for one in members for each in periods(one.record, one.id)]
        for told, members in conditions(runs).items()
    }
    rows = [each for group in groups.values() for each in group]
    first, *rest = groups or {"": []}
    dummies = {
        told: [float(told == other) for other, group in groups.items() for _ in group] for told in rest
    }  # fmt: skip
    yield from measured(rows, dummies, {"against": first} if rest else {})


def periods(record: Record, run: str = "") -> list[Period]:
    """All episodes at risk of a run."""
    found = []
    for number, (table, episodes, _) in enumerate(pairs(record)):
        if unwatched(episodes):
            continue
        onset = first_sustained([both_pass(data) for _, data in episodes], WITHIN, LEAST)
        last = len(episodes) - LEAST if onset is None else onset
        for episode in range(1, last + 1):
            before = episode > 1 and any(episodes[episode - 2][1]["violations"].values())
            period = Period(cluster=(run, table), pair=number, began=episode == onset, episode=episode, before=before)
            found.append(period)
    return found


def measured(
    rows: Sequence[Period], dummies: Mapping[str, Sequence[float]], of: Mapping[str, JSON] | None = None
) -> Iterator[Measurement]:
    """Hazard ratios of all covariates in one model; `dummies`: 1 for the rows of a condition."""
    covariates = {
        EPISODE: [log(one.episode) for one in rows],
        BEFORE: [float(one.before) for one in rows],
        **dummies,
    }
    several = len({one.cluster for one in rows}) > 1
    labels = [one.cluster if several else (*one.cluster, one.pair) for one in rows]
    found = hazard_ratios(covariates, [float(one.began) for one in rows], [labels])
    more: dict[str, Any] = {"n": len(rows), "n_clusters": len(set(labels)), "denominator": "episodes of pairs at risk"}
    for name, ratio in found.items():
        about = {"condition": name, **(of or {})} if name in dummies else {"covariate": name}
        yield Measurement(
            metric="onset.hazard_ratio",
            value=ratio.value,
            unit="ratio",
            ci=ratio.ci,
            ci_method="normal on logs, errors robust to clusters" if ratio.ci else "",
            flags=ratio.flags,
            of=about,
            **more,
        )
