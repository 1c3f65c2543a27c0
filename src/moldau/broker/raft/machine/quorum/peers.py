"""Peers: the requests in flight, and which peers are not asked again yet after a failure.

Invariants: a peer has one request in flight at a time. A change of role forgets all of them, so
that a response to a request of an earlier role is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

from moldau.broker.raft.machine.rpcs import Peer, Request
from moldau.times import ElapsedMs


@dataclass(frozen=True, slots=True)
class Sent:
    peer: Peer
    request: Request


class Peers:
    def __init__(self, retry_backoff_ms: int) -> None:
        self._retry_backoff_ms = retry_backoff_ms
        self._last_id = 0
        self._sent: dict[int, Sent] = {}
        self._busy: dict[int, int] = {}
        self._backoff_until: dict[int, ElapsedMs] = {}

    def is_ready(self, peer_id: int, now_ms: ElapsedMs) -> bool:
        return peer_id not in self._busy and not self.is_backing_off(peer_id, now_ms)

    def is_backing_off(self, peer_id: int, now_ms: ElapsedMs) -> bool:
        return now_ms < self._backoff_until.get(peer_id, now_ms)

    @property
    def is_idle(self) -> bool:
        return not self._sent

    def next_backoff_end_ms(self, now_ms: ElapsedMs) -> ElapsedMs | None:
        return min(
            (until for until in self._backoff_until.values() if until > now_ms), default=None
        )

    def sending(self, peer: Peer, request: Request) -> int:
        """The id that the response will have."""
        self._last_id += 1
        self._sent[self._last_id] = Sent(peer, request)
        self._busy[peer.id] = self._last_id
        return self._last_id

    def answered(self, request_id: int) -> Sent | None:
        """The request; None if it was given up in the meantime."""
        sent = self._sent.pop(request_id, None)
        if sent is not None:
            self._busy.pop(sent.peer.id, None)
            self._backoff_until.pop(sent.peer.id, None)
        return sent

    def failed(self, peer_id: int, now_ms: ElapsedMs) -> None:
        self._backoff_until[peer_id] = ElapsedMs(now_ms + self._retry_backoff_ms)

    def reset(self) -> None:
        self._sent.clear()
        self._busy.clear()
        self._backoff_until.clear()
