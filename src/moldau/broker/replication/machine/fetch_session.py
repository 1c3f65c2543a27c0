"""A follower's side of incremental fetch sessions (KIP-227).

Decided here: what the next request must name.

Invariants: after a response, the leader's session has exactly the partitions in `sent`; after an
error or without a response, the next request names everything and starts a new session, closing
the old one if it still exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from moldau.broker.replication.machine.fetch_data import PartitionFetch
from moldau.wire.fetch_session import SessionNumbers

PartitionKey: TypeAlias = tuple[bytes, int]
"""16-byte topic id and partition index."""


class SessionRequest(NamedTuple):
    """The part of a Fetch request that sessions decide."""

    session_id: int
    session_epoch: int
    partitions: dict[PartitionKey, PartitionFetch]
    forgotten: tuple[PartitionKey, ...]


class FollowerFetchSession(SessionNumbers):
    """One fetcher's session with its leader."""

    __slots__ = ("sent",)

    def __init__(self) -> None:
        super().__init__()
        # What the leader reads for us with every request.
        self.sent: dict[PartitionKey, PartitionFetch] = {}

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
