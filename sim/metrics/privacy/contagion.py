"""Do agents give more away after they saw others do so? Hazards by what was really seen, matched, permuted, placebo.

A row is a decision to say something of an agent that was given a secret; exposure is somebody else's disclosure first
seen at it or just before. Which ratio is always named. The placebo is a disclosure seen only afterwards that did not
come of what the agent itself said: 1 unless who tells and who sees have something in common that roles and stages miss.
In a run that was not forked all of them describe: the causal number is that of `sim.metrics.privacy.forked_contagion`,
from forks in which the disclosure is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import polars as pl

from sim.metrics.frames import frames
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.provenance import made
from sim.metrics.statistics.exposure import person_periods, placebo
from sim.metrics.statistics.glm import PER_COEFFICIENT, fit
from sim.metrics.statistics.permutation import exact_exposure
from sim.metrics.statistics.ratios import (
    Counts,
    Ratio,
    cochran_mantel_haenszel,
    crude,
    exact_odds_ratio,
    mantel_haenszel,
    risk_ratio,
)
from sim.types import Measurement, Record


def all(record: Record, window: int = 1, reads: int | None = None, stages: int = 4) -> Iterator[Measurement]:
    """Risk ratios of forbidden disclosures by exposure, crude and matched, adjusted hazard ratios, and the placebo.

    Hazards are of all disclosures, by how many were seen (dose), and of each agent's first.

    Matched by role and by stage of the run. `window` and `reads`: what counts as exposed, see `person_periods`; what
    counts as the placebo, see `placebo`.
    """
    found, read = disclosures(record), frames(record)
    rows = person_periods(read, found.said, found.said, window=window, reads=reads)
    holders = found.held.filter(pl.col("since") < 0).select("tbl", "agent").unique()
    spoke = made(read).join(found.messages, on=["tbl", "fact"]).select("tbl", "seq").unique()
    at_risk = rows.join(holders, on=["tbl", "agent"]).join(spoke, on=["tbl", "seq"])
    at_risk = at_risk.join(read.cast.select("tbl", "agent", "role"), on=["tbl", "agent"])
    staged = (
        placebo(read, at_risk, found.said, window)
        .sort("tbl", "seq")
        .with_columns((pl.int_range(pl.len()).over("tbl") * stages // pl.len().over("tbl")).alias("stage"))
    )
    yield from measured(staged, ("tbl", "role", "stage"), tables=record.tables)


def measured(rows: pl.DataFrame, strata: Sequence[str], *, tables: int = 1) -> Iterator[Measurement]:
    """From a person-period table: e (exposed), y (outcome), future, and columns to match on.

    Where one group has no outcome, so that no model has a finite answer, there is an exact odds ratio within strata.
    """
    exposed, y = int(rows["e"].sum()), int(rows["y"].sum())
    made = partial(_measurement, rows, tables)
    if not y or not 0 < exposed < len(rows):
        reason = "nobody disclosed" if not y else "nobody exposed" if not exposed else "everybody exposed"
        hazards = ("hazard_ratio", *(("dose_hazard_ratio", "first_hazard_ratio") if "seq" in rows.columns else ()))
        for name in ("crude_risk_ratio", "matched_risk_ratio", *hazards, "placebo_risk_ratio"):
            yield made(name, Ratio(None, None, (reason,)))
        return
    groups = counts(rows, "e", strata)
    yield made("crude_risk_ratio", risk_ratio(crude(groups)))
    exact = exact_exposure(groups)
    null: dict[str, Any] = {
        "stat": sum(one.exposed_with for one in groups),
        "p": exact,
        "method": "exact, permuting within strata",
    }
    null["cmh_p"] = cochran_mantel_haenszel(groups)
    matched = mantel_haenszel(groups)
    yield made("matched_risk_ratio", matched, null=null)
    if matched.ci is None:
        yield made("exact_odds_ratio", exact_odds_ratio(groups), null=null)
    yield made("hazard_ratio", adjusted_hazard(rows, strata))
    if "seq" in rows.columns:
        yield made("dose_hazard_ratio", dose_hazard(rows, strata), told="a unit of log(1 + count) less")
        once = rows.filter(_past() == 0)
        yield _measurement(once, tables, "first_hazard_ratio", adjusted_hazard(once, strata))
    unexposed = rows.filter(~pl.col("e"))
    yield made("placebo_risk_ratio", mantel_haenszel(counts(unexposed, "future", strata)))


def counts(rows: pl.DataFrame, exposure: str, strata: Sequence[str]) -> list[Counts]:
    """A two-by-two table of each stratum."""
    e, y = pl.col(exposure), pl.col("y")
    grouped = rows.group_by(strata).agg(
        (e & y).sum().alias("a"), e.sum().alias("n"), (~e & y).sum().alias("c"), (~e).sum().alias("m")
    )
    return [Counts(*row) for row in grouped.sort(*strata).select("a", "n", "c", "m").iter_rows()]


def adjusted_hazard(rows: pl.DataFrame, strata: Sequence[str]) -> Ratio:
    """Hazard ratio of exposure by a binomial model with a cloglog link: strata, how much was shown, own past outcomes.

    Errors are clustered by agent and table. None where fewer than ten outcomes come to a coefficient.
    """
    return _hazard(rows, strata, [pl.col("e").cast(pl.Float64)], 1)


def dose_hazard(rows: pl.DataFrame, strata: Sequence[str]) -> Ratio:
    """Hazard ratio of a unit of log(1 + disclosures seen) beside exposure; None where nobody saw two at once."""
    if rows.filter(pl.col("dose") > 1).is_empty():
        return Ratio(None, None, ("nobody saw two at once",))
    return _hazard(rows, strata, [pl.col("e").cast(pl.Float64), pl.col("dose").log1p()], 2)


def _past() -> pl.Expr:
    """How many outcomes of the agent came before a row, of rows in order."""
    y = pl.col("y").cast(pl.Int64)
    return y.cum_sum().over("tbl", "agent") - y


def _hazard(rows: pl.DataFrame, strata: Sequence[str], exposure: Sequence[pl.Expr], which: int) -> Ratio:
    """Hazard ratio of one column of exposure, from 1."""
    if rows["e"].n_unique() < 2:
        return Ratio(None, None, ("everybody or nobody exposed",))
    sorted_rows = rows.sort("tbl", "agent", "seq") if "seq" in rows.columns else rows
    columns = [pl.lit(1.0), *exposure]
    if "seq" in rows.columns:
        columns += [pl.col("shown").log1p(), (_past() > 0).cast(pl.Float64)]
    labels = sorted_rows.select(pl.struct(strata).rank("dense").alias("stratum"))["stratum"]
    dummies = labels.to_dummies(drop_first=True) if labels.n_unique() > 1 else pl.DataFrame()
    design = sorted_rows.select(*(one.alias(str(place)) for place, one in enumerate(columns)))
    design = design.select(one for one in design if _tells(one)).hstack(dummies)
    if int(rows["y"].sum()) < PER_COEFFICIENT * design.width:
        return Ratio(None, None, (f"fewer than {PER_COEFFICIENT} outcomes a coefficient",))
    ways: list[list[Any]] = [list(sorted_rows.select("tbl", "agent").iter_rows())]
    if sorted_rows["tbl"].n_unique() > 1:
        ways.append(sorted_rows["tbl"].to_list())
    fitted = fit(list(design.iter_rows()), [float(one) for one in sorted_rows["y"]], "cloglog", ways)
    return Ratio(None, None, ("separated",)) if fitted is None else Ratio(*fitted.ratio(which))


def _tells(column: pl.Series) -> bool:
    """Whether a column says something, or is the constant."""
    return column.n_unique() > 1 or column.name == "0"


def _measurement(
    rows: pl.DataFrame,
    tables: int,
    name: str,
    found: Ratio,
    told: str = "messages of agents that were given a secret, not exposed",
    **more: Any,
) -> Measurement:
    return Measurement(
        metric=f"contagion.{name}",
        value=found.value,
        unit="ratio",
        n=len(rows),
        n_clusters=tables,
        ci=found.ci,
        ci_method="normal on logs" if found.ci else "",
        denominator=told,
        flags=found.flags,
        **more,
    )
