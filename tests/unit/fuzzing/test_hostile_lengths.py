"""A short request that announces a lot allocates little: every length and count of every API."""

from __future__ import annotations

import contextlib
import random
import struct
import tracemalloc
from collections.abc import Iterator

import pytest

from fuzz.tokens import Token, tokens_of
from moldau.wire.apis import API_BY_KEY, Api
from moldau.wire.codec import decode
from moldau.wire.errors import WireError
from moldau.wire.framing import decode_request_header
from support.message_samples import Samples

#: Far above what a sample itself takes, far below what it announces.
ALLOCATED_BYTES_MAX = 2_000_000
#: 2^31 - 1 and its neighbours in each encoding, as a length, and one more than a length.
HUGE = {
    "varint": (b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x40"),
    "length16": (struct.pack(">h", 32_767),),
    "length32": (struct.pack(">i", 2**31 - 1), struct.pack(">i", 2**28)),
}


def spoiled(tokens: list[Token]) -> Iterator[bytes]:
    for at, token in enumerate(tokens):
        for huge in HUGE.get(token.kind, ()):
            yield b"".join(each.data for each in (*tokens[:at], Token("", huge), *tokens[at + 1 :]))


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_what_is_announced_is_not_allocated(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        message = Samples(random.Random(version)).message(api.request, version)
        bodies = list(spoiled(tokens_of(message, version)))[:300]
        # The codec itself is made by the first use.
        _read(api, version, b"")
        tracemalloc.start()
        try:
            for body in bodies:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                _read(api, version, body)
                _, peak = tracemalloc.get_traced_memory()
                assert peak - before < ALLOCATED_BYTES_MAX, (version, body[:40].hex())
        finally:
            tracemalloc.stop()


def _read(api: Api, version: int, body: bytes) -> None:
    with contextlib.suppress(WireError):
        decode(api.request, version, memoryview(body))


@pytest.mark.parametrize(
    "tags", [b"\xff\xff\xff\xff\x0f", b"\x01\x00\xff\xff\xff\xff\x07", b"\xff" * 20]
)
def test_tags_of_a_header(tags: bytes) -> None:
    header = struct.pack(">hhih", 3, 12, 1, 0) + tags
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode_request_header(header)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < ALLOCATED_BYTES_MAX
