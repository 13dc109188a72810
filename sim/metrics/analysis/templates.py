"""Whether a model's choices go with what it was asked, or are one template whatever that was (RAGEN-2, 2604.06268).

Read are choices whose record has the log-probability of every option. These say how likely an answer is under any other
prompt with the same options, so that none has to be scored anew; texts and forms have to (`collapse`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import orjson

from sim.blobs import decode_options
from sim.intervals import by_cluster
from sim.metrics.analysis.collapse import Scores, informations
from sim.metrics.statistics.clusters import ratio
from sim.metrics.statistics.permutation import DRAWS, p_value
from sim.metrics.statistics.shares import estimated
from sim.record.schema import TABLES
from sim.types import Measurement, OptionLogprobs, Record

MOST = 200
"""Choices of one kind that are compared, each with each; of more of them one in two, in three, …"""
KINDS = 50
"""Kinds of choices that are looked at, the most frequent ones."""
_KIND = ("model", "policy", "format", "distribution")


class Taken(NamedTuple):
    """One choice."""

    table: int
    prompt: str
    place: int
    """Of the option that was taken."""
    law: OptionLogprobs
    """Log-probabilities of all of them."""


def choices(record: Record, n_perm: int = DRAWS) -> Iterator[Measurement]:
    """Mutual information of choices and their prompts: how much likelier a choice is under its own prompt than under
    the prompts with the same options, in nats; 0 where prompts make no difference. And its surprisal under its own.

    The test shuffles which prompt of a kind is a choice's own.
    """
    kinds, left_out = _compared(record)
    scores = [[[float(other.law[one.place] or 0) for other in kind] for one in kind] for kind in kinds]
    told = [one for kind in kinds for one in kind]
    more: dict[str, Any] = {
        "denominator": "choices of which other prompts had the same options",
        "excluded": {reason: count for reason, count in left_out.items() if count},
    }
    gains = [gain for each in scores for gain in informations(each)]
    found = ratio(*by_cluster((one.table, gain) for one, gain in zip(told, gains, strict=True)))
    null = _null(scores, n_perm) if told else {}
    yield estimated("templates.mutual_information", found, "nats", null=null, **more)
    own = (-row[place] for each in scores for place, row in enumerate(each))
    found = ratio(*by_cluster((one.table, each) for one, each in zip(told, own, strict=True)))
    yield estimated("templates.surprisal", found, "nats", **more)


def _null(scores: Sequence[Scores], n_perm: int) -> dict[str, Any]:
    """What is said about a choice by a prompt at random is the same but for how likely that prompt makes it."""
    luck = Random(0)

    def drawn() -> float:
        orders = [luck.sample(range(len(each)), len(each)) for each in scores]
        return fmean(
            row[at] for each, order in zip(scores, orders, strict=True) for row, at in zip(each, order, strict=True)
        )

    stat = fmean(row[place] for each in scores for place, row in enumerate(each))
    p = p_value(stat, [drawn() for _ in range(n_perm)])
    return {"stat": stat, "p": p, "method": "prompts shuffled within their kind", "n_perm": n_perm}


def _compared(record: Record) -> tuple[list[list[Taken]], dict[str, int]]:
    """Choices by kind, where there are several prompts of it; and what was left out."""
    kinds: dict[tuple[str, ...], list[Taken]] = {}
    unknown = 0
    for kind, one in _taken(record):
        if one is None:
            unknown += 1
        else:
            kinds.setdefault(kind, []).append(one)
    several = [each for each in kinds.values() if len({one.prompt for one in each}) > 1]
    kept = [each[:: ceil(len(each) / MOST)] for each in sorted(several, key=len, reverse=True)[:KINDS]]
    alone = sum(map(len, kinds.values())) - sum(map(len, several))
    many = sum(map(len, several)) - sum(map(len, kept))
    return kept, {"options not all known": unknown, "no other prompt": alone, "more than are compared": many}


def _taken(record: Record) -> Iterator[tuple[tuple[str, ...], Taken | None]]:
    """All choices with their kinds; None where not all options are known, or another answer was given."""
    names = TABLES["calls"].columns.keys()
    at = [names.index(name) for name in (*_KIND, "tbl", "messages", "text", "option_logprobs")]
    for page in record.pages("calls"):
        for row in page:
            *kind, table, prompt, text, blob = (row[place] for place in at)
            options, law = orjson.loads(kind[2]).get("choice"), decode_options(blob)
            if options is None:
                continue
            known = text in options and len(law) == len(options) and None not in law
            yield tuple(kind), Taken(table, prompt, options.index(text), law) if known else None
