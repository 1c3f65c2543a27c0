"""Made from schemas/ by tools/generate_messages.py; edit the description instead."""

from __future__ import annotations

from moldau.wire.message import UNSET, Message


class WriteTxnMarkersRequest(Message):
    """request, versions 1-2."""

    KIND = "request"
    TYPE = 27
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 1
    __slots__ = ("markers",)
    FIELDS = (
        ('markers', '[]WritableTxnMarker', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = UNSET,
    ) -> None:
        self.markers = [] if markers is UNSET else markers
        self.unknown_tagged_fields = None

    class WritableTxnMarker(Message):
        __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch", "transaction_version",)
        FIELDS = (
            ('producer_id', 'int64', 0, 32767, None, None, 0, False),
            ('producer_epoch', 'int16', 0, 32767, None, None, 0, False),
            ('transaction_result', 'bool', 0, 32767, None, None, False, False),
            ('topics', '[]WritableTxnMarkerTopic', 0, 32767, None, None, (), False),
            ('coordinator_epoch', 'int32', 0, 32767, None, None, 0, False),
            ('transaction_version', 'int8', 2, 32767, None, None, 0, True),
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            transaction_result: bool = False,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = UNSET,
            coordinator_epoch: int = 0,
            transaction_version: int = 0,
        ) -> None:
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.transaction_result = transaction_result
            self.topics = [] if topics is UNSET else topics
            self.coordinator_epoch = coordinator_epoch
            self.transaction_version = transaction_version
            self.unknown_tagged_fields = None

    class WritableTxnMarkerTopic(Message):
        __slots__ = ("name", "partition_indexes",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partition_indexes', '[]int32', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partition_indexes: list[int] = UNSET,
        ) -> None:
            self.name = name
            self.partition_indexes = [] if partition_indexes is UNSET else partition_indexes
            self.unknown_tagged_fields = None


class WriteTxnMarkersResponse(Message):
    """response, versions 1-2."""

    KIND = "response"
    TYPE = 27
    LOWEST_VERSION = 1
    HIGHEST_VERSION = 2
    FLEXIBLE_FROM = 1
    __slots__ = ("markers",)
    FIELDS = (
        ('markers', '[]WritableTxnMarkerResult', 0, 32767, None, None, (), False),
    )

    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = UNSET,
    ) -> None:
        self.markers = [] if markers is UNSET else markers
        self.unknown_tagged_fields = None

    class WritableTxnMarkerResult(Message):
        __slots__ = ("producer_id", "topics",)
        FIELDS = (
            ('producer_id', 'int64', 0, 32767, None, None, 0, False),
            ('topics', '[]WritableTxnMarkerTopicResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = UNSET,
        ) -> None:
            self.producer_id = producer_id
            self.topics = [] if topics is UNSET else topics
            self.unknown_tagged_fields = None

    class WritableTxnMarkerTopicResult(Message):
        __slots__ = ("name", "partitions",)
        FIELDS = (
            ('name', 'string', 0, 32767, None, None, '', False),
            ('partitions', '[]WritableTxnMarkerPartitionResult', 0, 32767, None, None, (), False),
        )

        def __init__(
            self,
            *,
            name: str = '',
            partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = UNSET,
        ) -> None:
            self.name = name
            self.partitions = [] if partitions is UNSET else partitions
            self.unknown_tagged_fields = None

    class WritableTxnMarkerPartitionResult(Message):
        __slots__ = ("partition_index", "error_code",)
        FIELDS = (
            ('partition_index', 'int32', 0, 32767, None, None, 0, False),
            ('error_code', 'int16', 0, 32767, None, None, 0, False),
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index = partition_index
            self.error_code = error_code
            self.unknown_tagged_fields = None
