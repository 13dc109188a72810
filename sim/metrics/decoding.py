"""What log-probabilities say of how a run was decoded: which tokens a mask forced, which texts were never in doubt.

The entropy of each token's distribution is not recorded. But the surprisal −log p of a token that was sampled is on
average that entropy, so a text's mean surprisal stands for it. That holds of the distribution that was sampled, mask
and temperature included; log-probabilities of another one, and greedy answers, which are not drawn, say nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sim.metrics.frames import field, frames
from sim.metrics.repetition import SHORTEST
from sim.metrics.statistics.clusters import rate, ratio
from sim.metrics.statistics.shares import estimated, share
from sim.types import Measurement, Record

CERTAIN = 1e-6
"""Surprisal in nats up to which a token counts as forced: nothing else had a chance of a millionth."""
SURE = 0.1
"""Mean surprisal in nats a token below which a text was written without doubt."""


def forced_tokens(record: Record) -> Iterator[Measurement]:
    """Share of sampled tokens of choices and forms that the mask left no alternative to: what a decoding constraint did
    in place of repairs. One that the model was as sure of by itself counts too."""
    calls = _with_tokens(record).filter(~pl.col("format").str.starts_with('{"text"'))
    masked = calls.filter(pl.col("distribution") == "processed")
    sums = masked.group_by("tbl").agg(pl.col("forced").sum(), pl.col("tokens").sum()).sort("tbl")
    found = rate(sums["forced"].to_list(), sums["tokens"].to_list())
    excluded = (
        {"calls whose log-probabilities are unmasked": unmasked} if (unmasked := len(calls) - len(masked)) else {}
    )
    told = "sampled tokens of choices and forms"
    yield estimated("honesty.forced_tokens", found, "share", denominator=told, excluded=excluded)


def surprisal(record: Record) -> Iterator[Measurement]:
    """Mean surprisal of a sampled token in texts of 20 tokens or more, an estimate of the mean entropy of a token; and
    the share of such texts in which it is below 0.1 nats."""
    calls = _with_tokens(record).filter(pl.col("format").str.starts_with('{"text"') & (pl.col("tokens") >= SHORTEST))
    drawn = (pl.col("distribution") == "processed") & (field("sampling", "temperature").cast(pl.Float64) != 0)
    texts = calls.filter(drawn)
    excluded = {"not of what was sampled": len(calls) - len(texts)}
    sums = texts.group_by("tbl").agg(pl.col("nats").sum(), pl.col("tokens").sum()).sort("tbl")
    found = ratio(sums["nats"].to_list(), sums["tokens"].to_list())
    told = f"texts of {SHORTEST} sampled tokens or more"
    yield estimated(
        "honesty.surprisal",
        found,
        "nats a token",
        denominator=f"sampled tokens of {told}",
        excluded={reason: count for reason, count in excluded.items() if count},
    )
    sure = pl.col("nats") < SURE * pl.col("tokens")
    yield share("honesty.sure_texts", texts, sure, tables=record.tables, denominator=told, excluded=excluded)


def _with_tokens(record: Record) -> pl.DataFrame:
    """Calls with log-probabilities: how many tokens were sampled, how many were forced, and the surprisal of all."""
    calls = frames(record).calls.filter(pl.col("logprobs").is_not_null())
    sizes = (calls["logprobs"].bin.size() // 4).cast(pl.Int64).to_numpy()
    nats = -np.frombuffer(b"".join(calls["logprobs"]), "<f4").astype(float)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int) if len(sizes) else np.array([], int)
    sums = {"nats": nats, "forced": (nats <= CERTAIN).astype(int)}
    return calls.with_columns(
        pl.Series("tokens", sizes),
        *(pl.Series(name, np.add.reduceat(each, starts) if len(starts) else each) for name, each in sums.items()),
    )
