"""Where responses start and end, however the stream is cut, and what an announcement may cost."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

import pytest

from moldau.peers.machine.responses import (
    ANNOUNCED_BYTES_MAX,
    SHARED_BYTES,
    InvalidResponse,
    ResponseFrames,
)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def receive(frames: ResponseFrames, data: bytes) -> list[bytes]:
    """Feed `data` as a socket would: no more at once than there is space for."""
    out: list[bytes] = []
    while data:
        with frames.space() as space:
            count = min(len(space), len(data))
            space[:count] = data[:count]
        out += map(bytes, frames.received(count))
        data = data[count:]
    return out


def pieces(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    out, position = [], 0
    for size in sizes:
        out.append(data[position : position + size])
        position += size
    return [*out, data[position:]]


PAYLOADS = [b"corr", b"x" * 100, b"", b"y" * SHARED_BYTES, b"z" * (5 * SHARED_BYTES + 7), b"last!"]
PAYLOADS = [b"0000" + payload for payload in PAYLOADS]


@pytest.mark.parametrize("seed", range(20))
def test_any_cut_gives_the_same_frames(seed: int) -> None:
    chance = random.Random(seed)
    payloads = [chance.choice(PAYLOADS) for _ in range(12)]
    stream = b"".join(map(framed, payloads))
    sizes = [chance.choice((1, 2, 3, 5, 1000, 70_000, 300_000)) for _ in range(60)]
    frames = ResponseFrames(10**7)
    got = [frame for piece in pieces(stream, sizes) for frame in receive(frames, piece)]
    assert got == payloads
    assert not frames.unfinished


@pytest.mark.parametrize("size", range(SHARED_BYTES - 8, SHARED_BYTES + 4))
def test_sizes_around_the_shared_buffer(size: int) -> None:
    payload = bytes(i % 251 for i in range(size))
    frames = ResponseFrames(10**7)
    stream = framed(b"head") + framed(payload) + framed(b"tail")
    assert receive(frames, stream) == [b"head", payload, b"tail"]


def test_every_single_byte_is_a_cut() -> None:
    stream = framed(b"one!") + framed(b"two two")
    frames = ResponseFrames(100)
    got = []
    for position in range(len(stream)):
        got += receive(frames, stream[position : position + 1])
        assert frames.unfinished == (position not in (7, len(stream) - 1))
    assert got == [b"one!", b"two two"]


def test_a_frame_is_not_touched_by_what_comes_after_it() -> None:
    frames = ResponseFrames(10**7)
    space = frames.space()
    first = framed(b"keep this")
    space[: len(first)] = first
    (kept,) = frames.received(len(first))
    receive(frames, framed(b"x" * 300_000) + framed(b"y" * 50_000))
    assert kept == b"keep this"


def long_frame(frames: ResponseFrames, payload: bytes) -> memoryview:
    """The view of a frame that has a buffer of its own."""
    data = framed(payload)
    while True:
        with frames.space() as space:
            count = min(len(space), len(data))
            space[:count] = data[:count]
        data = data[count:]
        for frame in frames.received(count):
            assert isinstance(frame, memoryview)
            return frame


def test_a_long_frame_stays_as_it_is_while_somebody_has_it() -> None:
    frames = ResponseFrames(10**7)
    kept = [long_frame(frames, b"%d" % i * 300_000) for i in range(9)]
    assert [bytes(frame) for frame in kept] == [b"%d" % i * 300_000 for i in range(9)]


def test_the_buffer_of_a_frame_that_nobody_has_any_more_is_used_again() -> None:
    frames = ResponseFrames(10**7)
    first = long_frame(frames, b"a" * 300_000)
    part = first[10:20]
    buffer = id(first.obj)
    first.release()
    second = long_frame(frames, b"b" * 300_000)
    assert id(second.obj) != buffer
    assert part == b"a" * 10
    part.release()
    third = long_frame(frames, b"c" * 200_000)
    assert id(third.obj) == buffer
    assert third == b"c" * 200_000


def test_an_announced_giant_costs_what_was_received() -> None:
    frames = ResponseFrames(2**31 - 1)
    receive(frames, struct.pack(">i", 2**31 - 1) + b"some")
    assert len(frames.space()) <= ANNOUNCED_BYTES_MAX
    receive(frames, bytes(ANNOUNCED_BYTES_MAX))
    assert len(frames.space()) <= ANNOUNCED_BYTES_MAX + SHARED_BYTES


def test_a_giant_that_is_really_sent_arrives() -> None:
    payload = bytes(range(256)) * (ANNOUNCED_BYTES_MAX * 5 // 2 // 256) + b"end"
    assert receive(ResponseFrames(2**31 - 1), framed(payload) + framed(b"next")) == [
        payload,
        b"next",
    ]


@pytest.mark.parametrize("size", [-1, 0, 3, -(2**31), 101, 2**31 - 1])
def test_what_is_no_response_is_refused(size: int) -> None:
    frames = ResponseFrames(100)
    with pytest.raises(InvalidResponse, match=str(size)):
        receive(frames, framed(b"good") + struct.pack(">i", size) + b"abcd")
