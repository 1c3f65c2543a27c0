"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class DescribeTransactionsRequest(Message):
    """request, versions 0."""

    KIND = "request"
    TYPE = 65
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("transactional_ids",)
    FIELDS = (
        ('transactional_ids', '[]string', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        transactional_ids: list[str] = UNSET,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is UNSET else transactional_ids
        self.unknown_tagged_fields = None


class DescribeTransactionsResponse(Message):
    """response, versions 0."""

    KIND = "response"
    TYPE = 65
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 0
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "transaction_states",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('transaction_states', '[]TransactionState', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[DescribeTransactionsResponse.TransactionState] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is UNSET else transaction_states
        self.unknown_tagged_fields = None

    class TransactionState(Message):
        __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics",)
        FIELDS = (
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
            ('transactional_id', 'string', 0, 32767, None, None, '', False),
            ('transaction_state', 'string', 0, 32767, None, None, '', False),
            ('transaction_timeout_ms', 'int32', 0, 32767, None, None, 0, False),
            ('transaction_start_time_ms', 'int64', 0, 32767, None, None, 0, False),
            ('producer_id', 'int64', 0, 32767, None, None, 0, False),
            ('producer_epoch', 'int16', 0, 32767, None, None, 0, False),
            ('topics', '[]TopicData', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            transactional_id: str = '',
            transaction_state: str = '',
            transaction_timeout_ms: int = 0,
            transaction_start_time_ms: int = 0,
            producer_id: int = 0,
            producer_epoch: int = 0,
            topics: list[DescribeTransactionsResponse.TopicData] = UNSET,
        ) -> None:
            self.error_code = error_code
            self.transactional_id = transactional_id
            self.transaction_state = transaction_state
            self.transaction_timeout_ms = transaction_timeout_ms
            self.transaction_start_time_ms = transaction_start_time_ms
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class TopicData(Message):
        __slots__ = ("topic", "partitions",)
        FIELDS = (
            ('topic', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            topic: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.topic = topic
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None
