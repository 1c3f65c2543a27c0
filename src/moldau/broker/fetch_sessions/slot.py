"""One partition as one fetcher sees it.

A slot knows what is asked of the partition, what the client was last told about it, and whom to
call when it changes. What always holds: a slot of a session is among the session's candidates, or
watches its partition, so that no change is ever missed and unchanged partitions cost nothing.
"""

from __future__ import annotations

from typing import Protocol

from moldau.broker.replication.machine.fetch_data import NO_REPLICA, PartitionData, PartitionFetch
from moldau.broker.replication.machine.names import TopicKey
from moldau.broker.replication.partition import Partition

NEVER_SENT = -1


class SlotOwner(Protocol):
    """A session or a waiting fetch."""

    def on_slot_changed(self, slot: FetchSlot) -> None: ...


class FetchSlot:
    """What one fetcher wants of one partition."""

    __slots__ = (
        "from_follower",
        "key",
        "owner",
        "partition",
        "readable_size",
        "sent_high_watermark",
        "sent_log_start_offset",
        "wanted",
    )

    def __init__(self, key: TopicKey, wanted: PartitionFetch, from_follower: bool = False) -> None:
        """`from_follower`: it reads also what is not committed yet."""
        self.key = key
        self.from_follower = from_follower
        self.wanted = wanted
        self.partition: Partition | None = None
        self.owner: SlotOwner | None = None
        self.readable_size = 0
        self.sent_high_watermark = NEVER_SENT
        self.sent_log_start_offset = NEVER_SENT

    def on_partition_changed(self) -> None:
        if self.owner is not None:
            self.owner.on_slot_changed(self)

    def watch(self) -> None:
        """Be told of the next change of the partition."""
        if self.partition is not None:
            self.partition.waiters.changes[self] = None
            if self.from_follower:
                self.partition.waiters.appends[self] = None

    def unwatch(self) -> None:
        if self.partition is not None:
            self.partition.waiters.changes.pop(self, None)
            if self.from_follower:
                self.partition.waiters.appends.pop(self, None)

    def want(self, wanted: PartitionFetch) -> None:
        """Take over what the client asks for now."""
        if wanted.current_leader_epoch != self.wanted.current_leader_epoch:
            # It may not have taken what was sent while it knew of another leader epoch.
            self.sent_high_watermark = self.sent_log_start_offset = NEVER_SENT
        self.wanted = wanted

    def must_send(self, data: PartitionData) -> bool:
        """Whether an incremental response has to mention the partition."""
        return (
            data.records_size > 0
            or data.error_code != 0
            or data.diverging_epoch is not None
            or data.preferred_read_replica != NO_REPLICA
            or data.high_watermark != self.sent_high_watermark
            or data.log_start_offset != self.sent_log_start_offset
        )

    def note_sent(self, data: PartitionData) -> None:
        self.sent_high_watermark = data.high_watermark
        self.sent_log_start_offset = data.log_start_offset

    def has_more(self, data: PartitionData, read_committed: bool) -> bool:
        """Whether a read at the same offset would find records, an error or a divergence."""
        if data.error_code or data.diverging_epoch is not None:
            return True
        if self.from_follower:
            return self.partition is not None and (
                self.wanted.fetch_offset < self.partition.log.log_end_offset
            )
        upper = data.last_stable_offset if read_committed else data.high_watermark
        return self.wanted.fetch_offset < upper
