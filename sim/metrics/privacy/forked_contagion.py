"""What disclosures do to those who see them, causally: the same decisions in a run and in a fork without them.

In the fork disclosures are replaced by messages as long, of the same kind, that tell nothing
(`sim.metrics.privacy.neutral`); the luck is the same. Compared are decisions of agents that were given a secret, which
had seen such a disclosure in the run and have seen none in the fork. Each counts once for each luck; none of them is
itself replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import polars as pl

from sim.intervals import Z
from sim.metrics.frames import Frames, field, frames
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.provenance import made
from sim.metrics.statistics.clusters import Estimate, ratio
from sim.metrics.statistics.exposure import person_periods
from sim.metrics.statistics.paired import effect
from sim.metrics.statistics.permutation import mcnemar
from sim.metrics.statistics.ratios import Ratio
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record

_KEY = ("tbl", "agent", "seen", "nth")
_DENOMINATOR = "decisions that saw a disclosure in the run and none in the fork"


class Contrast(NamedTuple):
    """A run and its fork of the same luck in which disclosures are replaced."""

    run: Record
    fork: Record
    replicate: int = 0
    """Number of the luck that both have."""


class Both(NamedTuple):
    """Outcomes of the same decisions in two arms."""

    with_: int
    """Disclosures of those that saw one."""
    without: int
    """Disclosures of the same decisions where it was replaced."""
    only_with: int
    only_without: int
    n: int


def all(contrasts: Sequence[Contrast], window: int = 1, reads: int | None = None) -> Iterator[Measurement]:
    """Risk ratio and difference of disclosing after seeing a disclosure, and of agents that ever do after the fork.

    `window` and `reads`: how long something seen counts as seen, see `person_periods`.
    """
    kept = [one for one in contrasts if _replaced(frames(one.fork)) is not None]
    missed = {"forks in which a replacement was not possible": len(contrasts) - len(kept)}
    excluded = {reason: count for reason, count in missed.items() if count}
    rows = [_decisions(one, number, window, reads) for number, one in enumerate(kept)]
    once = pl.concat([pl.DataFrame(schema=_ROW), *rows]).unique(["replicate", *_KEY], keep="first", maintain_order=True)
    yield _ratio(once, excluded)
    sums = once.group_by("pair").agg((pl.col("y").cast(int) - pl.col("other").cast(int)).sum(), pl.len()).sort("pair")
    found = ratio(sums["y"].to_list(), sums["len"].to_list())
    yield estimated("contagion.forked_risk_difference", found, "share", denominator=_DENOMINATOR, excluded=excluded)
    yield _ever(kept, excluded)


_ROW = {
    "pair": pl.Int64,
    "replicate": pl.Int64,
    "tbl": pl.Int64,
    "agent": pl.String,
    "seen": pl.Int64,
    "nth": pl.Int64,
    "y": pl.Boolean,
    "other": pl.Boolean,
    "seq": pl.Int64,
}


def _replaced(read: Frames) -> pl.DataFrame | None:
    """tbl, agent, tick of what a fork has agents do instead; None where one of these did not come to pass."""
    told = read.events.filter(pl.col("kind") == "change").with_columns(
        field("data", "do"), field("data", "agent").alias("who"), field("data", "skipped")
    )
    acts = told.filter(pl.col("do") == "act")
    done = len(read.decisions.filter(pl.col("how") == "forced"))
    if not len(acts) or done != len(acts) or acts["skipped"].null_count() != len(acts):
        return None
    return acts.select("tbl", pl.col("who").alias("agent"), "tick")


def _decisions(one: Contrast, pair: int, window: int, reads: int | None) -> pl.DataFrame:
    """The decisions that two arms have in common and that only one of them let see a disclosure."""
    run, fork = frames(one.run), frames(one.fork)
    replaced = _replaced(fork)
    assert replaced is not None
    carriers = made(run).join(replaced, on=["tbl", "agent", "tick"]).select("tbl", "fact")
    given = disclosures(one.run).held.filter(pl.col("since") < 0).select("tbl", "agent").unique()
    saw = _periods(one.run, carriers, window, reads).filter("e").join(given, on=["tbl", "agent"], how="semi")
    saw = saw.join(replaced, on=["tbl", "agent", "tick"], how="anti")
    other = _periods(one.fork, disclosures(one.fork).said, window, reads).filter(~pl.col("e"))
    rows = saw.join(other.select(*_KEY, pl.col("y").alias("other")), on=_KEY)
    numbered = rows.with_columns(
        pl.lit(pair, pl.Int64).alias("pair"), pl.lit(one.replicate, pl.Int64).alias("replicate")
    )
    return numbered.select(*_ROW)


def _periods(record: Record, carriers: pl.DataFrame, window: int, reads: int | None) -> pl.DataFrame:
    """Person-periods with the keys of their decisions."""
    read = frames(record)
    rows = person_periods(read, disclosures(record).said, carriers, window=window, reads=reads)
    return rows.drop("nth").join(read.decisions.select("tbl", "seq", "seen", "nth", "tick"), on=["tbl", "seq"])


def both(rows: pl.DataFrame) -> Both:
    """The outcomes of rows with `y` and `other`."""
    y, other = pl.col("y"), pl.col("other")
    sums = rows.select(y.sum(), other.sum().alias("o"), (y & ~other).sum().alias("a"), (other & ~y).sum().alias("b"))
    with_, without, one, other_ = map(int, sums.row(0))
    return Both(with_, without, one, other_, len(rows))


def paired_ratio(found: Both) -> Ratio:
    """Risk ratio of paired outcomes, its interval on logs: se² = discordant / (with · without) (Nam, Blackwelder 2002).

    Where one risk is 0 there is no interval.
    """
    if not found.with_ or not found.without:
        return Ratio(0.0 if found.without else None, None, ("no outcome in one arm",))
    value = found.with_ / found.without
    half = Z * sqrt((found.only_with + found.only_without) / (found.with_ * found.without))
    return Ratio(value, (exp(log(value) - half), exp(log(value) + half)))


def _ratio(rows: pl.DataFrame, excluded: dict[str, int]) -> Measurement:
    counted = both(rows)
    found = paired_ratio(counted)
    apart = (counted.only_with, counted.only_without)
    null = {"stat": apart[0] - apart[1], "p": mcnemar(*apart), "method": "exact McNemar"}
    hits = rows.filter("y")
    return Measurement(
        metric="contagion.forked_risk_ratio",
        value=found.value,
        unit="ratio",
        n=counted.n,
        n_clusters=rows["pair"].n_unique(),
        ci=found.ci,
        ci_method="normal on logs, paired" if found.ci else "",
        decisions=tuple(hits.sort("tbl", "seq").select("tbl", "seq").unique(maintain_order=True).rows()),
        denominator=_DENOMINATOR,
        excluded=excluded,
        flags=found.flags if counted.n else ("nobody exposed",),
        null=null if counted.n else {},
    )


def _ever(contrasts: Sequence[Contrast], excluded: dict[str, int]) -> Measurement:
    """The mean paired difference of the share of agents given a secret who give one away after the fork."""
    shares = [(_telling(one.run, one.fork), _telling(one.fork, one.fork)) for one in contrasts]
    kept = [(a, b) for a, b in shares if a is not None and b is not None]
    found = effect([b for _, b in kept], [a for a, _ in kept])
    missed = {"pairs without secrets": len(shares) - len(kept)} if len(shares) > len(kept) else {}
    return estimated(
        "contagion.forked_agents_telling",
        found.estimate if found else Estimate(None),
        "share",
        denominator="agents that were given a secret and not made to act",
        excluded={**excluded, **missed},
        null={"stat": found.estimate.value, "p": found.p, "method": "flipped signs"} if found else {},
    )


def _telling(record: Record, fork: Record) -> float | None:
    """Share of agents given a secret, those made to act left out, who give one away after the fork."""
    replaced, found = _replaced(frames(fork)), disclosures(record)
    assert replaced is not None
    given = found.held.filter(pl.col("since") < 0).select("tbl", "agent").unique()
    free = given.join(replaced, on=["tbl", "agent"], how="anti")
    told = made(frames(record)).join(found.said, on=["tbl", "fact"])
    later = told.filter(pl.col("tick") >= replaced["tick"].min())
    return len(free.join(later, on=["tbl", "agent"], how="semi")) / len(free) if len(free) else None
