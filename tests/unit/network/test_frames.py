"""However a stream is cut, the same frames come out of it, and memory follows what was received."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.network.machine._frames import (
    DIRECT_BYTES_MIN,
    POOLED_BYTES,
    POOLED_COUNT_MAX,
    BufferPool,
    FrameDecoder,
    InvalidFrame,
)

SIZE_MAX = 4 * 1024 * 1024


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


def decoder(size_max: int = SIZE_MAX, pool: BufferPool | None = None) -> FrameDecoder:
    return FrameDecoder(size_max, pool or BufferPool())


def take_all(frames: FrameDecoder) -> list[bytes]:
    taken = []
    while (frame := frames.next_frame()) is not None:
        taken.append(bytes(frame))
    return taken


def decode_pieces(pieces: list[bytes]) -> tuple[list[bytes], int]:
    frames = decoder()
    shared = bytearray(max(map(len, pieces), default=0))
    taken = []
    for piece in pieces:
        # One buffer for all pieces, as in the server: a kept view of it would show.
        shared[: len(piece)] = piece
        frames.feed(memoryview(shared)[: len(piece)])
        taken += take_all(frames)
    return taken, frames.buffered


PAYLOADS = st.lists(st.binary(max_size=40), max_size=6)


@given(PAYLOADS, st.binary(max_size=3))
def test_whole_and_byte_by_byte_give_the_same(payloads: list[bytes], tail: bytes) -> None:
    stream = framed(*payloads) + tail
    assert decode_pieces([stream]) == (payloads, len(tail))
    assert decode_pieces([bytes([byte]) for byte in stream]) == (payloads, len(tail))


@given(PAYLOADS, st.lists(st.integers(min_value=0, max_value=260), max_size=8))
def test_any_cut_gives_the_same(payloads: list[bytes], cuts: list[int]) -> None:
    stream = framed(*payloads)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert decode_pieces(pieces) == (payloads, 0)


def test_trailing_bytes_wait_for_the_rest() -> None:
    frames = decoder()
    stream = framed(b"first", b"second")
    frames.feed(memoryview(stream[:-3]))
    assert take_all(frames) == [b"first"]
    frames.feed(memoryview(stream[-3:]))
    assert take_all(frames) == [b"second"]


@pytest.mark.parametrize(
    ("size", "seen"),
    [
        pytest.param(-1, "-1", id="minus one"),
        pytest.param(-(2**31), "-2147483648", id="smallest int32"),
        pytest.param(101, "101", id="one over the limit"),
        pytest.param(2**31 - 1, "2147483647", id="largest int32"),
        pytest.param(int.from_bytes(b"GET ", "big"), "1195725856", id="an HTTP client"),
    ],
)
@pytest.mark.parametrize("piece_size", [4, 1])
def test_impossible_sizes_are_refused_by_name(size: int, seen: str, piece_size: int) -> None:
    frames = decoder(size_max=100)
    stream = struct.pack(">i", size)
    for start in range(0, 4 - piece_size, piece_size):
        frames.feed(memoryview(stream[start : start + piece_size]))
        assert frames.next_frame() is None
    frames.feed(memoryview(stream[-piece_size:]))
    with pytest.raises(InvalidFrame, match=seen):
        frames.next_frame()


def test_limit_itself_is_allowed() -> None:
    frames = decoder(size_max=100)
    frames.feed(memoryview(framed(bytes(100))))
    assert take_all(frames) == [bytes(100)]


def test_complete_frames_are_writable_views_of_the_receive_buffer() -> None:
    shared = bytearray(framed(b"aaaa", b"bbbb"))
    frames = decoder()
    frames.feed(memoryview(shared))
    frame = frames.next_frame()
    assert frame is not None
    frame[:] = b"cccc"
    assert shared == framed(b"cccc", b"bbbb")


def test_frames_put_together_are_writable_too() -> None:
    frames = decoder()
    stream = framed(b"aaaa")
    frames.feed(memoryview(stream[:6]))
    assert frames.next_frame() is None
    frames.feed(memoryview(stream[6:]))
    frame = frames.next_frame()
    assert frame is not None
    frame[:] = b"cccc"
    assert bytes(frame) == b"cccc"


def held_bytes(frames: FrameDecoder) -> int:
    return len(frames._partial) + len(frames._data)


def test_announcing_much_costs_only_what_is_sent() -> None:
    frames = FrameDecoder(2**30, BufferPool())
    frames.feed(memoryview(struct.pack(">i", 100 * 1024 * 1024)))
    assert frames.next_frame() is None
    assert frames.space() is None
    assert held_bytes(frames) < 100
    received = 4
    for size in (1, 500, 5_000, 70_000, 300_000, 2_000_000):
        frames.feed(memoryview(bytes(size)))
        assert frames.next_frame() is None
        frames.space()
        received += size
        assert held_bytes(frames) <= 2 * received


@pytest.mark.parametrize("size", [DIRECT_BYTES_MIN * 3, POOLED_BYTES - 4, POOLED_BYTES, SIZE_MAX])
def test_long_frames_are_received_in_place(size: int) -> None:
    payload = bytes(index * 7 % 251 for index in range(1000)) * (size // 1000 + 1)
    payload = payload[:size]
    stream = framed(payload, b"next")
    frames = decoder()
    frames.feed(memoryview(stream[: DIRECT_BYTES_MIN + 10]))
    assert frames.next_frame() is None
    position = DIRECT_BYTES_MIN + 10
    while (space := frames.space()) is not None:
        count = min(len(space), 100_000)
        space[:count] = stream[position : position + count]
        position += count
        frames.received(count)
        if position < size:
            assert frames.next_frame() is None
    assert position > 2 * DIRECT_BYTES_MIN
    frames.feed(memoryview(stream[position:]))
    assert take_all(frames) == [payload, b"next"]


def test_detached_frames_survive_the_reuse_of_the_receive_buffer() -> None:
    shared = bytearray(framed(b"one", b"two", b"three") + b"\0")
    frames = decoder()
    frames.feed(memoryview(shared))
    assert bytes(frames.next_frame() or b"") == b"one"
    frames.detach()
    shared[:] = bytes(len(shared))
    frames.feed(memoryview(b"\0\0\4four"))
    assert take_all(frames) == [b"two", b"three", b"four"]


def test_the_pool_lends_a_bounded_number_of_buffers_and_gets_them_back() -> None:
    pool = BufferPool()
    starts = memoryview(framed(bytes(DIRECT_BYTES_MIN * 4))[: DIRECT_BYTES_MIN * 2])
    many = [decoder(pool=pool) for _ in range(POOLED_COUNT_MAX + 3)]
    for frames in many:
        frames.feed(starts)
        assert frames.next_frame() is None
    pooled = [frames for frames in many if held_bytes(frames) == POOLED_BYTES]
    assert len(pooled) == POOLED_COUNT_MAX
    assert pool.take() is None

    pooled[0].discard()  # the client went away
    rest = memoryview(framed(bytes(DIRECT_BYTES_MIN * 4))[DIRECT_BYTES_MIN * 2 :])
    pooled[1].feed(rest)  # the frame was completed...
    assert pooled[1].next_frame() is not None
    assert pooled[1].next_frame() is None  # ...and handled
    assert pool.take() is not None
    assert pool.take() is not None
    assert pool.take() is None


def feed(frames: FrameDecoder, data: bytes) -> list[bytes]:
    frames.feed(memoryview(bytearray(data)))
    return take_all(frames)


def test_the_pool_counts_what_is_held_of_unfinished_frames() -> None:
    pool = BufferPool(held_max=1000)
    first, second = decoder(pool=pool), decoder(pool=pool)
    freed: list[str] = []
    data = framed(b"x" * 3000)
    assert feed(first, data[:600]) == []
    assert not pool.full
    assert feed(second, data[:600]) == []
    assert pool.full
    pool.when_free(lambda: freed.append("freed"))
    # What has begun comes to its end.
    assert feed(first, data[600:]) == [b"x" * 3000]
    assert (pool.full, freed) == (False, ["freed"])
    second.discard()
    assert pool._held == 0


@given(PAYLOADS, st.integers(1, 50))
def test_nothing_is_held_once_all_frames_are_complete(payloads: list[bytes], step: int) -> None:
    pool = BufferPool(held_max=10)
    frames, data = decoder(pool=pool), framed(*payloads)
    for start in range(0, len(data), step):
        feed(frames, data[start : start + step])
    assert pool._held == 0
    assert not pool.full
