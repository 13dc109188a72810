"""What could have been said in place of a disclosure: a message of the same kind before the same audience, as long.

It is taken from the record, so that its topic and manner are those of the place, and it holds no secret. A message is
the text of an answer: all of it, or its field `text`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson
import polars as pl

from sim.metrics.frames import Frames, frames
from sim.metrics.privacy.disclosures import disclosures
from sim.metrics.provenance import made
from sim.types import JSON, AgentId, FactId, Record


class Disclosure(NamedTuple):
    """A decision that told a secret, and what could have been said instead."""

    table: int
    tick: int
    """At which it was performed."""
    agent: AgentId
    fact: FactId
    heard: frozenset[FactId]
    """Disclosures that the agent had been shown by then."""
    answer: JSON | None
    """The answer with another text; None where there is none to take, or it is not the agent's first at its tick."""


def disclosing(record: Record) -> Iterator[Disclosure]:
    """Every decision with a secret that norms do not allow before its audience, in the order of the log."""
    found, read = disclosures(record), frames(record)
    facts = read.facts.select("tbl", pl.col("id").alias("fact"), "kind", "audience")
    first = pl.col("seq").min().over("tbl", "agent", "tick")
    answers = read.decisions.select("tbl", "seq", "answer", (pl.col("seq") == first).alias("first"))
    rows = made(read).join(facts, on=["tbl", "fact"]).join(answers, on=["tbl", "seq"]).sort("tbl", "seq", "fact")
    texts = _texts(rows.join(found.hits, on=["tbl", "fact"], how="anti", maintain_order="left"))
    heard = _heard(read, found.said)
    told = rows.join(found.said, on=["tbl", "fact"], how="semi", maintain_order="left")
    for row in told.unique(["tbl", "seq"], keep="first", maintain_order=True).iter_rows(named=True):
        others = texts[row["kind"], row["audience"]] if row["first"] else []
        instead = _instead(orjson.loads(row["answer"]), others)
        known = frozenset(fact for fact, seq in heard[row["tbl"], row["agent"]] if seq <= row["seq"])
        yield Disclosure(row["tbl"], row["tick"], row["agent"], row["fact"], known, instead)


def _texts(rows: pl.DataFrame) -> Mapping[tuple[str, str], list[str]]:
    """The messages of each kind and audience."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for kind, audience, answer in rows.select("kind", "audience", "answer").iter_rows():
        if text := _text(orjson.loads(answer)):
            found[kind, audience].append(text)
    return found


def _heard(read: Frames, said: pl.DataFrame) -> Mapping[tuple[int, AgentId], list[tuple[FactId, int]]]:
    """The disclosures that each agent was shown, with the decision that first showed them."""
    found: dict[tuple[int, AgentId], list[tuple[FactId, int]]] = defaultdict(list)
    shown = read.exposures.join(said, on=["tbl", "fact"], how="semi")
    for table, agent, fact, seq in shown.select("tbl", "agent", "fact", "seq").iter_rows():
        found[table, agent].append((fact, seq))
    return found


def _text(answer: JSON) -> str:
    """The message in an answer; empty where there is none."""
    said = answer.get("text") if isinstance(answer, dict) else answer
    return said if isinstance(said, str) else ""


def _instead(answer: JSON, texts: Sequence[str]) -> JSON | None:
    """The answer with another text, the nearest in length, the first of equals.

    Where an answer is a choice whose value the world tells, like `share`, the same words say nothing elsewhere: they
    would leave all as it was.
    """
    own = _text(answer)
    others = [text for text in texts if text != own]
    if not own or not others:
        return None
    nearest = min(others, key=lambda text: abs(len(text) - len(own)))
    return {**answer, "text": nearest} if isinstance(answer, dict) else nearest
