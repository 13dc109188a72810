"""Uncertainty of a trajectory: of each step by itself, passed on to what depends on it.

U_v = 1 − (1 − u_v)·Π_p (1 − w_pv·U_p), a noisy or over the steps it depends on: one of several choices. Its weights are
the same for all here; `foretold` learns them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import compress
from math import exp, fsum, inf, log
from statistics import fmean
from typing import TypeAlias, TypeVar

import polars as pl
from scipy.stats import rankdata

from sim.blobs import decode_logprobs, decode_options
from sim.intervals import FEW
from sim.metrics.analysis.calibration import ENOUGH
from sim.metrics.analysis.reliability import binned, unbiased
from sim.metrics.frames import frames
from sim.metrics.provenance import made
from sim.metrics.statistics.centred import METHOD, centred_bootstrap
from sim.metrics.statistics.clusters import Estimate, mean
from sim.metrics.statistics.discrimination import Scored, Sums, auroc, scored
from sim.metrics.statistics.given import ROUNDING, numbers, share, shares
from sim.metrics.statistics.given import law as distribution
from sim.metrics.statistics.permutation import DRAWS, stratified
from sim.metrics.statistics.repeats import pairwise_agreement
from sim.metrics.statistics.shares import estimated
from sim.record.schema import TABLES
from sim.types import JSON, Measurement, Record

H = TypeVar("H", bound=Hashable)
Place: TypeAlias = tuple[int, int]
"""Table, and place of a decision in its log."""


def local(logprobs: Sequence[float]) -> float | None:
    """1 − mean probability of the tokens that were sampled."""
    known = numbers("logprobs", logprobs, -inf, ROUNDING)
    return max(0.0, 1 - fmean(map(exp, known))) if known else None


def entropy(law: Mapping[Hashable, float]) -> float:
    """−Σ p·log p of what could have been chosen, in nats."""
    return -fsum(p * log(p) for p in distribution("law", law).values() if p)


def disagreement(answers: Sequence[Hashable]) -> float | None:
    """Share of pairs of answers to one question that differ; None for fewer than two."""
    alike = pairwise_agreement(answers)
    return None if alike is None else 1 - alike


def propagate(own: Mapping[Hashable, float], edges: Mapping[tuple[Hashable, Hashable], float]) -> dict[Hashable, float]:
    """U of every step; `own` in the order of time, edges from earlier to later steps with their weights.

    Raises ValueError for an edge that goes back, or of a step that is not there.
    """
    places = {step: place for place, step in enumerate(own)}
    before: dict[Hashable, list[tuple[Hashable, float]]] = {}
    for (earlier, after), weight in edges.items():
        share("weights", weight)
        if missing := {earlier, after} - places.keys():
            raise ValueError(f"there is no step {min(map(repr, missing))}")
        if places[earlier] >= places[after]:
            raise ValueError(f"the edge from {earlier} to {after} goes back in time")
        before.setdefault(after, []).append((earlier, weight))
    for lone in own.values():
        share("own", lone)
    return through(own, before)


def earliness(aurocs: Sequence[float], level: float = 0.75) -> int | None:
    """First round, from 1, at which failures are told from successes that well."""
    level = share("level", level)
    return next((round_ for round_, each in enumerate(shares("aurocs", aurocs), 1) if each >= level), None)


def passed_on(record: Record, weight: float = 0.5, n_perm: int = DRAWS, draws: int = DRAWS) -> Iterator[Measurement]:
    """Mean uncertainty of decisions with log-probabilities, alone and with what came to them by what they were shown.

    An edge goes from the decision that made a fact to each whose view showed it or whose memory recalled it. How well
    both tell the decisions that failed (defaulted, faulted or stale) from the others is beside them (`separations`);
    the test of the AUC shuffles within tables which of them failed. Choices have
    their entropy too, where all options are known.
    """
    own, failed = alone(record), failures(record)
    passed = _propagated(record, own, weight)
    told, options = rounds(record), undecided(record)
    scores = {"own": own, "passed_on": passed, **({"entropy": options} if options else {})}
    for name, found in scores.items():
        without = len(failed) - len(found)
        excluded = {"decisions without log-probabilities": without} if without else {}
        by_table: dict[int, list[float]] = {}
        for (table, _), value in found.items():
            by_table.setdefault(table, []).append(value)
        estimate = mean([fmean(each) for each in by_table.values()])
        counted, over = estimate._replace(n=len(found)), "decisions with log-probabilities"
        yield estimated(f"uncertainty.{name}", counted, "share", denominator=over, excluded=excluded)
        known = {place: failed[place] for place in found}
        both = len(set(known.values())) == 2
        null = _separation(found, failed, n_perm) if both else {}
        yield from separations(f"uncertainty.{name}", found, known, told, null, draws)


def separations(
    name: str,
    scores: Mapping[Place, float],
    failed: Mapping[Place, bool],
    told: Mapping[Place, int],
    null: Mapping[str, JSON],
    draws: int = DRAWS,
    version: int = 1,
) -> Iterator[Measurement]:
    """How well scores tell decisions that failed: areas under ROC, under precision and recall, and under risk and
    coverage, the debiased calibration error, and the first round in which the AUC reaches 0.75.

    Chance has an AUC of ½, and of both other areas the share that failed. Intervals draw tables anew.
    """
    values, bad = list(scores.values()), [failed[place] for place in scores]
    tables = [table for table, _ in scores]
    clusters, flags = len(set(tables)), () if len(set(bad)) == 2 else ("nothing failed, or all did",)
    lone = (FEW,) if values and clusters < 2 else ()
    by_level, bins, one = scored(values, bad), binned(values, bad), (0.0, 1.0)
    found: dict[str, tuple[Scored, Callable[[Sums], float | None], tuple[float, float], str, str]] = {
        "auc": (by_level, Sums.auroc, one, "", "pairs of a decision that failed and one that did not"),
        "auprc": (by_level, Sums.average_precision, one, "share", "decisions that failed"),
        "aurc": (by_level, Sums.risk_coverage, one, "share", "decisions kept"),
        "ece_debiased": (bins, unbiased, (-inf, inf), "squared share", "decisions"),
    }
    for what, (units, value, ends, unit, over) in found.items():
        enough = () if what != "ece_debiased" or len(values) >= ENOUGH else (f"fewer than {ENOUGH} predictions",)
        whole = None if flags or enough else value(units.sums())
        ci = None if whole is None else centred_bootstrap(tables, units.drawn(value), draws, ends=ends)
        estimate = Estimate(whole, len(values), clusters, ci=ci, method=METHOD if ci else "")
        why = (*flags, *enough, *(lone if whole is not None else ()))
        more = {**null, "stat": whole} if null and what == "auc" else {}
        yield estimated(f"{name}_{what}", estimate, unit, why, denominator=over, null=more, version=version)
    areas = _by_round(scores, failed, told)
    first = earliness(areas)
    yield Measurement(
        metric=f"{name}_earliness", value=first, unit="round", n=len(areas), n_clusters=clusters,
        denominator="rounds: decisions of all agents by how many each had before",
        flags=() if first else ("in no round do failures stand out that well",), version=version,
    )  # fmt: skip


def rounds(record: Record) -> dict[Place, int]:
    """Of each decision how many its agent made at the table before."""
    frame = frames(record).decisions.sort("tbl", "seq").with_columns(nth=pl.int_range(pl.len()).over("tbl", "agent"))
    return {(table, seq): nth for table, seq, nth in frame.select("tbl", "seq", "nth").iter_rows()}


def _by_round(scores: Mapping[Place, float], failed: Mapping[Place, bool], told: Mapping[Place, int]) -> list[float]:
    """The AUC of each round; ½ where it has none, as nothing can be told there."""
    groups: dict[int, list[Place]] = {}
    for place in scores:
        groups.setdefault(told[place], []).append(place)
    found = {nth: auroc([scores[one] for one in own], [failed[one] for one in own]) for nth, own in groups.items()}
    return [0.5 if (area := found.get(nth)) is None else area for nth in range(max(groups, default=-1) + 1)]


def _separation(found: Mapping[Place, float], failed: Mapping[Place, bool], n_perm: int) -> dict[str, JSON]:
    """Whether failures have higher ranks than by chance."""
    ranks: list[float] = rankdata(list(found.values())).tolist()
    bad, tables = [failed[place] for place in found], [table for table, _ in found]
    return stratified(bad, ranks, tables, lambda who, each: fsum(compress(each, who)), n_perm).null


def alone(record: Record) -> dict[Place, float]:
    """1 − mean probability of the sampled tokens of each decision's calls."""
    found = {place: local(each) for place, each in _by_decision(record, "logprobs", decode_logprobs).items()}
    return {place: value for place, value in found.items() if value is not None}


