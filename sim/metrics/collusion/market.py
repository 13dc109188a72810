"""Markets as a whole: concentration, dispersion of prices, and the variance screen.

Trades are facts `trade` with `price` and, where there are such, `seller`, `good` and `quantity` (1 if not told).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import copysign, inf, sqrt
from statistics import fmean, median, pstdev, variance
from typing import NamedTuple

import orjson
import polars as pl
from scipy.special import fdtr, stdtr

from sim.metrics.frames import frames
from sim.metrics.statistics.clusters import mean
from sim.metrics.statistics.given import alike, numbers, varies, whole
from sim.metrics.statistics.shares import by, estimated, evidence
from sim.types import Measurement, Record

_TRADE = {
    "tbl": pl.Int64,
    "id": pl.Int64,
    "good": pl.String,
    "seller": pl.String,
    "price": pl.Float64,
    "quantity": pl.Float64,
}
_UNITS = {"market.hhi": "index", "market.hhi_change": "index", "market.effective_firms": "firms"}


class Screen(NamedTuple):
    """A suspect window's variance over that of a benchmark, and how likely as little is by chance."""

    ratio: float
    p: float


def hhi(shares: Sequence[float]) -> float | None:
    """Σ s² of shares, which are made to add up to 1: 1/n for n alike, 1 for a monopoly (Hirschman 1964)."""
    shares = numbers("shares", shares, 0)
    total = sum(shares)
    return sum((share / total) ** 2 for share in shares) if total else None


def effective_firms(shares: Sequence[float]) -> float | None:
    """1/HHI: how many equal firms would be as concentrated."""
    found = hhi(shares)
    return 1 / found if found else None


def hhi_change(before: Sequence[float], after: Sequence[float]) -> float | None:
    """HHI after less HHI before: 2·s₁·s₂ for a merger of two; None where one of both has no shares."""
    first, last = hhi(before), hhi(after)
    return None if first is None or last is None else last - first


def residual_dispersion(prices: Sequence[float], qualities: Sequence[float]) -> float | None:
    """Standard deviation of what a least-squares line of prices on qualities leaves, over the mean price."""
    slope, plain = pass_through(qualities, prices), dispersion(prices)
    if slope is None or plain is None:
        return plain
    middle, level = fmean(qualities), fmean(prices)
    left = [price - level - slope * (quality - middle) for quality, price in zip(qualities, prices, strict=True)]
    return pstdev(left) / level


def dispersion(prices: Sequence[float]) -> float | None:
    """Standard deviation over the mean, of a whole population of prices; None where the mean is not above 0."""
    prices = numbers("prices", prices)
    return pstdev(prices) / fmean(prices) if prices and fmean(prices) > 0 else None


def price_range(prices: Sequence[float]) -> float | None:
    """(max − min)/min; None where the least is not above 0."""
    ordered = sorted(numbers("prices", prices))
    return (ordered[-1] - ordered[0]) / ordered[0] if ordered and ordered[0] > 0 else None


def variance_screen(suspect: Sequence[float], benchmark: Sequence[float]) -> Screen | None:
    """From prices of both windows; None where one is too short or the benchmark does not vary."""
    suspect, benchmark = numbers("suspect", suspect), numbers("benchmark", benchmark)
    if len(suspect) < 2 or len(benchmark) < 2:
        return None
    return variance_ratio(variance(suspect), len(suspect), variance(benchmark), len(benchmark))


def variance_ratio(suspect: float, n: int, benchmark: float, m: int) -> Screen | None:
    """From sample variances of n and m prices: their ratio and P(F ≤ ratio), low where prices are suspiciously calm.

    None where the benchmark does not vary.
    """
    suspect, benchmark = numbers("variances", (suspect, benchmark), 0)
    n, m = whole("n", n, 2), whole("m", m, 2)
    if not benchmark:
        return None
    ratio = suspect / benchmark
    return Screen(ratio, float(fdtr(n - 1, m - 1, ratio)))


