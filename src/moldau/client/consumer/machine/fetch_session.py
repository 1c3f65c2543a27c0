"""A consumer's side of incremental fetch sessions with one node (KIP-227).

Decided here: what the next request names. Invariants: after a request was answered, the
node's session holds exactly what `sent` says; after any doubt (an error, no answer) the next
request names everything and starts a new session, closing the old one if it is still there. Pure.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from moldau.client.topics import TopicPartition
from moldau.wire.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, SessionNumbers

__all__ = ["ConsumerFetchSession", "SessionRequest", "Wanted"]


class Wanted(NamedTuple):
    """What to read of a partition."""

    topic_id: UUID
    offset: int
    leader_epoch: int
    size_max: int


class SessionRequest(NamedTuple):
    """The part of a Fetch request that sessions decide."""

    session_id: int
    session_epoch: int
    partitions: dict[TopicPartition, Wanted]
    forgotten: dict[TopicPartition, UUID]


class ConsumerFetchSession(SessionNumbers):
    """One node's."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        super().__init__()
        # What the node reads for us with every request.
        self.sent: dict[TopicPartition, Wanted] = {}

    @property
    def is_open(self) -> bool:
        return self._id != NO_SESSION

    def request(self, wanted: dict[TopicPartition, Wanted]) -> SessionRequest:
        """The request for all of `wanted` and nothing else."""
        if self.is_full_next:
            self.sent = wanted
            return SessionRequest(self._id, INITIAL_EPOCH, wanted, {})
        before = self.sent
        changed = {key: each for key, each in wanted.items() if before.get(key) != each}
        # A topic that was created again has another id; its old one leaves the session.
        forgotten = {
            key: each.topic_id
            for key, each in before.items()
            if key not in wanted or wanted[key].topic_id != each.topic_id
        }
        self.sent = wanted
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def final_request(self) -> SessionRequest:
        """Lets the node forget the session."""
        return SessionRequest(self._id, FINAL_EPOCH, {}, {})
