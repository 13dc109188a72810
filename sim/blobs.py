"""Numbers as bytes: sorted ids as delta-coded varints, token ids and log-probabilities as 32-bit arrays.

A varint holds 7 bits a byte, least significant first, the top bit set on all bytes but the last. Arrays are
little-endian on every machine, so a record can be read anywhere. A number that is not known is NaN.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import isnan, nan
from operator import sub
from typing import TypeVar

from sim.types import Logprobs, OptionLogprobs, Tokens

_N = TypeVar("_N", int, float)


def encode_ids(ids: Iterable[int]) -> bytes:
    """Ids from 0 up, as the varints of their differences once sorted. Raises ValueError for a negative id."""
    if not ids:
        return b""
    ordered = sorted(ids)
    if ordered[0] < 0:
        raise ValueError(f"ids count from 0; got {ordered[0]}")
    gaps = list(map(sub, ordered[1:], ordered))
    dense = max(gaps, default=0) < 128
    return _varint(ordered[0]) + (bytes(gaps) if dense else b"".join(map(_varint, gaps)))


def decode_ids(blob: bytes) -> tuple[int, ...]:
    """Ids in ascending order. Raises ValueError where the blob ends inside a number."""
    return tuple(accumulate(blob if blob.isascii() else _varints(blob)))


def encode_tokens(ids: Sequence[int]) -> bytes | None:
    """Token ids as 32-bit integers; None for none."""
    return _packed("i", ids)


def decode_tokens(blob: bytes | None) -> Tokens:
    """Token ids as they were."""
    tokens: array[int] = array("i", blob or b"")
    return tuple(_little(tokens))


def encode_logprobs(values: Sequence[float]) -> bytes | None:
    """Log-probabilities as 32-bit floats; None for none."""
    return _packed("f", values)


def decode_logprobs(blob: bytes | None) -> Logprobs:
    """Log-probabilities, each the 32-bit float nearest to what was given."""
    values: array[float] = array("f", blob or b"")
    return tuple(_little(values))


def encode_options(values: OptionLogprobs) -> bytes | None:
    """Log-probabilities of options as 32-bit floats; None for none."""
    return encode_logprobs([nan if value is None else value for value in values])


def decode_options(blob: bytes | None) -> OptionLogprobs:
    """Log-probabilities of options, each the 32-bit float nearest to what was given."""
    return tuple(None if isnan(value) else value for value in decode_logprobs(blob))


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _varints(blob: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in blob:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            number = shift = 0
    if shift:
        raise ValueError(f"a number is cut off at the end of {len(blob)} bytes")
    return numbers


def _packed(code: str, values: Sequence[float]) -> bytes | None:
    return _little(array(code, values)).tobytes() if values else None


def _little(values: array[_N]) -> array[_N]:
    """Between this machine's byte order and little-endian, in place."""
    if sys.byteorder == "big":
        values.byteswap()
    return values
