import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.blobs import (
    decode_ids,
    decode_logprobs,
    decode_options,
    decode_tokens,
    encode_ids,
    encode_logprobs,
    encode_options,
    encode_tokens,
)

QUICK = settings(max_examples=50, deadline=None)


def test_ids_are_varints_of_differences():
    # 3, then 5-3 = 2, then 300-5 = 295 = 2*128 + 39: low seven bits first, 39 + 128 = 0xa7.
    assert encode_ids([3, 5, 300]) == b"\x03\x02\xa7\x02"
    assert decode_ids(b"\x03\x02\xa7\x02") == (3, 5, 300)


def test_ids_keep_no_order_but_repeats():
    assert encode_ids((9, 2, 2)) == b"\x02\x00\x07"
    assert encode_ids(()) == b""
    assert decode_ids(b"") == ()


def test_a_hundred_neighbours_take_a_byte_each():
    assert len(encode_ids(range(1_000_000, 1_000_100))) == 3 + 99


def test_bad_ids_are_refused():
    with pytest.raises(ValueError, match="count from 0"):
        encode_ids([4, -1])
    with pytest.raises(ValueError, match="cut off"):
        decode_ids(b"\x03\xa7")


@QUICK
@given(st.lists(st.integers(0, 2**63)))
def test_ids_come_back_sorted(ids):
    assert decode_ids(encode_ids(ids)) == tuple(sorted(ids))


def test_tokens_are_little_endian_32_bit():
    assert encode_tokens((1, 49151)) == struct.pack("<2i", 1, 49151)
    assert encode_tokens(()) is None
    assert decode_tokens(None) == ()


@QUICK
@given(st.lists(st.integers(0, 2**31 - 1)))
def test_tokens_come_back_in_order(ids):
    assert decode_tokens(encode_tokens(ids)) == tuple(ids)


@QUICK
@given(st.lists(st.floats(-(2.0**90), 0, width=32) | st.just(float("-inf"))))
def test_single_precision_logprobs_come_back_exactly(values):
    assert decode_logprobs(encode_logprobs(values)) == tuple(values)


def test_logprobs_are_rounded_to_single_precision_once():
    once = decode_logprobs(encode_logprobs((-0.1,)))
    assert once == struct.unpack("<f", struct.pack("<f", -0.1))
    assert decode_logprobs(encode_logprobs(once)) == once
    assert encode_logprobs(()) is None


def test_options_take_four_bytes_each_known_or_not():
    assert encode_options((-0.5, None)) == struct.pack("<2f", -0.5, float("nan"))
    assert encode_options(()) is None
    assert decode_options(None) == ()


@QUICK
@given(st.lists(st.none() | st.floats(-(2.0**90), 0, width=32) | st.just(float("-inf"))))
def test_what_is_not_known_of_options_comes_back_as_that(values):
    assert decode_options(encode_options(tuple(values))) == tuple(values)
