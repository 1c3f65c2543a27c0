"""One partition as one fetcher sees it.

A slot has what is requested of the partition, what was last returned about it, and its owner, which
is called when it changes.

Invariants: a slot of a session is among the session's candidates, or watches its partition, so that
no change is missed and unchanged partitions cost nothing.
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
    """One partition of one fetcher."""

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
        """`from_follower`: it also reads what is not committed yet."""
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
        """Have the owner called at the next change of the partition."""
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
        """Replace what the client requests."""
        if wanted.current_leader_epoch != self.wanted.current_leader_epoch:
            # It may have dropped what was sent while it knew another leader epoch.
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
