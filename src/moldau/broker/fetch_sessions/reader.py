"""Reads the partitions of one fetch within its limits.

The first partition that has records returns at least one whole batch, whatever the limits; all
others share what is left of max_bytes.

Invariants: a partition that fails returns its own error and affects no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

from moldau.broker.fetch_sessions.slot import FetchSlot
from moldau.broker.replication import reading
from moldau.broker.replication.machine.fetch_data import NO_REPLICA, PartitionData
from moldau.broker.replication.machine.names import TopicKey
from moldau.broker.replication.machine.throttle import ReplicationThrottle, is_throttled_replica
from moldau.broker.replication.partition import Partition
from moldau.times import ELAPSED_ZERO, ElapsedMs
from moldau.wire.errors import ApiError, ErrorCode

_new_tuple = tuple.__new__  # What NamedTuples do themselves, less a call for each partition.

ZSTD_SINCE = 10
STORAGE_ERROR_SINCE = 6
FOLLOWERS_SERVE_SINCE = 11

# These do not end a wait early while other partitions may still have data: a consumer of a deleted
# topic would otherwise fetch again and again without pause.
_PATIENT_ERRORS = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class Replicas(Protocol):
    """Where partitions are found."""

    def find(self, key: TopicKey, index: int) -> Partition | None: ...

    def absence(self, key: TopicKey, index: int) -> ErrorCode: ...

    def preferred_read_replica(
        self, partition: Partition, fetch_offset: int, rack: str, listener_name: str
    ) -> int | None: ...


class FetchLimits(NamedTuple):
    """The part of a request that concerns all its partitions."""

    version: int
    replica_id: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    replica_epoch: int = -1
    # The rack of a consumer that may be redirected to a closer replica; empty: it may not.
    rack: str = ""
    listener_name: str = ""
    # Whether the client may not read a topic, asked with `sender`; None: everybody may read all.
    denies: Callable[[Any, TopicKey], bool] | None = None
    sender: object = None
    # Topics that need not be asked about.
    granted: AbstractSet[TopicKey] = frozenset()


class Reading(NamedTuple):
    """One pass over partitions. `urgent`: respond before min_bytes are available."""

    results: list[tuple[FetchSlot, PartitionData]]
    size: int
    urgent: bool


class SlotReader:
    """Reads slots from the partitions hosted here."""

    def __init__(
        self,
        replicas: Replicas,
        *,
        throttle: ReplicationThrottle | None = None,
        elapsed_ms: Callable[[], ElapsedMs] = lambda: ELAPSED_ZERO,
    ) -> None:
        """`throttle` counts what followers get, in the time of `elapsed_ms`."""
        self._replicas = replicas
        self._throttle = throttle
        self._elapsed_ms = elapsed_ms

    def read_all(
        self, slots: Iterable[FetchSlot], limits: FetchLimits, others_count: int = 0
    ) -> Reading:
        """Read all slots in turn; `others_count` healthy partitions are not read this time."""
        results: list[tuple[FetchSlot, PartitionData]] = []
        left = limits.max_bytes
        size = 0
        healthy_count = others_count
        urgent = False
        for slot in slots:
            data = self.read_one(slot, limits, left, size == 0)
            results.append((slot, data))
            records_size = data.records_size
            if records_size:
                size += records_size
                left = max(0, left - records_size)
            if data.error_code:
                urgent = urgent or data.error_code not in _PATIENT_ERRORS
            else:
                healthy_count += 1
                if data.diverging_epoch is not None or data.preferred_read_replica >= 0:
                    urgent = True
        return Reading(results, size, urgent or healthy_count == 0)

    def read_one(
        self, slot: FetchSlot, limits: FetchLimits, bytes_left: int, min_one_batch: bool
    ) -> PartitionData:
        """The result for one partition if it may use `bytes_left` of the response."""
        wanted = slot.wanted
        if (
            limits.denies is not None
            and slot.key not in limits.granted
            and limits.denies(limits.sender, slot.key)
        ):
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return PartitionData(wanted.partition, denied, aborted_transactions=())
        partition = slot.partition
        if partition is None or partition.error is not None:
            partition = slot.partition = self._replicas.find(slot.key, wanted.partition)
            if partition is None:
                code = self._replicas.absence(slot.key, wanted.partition)
                return PartitionData(wanted.partition, code, aborted_transactions=())
        max_bytes = wanted.max_bytes
        if bytes_left < max_bytes:
            max_bytes = bytes_left
        from_follower = limits.replica_id >= 0
        try:
            if from_follower:
                partition.check_follower(
                    limits.replica_id, limits.replica_epoch, wanted.current_leader_epoch
                )
            elif limits.version < FOLLOWERS_SERVE_SINCE:
                partition.role.check_leader_epoch(wanted.current_leader_epoch)
            else:
                partition.role.check_readable(wanted.current_leader_epoch)
            if limits.rack:
                closer = self._closer_replica(partition, slot, limits)
                if closer is not None:
                    return closer
            if from_follower and self._is_held_up(partition, limits.replica_id):
                max_bytes, min_one_batch = 0, False
            read = reading.read(
                partition.log,
                wanted.fetch_offset,
                max_bytes,
                min_one_batch=min_one_batch,
                read_committed=limits.read_committed,
                up_to_log_end=from_follower,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
        except ApiError as error:
            return PartitionData(wanted.partition, self._code_for(error.code, limits.version))
        if limits.version < ZSTD_SINCE and partition.log.config.compression_type == "zstd":
            return PartitionData(wanted.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        # The fields of a read are those of the response, in the same order.
        return _new_tuple(PartitionData, (wanted.partition, 0, *read, None, NO_REPLICA))

    def _closer_replica(
        self, partition: Partition, slot: FetchSlot, limits: FetchLimits
    ) -> PartitionData | None:
        wanted, log = slot.wanted, partition.log
        replica_id = self._replicas.preferred_read_replica(
            partition, wanted.fetch_offset, limits.rack, limits.listener_name
        )
        if replica_id is None:
            return None
        return PartitionData(
            wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            preferred_read_replica=replica_id,
        )

    # Fetches of followers.

    def _is_held_up(self, partition: Partition, replica_id: int) -> bool:
        """Whether a follower that is not in sync is throttled now."""
        throttle, leader = self._throttle, partition.leadership
        return (
            throttle is not None
            and leader is not None
            and replica_id not in leader.isr
            and _is_throttled(partition)
            and throttle.is_exceeded(self._elapsed_ms())
        )

    def count_sent(self, results: Iterable[tuple[FetchSlot, PartitionData]]) -> None:
        """Count what a follower gets."""
        throttle = self._throttle
        if throttle is None:
            return
        size = sum(
            data.records_size
            for slot, data in results
            if data.records_size and slot.partition is not None and _is_throttled(slot.partition)
        )
        if size:
            throttle.record(size, self._elapsed_ms())

    def note_follower(self, slots: Iterable[FetchSlot], limits: FetchLimits) -> None:
        """Record a follower's positions at the leaders.

        This comes before the read, so that the response has the high watermark that it raised.
        Errors of the request are left to the read.
        """
        for slot in slots:
            wanted = slot.wanted
            partition = self._replicas.find(slot.key, wanted.partition)
            if partition is None:
                continue
            try:
                partition.follower_fetched(
                    limits.replica_id,
                    limits.replica_epoch,
                    fetch_offset=wanted.fetch_offset,
                    log_start_offset=wanted.log_start_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    current_leader_epoch=wanted.current_leader_epoch,
                )
            except ApiError:
                continue

    @staticmethod
    def _code_for(code: ErrorCode, version: int) -> ErrorCode:
        # Old consumers do not know the storage error and would fail instead of trying again.
        if code == ErrorCode.KAFKA_STORAGE_ERROR and version < STORAGE_ERROR_SINCE:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return code


def _is_throttled(partition: Partition) -> bool:
    # The list names replicas that send, which is the leader here.
    return is_throttled_replica(
        partition.log.config.leader_replication_throttled_replicas,
        partition.index,
        partition.leader_id,
    )
