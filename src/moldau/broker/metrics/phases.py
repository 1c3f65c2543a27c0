"""When requests of a connection wait: before they are begun, and after they are answered.

A request that is received, handled and sent in one go waits nowhere, and costs two attributes here.
The others: frames behind the first one of a wake-up, and what was read ahead while the connection
was busy, wait in the request queue; responses that are collected or wait for earlier ones are in
the response queue; and what the kernel does not take at once takes time to send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from moldau.metrics import ApiTimes, RequestTimes

__all__ = ["Answered", "Phases"]


class Answered(Protocol):
    """`ApiTimes.answered` of an API: bound once, because the hot path calls it."""

    __self__: ApiTimes

    def __call__(self, started_ns: int, size: int) -> None: ...


class Phases:
    """Of one connection."""

    __slots__ = ("_ahead_ns", "_sending", "_sending_ns", "last", "ready", "turn_ns")

    def __init__(self) -> None:
        #: When the first request of this wake-up was begun, or what it handles was received.
        self.turn_ns = 0
        #: Of the request that was answered last and begins the wake-up; others are in `ready`.
        self.last: Answered | None = None
        self._ahead_ns = 0
        #: Answered, and not sent: their API, how long they took, and since when they are ready.
        self.ready: list[tuple[RequestTimes, int, int]] = []
        self._sending: list[tuple[RequestTimes, int]] = []
        self._sending_ns = 0

    # Before a request is begun.

    def received_ahead(self, now_ns: int) -> None:
        """Something was received that cannot be handled yet."""
        if not self._ahead_ns:
            self._ahead_ns = now_ns

    def left_over(self, more: bool) -> None:
        """The connection is busy; is there `more` of what this wake-up received?"""
        if more and not self._ahead_ns:
            self._ahead_ns = self.turn_ns

    def resume(self) -> None:
        """What waited is handled now."""
        self.turn_ns, self._ahead_ns = self._ahead_ns, 0

    def forget(self) -> None:
        """The client was held back by a quota: that is no queue."""
        self._ahead_ns = 0

    def begin(self, started_ns: int) -> int:
        """How long the request that was begun at `started_ns` waited."""
        if self.turn_ns:
            return started_ns - self.turn_ns
        self.turn_ns = started_ns
        return 0

    # After it is answered.

    def answer(self, api: ApiTimes, started_ns: int, size: int) -> None:
        """Record a request that is answered at once, but maybe behind others."""
        self._note_last()
        waited_ns = self.begin(started_ns)
        api.answered(started_ns, size)
        total_ns = api.total_ns
        if waited_ns > 0:
            api.times.queued(total_ns, waited_ns)
            total_ns += waited_ns
        self.ready.append((api.times, total_ns, api.answered_ns))

    def wait(self, times: RequestTimes, total_ns: int, now_ns: int) -> None:
        """The response of a request that waited for others is ready."""
        self.ready.append((times, total_ns, now_ns))

    def given(self, now_ns: int, *, all_sent: bool) -> None:
        """Responses were given to the kernel, which has taken all of them, or part."""
        self._note_last()
        for times, total_ns, ready_ns in self.ready:
            times.held_back(total_ns, now_ns - ready_ns)
            if not all_sent:
                self._sending.append((times, total_ns + now_ns - ready_ns))
        self.ready.clear()
        if not all_sent and not self._sending_ns:
            self._sending_ns = now_ns

    def all_sent(self, now_ns: int) -> None:
        """The kernel has the rest."""
        more_ns = now_ns - self._sending_ns
        for times, total_ns in self._sending:
            times.sent(total_ns, more_ns)
        self._sending.clear()
        self._sending_ns = 0

    def _note_last(self) -> None:
        """`last` has the times of one request only: they are kept before there is another."""
        last = self.last
        if last is not None:
            api = last.__self__
            self.ready.append((api.times, api.total_ns, api.answered_ns))
            self.last = None
