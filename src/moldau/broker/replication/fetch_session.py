"""A follower's side of incremental fetch sessions (KIP-227).

Decided here: what the next request must name. What always holds: after a request was answered,
the leader's session holds exactly what `sent` says; after any doubt (an error, no answer) the
next request names everything and starts a new session, closing the old one if it is still there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from moldau.broker.fetch_sessions.fetch_data import PartitionFetch
from moldau.wire.errors import ErrorCode

PartitionKey: TypeAlias = tuple[bytes, int]
"""16-byte topic id and partition index."""

NO_SESSION = 0
INITIAL_EPOCH = 0
_EPOCH_MAX = 2**31 - 1


class SessionRequest(NamedTuple):
    """The part of a Fetch request that sessions decide."""

    session_id: int
    session_epoch: int
    partitions: dict[PartitionKey, PartitionFetch]
    forgotten: tuple[PartitionKey, ...]


class FollowerFetchSession:
    """One fetcher's session with its leader."""

    __slots__ = ("_epoch", "_id", "sent")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        # What the leader reads for us with every request.
        self.sent: dict[PartitionKey, PartitionFetch] = {}

    @property
    def is_full_next(self) -> bool:
        """Whether the next request has to name every partition."""
        return self._epoch == INITIAL_EPOCH

    def request(
        self, partitions: dict[PartitionKey, PartitionFetch], gone: Iterable[PartitionKey]
    ) -> SessionRequest:
        """The next request: `partitions` are all there are if `is_full_next`, else those that are
        new or different; `gone` are no longer wanted."""
        if self.is_full_next:
            self.sent = dict(partitions)
            return SessionRequest(self._id, self._epoch, partitions, ())
        changed = {
            key: wanted for key, wanted in partitions.items() if self.sent.get(key) != wanted
        }
        forgotten = tuple(key for key in gone if self.sent.pop(key, None) is not None)
        self.sent.update(changed)
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def answered(self, error: ErrorCode, session_id: int) -> bool:
        """Take over the answer's head; whether there is anything in the answer to read."""
        if error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
            return False
        if error is not ErrorCode.NONE:
            self.failed()
            return False
        if self.is_full_next:
            self._id = session_id
            self._epoch = INITIAL_EPOCH if session_id == NO_SESSION else 1
        elif session_id == NO_SESSION:
            # The leader has closed it, this was its last answer.
            self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return True

    def failed(self) -> None:
        """It is not known how far the leader got with the request."""
        self._epoch = INITIAL_EPOCH