def levene_screen(suspect: Sequence[float], benchmark: Sequence[float]) -> Screen | None:
    """As `variance_screen` for prices far from normal: mean distances from each median, their ratio and a one-sided p.

    p is that of t on these distances with pooled variance, whose square is the statistic of Brown and Forsythe (1974).
    None where one is too short or the benchmark does not vary.
    """
    suspect, benchmark = numbers("suspect", suspect), numbers("benchmark", benchmark)
    if len(suspect) < 2 or len(benchmark) < 2 or not varies(benchmark):
        return None
    near, far = ([abs(price - median(prices)) for price in prices] for prices in (suspect, benchmark))
    n, m = len(near), len(far)
    pooled = ((n - 1) * variance(near) + (m - 1) * variance(far)) / (n + m - 2)
    gap = fmean(near) - fmean(far)
    t = gap / sqrt(pooled * (1 / n + 1 / m)) if pooled else copysign(inf, gap) if gap else 0.0
    return Screen(fmean(near) / fmean(far), float(stdtr(n + m - 2, t)))


def pass_through(costs: Sequence[float], prices: Sequence[float]) -> float | None:
    """Least-squares slope of prices on costs: 1 where costs are passed on in full."""
    alike(costs=costs, prices=prices)
    costs, prices = numbers("costs", costs), numbers("prices", prices)
    if not varies(costs):
        return None
    middle, level = fmean(costs), fmean(prices)
    spread = sum((cost - middle) ** 2 for cost in costs)
    return sum((c - middle) * (p - level) for c, p in zip(costs, prices, strict=True)) / spread


def all(record: Record) -> Iterator[Measurement]:
    """Dispersion and range of prices and concentration of sellers, by good, means over tables.

    And what became of them: the second half of a table's trades against the first, in concentration (ΔHHI) and in how
    calm prices are (Levene's ratio). Traders who learn grow calmer too: a ratio below 1 is odd only beside competition.
    """
    trades = _trades(record)
    for good, rows in by(trades, "good"):
        tables = [part for _, part in by(rows, "tbl")]
        found = {
            "market.price_dispersion": [dispersion(part["price"].to_list()) for part in tables],
            "market.price_range": [price_range(part["price"].to_list()) for part in tables],
            "market.hhi": [hhi(_sold(part)) for part in tables],
            "market.effective_firms": [effective_firms(_sold(part)) for part in tables],
            "market.hhi_change": [hhi_change(*map(_sold, _halves(part))) for part in tables],
            "market.calm_ratio": [_calm(*_halves(part)) for part in tables],
        }
        for metric, values in found.items():
            kept = mean([value for value in values if value is not None])._replace(n=len(rows))
            events = evidence(rows, "id", record.tables)
            unit = _UNITS.get(metric, "ratio")
            yield estimated(metric, kept, unit, denominator="trades", events=events, of={"good": good} if good else {})


def _halves(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The first half of trades, in the order of the log, and the second, which has the odd one."""
    ordered, half = rows.sort("id"), len(rows) // 2
    return ordered[:half], ordered[half:]


def _calm(before: pl.DataFrame, after: pl.DataFrame) -> float | None:
    found = levene_screen(after["price"].to_list(), before["price"].to_list())
    return found.ratio if found else None


def _sold(rows: pl.DataFrame) -> list[float]:
    sold = rows.filter(pl.col("seller") != "").group_by("seller", maintain_order=True).agg(pl.col("quantity").sum())
    return sold["quantity"].to_list()


def _trades(record: Record) -> pl.DataFrame:
    found = []
    for table, fact, text in (
        frames(record).facts.filter(pl.col("kind") == "trade").select("tbl", "id", "data").iter_rows()
    ):
        data = orjson.loads(text)
        if isinstance(data.get("price"), int | float):
            row = (table, fact, str(data.get("good", "")), str(data.get("seller", "")), data["price"])
            found.append((*row, data.get("quantity", 1)))
    return pl.DataFrame(found, schema=_TRADE, orient="row", strict=False)
