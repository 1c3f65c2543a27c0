# cython: annotation_typing=False
"""One client connection: receives frames, has them answered one at a time, sends the responses.

Decided here: when a connection reads, waits, sends and closes.

Invariants: the next request is not handled before the last one is answered and the kernel has its
response, so a slow client occupies one response at most; and no wake-up does more than a bounded
amount of work, so a busy connection does not starve the others.

There is one exception: a Produce whose records are appended and wait to be replicated does not
delay the next Produce. Their responses leave in the order of the requests (`_appended`), and any
other request waits for all of them (`_held`). So everything that a producer has in flight is
replicated together instead of one request after the other.

A connection is busy while a request waits for its response (`_work`), while the kernel takes no
more of a response (`unsent`), while it lets others go first (`_yielding`), while its client has
exceeded a quota (`_muted`), and while it has a request that must wait for appended ones, or too
many of these. A busy connection handles no frames; it continues with `_handle_frames` when the last
of these reasons ends.

Plain Python, and with `_connection.pxd` beside it also the source of a compiled module.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final, Protocol

from moldau.broker.network._sending import Sender
from moldau.broker.network.appended import AppendedRequests
from moldau.broker.network.context import ConnectionInfo
from moldau.broker.network.interface import FrameReceiver, InvalidRequest, Reply
from moldau.broker.network.machine._frames import BufferPool, FrameDecoder, InvalidFrame
from moldau.broker.network.muting import Muting
from moldau.broker.network.transport_layer import TransportLayer
from moldau.wire.constants import Buffer
from moldau.wire.errors import ApiError

REQUESTS_PER_WAKEUP_MAX: Final = 64
#: What is received beyond the request that is being answered. Receiving a little keeps the end of
#: the stream visible; receiving more would only move the client's queue into our memory.
READ_AHEAD_BYTES_MAX: Final = 64 * 1024
#: From the connection to the end of the login; Kafka's clients give up after as long.
LOGIN_TIMEOUT_S: Final = 30.0
#: How many requests may be appended and unanswered; clients have five in flight, as a rule.
APPENDED_MAX: Final = 16

# Users set its level by this name.
logger = logging.getLogger("moldau.broker.network.connection")


class ConnectionHost(Protocol):
    """What connections share: the loop, its receive buffer, and their owner."""

    loop: asyncio.AbstractEventLoop
    #: One for all: what a connection received is handled or copied before another one receives.
    receive_buffer: memoryview
    pool: BufferPool
    #: Counts up slowly; a connection stores it as the time of its last activity.
    tick: int

    def on_closed(self, connection: Connection, abandoned: asyncio.Future[Reply] | None) -> None:
        """It is closed; `abandoned` is its work, cancelled but possibly still running."""
        ...


class Connection:
    """See the module. All methods run on the loop's thread."""

    __slots__ = (
        "_appended",
        "_appended_requests",
        "_busy",
        "_channel",
        "_closed",
        "_decoder",
        "_fd",
        "_has_pending",
        "_held",
        "_host",
        "_muted",
        "_paused",
        "_receiver",
        "_sender",
        "_stopping",
        "_stream_ended",
        "_work",
        "_yielding",
        "info",
        "seen_tick",
        "unsent",
    )

    def __init__(
        self,
        host: ConnectionHost,
        channel: TransportLayer,
        info: ConnectionInfo,
        receiver: FrameReceiver,
        *,
        request_bytes_max: int,
    ) -> None:
        self._host = host
        self._channel = channel
        self._fd = channel.fileno()
        # Only of layers that hold received bytes back; a socket has none.
        self._has_pending: Callable[[], bool] | None = getattr(channel, "has_pending", None)
        self._receiver = receiver
        self._decoder = FrameDecoder(request_bytes_max, host.pool)
        _limit_until_login(self._decoder, info, request_bytes_max, host.loop, self._close_for)
        self._sender = Sender(channel, host.loop, self, info.traffic, info.phases)
        self.unsent = self._sender.unsent
        self._work: asyncio.Future[Reply] | None = None
        self._appended_requests = AppendedRequests()
        self._appended = self._appended_requests.replies
        self._held: memoryview | None = None
        self._yielding = False
        self._muted = Muting(info, host.loop, self._continue)
        self._busy = False
        self._paused = False
        self._stream_ended = False
        self._stopping = False
        self._closed = False
        self.info = info
        self.seen_tick = host.tick
        host.loop.add_reader(self._fd, self._on_readable)

    @property
    def waiting(self) -> bool:
        """Whether a request is being handled."""
        return self._work is not None or bool(self._appended)

    # Receiving.

    def _on_readable(self) -> None:
        host = self._host
        decoder = self._decoder
        if self._busy:
            self._read_ahead()
            return
        if host.pool.full and not decoder.buffered:
            self._pause()
            host.pool.when_free(self._on_room)
            return
        space = decoder.space()
        try:
            count = self._channel.recv_into(host.receive_buffer if space is None else space)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.on_broken(error)
            return
        self.seen_tick = host.tick
        if not count:
            self.close()
            return
        self.info.traffic.received += count
        if space is None:
            decoder.feed(host.receive_buffer[:count])
        else:
            decoder.received(count)
        self.info.phases.turn_ns = 0
        self._handle_frames(True)

    def _on_pending(self) -> None:
        has_pending = self._has_pending
        # What was pending may have been read by an event that came first.
        if not self._paused and not self._closed and has_pending is not None and has_pending():
            self._on_readable()

    def _read_ahead(self) -> None:
        """Data, or the end of the stream, came while the connection is busy."""
        room = READ_AHEAD_BYTES_MAX - self._decoder.buffered
        if room <= 0:
            self._pause()
            return
        buffer = self._host.receive_buffer[:room]
        try:
            count = self._channel.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.on_broken(error)
            return
        self.seen_tick = self._host.tick
        if count:
            self.info.traffic.received += count
            self._decoder.feed(buffer[:count])
            self._decoder.detach()
            self.info.phases.received_ahead(perf_counter_ns())
            self._sender.send([])
        elif self._yielding or (self._muted.active and self._decoder.buffered):
            # Complete requests are still carried out: a producer with acks=0 may just disconnect.
            self._stream_ended = True
            self._pause()
        else:
            self.close()

    def _on_room(self) -> None:
        """Others hold less of their requests: begin another one."""
        if self._paused and not self._busy and not self._closed:
            self._resume()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._host.loop.remove_reader(self._fd)

    # Handling.

    def _handle_frames(self, received: bool = False) -> None:
        """Handle frames until the connection is busy or has no more; `received`: some just came."""
        answers: list[Buffer] = []
        try:
            sent = self._answer_frames(answers)
        except Exception as error:
            self._send(answers)
            self._close_for(error)
            return
        if not self._closed and (answers or (received and not sent)):
            self._sender.send(answers)
        if self._closed:
            return
        if self.info.mute_ms:
            self._muted.begin()
        if (
            self.unsent
            or self._muted.active
            or self._work is not None
            or self._yielding
            or self._held is not None
            or len(self._appended) >= APPENDED_MAX
        ):
            self._busy = True
            self.info.phases.left_over(self._decoder.buffered > 0 or self._held is not None)
            if self._work is not None and self._stream_ended:
                # No client is left to wait for the response.
                self.close()
        else:
            self._busy = False
            if self._paused:
                self._resume()
            if self._has_pending is not None and self._has_pending():
                self._host.loop.call_soon(self._on_pending)

    def _answer_frames(self, answers: list[Buffer]) -> bool:
        """Collect small responses, so that one call sends them; returns whether others are sent."""
        sent = False
        dispatch = self._receiver.dispatch
        info = self.info
        appended = self._appended
        for _ in range(REQUESTS_PER_WAKEUP_MAX):
            frame = self._next_in_turn()
            if frame is None:
                return sent
            reply = dispatch(info, frame)
            if isinstance(reply, bytes):
                (appended or answers).append(reply)
            elif isinstance(reply, asyncio.Future) and self._receiver.is_pipelined(frame):
                appended.append(reply)
                reply.add_done_callback(self._on_replicated)
            elif appended and isinstance(reply, list):
                appended.append(reply)
            elif isinstance(reply, list):
                # Long responses are sent immediately: the next is made after this one is gone.
                answers += reply
                self._send(answers)
                answers.clear()
                sent = True
                if self.unsent or self._closed:
                    self._decoder.detach()
                    return sent
            elif reply is not None:
                self._decoder.detach()
                self._work = asyncio.ensure_future(reply, loop=self._host.loop)
                self._work.add_done_callback(self._on_work_done)
                return sent
            if info.mute_ms:
                self._decoder.detach()
                return sent
        self._decoder.detach()
        self._yielding = True
        self._host.loop.call_soon(self._on_turn)
        return sent

    def _next_in_turn(self) -> memoryview | None:
        """The next frame, unless it must wait for appended requests."""
        if len(self._appended) >= APPENDED_MAX:
            self._decoder.detach()
            return None
        frame = self._decoder.next_frame() if self._held is None else self._held
        if frame is None or not self._appended or self._receiver.is_pipelined(frame):
            self._held = None
            return frame
        if self._held is None:
            self._held = memoryview(bytearray(frame))
            self._decoder.detach()
        return None

    def _resume(self) -> None:
        """Everything received is handled: read again, or close if that was requested."""
        if self._stopping and self._appended:
            return
        if self._stopping or self._stream_ended:
            self.close()
        else:
            self._paused = False
            self._host.loop.add_reader(self._fd, self._on_readable)

    def _on_turn(self) -> None:
        self._yielding = False
        self._continue()

    def _continue(self) -> None:
        """One reason to be busy has ended."""
        if self.info.mute_ms and not self._closed:
            self._muted.begin()
        if self._closed or self.unsent or self._work is not None or self._yielding:
            return
        if self._muted.active and not self._stopping:
            return
        if not self._stopping:
            self.info.phases.resume()
            self._handle_frames()
        elif not self._appended:
            self.close()

    def _on_work_done(self, work: asyncio.Future[Reply]) -> None:
        self._work = None
        if self._has_failed(work):
            return
        reply = work.result()
        if reply is not None:
            if self._appended:
                self._appended.append(reply)
            else:
                self._send([reply] if isinstance(reply, bytes) else reply)
        self._continue()

    def _on_replicated(self, work: asyncio.Future[Reply]) -> None:
        """Send the responses that are next in order."""
        if self._has_failed(work):
            return
        answers = self._appended_requests.take_ready(self._has_failed)
        if answers is not None:
            self._send(answers)
            self._continue()

    def _has_failed(self, work: asyncio.Future[Reply]) -> bool:
        """Whether there is no response to send; then the connection is closed."""
        self.seen_tick = self._host.tick
        if work.cancelled():
            self.close()
            return True
        error = work.exception()
        if error is None:
            return self._closed
        self._close_for(error)
        return True

    # Sending.

    def _send(self, buffers: list[Buffer]) -> None:
        if not self._closed and buffers:
            self._sender.send(buffers)

    def on_sending(self) -> None:
        self.seen_tick = self._host.tick

    def on_all_sent(self) -> None:
        self._continue()

    # Closing.

    def finish(self) -> None:
        """Close once the current request is answered; handle no other."""
        self._stopping = True
        self._pause()
        if self._muted.active:
            self._continue()
        elif not self._busy and not self._appended:
            self.close()

    def close(self) -> None:
        """Close now; cancel a request that still waits, in a turn in which it has surely begun."""
        if self._closed:
            return
        self._closed = True
        self._busy = True
        if not self._paused:
            self._host.loop.remove_reader(self._fd)
        self._muted.cancel()
        self._sender.close()
        self._channel.close()
        self._decoder.discard()
        work = self._work
        if work is not None:
            self._host.loop.call_soon(work.cancel)
        self._appended_requests.cancel()
        self._held = None
        self._host.on_closed(self, work)
        self.info.closed()

    def _close_for(self, reason: BaseException) -> None:
        if self._closed:
            return
        if isinstance(reason, InvalidRequest) and reason.last_reply:
            self._send([reason.last_reply])
        _log_reason(self.info.origin, reason)
        self.close()

    def on_broken(self, error: OSError) -> None:
        """Abrupt disconnects are logged at DEBUG only."""
        logger.debug("connection %s broke: %s", self.info.origin, error)
        self.close()


def _log_reason(connection: str, reason: BaseException) -> None:
    if isinstance(reason, (InvalidFrame, InvalidRequest, ApiError)):
        logger.warning("closing connection %s: %s", connection, reason)
    else:
        logger.error("closing connection %s: request handling failed", connection, exc_info=reason)


def _limit_until_login(
    decoder: FrameDecoder,
    info: ConnectionInfo,
    request_bytes_max: int,
    loop: asyncio.AbstractEventLoop,
    close_for: Callable[[BaseException], None],
) -> None:
    """Who has not logged in yet sends small requests only, and not for long: a client that sends a
    byte now and then is never idle."""
    if info.login_bytes_max is None:
        return
    decoder.limit(info.login_bytes_max, "sasl.server.max.receive.size")
    late = InvalidRequest(f"no login within {LOGIN_TIMEOUT_S:g} s")
    timer = loop.call_later(LOGIN_TIMEOUT_S, close_for, late)

    def logged_in() -> None:
        timer.cancel()
        decoder.limit(request_bytes_max, "socket.request.max.bytes")

    info.on_logged_in = logged_in
    info.when_closed(lambda _: timer.cancel())
