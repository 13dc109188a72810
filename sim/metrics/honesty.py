"""How honest a run is: what models really chose, what was put in their place, cut off, refused, or went wrong.

All of it is counted, nothing judged. It stands at the head of every report, and a run beyond the thresholds is not fit
for claims. Left out: refusals that belong to a role, which need a judge; templates that a model gives whatever it is
asked (`sim.metrics.analysis.templates` of choices; texts have to be scored anew); and where a replay goes another way,
which `agora verify` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import polars as pl
from msgspec.structs import replace

from sim.metrics.decoding import forced_tokens, surprisal
from sim.metrics.frames import Frames, frames
from sim.metrics.integrity import faults
from sim.metrics.prompts import reached
from sim.metrics.repetition import LIMITS, SHORTEST, degenerate, repeated_share, tokens
from sim.metrics.retest import retest
from sim.metrics.statistics.clusters import mean_share, ratio
from sim.metrics.statistics.given import share_of
from sim.metrics.statistics.shares import by, estimated, share, share_by
from sim.metrics.substitutes import SUBSTITUTED, asked, default_by_round, default_outcome
from sim.types import Measurement, Record

UNFIT = "not fit for claims"
"""What the flag of a run beyond the thresholds begins with."""
ACTING = ("act", "rethink")
"""Purposes of the calls that ask for an action."""
REFUSALS = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:no|')t|won't|will not|must decline|refuse)\b"
    r"|as an ai\b|i do(?:n't| not) feel comfortable)",
    re.IGNORECASE,
)
TOO_LONG = r"(?i)too long|context (?:length|window)|maximum context|max_model_len|longer than the"


class Thresholds(NamedTuple):
    """Shares above which a run says nothing about its models."""

    default: float = 0.05
    """Of decisions that were not the model's."""
    truncation: float = 0.02
    """Of calls that were cut off."""
    agent: float = 0.20
    """Of one agent's decisions that were not the model's."""


THRESHOLDS = Thresholds()


def all(record: Record) -> Iterator[Measurement]:
    """Everything about the honesty of a run, the verdict first."""
    read = frames(record)
    found = [*default_rate(record), *fault_rate(record), *stale_rate(record), *integrity(record)]
    if len(asked(read)) or len(read.calls):
        found += [one for metric in _OF_MODELS for one in metric(record)]
    yield verdict(found)
    yield from found


def verdict(found: Iterable[Measurement], thresholds: Thresholds = THRESHOLDS) -> Measurement:
    """1 if a run is fit for claims, 0 if not, from what `all` finds; the flags say what is beyond which threshold."""
    reasons = []
    for one in found:
        name, agent = one.metric.removeprefix("honesty.").replace("_", " "), one.of.get("agent")
        limit = _limit(one, thresholds)
        if limit is None or one.value is None or one.value <= limit:
            continue
        shown = f"{one.value:.0f} faults" if one.unit == "faults" else f"{one.value:.1%} > {limit:.0%}"
        reasons.append(f"{UNFIT}: {name}{f' of {agent}' if agent else ''} {shown}")
    fit = float(not reasons)
    return Measurement(metric="honesty.fit_for_claims", value=fit, unit="yes or no", n=1, flags=tuple(reasons))


def _limit(one: Measurement, thresholds: Thresholds) -> float | None:
    """Above which a measurement makes a run unfit; None for one that does not."""
    match one.metric, "agent" in one.of:
        case "honesty.default_rate", alone:
            return thresholds.agent if alone else thresholds.default
        case "honesty.truncation", _:
            return thresholds.truncation
        case "honesty.integrity", _:
            return 0.0
        case _:
            return None


def default_rate(record: Record) -> Iterator[Measurement]:
    """Decisions that were not the model's (defaulted, faulted) over decisions of agents with a model; each agent's."""
    read = frames(record)
    rows, told = asked(read), _of_decisions(record)
    forced = len(read.decisions.filter(pl.col("how") == "forced"))
    left_out = {"scripted": len(read.decisions) - forced - len(rows), "forced": forced}
    yield share("honesty.default_rate", rows, SUBSTITUTED, excluded=left_out, **told)
    yield from share_by("honesty.default_rate", rows, SUBSTITUTED, "agent", **told)


