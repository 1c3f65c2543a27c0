"""What one learns about producers and transactions."""

from __future__ import annotations

from typing import NamedTuple

from moldau.client.admin.enums import NamedEnum
from moldau.client.topics import TopicPartition

__all__ = [
    "AbortTransactionSpec",
    "PartitionProducerState",
    "ProducerIdAndEpoch",
    "ProducerState",
    "TransactionDescription",
    "TransactionListing",
    "TransactionState",
]


class TransactionState(NamedEnum):
    ONGOING = "Ongoing"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_ABORT = "CompleteAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    EMPTY = "Empty"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"


class TransactionListing(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator_id: int = -1


class TransactionDescription(NamedTuple):
    """`transaction_start_time_ms` is None while no transaction is open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: frozenset[TopicPartition]


class ProducerState(NamedTuple):
    """A producer that a partition remembers; the last two are None outside transactions."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None = None
    current_transaction_start_offset: int | None = None


class PartitionProducerState(NamedTuple):
    active_producers: tuple[ProducerState, ...]


class AbortTransactionSpec(NamedTuple):
    """A transaction in one partition, as `describe_producers` shows it."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int
