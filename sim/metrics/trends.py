"""Whether behaviour drifts over the rounds of a run: any number a round, its slope, its trend and where it breaks.

A round is what a fact says of itself (`round`, `episode`, `period`, `exchange`), else an equal part of the run's time.
Rounds hang together, so tables are the clusters of a slope; the test of a trend is of the mean over tables, whose
rounds it takes for exchangeable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean

import polars as pl

from sim.metrics.chosen import both
from sim.metrics.clusters import mean
from sim.metrics.drift import change_point, mann_kendall, slope
from sim.metrics.frames import field, frames
from sim.metrics.repetition import tokens, type_token_ratio
from sim.metrics.shares import estimated
from sim.types import Measurement, Record

PARTS = 10
"""Parts of the run's time, where facts name no round."""
NAMES = ("round", "episode", "period", "exchange")


def all(record: Record) -> Iterator[Measurement]:
    """Drift of the length and of the diversity of messages, with and without what was defaulted."""
    yield from both(texts)(record)


def texts(record: Record) -> Iterator[Measurement]:
    """Words a message, and distinct words over all of a message, by round."""
    read = frames(record)
    said = read.facts.filter(pl.col("actor") != "").with_columns(field("data", "text")).drop_nulls("text")
    rounds = pl.coalesce(*(field("data", name).cast(pl.Int64, strict=False) for name in NAMES), _part())
    rows = said.with_columns(rounds.alias("at")).sort("tbl", "seq").select("tbl", "at", "text").rows()
    counted = [(table, at, tokens(text)) for table, at, text in rows]
    yield from drifts("message_length", [(table, at, float(len(words))) for table, at, words in counted], "words")
    diverse = [(table, at, type_token_ratio(words)) for table, at, words in counted]
    yield from drifts("lexical_diversity", [(table, at, v) for table, at, v in diverse if v is not None], "share")


def drifts(name: str, values: Iterable[tuple[int, int, float]], unit: str) -> Iterator[Measurement]:
    """From (table, round, value): slope a round, Kendall's tau with its test, and the first round after a break.

    A round's value is the mean of its values; rounds without one are left out.
    """
    by_table: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table, at, value in values:
        by_table[table][at].append(value)
    series = {table: {at: fmean(found) for at, found in sorted(own.items())} for table, own in sorted(by_table.items())}
    slopes = [found for own in series.values() if (found := slope(list(own.values()))) is not None]
    about = {"series": name}
    together = _mean(series.values())
    rounds = list(together)
    short = {"tables with a single round": len(series) - len(slopes)} if len(series) > len(slopes) else {}
    yield estimated("drift.slope", mean(slopes), f"{unit} a round", denominator="tables", excluded=short, of=about)
    trend = mann_kendall(list(together.values()))
    yield Measurement(
        metric="drift.tau",
        value=trend.tau if trend else None,
        n=len(rounds),
        n_clusters=len(series),
        denominator="rounds",
        null={"stat": trend.tau, "p": trend.p, "method": "Mann-Kendall"} if trend else {},
        flags=() if trend else ("fewer than 3 rounds, or all alike",),
        of=about,
    )
    place = change_point(list(together.values()))
    broken = None if place is None or trend is None else float(rounds[place])
    n, clusters = len(rounds), len(series)
    yield Measurement(metric="drift.change_point", value=broken, unit="round", n=n, n_clusters=clusters, of=about)


def _mean(series: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Of each round, over the tables that have it."""
    gathered: dict[int, list[float]] = defaultdict(list)
    for own in series:
        for at, value in own.items():
            gathered[at].append(value)
    return {at: fmean(found) for at, found in sorted(gathered.items())}


def _part() -> pl.Expr:
    """Which of equal parts of its table's time a fact is in, from 1."""
    last = pl.col("tick").max().over("tbl") + 1
    return pl.col("tick") * PARTS // last + 1
