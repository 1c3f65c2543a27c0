"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class AddPartitionsToTxnRequest(Message):
    """request, versions 0-5."""

    KIND = "request"
    TYPE = 24
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics",)
    FIELDS = (
        ('transactions', '[]AddPartitionsToTxnTransaction', 4, 32767, None, None, (), False),
        ('v3_and_below_transactional_id', 'string', 0, 3, None, None, '', False),
        ('v3_and_below_producer_id', 'int64', 0, 3, None, None, 0, False),
        ('v3_and_below_producer_epoch', 'int16', 0, 3, None, None, 0, False),
        ('v3_and_below_topics', '[]AddPartitionsToTxnTopic', 0, 3, None, None, (), False),
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = UNSET,
        v3_and_below_transactional_id: str = '',
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = UNSET,
    ) -> None:
        self.transactions = [] if transactions is UNSET else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is UNSET else v3_and_below_topics
        self.unknown_tagged_fields = None

    class AddPartitionsToTxnTransaction(Message):
        __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics",)
        FIELDS = (
            ('transactional_id', 'string', 4, 32767, None, None, '', False),
            ('producer_id', 'int64', 4, 32767, None, None, 0, False),
            ('producer_epoch', 'int16', 4, 32767, None, None, 0, False),
            ('verify_only', 'bool', 4, 32767, None, None, False, False),
            ('topics', '[]AddPartitionsToTxnTopic', 4, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            transactional_id: str = '',
            producer_id: int = 0,
            producer_epoch: int = 0,
            verify_only: bool = False,
            topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = UNSET,
        ) -> None:
            self.transactional_id = transactional_id
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.verify_only = verify_only
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnTopic(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None


class AddPartitionsToTxnResponse(Message):
    """response, versions 0-5."""

    KIND = "response"
    TYPE = 24
    LOWEST_VERSION = 0
    HIGHEST_VERSION = 5
    FLEXIBLE_FROM = 3
    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below",)
    FIELDS = (
        ('throttle_time_ms', 'int32', 0, 32767, None, None, 0, False),
        ('error_code', 'int16', 4, 32767, None, None, 0, True),
        ('results_by_transaction', '[]AddPartitionsToTxnResult', 4, 32767, None, None, (), False),
        ('results_by_topic_v3_and_below', '[]AddPartitionsToTxnTopicResult', 0, 3, None, None, (), False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = UNSET,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = UNSET,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is UNSET else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is UNSET else results_by_topic_v3_and_below
        self.unknown_tagged_fields = None

    class AddPartitionsToTxnResult(Message):
        __slots__ = ("transactional_id", "topic_results",)
        FIELDS = (
            ('transactional_id', 'string', 4, 32767, None, None, '', False),
            ('topic_results', '[]AddPartitionsToTxnTopicResult', 4, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            transactional_id: str = '',
            topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = UNSET,
        ) -> None:
            self.transactional_id = transactional_id
            self.topic_results = [] if topic_results is UNSET else topic_results
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnTopicResult(Message):
        __slots__ = ("name", "results_by_partition",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('results_by_partition', '[]AddPartitionsToTxnPartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = UNSET,
        ) -> None:
            self.name = name
            self.results_by_partition = [] if results_by_partition is UNSET else results_by_partition
            self.unknown_tagged_fields = None

    class AddPartitionsToTxnPartitionResult(Message):
        __slots__ = ("partition_index", "partition_error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('partition_error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.partition_error_code = partition_error_code
            self.unknown_tagged_fields = None
