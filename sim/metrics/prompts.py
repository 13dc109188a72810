"""What of a view reached the model: facts shown whose words are in no prompt, and prompts cut by agents or by servers.

Read are facts with a `text`, which a view may show as it is or as a JSON string. A kind of fact whose text stands in no
prompt of the record is told in words of the world's own; such facts count only where something was visibly left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

import polars as pl

from sim.cuts import CUT
from sim.metrics.frames import Frames, field, frames
from sim.metrics.statistics.shares import share
from sim.types import Measurement, Record

DENSEST = 8
"""Bytes that a token of a prompt can stand for on average; of English it stands for about 4.5, of figures for less."""
MOST = 20_000
"""Decisions whose prompts are searched; of a record with more of them one in two, in three, …"""
_DECISION = ("tbl", "agent", "tick", "nth")
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"))
"""What a JSON string writes otherwise, in the order in which it is to be replaced."""


def reached(record: Record) -> Iterator[Measurement]:
    """What of views reached the model: shown facts that stand in no prompt, prompts that an agent or a server cut."""
    read = frames(record)
    asked = _asked(read)
    decided, step = _decided(read)
    said = _said(read, decided)
    texts, found = _searched(record, asked, said)
    cut = asked.join(texts.filter("cut"), on="name", how="semi").select(_DECISION).unique()
    rows = said.with_columns(pl.col("row").is_in(found.implode()).alias("found"))
    rows = rows.join(cut.with_columns(cut=True), on=_DECISION, how="left").with_columns(pl.col("cut").fill_null(False))
    yield _lost(rows, record.tables, (f"one decision in {step}",) if step > 1 else ())
    sums = asked.join(texts, on="name").group_by(*_DECISION, "call").agg(pl.col("bytes").sum(), pl.col("cut").any())
    calls = read.calls.join(sums, on=[*_DECISION, "call"])
    yield _cut(calls, record.tables)
    yield _dropped(calls, record.tables)


def _lost(rows: pl.DataFrame, tables: int, flags: tuple[str, ...]) -> Measurement:
    """Facts with a text that were shown at a decision, and whose words are in no message of its calls. A kind of fact
    that no prompt has in its own words counts only where something was visibly cut."""
    told = rows.filter("found")["kind"].unique()
    counted = rows.filter(pl.col("kind").is_in(told.implode()) | pl.col("cut"))
    return share(
        "honesty.facts_not_in_prompt",
        counted,
        ~pl.col("found"),
        tables=tables,
        events="fact",
        decisions="seq",
        denominator="facts with a text, once for each decision with model calls that was shown them",
        excluded={"told in other words": len(rows) - len(counted)},
        flags=flags,
    )


def _cut(calls: pl.DataFrame, tables: int) -> Measurement:
    """Calls with a message that says that something was left out of it: of the view, of a memory, of the rules."""
    return share("honesty.cut_prompts", calls, pl.col("cut"), tables=tables, denominator="model calls")


def _dropped(calls: pl.DataFrame, tables: int) -> Measurement:
    """Calls whose server counted fewer prompt tokens than their texts can have, one for every 8 bytes: it must have
    dropped some in silence. A smaller part than about half of an English prompt is not noticed."""
    counted = calls.filter(pl.col("prompt_tokens") > 0)
    return share(
        "honesty.prompts_cut_by_server",
        counted,
        pl.col("bytes") > DENSEST * pl.col("prompt_tokens"),
        tables=tables,
        denominator="model calls whose prompt the server counted",
        excluded={"not counted": len(calls) - len(counted)},
    )


def _asked(read: Frames) -> pl.DataFrame:
    """The key of each call, with the name of each of its messages' texts; by these names."""
    names = pl.col("messages").str.extract_all("[0-9a-f]{32}").alias("name")
    return read.calls.select(*_DECISION, "call", names).explode("name").drop_nulls("name").sort("name")


def _decided(read: Frames) -> tuple[pl.DataFrame, int]:
    """The decisions with calls that are looked at, and of how many each is one."""
    rows = read.decisions.select("tbl", "seq", "agent", pl.col("seen").alias("tick"), "nth").sort("tbl", "seq")
    rows = rows.join(read.calls.select(_DECISION).unique(), on=_DECISION, how="semi", maintain_order="left")
    step = max(1, ceil(len(rows) / MOST))
    return rows.gather_every(step), step


def _said(read: Frames, decided: pl.DataFrame) -> pl.DataFrame:
    """Facts with a text that were shown to some decisions: row, words, escaped, kind, and whose they are."""
    shown = read.shows.join(decided, on=["tbl", "seq"])
    some = read.facts.select("tbl", "kind", "data", fact="id").join(shown, on=["tbl", "fact"], how="semi")
    told = some.select("tbl", "fact", "kind", field("data", "text").str.strip_chars().alias("words"))
    escaped = pl.col("words")
    for plain, written in _ESCAPES:
        escaped = escaped.str.replace_all(plain, written, literal=True)
    told = told.filter(pl.col("words") != "").with_columns(escaped.alias("escaped"))
    return shown.join(told, on=["tbl", "fact"]).with_row_index("row")


def _searched(record: Record, asked: pl.DataFrame, said: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Of the texts of prompts: name, bytes, whether visibly cut; and the rows of `said` whose words stand in one.

    Texts are read page by page, in the order of their names, and none is kept.
    """
    rows = asked.join(said.group_by(_DECISION).agg("row"), on=_DECISION, how="left").sort("name")
    seen, found = [_measured([])], [said["row"].clear()]
    for page in record.pages("texts") if len(asked) else ():
        texts = _measured(page)
        start = rows["name"].search_sorted(texts["name"][0], "left")
        end = rows["name"].search_sorted(texts["name"][-1], "right")
        pairs = rows[start:end].select("name", "row").explode("row").drop_nulls()
        pairs = pairs.hstack(said[pairs["row"]].select("words", "escaped")).join(texts, on="name")
        pairs = pairs.with_columns(pl.col("text").str.contains(pl.col("words"), literal=True).alias("plain"))
        other = pairs.filter(~pl.col("plain") & (pl.col("words") != pl.col("escaped")))
        written = other.filter(pl.col("text").str.contains(pl.col("escaped"), literal=True))
        found += [pairs.filter("plain")["row"], written["row"]]
        seen.append(texts)
    return pl.concat([each.drop("text") for each in seen]), pl.concat(found).unique()


def _measured(page: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    rows = [(name.hex(), text) for name, text in page]
    texts = pl.DataFrame(rows, schema={"name": pl.String, "text": pl.String}, orient="row")
    return texts.with_columns(
        pl.col("text").str.len_bytes().cast(pl.Int64).alias("bytes"), pl.col("text").str.contains(CUT).alias("cut")
    )