def parse_failure(record: Record) -> Iterator[Measurement]:
    """Decisions whose first answer was not legal, those whose last was not, and the share that a rethink saved."""
    every = asked(frames(record))
    rows, first = every.filter(pl.col("how") != "faulted"), pl.col("how") != "chosen"
    told = _of_decisions(record) | {"excluded": {"faulted": len(every) - len(rows)}}
    yield share("honesty.parse_failure_first", rows, first, **told)
    yield share("honesty.parse_failure_final", rows, pl.col("how") == "defaulted", **told)
    failed = {**_of_decisions(record), "denominator": "decisions whose first answer was not legal"}
    yield share("honesty.repair_rate", rows.filter(first), pl.col("how") == "retried", **failed)


def attempts(record: Record) -> Iterator[Measurement]:
    """Calls for an action over decisions that made one: 1 where no rethink was needed."""
    calls = frames(record).calls.filter(pl.col("purpose").is_in(ACTING))
    each = calls.group_by("tbl", "agent", "tick", "nth").agg(pl.len().alias("attempts"))
    counted = each.group_by("tbl").agg(pl.col("attempts").sum(), pl.len().alias("decisions")).sort("tbl")
    found = ratio(counted["attempts"].to_list(), counted["decisions"].to_list())
    yield estimated("honesty.attempts", found, "calls per decision", denominator="decisions with a call for an action")


def fault_rate(record: Record) -> Iterator[Measurement]:
    """Decisions whose mind broke over all decisions, scripted ones too."""
    rows, hit = frames(record).decisions, pl.col("how") == "faulted"
    yield share("honesty.fault_rate", rows, hit, tables=record.tables, decisions="seq", denominator="decisions")


def stale_rate(record: Record) -> Iterator[Measurement]:
    """Decisions that were no longer possible when due over all decisions."""
    rows, hit = frames(record).decisions, pl.col("status") == "stale"
    yield share("honesty.stale_rate", rows, hit, tables=record.tables, decisions="seq", denominator="decisions")


def truncation(record: Record) -> Iterator[Measurement]:
    """Calls cut off at the length limit over calls; and how many times as often those gave no legal answer."""
    read = frames(record)
    calls, told = read.calls, "model calls"
    cut = pl.col("finish") == "length"
    yield share("honesty.truncation", calls, cut, tables=record.tables, denominator=told)
    acting = calls.filter(pl.col("purpose").is_in(ACTING))
    acted = acting.join(_outcomes(read), on=["tbl", "agent", "tick", "nth"])
    short = acted.filter(cut)
    rest = acted.filter(~cut)
    value = failure_ratio(*_failed(short), *_failed(rest))
    yield Measurement(
        metric="honesty.truncation_failure_ratio",
        value=value,
        unit="ratio",
        n=len(acted),
        n_clusters=record.tables,
        denominator="failures per call that was not cut off",
        excluded={"calls of dropped decisions": len(acting) - len(acted)} if len(acting) > len(acted) else {},
    )


def failure_ratio(cut_failed: int, cut: int, failed: int, rest: int) -> float | None:
    """Failures per cut-off call over failures per other call; None where a kind is missing or the rest never fails."""
    short, whole = share_of(cut_failed, cut), share_of(failed, rest)
    return None if short is None or not whole else short / whole


def call_failures(record: Record) -> Iterator[Measurement]:
    """Calls that came back with an error over calls, those of them that were too long for the model, and calls of no
    decision: of one that was interrupted, or that was not yet due at the end."""
    read = frames(record)
    key = ["tbl", "agent", "tick", "nth"]
    decided = read.decisions.select("tbl", "agent", pl.col("seen").alias("tick"), "nth", used=True)
    calls, failed = read.calls.join(decided, on=key, how="left"), pl.col("finish") == "error"
    for metric, hit in (
        ("honesty.failed_calls", failed),
        ("honesty.context_overflow", failed & pl.col("error").str.contains(TOO_LONG)),
        ("honesty.calls_without_decision", pl.col("used").is_null()),
    ):
        yield share(metric, calls, hit, tables=record.tables, denominator="model calls")


