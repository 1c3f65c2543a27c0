"""Divides the bytes that a peer sends into response frames.

Decided here: where a response starts and ends, which sizes are rejected, and into which buffers its
bytes are received. Invariants: however the stream is divided, the frames are the same; a frame
belongs to its caller; an unfinished one takes at most 16 MB, or twice the bytes really received.

Small frames are received together into one buffer and copied out of it. The rest of a long one is
received directly into a buffer of its own, so what follows its first part is not copied again. A
few such buffers are reused once nothing has a view of them: memory that the system has to find and
clear for every response costs as much as the copy out of the socket.
"""

from __future__ import annotations

import struct
from typing import Final

SIZE_BYTES: Final = 4
CORRELATION_ID_BYTES: Final = 4
SHARED_BYTES: Final = 64 * 1024
#: What a peer gets for an announcement alone. The usual long response, a Fetch for a follower,
#: is below (replica.fetch.response.max.bytes is 10 MB), and growing in steps costs copies.
ANNOUNCED_BYTES_MAX: Final = 16 * 1024 * 1024

#: Long buffers that are kept: so many, each no larger, and all of sizes that fit many responses.
SPARES_MAX: Final = 6
SPARE_BYTES_MAX: Final = 4 * 1024 * 1024
_SPARE_STEP: Final = 256 * 1024

#: The first response is the one to ApiVersions, which has a few kilobytes.
FIRST_BYTES_MAX: Final = 1024 * 1024
_SHOWN_BYTES_MAX: Final = 40

_SIZE: Final = struct.Struct(">i")


class InvalidResponse(Exception):
    """Bytes that are no response: what follows cannot be decoded either."""


class NotKafkaBytes(InvalidResponse):
    """The first bytes that a peer sends are no response of a Kafka broker."""


class SpareBuffers:
    """Buffers of earlier long frames, oldest first; callers may still read some of them."""

    __slots__ = ("_buffers",)

    def __init__(self) -> None:
        self._buffers: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` that nobody reads any more, or a new one."""
        for index, spare in enumerate(self._buffers):
            if len(spare) >= size and _is_unused(spare):
                del self._buffers[index]
                return spare
        if size > SPARE_BYTES_MAX - _SPARE_STEP:
            return bytearray(size)
        return bytearray(-(-size // _SPARE_STEP) * _SPARE_STEP)

    def keep(self, buffer: bytearray) -> None:
        """For a later frame, once nobody reads this one."""
        if len(buffer) > SPARE_BYTES_MAX:
            return
        if len(self._buffers) == SPARES_MAX:
            del self._buffers[0]
        self._buffers.append(buffer)


def _is_unused(buffer: bytearray) -> bool:
    """Whether there is no view of a buffer: only then does Python let its size change."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    del buffer[-1]
    return True


class ResponseFrames:
    """Receive into `space()`, then tell `received()` how much: it gives the frames completed.

    The view that `space()` gave must be gone before the next is asked for.
    """

    __slots__ = (
        "_end",
        "_first_size_max",
        "_is_first",
        "_long",
        "_long_have",
        "_long_size",
        "_shared",
        "_size_max",
        "_spares",
        "_start",
    )

    def __init__(
        self,
        size_max: int,
        spares: SpareBuffers | None = None,
        *,
        first_size_max: int | None = None,
    ) -> None:
        """`first_size_max` limits the first frame, by which a Kafka broker is recognised."""
        self._size_max = size_max
        self._first_size_max = size_max if first_size_max is None else first_size_max
        self._is_first = True
        self._spares = spares or SpareBuffers()
        # Received and not yet handed out: _shared[_start:_end].
        self._shared = bytearray(SHARED_BYTES)
        self._start = 0
        self._end = 0
        # A frame that does not fit there, without its size: _long[:_long_have] is received.
        self._long: bytearray | None = None
        self._long_have = 0
        self._long_size = 0

    @property
    def unfinished(self) -> bool:
        """Whether the stream stands inside a frame."""
        return self._long is not None or self._start != self._end

    def space(self) -> memoryview:
        """Where to receive; never empty."""
        if self._long is None:
            return memoryview(self._shared)[self._end :]
        have = self._long_have
        if have == len(self._long):
            self._long += bytes(min(self._long_size - have, have))
        return memoryview(self._long)[have : self._long_size]

    def received(self, count: int) -> list[bytes | memoryview]:
        """The frames, without their sizes, that `count` more bytes complete.

        Raises InvalidResponse; of no use after that.
        """
        if self._long is not None:
            self._long_have += count
            if self._long_have < self._long_size:
                return []
            buffer, self._long = self._long, None
            self._spares.keep(buffer)
            return [memoryview(buffer)[: self._long_size]]
        self._end += count
        return self._cut()

    def _cut(self) -> list[bytes | memoryview]:
        frames: list[bytes | memoryview] = []
        shared = self._shared
        while self._end - self._start >= SIZE_BYTES:
            body = self._start + SIZE_BYTES
            size = self._checked_size()
            if body + size > self._end:
                if SIZE_BYTES + size > SHARED_BYTES:
                    self._begin_long(body, size)
                    return frames
                break
            self._is_first = False
            frames.append(bytes(memoryview(shared)[body : body + size]))
            self._start = body + size
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start:
            # What is left is the start of a frame that fits: keep it where there is room for it.
            rest = shared[self._start : self._end]
            shared[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        return frames

    def _checked_size(self) -> int:
        (size,) = _SIZE.unpack_from(self._shared, self._start)
        if self._is_first and not CORRELATION_ID_BYTES <= size <= self._first_size_max:
            shown = bytes(self._shared[self._start : self._end][:_SHOWN_BYTES_MAX])
            raise NotKafkaBytes(f"this is not a Kafka broker: it sent {what_is_sent(shown)}")
        if size < CORRELATION_ID_BYTES:
            raise InvalidResponse(f"{size} is not a valid response size")
        if size > self._size_max:
            raise InvalidResponse(
                f"a response of {size} bytes is over the limit of {self._size_max}"
            )
        return int(size)

    def _begin_long(self, body: int, size: int) -> None:
        have = self._end - body
        self._long = self._spares.take(min(size, ANNOUNCED_BYTES_MAX))
        self._long[:have] = memoryview(self._shared)[body : self._end]
        self._long_have, self._long_size = have, size
        self._start = self._end = 0


def what_is_sent(first: bytes) -> str:
    """What a peer that is no Kafka broker seems to be, and the beginning of what it sent."""
    line = first.split(b"\r")[0].split(b"\n")[0]
    if first.startswith(b"HTTP/"):
        return f"an HTTP response, {line.decode('latin-1')!r}"
    if first[:2] in (b"\x15\x03", b"\x16\x03"):
        return f"a TLS record ({first.hex(' ')}), and this client uses PLAINTEXT"
    if line.isascii() and line.decode().isprintable():
        return f"the text {line.decode()!r}"
    return f"the bytes {first.hex(' ')}"
