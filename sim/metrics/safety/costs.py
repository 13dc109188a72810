"""What a run costs its models: calls, tokens and seconds per decision. Under attack and without, these are compared."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sim.metrics.frames import frames
from sim.metrics.statistics.clusters import ratio
from sim.metrics.statistics.shares import estimated
from sim.types import Measurement, Record

UNITS = {"calls": "calls", "prompt_tokens": "tokens", "completion_tokens": "tokens", "latency": "s"}
"""What is counted of each decision; latency is wall time as the engine had it."""


def all(record: Record) -> Iterator[Measurement]:
    """Calls, prompt and sampled tokens and seconds of model time per decision with a call, and the cached share."""
    calls = frames(record).calls
    each = calls.group_by("tbl", "agent", "tick", "nth").agg(
        pl.len().alias("calls"), pl.col("prompt_tokens", "completion_tokens", "latency").sum()
    )
    sums = each.group_by("tbl").agg(pl.col(*UNITS).sum(), pl.len().alias("decisions")).sort("tbl")
    decisions = sums["decisions"].to_list()
    for name, unit in UNITS.items():
        found = ratio(sums[name].to_list(), decisions)
        yield estimated(f"cost.{name}", found, f"{unit} per decision", denominator="decisions with a call")
    tokens = calls.group_by("tbl").agg(pl.col("prompt_tokens", "cached_tokens").sum()).sort("tbl")
    cached = ratio(tokens["cached_tokens"].to_list(), tokens["prompt_tokens"].to_list())
    yield estimated("cost.cached_share", cached, "share", denominator="prompt tokens")