def refusals(record: Record) -> Iterator[Measurement]:
    """Calls answered in words of refusal over calls for an action that could be answered in words.

    By a list of patterns: a refusal within a role counts too.
    """
    calls = frames(record).calls.filter(pl.col("purpose").is_in(ACTING) & pl.col("text").is_not_null())
    worded = calls.filter(~pl.col("format").str.starts_with('{"choice"'))
    hit = pl.col("text").map_elements(lambda text: REFUSALS.search(text) is not None, return_dtype=pl.Boolean)
    told, excluded = "calls for an action in words", {"choices": len(calls) - len(worded)}
    yield share("honesty.refusal_rate", worded, hit, tables=record.tables, denominator=told, excluded=excluded)


def repetition(record: Record) -> Iterator[Measurement]:
    """Degenerate texts over texts of 20 words, or 50 characters, or more: those with a repeated share of bigrams above
    0.6, a word more than 8 times in a row, or more than 50 characters in a row that are one or a few over and over; and
    of texts of 20 words or more the mean repeated share of n-grams of 2 and 4. Choices are no texts."""
    calls = frames(record).calls.filter(pl.col("text").is_not_null() & ~pl.col("format").str.starts_with('{"choice"'))
    worded = pl.col("text").str.count_matches(r"\S+") >= SHORTEST
    long = calls.filter(worded | (pl.col("text").str.len_chars() > LIMITS.stretch))
    hit = pl.col("text").map_elements(degenerate, return_dtype=pl.Boolean)
    told = f"answers of {SHORTEST} words, or more than {LIMITS.stretch} characters, but for choices"
    excluded = {"short answers": len(calls) - len(long)}
    degenerated = share("honesty.degenerate_text", long, hit, tables=record.tables, denominator=told, excluded=excluded)
    yield replace(degenerated, version=2)
    texts = long.filter(worded)
    for metric, n in (("honesty.repeated_bigrams", 2), ("honesty.repeated_fourgrams", 4)):
        means = [
            sum(shares) / len(shares)
            for _, rows in by(texts, "tbl")
            if (shares := [found for text in rows["text"] if (found := repeated_share(tokens(text), n)) is not None])
        ]
        told = f"answers of {SHORTEST} words or more, but for choices"
        yield estimated(metric, mean_share(means)._replace(n=len(texts)), "share", denominator=told)


def integrity(record: Record) -> Iterator[Measurement]:
    """What is wrong with the record itself, counted; the flags say what. Must be 0."""
    read = frames(record)
    found = faults(record, read)
    places = len(read.events) + len(read.decisions) + len(read.facts)
    flags = tuple(f"{count} {fault}" for fault, count in found.items() if count)
    value = float(sum(found.values()))
    yield Measurement(
        metric="honesty.integrity", value=value, unit="faults", n=places, n_clusters=record.tables, flags=flags
    )


def _of_decisions(record: Record) -> dict[str, Any]:
    return {"tables": record.tables, "decisions": "seq", "denominator": "decisions of agents with a model"}


def _outcomes(read: Frames) -> pl.DataFrame:
    return read.decisions.select("tbl", "agent", pl.col("seen").alias("tick"), "nth", "how", "calls")


def _failed(calls: pl.DataFrame) -> tuple[int, int]:
    """How many calls did not give the answer of their decision, and how many calls."""
    good = pl.col("how").is_in(["chosen", "retried"]) & (pl.col("call") == pl.col("calls") - 1)
    return len(calls.filter(~good)), len(calls)


_OF_MODELS = (
    *(default_by_round, default_outcome, parse_failure, attempts, forced_tokens, truncation, call_failures, reached),
    *(refusals, repetition, surprisal, retest),
)
"""What there is to say of runs in which models were asked."""
