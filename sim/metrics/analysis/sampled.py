"""Model calls of a record with the log-probabilities of what was sampled."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

import orjson

from sim.blobs import decode_logprobs
from sim.record.schema import TABLES
from sim.types import CallKey, Record

_COLUMNS = (
    *("tbl", "agent", "tick", "nth", "call"),
    *("purpose", "model", "messages", "format", "sampling", "ids", "finish", "logprobs", "distribution"),
)


class Sampled(NamedTuple):
    """One call."""

    key: CallKey
    purpose: str
    model: str
    messages: str
    """What was asked: hashes of texts, as JSON."""
    kind: str
    """Of the answer: choice, form or text."""
    ids: bytes | None
    """The sampled tokens, coded."""
    whole: bool
    """Whether the answer came to its end."""
    tokens: int
    """With a log-probability."""
    logprob: float | None
    """Of the whole answer, in nats; None where it was not recorded."""
    processed: bool
    """Whether of the distribution that was sampled, mask and temperature included; a greedy answer was not sampled."""


def sampled(record: Record) -> Iterator[Sampled]:
    """All calls, in the order of their keys."""
    names = TABLES["calls"].columns.keys()
    places = [names.index(name) for name in _COLUMNS]
    for page in record.pages("calls"):
        for row in page:
            *key, purpose, model, messages, form, sampling, ids, finish, blob, distribution = map(
                row.__getitem__, places
            )
            logprobs = decode_logprobs(blob)
            total = fsum(logprobs) if blob else None
            (kind, *_), whole = orjson.loads(form), finish == "stop"
            processed = distribution == "processed" and orjson.loads(sampling).get("temperature") != 0
            yield Sampled(CallKey(*key), purpose, model, messages, kind, ids, whole, len(logprobs), total, processed)
