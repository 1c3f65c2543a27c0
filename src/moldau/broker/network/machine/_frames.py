# cython: annotation_typing=False
"""Cuts a byte stream into frames: a big-endian int32 size, then that many bytes.

Decided here: where a frame starts and ends, which sizes are rejected, and how much memory an
incomplete frame may use.

Invariants: however the stream is split into pieces, the same frames are returned, and an incomplete
frame costs at most about twice the bytes actually received (a client that announces 100 MB and
sends nothing costs nothing), unless it got one of the few buffers of the pool.

Complete frames are returned as views of the caller's own receive buffer, without a copy; only an
incomplete one is copied. A returned frame is valid until the decoder is called next.

Plain Python, and with `_frames.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

SIZE_BYTES: Final = 4
#: From here on an unfinished frame is received straight into its own buffer. Below it one receive
#: into the shared buffer that also catches the next frames is worth more than the saved copy.
DIRECT_BYTES_MIN: Final = 64 * 1024
#: Holds one request of the size that clients send at most by default (1 MB of batches).
POOLED_BYTES: Final = 1024 * 1024 + 64 * 1024
POOLED_COUNT_MAX: Final = 8

_SIZE: Final = struct.Struct(">i")
_EMPTY: Final = memoryview(b"")


class InvalidFrame(Exception):
    """The stream has an invalid frame size; what follows cannot be parsed."""


class BufferPool:
    """What the connections of a node hold of requests that have not been received completely.

    A few large buffers are reused instead of being freed: faulting in fresh pages for every large
    request costs more than receiving its bytes. `full` says that connections hold as much as they
    may together (queued.max.request.bytes). Requests that have begun are received to their end, so
    the limit is exceeded by what they need, but no connection begins another one.
    """

    def __init__(self, held_max: int | None = None) -> None:
        """`held_max` is queued.max.request.bytes; None for no limit."""
        self._free: list[bytearray] = []
        self._lent = 0
        self._held = 0
        self._held_max = held_max
        self._waiting: list[Callable[[], None]] = []
        self.full = False

    @property
    def held(self) -> int:
        """Bytes of requests that have not been received completely."""
        return self._held

    @property
    def available(self) -> int:
        """How many more may be held; 2^63-1 without a limit."""
        return 2**63 - 1 if self._held_max is None else max(0, self._held_max - self._held)

    def count(self, change: int) -> None:
        """A connection holds so many bytes more or less."""
        self._held += change
        if self._held_max is None:
            return
        self.full = self._held >= self._held_max
        if not self.full and self._waiting:
            waiting, self._waiting = self._waiting, []
            for resume in waiting:
                resume()

    def when_free(self, resume: Callable[[], None]) -> None:
        """Call `resume` once the pool is not full any more."""
        self._waiting.append(resume)

    def take(self) -> bytearray | None:
        """A buffer of POOLED_BYTES with any content, or None if all are in use."""
        if not self._free and self._lent >= POOLED_COUNT_MAX:
            return None
        self._lent += 1
        return self._free.pop() if self._free else bytearray(POOLED_BYTES)

    def give_back(self, buffer: bytearray) -> None:
        self._lent -= 1
        self._free.append(buffer)


class FrameDecoder:
    """Bytes in, frames out.

    Either `feed` it what was received elsewhere, or receive into `space()` and call `received`;
    then call `next_frame` until it returns None. To stop before that, call `detach`, which copies
    the rest out of the caller's buffer.
    """

    __slots__ = (
        "_data",
        "_end",
        "_have",
        "_limit_key",
        "_need",
        "_partial",
        "_pool",
        "_pooled",
        "_position",
        "_size_max",
        "_used",
    )

    def __init__(self, size_max: int, pool: BufferPool) -> None:
        self._size_max = size_max
        self._limit_key = "socket.request.max.bytes"
        self._pool = pool
        # What was fed and not yet handed out: _data[_position:_end].
        self._data = _EMPTY
        self._position = 0
        self._end = 0
        # The unfinished frame with its size: _partial[:_have]; _need is its whole length, or the
        # length of the size as long as that is not known.
        self._partial = bytearray()
        self._have = 0
        self._need = SIZE_BYTES
        # Whether _partial is the pool's; and the pool's buffer that the last frame handed out is
        # a view of, to be given back when that frame is done.
        self._pooled = False
        self._used: bytearray | None = None

    def limit(self, size_max: int, key: str) -> None:
        """Reject larger frames from the next one on; `key` is the setting to blame."""
        self._size_max = size_max
        self._limit_key = key

    @property
    def buffered(self) -> int:
        """The number of bytes that were received and not yet returned."""
        return self._have + self._end - self._position

    def feed(self, data: memoryview) -> None:
        """Take bytes that were received into a buffer of the caller's."""
        if self._position != self._end:
            rest = bytearray(self._data[self._position : self._end])
            rest += data
            data = memoryview(rest)
        self._data = data
        self._position = 0
        self._end = len(data)

    def next_frame(self) -> memoryview | None:
        """The next complete frame without its size, or None if more bytes are needed.

        Raises InvalidFrame; the decoder cannot be used after that.
        """
        if self._used is not None:
            self._recycle()
        if self._have:
            return self._next_of_partial()
        start = self._position + SIZE_BYTES
        if start <= self._end:
            (size,) = _SIZE.unpack_from(self._data, self._position)
            if not 0 <= size <= self._size_max:
                raise self._invalid(size)
            end: int = start + size
            if end <= self._end:
                self._position = end
                return self._data[start:end]
            self._need = SIZE_BYTES + size
        if self._position != self._end:
            self._keep_partial()
        self._data = _EMPTY
        self._position = self._end = 0
        return None

    def space(self) -> memoryview | None:
        """Where to receive the rest of a long unfinished frame, or None: into a shared buffer."""
        if self._have < DIRECT_BYTES_MIN or self._need - self._have < DIRECT_BYTES_MIN:
            return None
        if self._position != self._end:
            return None
        self._reserve(min(self._need, self._have * 2))
        return memoryview(self._partial)[self._have : min(self._need, len(self._partial))]

    def received(self, count: int) -> None:
        """`count` bytes were received into `space()`."""
        self._have += count

    def detach(self) -> None:
        """Copy what is not yet returned, so that the caller may reuse the buffer it fed."""
        self._recycle()
        if self._position == self._end:
            self._data = _EMPTY
        else:
            self._data = memoryview(bytearray(self._data[self._position : self._end]))
        self._position = 0
        self._end = len(self._data)

    def discard(self) -> None:
        """Drop everything and return the pool's buffer: the stream has ended."""
        self._recycle()
        if self._pooled:
            self._pool.give_back(self._partial)
            self._pooled = False
        self._drop_partial()
        self._data = _EMPTY
        self._position = self._end = 0

    def _next_of_partial(self) -> memoryview | None:
        if self._have < SIZE_BYTES:
            self._take(SIZE_BYTES)
            if self._have < SIZE_BYTES:
                return None
            (size,) = _SIZE.unpack_from(self._partial)
            if not 0 <= size <= self._size_max:
                raise self._invalid(size)
            self._need = SIZE_BYTES + size
        self._take(self._need)
        if self._have < self._need:
            return None
        frame = memoryview(self._partial)[SIZE_BYTES : self._need]
        if self._pooled:
            self._used = self._partial
            self._pooled = False
        self._drop_partial()
        return frame

    def _drop_partial(self) -> None:
        if self._partial:
            self._pool.count(-len(self._partial))
            self._partial = bytearray()
        self._have = 0
        self._need = SIZE_BYTES

    def _take(self, need: int) -> None:
        """Move fed bytes to the unfinished frame, until that has `need` bytes or all are moved."""
        count = min(need - self._have, self._end - self._position)
        if not count:
            return
        have = self._have + count
        if have > len(self._partial):
            # Half as much again, but never beyond the frame: pieces may come in byte by byte.
            self._reserve(max(have, min(self._need, have + have // 2)))
        self._partial[self._have : have] = self._data[self._position : self._position + count]
        self._have = have
        self._position += count
        if self._position == self._end:
            self._data = _EMPTY
            self._position = self._end = 0

    def _keep_partial(self) -> None:
        count = self._end - self._position
        self._reserve(count)
        self._partial[:count] = self._data[self._position : self._end]
        self._have = count

    def _reserve(self, size: int) -> None:
        """Make room for `size` bytes. A new buffer each time: the old one may have views."""
        old = self._partial
        if len(old) >= size:
            return
        # A pooled buffer holds every frame that it is taken for, so it never grows again.
        new = self._pool.take() if DIRECT_BYTES_MIN <= size <= self._need <= POOLED_BYTES else None
        self._pooled = new is not None
        if new is None:
            new = bytearray(size)
        new[: self._have] = memoryview(old)[: self._have]
        self._pool.count(len(new) - len(old))
        self._partial = new

    def _recycle(self) -> None:
        if self._used is not None:
            self._pool.give_back(self._used)
            self._used = None

    def _invalid(self, size: int) -> InvalidFrame:
        if size < 0:
            return InvalidFrame(f"request size {size} is negative: these are not Kafka requests")
        return InvalidFrame(
            f"request size {size} is over the limit of {self._size_max} bytes ({self._limit_key})"
        )
