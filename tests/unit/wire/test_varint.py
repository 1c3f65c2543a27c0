"""Numbers of variable length: the plain functions, which the compiled ones must equal."""

from __future__ import annotations

import pytest

from moldau.wire.varint import varint, varint_length, varint_size, varlong


def written(number: int, bits: int) -> bytes:
    """As Java's ByteUtils writes it."""
    raw = ((number << 1) ^ (number >> (bits - 1))) & (2**bits - 1)
    out = bytearray()
    while raw > 127:
        out.append(raw & 127 | 128)
        raw >>= 7
    out.append(raw)
    return bytes(out)


NUMBERS = [0, 1, -1, 63, 64, -64, -65, 8191, 8192, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("number", NUMBERS)
def test_int32(number: int) -> None:
    data = b"\xff" + written(number, 32) + b"\x01"
    size = len(data) - 2
    assert varint_length(data, 1) == varint_size(data, 1, len(data), 5) == size
    assert varint(data, 1, size) == number
    assert varint_size(data, 1, size, 5) == 0


@pytest.mark.parametrize("number", [*NUMBERS, 2**63 - 1, -(2**63)])
def test_int64(number: int) -> None:
    data = written(number, 64)
    assert varint_length(data, 0) == varint_size(data, 0, len(data), 10) == len(data)
    assert varlong(data, 0, len(data)) == number


def test_bits_beyond_the_width_are_dropped() -> None:
    assert varint(b"\xff\xff\xff\xff\x7f", 0, 5) == -(2**31)
    assert varlong(b"\xff" * 9 + b"\x7f", 0, 10) == -(2**63)


def test_a_number_that_is_too_long_or_cut_has_no_size() -> None:
    assert varint_size(b"\x80" * 5 + b"\x01", 0, 6, 5) == 0
    assert varint_size(b"\x80\x80", 0, 2, 5) == 0
    assert varint_size(b"", 0, 0, 5) == 0