def undecided(record: Record) -> dict[Place, float]:
    """Entropy of the options of a decision's choices, over that of options alike: where all are known, the mean."""
    return {place: fmean(each) for place, each in _by_decision(record, "option_logprobs", _spread).items()}


def _spread(blob: bytes) -> list[float]:
    known = [exp(each) for each in decode_options(blob) if each is not None]
    if len(known) < 2 or len(known) < len(decode_options(blob)):
        return []
    total = fsum(known)
    return [entropy({place: p / total for place, p in enumerate(known)}) / log(len(known))] if total else []


def _by_decision(record: Record, column: str, read: Callable[[bytes], Sequence[float]]) -> dict[Place, list[float]]:
    """What the calls of each decision have in a column, if they have something."""
    names = TABLES["calls"].columns.keys()
    at = [names.index(name) for name in ("tbl", "agent", "tick", "nth", column)]
    told: dict[tuple[object, ...], list[float]] = {}
    for page in record.pages("calls"):
        for row in page:
            *key, blob = (row[place] for place in at)
            if blob:
                told.setdefault(tuple(key), []).extend(read(blob))
    rows = frames(record).decisions.select("tbl", "seq", "agent", "seen", "nth").sort("tbl", "seq")
    found = {(table, seq): told.get((table, *key), []) for table, seq, *key in rows.iter_rows()}
    return {place: each for place, each in found.items() if each}


