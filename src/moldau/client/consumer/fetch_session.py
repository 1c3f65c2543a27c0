"""A consumer's side of incremental fetch sessions with one node (KIP-227).

Decided here: what the next request names. What always holds: after a request was answered, the
node's session holds exactly what `sent` says; after any doubt (an error, no answer) the next
request names everything and starts a new session, closing the old one if it is still there. Pure.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from moldau.client.topics import TopicPartition
from moldau.wire.errors import ErrorCode

__all__ = ["ConsumerFetchSession", "SessionRequest", "Wanted"]

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 2**31 - 1


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


class ConsumerFetchSession:
    """One node's."""

    __slots__ = ("_epoch", "_id", "sent")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        # What the node reads for us with every request.
        self.sent: dict[TopicPartition, Wanted] = {}

    @property
    def is_open(self) -> bool:
        return self._id != NO_SESSION

    def request(self, wanted: dict[TopicPartition, Wanted]) -> SessionRequest:
        """The request for all of `wanted` and nothing else."""
        if self._epoch == INITIAL_EPOCH:
            self.sent = wanted
            return SessionRequest(self._id, INITIAL_EPOCH, wanted, {})
        before = self.sent
        changed = {key: each for key, each in wanted.items() if before.get(key) != each}
        # A topic made anew has another id; its old one leaves the session.
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

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take over the answer's head; whether there is anything in the answer to read."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
            return False
        if error_code != ErrorCode.NONE:
            self.failed()
            return False
        if self._epoch == INITIAL_EPOCH:
            self._id = session_id
            self._epoch = INITIAL_EPOCH if session_id == NO_SESSION else 1
        elif session_id == NO_SESSION:
            # The node has closed it, this was its last answer.
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def failed(self) -> None:
        """It is not known how far the node got with the request."""
        self._epoch = INITIAL_EPOCH
