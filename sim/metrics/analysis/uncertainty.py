"""Uncertainty of a trajectory: of each step by itself, passed on to what depends on it.

U_v = 1 − (1 − u_v)·Π_p (1 − w_pv·U_p), a noisy or over the steps it depends on: one of several choices, not learned.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import compress
from math import exp, fsum, inf
from statistics import fmean
from typing import TypeAlias

import polars as pl
from scipy.stats import rankdata

from sim.blobs import decode_logprobs
from sim.metrics.frames import frames
from sim.metrics.privacy.inference import auc
from sim.metrics.provenance import made
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import ROUNDING, numbers, share, shares
from sim.metrics.statistics.permutation import stratified
from sim.metrics.statistics.shares import estimated
from sim.record.schema import TABLES
from sim.types import JSON, Measurement, Record

DRAWS = 99
"""Shuffles of a test."""
Place: TypeAlias = tuple[int, int]
"""Table, and place of a decision in its log."""


def local(logprobs: Sequence[float]) -> float | None:
    """1 − mean probability of the tokens that were sampled."""
    known = numbers("logprobs", logprobs, -inf, ROUNDING)
    return max(0.0, 1 - fmean(map(exp, known))) if known else None


def propagate(own: Mapping[Hashable, float], edges: Mapping[tuple[Hashable, Hashable], float]) -> dict[Hashable, float]:
    """U of every step; `own` in the order of time, edges from earlier to later steps with their weights.

    Raises ValueError for an edge that goes back, or of a step that is not there.
    """
    found: dict[Hashable, float] = {}
    places = {step: place for place, step in enumerate(own)}
    for (before, after), weight in edges.items():
        share("weights", weight)
        if missing := {before, after} - places.keys():
            raise ValueError(f"there is no step {min(map(repr, missing))}")
        if places[before] >= places[after]:
            raise ValueError(f"the edge from {before} to {after} goes back in time")
    for step, alone in own.items():
        sure = 1 - share("own", alone)
        for (before, after), weight in edges.items():
            if after == step:
                sure *= 1 - weight * found[before]
        found[step] = 1 - sure
    return found


def earliness(aurocs: Sequence[float], level: float = 0.75) -> int | None:
    """First round, from 1, at which failures are told from successes that well."""
    level = share("level", level)
    return next((round_ for round_, each in enumerate(shares("aurocs", aurocs), 1) if each >= level), None)


def passed_on(record: Record, weight: float = 0.5, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Mean uncertainty of decisions with log-probabilities, alone and with what came to them by what they were shown.

    An edge goes from the decision that made a fact to each whose view showed it or whose memory recalled it. How well
    both tell the decisions that failed (defaulted, faulted or stale) from the others is beside them, as an AUC, whose
    test shuffles within tables which of them failed.
    """
    own, failed = _own(record), _failed(record)
    through = _propagated(record, own, weight)
    without = len(failed) - len(own)
    excluded = {"decisions without log-probabilities": without} if without else {}
    for name, found in (("own", own), ("passed_on", through)):
        by_table: dict[int, list[float]] = {}
        for (table, _), value in found.items():
            by_table.setdefault(table, []).append(value)
        estimate = mean([fmean(each) for each in by_table.values()])
        counted, over = estimate._replace(n=len(found)), "decisions with log-probabilities"
        yield estimated(f"uncertainty.{name}", counted, "share", denominator=over, excluded=excluded)
        scores = [(value, failed[place]) for place, value in found.items()]
        separated = auc([value for value, bad in scores if bad], [value for value, bad in scores if not bad])
        yield Measurement(
            metric=f"uncertainty.{name}_auc", value=separated, n=len(scores), n_clusters=len(by_table),
            denominator="pairs of a decision that failed and one that did not",
            flags=("nothing failed, or all did",) if separated is None else (),
            null={} if separated is None else _separation(found, failed, n_perm) | {"stat": separated},
        )  # fmt: skip


def _separation(found: Mapping[Place, float], failed: Mapping[Place, bool], n_perm: int) -> dict[str, JSON]:
    """Whether failures have higher ranks than by chance."""
    ranks: list[float] = rankdata(list(found.values())).tolist()
    bad, tables = [failed[place] for place in found], [table for table, _ in found]
    return stratified(bad, ranks, tables, lambda who, each: fsum(compress(each, who)), n_perm).null


def _own(record: Record) -> dict[Place, float]:
    """1 − mean probability of the sampled tokens of each decision's calls."""
    names = TABLES["calls"].columns.keys()
    at = [names.index(name) for name in ("tbl", "agent", "tick", "nth", "logprobs")]
    sampled: dict[tuple[object, ...], list[float]] = {}
    for page in record.pages("calls"):
        for row in page:
            *key, blob = (row[place] for place in at)
            if blob:
                sampled.setdefault(tuple(key), []).extend(decode_logprobs(blob))
    rows = frames(record).decisions.select("tbl", "seq", "agent", "seen", "nth").sort("tbl", "seq")
    found = {(table, seq): local(sampled.get((table, *key), ())) for table, seq, *key in rows.iter_rows()}
    return {place: value for place, value in found.items() if value is not None}


def _failed(record: Record) -> dict[Place, bool]:
    bad = pl.col("how").is_in(["defaulted", "faulted"]) | (pl.col("status") == "stale")
    rows = frames(record).decisions.select("tbl", "seq", bad.alias("bad"))
    return {(table, seq): failed for table, seq, failed in rows.iter_rows()}


def _propagated(record: Record, own: Mapping[Place, float], weight: float) -> dict[Place, float]:
    """U of every decision of `own`, in one pass in the order of the log."""
    read = frames(record)
    maker = {(table, fact): seq for table, seq, fact in made(read).select("tbl", "seq", "fact").iter_rows()}
    before: dict[Place, set[int]] = {}
    for table, seq, fact in pl.concat([read.shows, read.recalls]).iter_rows():
        if (table, fact) in maker:
            before.setdefault((table, seq), set()).add(maker[table, fact])
    found: dict[Place, float] = {}
    for (table, seq), alone in own.items():
        sure = 1 - alone
        for earlier in before.get((table, seq), ()):
            sure *= 1 - weight * found.get((table, earlier), 0.0)
        found[table, seq] = 1 - sure
    return found