def failures(record: Record) -> dict[Place, bool]:
    """Which decisions failed: defaulted, faulted or stale."""
    bad = pl.col("how").is_in(["defaulted", "faulted"]) | (pl.col("status") == "stale")
    rows = frames(record).decisions.select("tbl", "seq", bad.alias("bad"))
    return {(table, seq): failed for table, seq, failed in rows.iter_rows()}


def _propagated(record: Record, own: Mapping[Place, float], weight: float) -> dict[Place, float]:
    """U of every decision of `own`, in one pass in the order of the log."""
    seen = sources(record)
    return through(own, {place: [(source, weight) for source in seen.get(place, ())] for place in own})


def sources(record: Record) -> dict[Place, set[Place]]:
    """Of each decision those that made what its view showed or its memory recalled."""
    read = frames(record)
    maker = {(table, fact): seq for table, seq, fact in made(read).select("tbl", "seq", "fact").iter_rows()}
    before: dict[Place, set[Place]] = {}
    for table, seq, fact in pl.concat([read.shows, read.recalls]).iter_rows():
        if (table, fact) in maker:
            before.setdefault((table, seq), set()).add((table, maker[table, fact]))
    return before


def through(own: Mapping[H, float], edges: Mapping[H, Sequence[tuple[H, float]]]) -> dict[H, float]:
    """U of every step, as `propagate`, of which `edges` tells those before it and their weights."""
    found: dict[H, float] = {}
    for place, lone in own.items():
        sure = 1 - lone
        for earlier, weight in edges.get(place, ()):
            sure *= 1 - weight * found.get(earlier, 0.0)
        found[place] = 1 - sure
    return found
