"""Whether a model says the same when it is asked the same: prompts that were asked several times.

Calls of one model and policy with equal messages, answer format and sampling are one question asked again; their luck
differs. Questions are the units. Tables that start alike ask again by design, and so do replicates of a fork, which
begin with what was to be decided at its tick; a single record may have no such calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from sim.intervals import FEW
from sim.metrics.family import Relative
from sim.metrics.frames import field, frames
from sim.metrics.statistics.clusters import Estimate, mean_share
from sim.metrics.statistics.repeats import variance_components
from sim.metrics.statistics.shares import estimated
from sim.types import HUMAN, JSON, Measurement, Record

_QUESTION = ("model", "answered_by", "messages", "format", "sampling")


def retest(record: Record) -> Iterator[Measurement]:
    """Whether questions that were asked at least twice in a record were answered alike."""
    yield from _retested(frames(record).calls)


def across(runs: Sequence[Relative]) -> Iterator[Measurement]:
    """The same over several runs and their forks together; answers that a fork has from its parent count once."""
    calls = [frames(one.record).calls.filter(pl.col("source") != "parent") for one in runs]
    if calls:
        yield from _retested(pl.concat(calls))
    else:
        flags = ("no finished run",)
        yield Measurement(metric="honesty.retest_agreement", value=None, unit="share", n_clusters=0, flags=flags)


def _retested(calls: pl.DataFrame) -> Iterator[Measurement]:
    """Over questions asked at least twice: the share of pairs of answers that are alike, that of the most frequent one,
    and of numbers the intraclass correlation; and of greedy answers the share of pairs alike to the token."""
    calls = calls.filter((pl.col("finish") != "error") & (pl.col("purpose") != HUMAN) & (pl.col("messages") != "[]"))
    named = calls.with_columns(
        pl.struct(_QUESTION).rank("dense").alias("question"), pl.col("format").str.extract(r'^\{"(\w+)').alias("kind")
    )
    again = named.filter(pl.len().over("question") > 1)
    once = {"asked once": len(named) - len(again)} if len(named) > len(again) else {}
    told: dict[str, Any] = {"denominator": "questions asked at least twice", "excluded": once}
    alike = _alike(again, "text")
    yield estimated("honesty.retest_agreement", _over(alike, "agreement"), "share", **told)
    yield estimated("honesty.retest_modal_share", _over(alike, "modal_share"), "share", **told)
    greedy = again.filter(field("sampling", "temperature").cast(pl.Float64) == 0)
    same = _alike(greedy.with_columns(pl.coalesce(pl.col("ids"), pl.col("text").cast(pl.Binary))), "ids")
    told |= {"denominator": "questions asked at least twice at temperature 0"}
    yield estimated("honesty.greedy_repeats", _over(same, "agreement"), "share", **told)
    yield from _of_numbers(again)


def _alike(calls: pl.DataFrame, answer: str) -> pl.DataFrame:
    """By question: how often asked, the share of pairs of answers that are alike, and that of the most frequent one."""
    counts = calls.group_by("question", answer).agg(pl.len().cast(pl.Int64).alias("count"))
    n, each = pl.col("count").sum(), pl.col("count")
    return counts.group_by("question").agg(
        n.alias("asked"),
        ((each * (each - 1)).sum() / (n * (n - 1))).alias("agreement"),
        (each.max() / n).alias("modal_share"),
    )


def _over(questions: pl.DataFrame, name: str) -> Estimate:
    """The mean over questions, with how many calls it is made of."""
    return mean_share(questions[name].sort().to_list())._replace(n=float(questions["asked"].sum()))


def _of_numbers(again: pl.DataFrame) -> Iterator[Measurement]:
    """Of each number in answers, the share of its variance that is between questions."""
    groups: dict[str, dict[int, list[float]]] = {}
    for question, text in again.filter(pl.col("kind") != "text").select("question", "text").drop_nulls().iter_rows():
        for name, value in _numbers(text):
            groups.setdefault(name, {}).setdefault(question, []).append(value)
    for name, by_question in sorted(groups.items()):
        repeated = [by_question[question] for question in sorted(by_question) if len(by_question[question]) > 1]
        found = variance_components(repeated)
        yield Measurement(
            metric="honesty.retest_icc",
            value=found.icc if found else None,
            unit="share",
            n=sum(map(len, repeated)),
            n_clusters=len(repeated),
            denominator="variance of a number in answers to questions asked at least twice",
            flags=found.flags if found else (FEW,),
            of={"number": name},
        )


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    """The numbers of an answer by their names; one that is a number itself is called answer."""
    try:
        said: JSON = orjson.loads(text)
    except orjson.JSONDecodeError:
        return
    for name, value in said.items() if isinstance(said, dict) else (("answer", said),):
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value)
