"""TLS as a transport layer: a byte stream over OpenSSL's memory BIOs.

Measured against sockets that OpenSSL owns: one system call moves many records instead of two per
record, which saves a tenth of the CPU time of produce and fetch; the kernel's own TLS needs a
module that most systems do not load.

The handshake happens in `recv_into`, which raises BlockingIOError until it is done, within
HANDSHAKE_TIMEOUT_S. A client's first message costs a signature, a millisecond with RSA, so only a
few are handled in one turn of the loop and the others stay in their sockets: when hundreds of
clients connect at once, connected ones wait for milliseconds.

Invariants: what was encrypted is sent before anything else is encrypted; bytes count as sent when
the kernel has their ciphertext, so whoever waits for room in the socket waits for the right thing;
decrypted bytes that did not fit are announced by `has_pending`, since the socket does not become
readable for them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, cast

from moldau.broker.network.resets import socket_error
from moldau.broker.network.security._tls_records import read_records
from moldau.wire.constants import Buffer

__all__ = ["HANDSHAKES_PER_TURN_MAX", "HANDSHAKE_TIMEOUT_S", "HandshakeTurns", "TlsLayer"]

#: As long as Kafka's clients wait for a connection at most.
HANDSHAKE_TIMEOUT_S: Final = 30.0
#: How many handshakes are begun before the loop looks at all sockets again.
HANDSHAKES_PER_TURN_MAX: Final = 8
#: What is encrypted at once. More would only wait in memory for the kernel.
SEND_BYTES_MAX: Final = 256 * 1024
RECORD_BYTES_MAX: Final = 16 * 1024
#: A record of TLS 1.2 with a fatal alert: protocol_version.
NOT_TLS_ALERT: Final = bytes.fromhex("15 03 03 00 02 02 46")


class HandshakeTurns:
    """Shared by the connections of a listener: which of them may begin its handshake now."""

    __slots__ = ("_left", "_loop")

    def __init__(self) -> None:
        self._left = HANDSHAKES_PER_TURN_MAX
        self._loop: asyncio.AbstractEventLoop | None = None

    def takes_next(self) -> bool:
        if self._loop is None:
            # What is called soon runs after all sockets that are ready in this turn.
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._on_turn)
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    def _on_turn(self) -> None:
        self._loop = None
        self._left = HANDSHAKES_PER_TURN_MAX


class TlsLayer:
    """See the module. Implements `transport_layer.TransportLayer`."""

    __slots__ = (
        "_established",
        "_failed",
        "_incoming",
        "_loop",
        "_on_established",
        "_on_failed",
        "_outgoing",
        "_owed",
        "_pending",
        "_read",
        "_receive_buffer",
        "_socket",
        "_ssl",
        "_timer",
        "_turns",
        "_unsent",
        "_writing",
    )

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        receive_buffer: memoryview,
        turns: HandshakeTurns,
        on_established: Callable[[ssl.SSLObject], None],
        on_failed: Callable[[ssl.SSLError | None], None],
    ) -> None:
        """`receive_buffer` may be shared: it holds ciphertext only inside `recv_into`.

        `on_established` may raise OSError to refuse the peer; `on_failed` gets the reason why the
        handshake failed, None if it took too long.
        """
        self._socket = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # With a buffer it returns how many bytes it has written there. The method of the object
        # inside saves a call in Python for each record: a tenth of the CPU time of decrypting.
        inner = getattr(self._ssl, "_sslobj", self._ssl)
        self._read = cast(Callable[[int, memoryview], int], inner.read)
        self._receive_buffer = receive_buffer
        # None once the handshake has begun.
        self._turns: HandshakeTurns | None = turns
        self._on_established = on_established
        self._on_failed = on_failed
        self._established = False
        self._failed = False
        self._pending = False
        # Ciphertext that the kernel has not taken, and how many bytes of the caller it stands for.
        self._unsent: memoryview | None = None
        self._owed = 0
        self._writing = False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self._on_timeout)

    def fileno(self) -> int:
        return self._socket.fileno()

    def getsockopt(self, level: int, option: int, /) -> int:
        return self._socket.getsockopt(level, option)

    def has_pending(self) -> bool:
        """Whether bytes were received that the next `recv_into` returns without waiting."""
        return self._pending

    # Receiving.

    def recv_into(self, buffer: memoryview, /) -> int:
        if self._turns is not None:
            if not self._turns.takes_next():
                raise self._nothing_yet()
            self._turns = None
        if not self._pending:
            size = self._socket.recv_into(self._receive_buffer)
            if not size:
                return 0
            self._incoming.write(self._receive_buffer[:size])
        if not self._established and not self._shake_hands():
            raise self._nothing_yet()
        return self._decrypt_into(buffer)

    def _decrypt_into(self, buffer: memoryview) -> int:
        self._pending = False
        try:
            count, ended = read_records(self._read, self._incoming, buffer)
        except ssl.SSLError:
            self._failed = True
            raise
        finally:
            if self._outgoing.pending:
                self._flush()
        if ended:
            # What came before the end is returned first.
            self._pending = count > 0
        elif count == len(buffer):
            self._pending = self._incoming.pending > 0 or self._ssl.pending() > 0
        elif not count:
            raise self._nothing_yet()
        return count

    def _nothing_yet(self) -> OSError:
        """Bytes came, but not enough for a record. Or no more will come: see `resets`."""
        return socket_error(self._socket.getsockopt) or BlockingIOError()

    # The handshake.

    def _shake_hands(self) -> bool:
        """Whether it is done."""
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._flush_or_wait()
            return False
        except ssl.SSLError as error:
            if not self._outgoing.pending:
                # OpenSSL leaves a peer that does not speak TLS without a word.
                self._unsent = memoryview(NOT_TLS_ALERT)
            # The peer gets an alert with the reason.
            self._flush()
            self._fail(error)
            raise
        self._timer.cancel()
        self._established = True
        self._on_established(self._ssl)
        self._flush_or_wait()
        return True

    def _fail(self, error: ssl.SSLError | None) -> None:
        self._failed = True
        self._on_failed(error)

    def _on_timeout(self) -> None:
        self._fail(None)
        # The socket is now at its end, and its owner finds that out.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _flush_or_wait(self) -> None:
        """As long as there are no responses, nobody else waits for room in the socket."""
        if not self._flush() and not self._writing:
            self._writing = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        try:
            flushed = self._flush()
        except OSError:
            flushed = True  # recv_into finds the same.
        if flushed:
            self._stop_writing()

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._socket.fileno())

    # Sending.

    def send(self, data: Buffer, /) -> int:
        size = len(data)
        if (
            self._unsent is not None
            or self._writing
            or self._owed
            or not 0 < size <= RECORD_BYTES_MAX
            or self._outgoing.pending
        ):
            return self.sendmsg((data,))
        # Nearly every response: one record, and the kernel has room.
        self._ssl.write(data)
        if self._flush():
            return size
        self._owed = size
        return 0

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        self._stop_writing()
        if not self._flush():
            raise BlockingIOError
        if self._owed:
            # Encrypted before; whatever made room for it, it is gone only now for the caller.
            owed, self._owed = self._owed, 0
            return owed
        count = self._encrypt(buffers)
        if self._flush():
            return count
        self._owed = count
        return 0

    def _encrypt(self, buffers: Sequence[Buffer]) -> int:
        """Small buffers share a record."""
        write = self._ssl.write
        count = 0
        small: list[Buffer] = []
        small_size = 0
        for buffer in buffers:
            size = len(buffer)
            if small_size + size > RECORD_BYTES_MAX and small_size:
                count += write(b"".join(small))
                small, small_size = [], 0
            if count >= SEND_BYTES_MAX:
                return count
            if size <= RECORD_BYTES_MAX:
                small.append(buffer)
                small_size += size
                continue
            end = min(size, max(SEND_BYTES_MAX - count, RECORD_BYTES_MAX))
            # In one call, which OpenSSL splits into records: a tenth less CPU than a call for each.
            write(memoryview(buffer)[:end])
            count += end
            if end < size:
                return count
        if small_size:
            count += write(b"".join(small))
        return count

    def _flush(self) -> bool:
        """Whether the kernel has all ciphertext."""
        while True:
            data: memoryview | bytes | None = self._unsent
            if data is None:
                data = self._outgoing.read()
                if not data:
                    return True
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            if sent < len(data):
                self._unsent = memoryview(data)[sent:]
                return False
            self._unsent = None

    # Closing.

    def close(self) -> None:
        self._timer.cancel()
        self._stop_writing()
        if self._established and not self._failed and self._unsent is None:
            self._say_goodbye()
        self._socket.close()

    def _say_goodbye(self) -> None:
        """Without it the peer cannot know that nothing was cut off."""
        # The peer's own is not waited for, which raises SSLWantReadError.
        with suppress(OSError):
            self._ssl.unwrap()
        with suppress(OSError):
            self._flush()
