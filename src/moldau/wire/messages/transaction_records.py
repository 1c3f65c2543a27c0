"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class TransactionLogKey(Message):
    """transaction-key, versions 0."""

    KIND = "transaction-key"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 32767
    __slots__ = ("transactional_id",)
    FIELDS = (
        ('transactional_id', 'string', 0, 0, None, None, '', False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = '',
    ) -> None:
        self.transactional_id = transactional_id
        self.unknown_tagged_fields = None


class TransactionLogValue(Message):
    """transaction-value, versions 0-1."""

    KIND = "transaction-value"
    TYPE = 0
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 1
    FLEXIBLE_FROM = 1
    __slots__ = ("producer_id", "previous_producer_id", "next_producer_id", "producer_epoch", "next_producer_epoch", "transaction_timeout_ms", "transaction_status", "transaction_partitions", "transaction_last_update_timestamp_ms", "transaction_start_timestamp_ms", "client_transaction_version",)
    FIELDS = (
        ('producer_id', 'int64', 0, 32767, None, None, 0, False),
        ('previous_producer_id', 'int64', 1, 32767, None, (0, 1, 32767), -1, False),
        ('next_producer_id', 'int64', 1, 32767, None, (1, 1, 32767), -1, False),
        ('producer_epoch', 'int16', 0, 32767, None, None, 0, False),
        ('next_producer_epoch', 'int16', 1, 32767, None, (3, 1, 32767), -1, False),
        ('transaction_timeout_ms', 'int32', 0, 32767, None, None, 0, False),
        ('transaction_status', 'int8', 0, 32767, None, None, 0, False),
        ('transaction_partitions', '[]PartitionsSchema', 0, 32767, (0, 32767), None, (), False),
        ('transaction_last_update_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('transaction_start_timestamp_ms', 'int64', 0, 32767, None, None, 0, False),
        ('client_transaction_version', 'int16', 1, 32767, None, (2, 1, 32767), 0, False),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = UNSET,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is UNSET else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.unknown_tagged_fields = None

    class PartitionsSchema(Message):
        __slots__ = ("topic", "partition_ids",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partition_ids', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partition_ids: list[int] = UNSET,
        ) -> None:
            self.topic = topic
            self.partition_ids = [] if partition_ids is UNSET else partition_ids
            self.unknown_tagged_fields = None
